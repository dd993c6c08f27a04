"""The state of one DelayTopic: a word and a sentence, and the facts that `-o json` prints. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

MOST_EVENTS = 8
_ROLES = ("source", "target", "deadLetter")
_BAD_WHEN_TRUE: Final = frozenset({"Stalled", "Reconciling", "Paused", "Draining"})
_GOOD_FIRST: Final = ("Stalled", "Draining", "Paused")
_WORTH_A_WORD: Final = {"DeliveringOnTime": "Late", "CapacitySufficient": "TooFewRelays", "SLOMet": "SLOMissed"}
"""Conditions that do not change Ready, and still matter to a reader."""
NO_OPERATOR: Final = "no operator has looked at it yet: is one running, and does it watch this namespace?"


def facts_of(document: Mapping[str, Any], events: Iterable[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Return plain JSON; a part of which nothing is known is null."""
    metadata, spec, status = document["metadata"], document.get("spec") or {}, document.get("status") or {}
    said = verdict(document)
    scaling = status.get("scaling") or {}
    return {
        "namespace": metadata.get("namespace"),
        "name": metadata["name"],
        "verdict": said.word,
        "sentence": said.sentence,
        "deletionPolicy": spec.get("deletionPolicy", "Drain"),
        "topics": {role: _topic(role, spec, status) for role in _ROLES},
        "effective": status.get("effective"),
        "formerRules": status.get("formerRules") or [],
        "backend": status.get("backend"),
        "backlog": status.get("backlog"),
        "relays": status.get("relay"),
        "scaling": {"reason": scaling.get("reason"), "sentence": scaling.get("sentence")} if scaling else None,
        "slo": status.get("slo"),
        "conditions": list(conditions_of(document).values()),
        "plan": status.get("plan"),
        "events": newest(events),
        "operatorVersion": status.get("operatorVersion"),
    }


def newest(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the last events, of the API events.k8s.io/v1 or v1, the newest first."""
    told = [_event(each) for each in events]
    return sorted(told, key=lambda each: str(each["time"] or ""), reverse=True)[:MOST_EVENTS]


def _topic(role: str, spec: Mapping[str, Any], status: Mapping[str, Any]) -> dict[str, Any]:
    source = (spec.get("source") or {}).get("topic")
    written = (spec.get(role) or {}).get("topic")
    known = status.get(role) or {}
    return {
        "topic": written or (f"{source}.dlq" if role == "deadLetter" and source else None),
        "partitions": known.get("partitions"),
        "ownership": known.get("ownership"),
        "topicId": known.get("topicId"),
    }


def _event(event: Mapping[str, Any]) -> dict[str, Any]:
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return {
        "time": next((time for time in times if time), None),
        "type": event.get("type"),
        "reason": event.get("reason"),
        "note": event.get("note") or event.get("message"),
        "count": series.get("count") or event.get("count") or 1,
    }


class Verdict(NamedTuple):
    """The word is for tables and programs."""

    word: str
    sentence: str


def verdict(document: Mapping[str, Any]) -> Verdict:
    """Return word and sentence of the gravest condition."""
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
    """Return the conditions by type, in the operator's order."""
    return {str(each.get("type")): each for each in (document.get("status") or {}).get("conditions") or ()}


def remarkable(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the conditions that are not as one would wish."""
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
