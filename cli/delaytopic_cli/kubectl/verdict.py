"""How a DelayTopic does, in a word and a sentence, from the conditions that the operator wrote. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

_BAD_WHEN_TRUE: Final = frozenset({"Stalled", "Reconciling", "Paused", "Draining"})
_GOOD_FIRST: Final = ("Stalled", "Draining", "Paused")
_WORTH_A_WORD: Final = {"DeliveringOnTime": "Late", "CapacitySufficient": "TooFewRelays", "SLOMet": "SLOMissed"}
"""What does not change Ready, and still matters to who looks."""
NO_OPERATOR: Final = "no operator has looked at it yet: is one running, and does it watch this namespace?"


class Verdict(NamedTuple):
    """The word is for tables and programs."""

    word: str
    sentence: str


def verdict(document: Mapping[str, Any]) -> Verdict:
    """The gravest first."""
    conditions = conditions_of(document)
    if not conditions:
        return Verdict("Unknown", NO_OPERATOR)
    for type in _GOOD_FIRST:
        if _status(conditions, type) == "True":
            return Verdict(type, _sentence(conditions[type]))
    ready = conditions.get("Ready", {})
    if ready.get("status") != "True":
        word = str(ready.get("reason") or "Unknown") if ready.get("status") == "False" else "Unknown"
        return Verdict(word, _sentence(ready))
    outdated = _outdated(document)
    if outdated is not None:
        return Verdict("Outdated", outdated)
    for type, word in _WORTH_A_WORD.items():
        if _status(conditions, type) == "False":
            return Verdict(word, _sentence(conditions[type]))
    if _status(conditions, "Reconciling") == "True":
        return Verdict("Ready", f"{_sentence(ready)}; being changed: {_sentence(conditions['Reconciling'])}")
    return Verdict("Ready", _sentence(ready))


def conditions_of(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """By type, in the operator's order."""
    return {str(each.get("type")): each for each in (document.get("status") or {}).get("conditions") or ()}


def remarkable(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The conditions that are not as one would wish."""
    return [each for type, each in conditions_of(document).items() if _is_remarkable(type, str(each.get("status")))]


def _is_remarkable(type: str, status: str) -> bool:
    return status == "True" if type in _BAD_WHEN_TRUE else status != "True"


def _outdated(document: Mapping[str, Any]) -> str | None:
    wanted = document["metadata"].get("generation")
    seen = (document.get("status") or {}).get("observedGeneration")
    if wanted is None or seen is None or seen >= wanted:
        return None
    return f"the operator has not looked at the last change yet (generation {wanted}; this is about {seen})"


def _status(conditions: Mapping[str, Mapping[str, Any]], type: str) -> str:
    return str(conditions.get(type, {}).get("status", "Unknown"))


def _sentence(condition: Mapping[str, Any]) -> str:
    return str(condition.get("message") or condition.get("reason") or "no reason is given")
