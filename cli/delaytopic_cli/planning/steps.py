"""From the operator's actions to the steps that a plan shows. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from delaytopic_cli.planning.applying import NOT_SET, shown
from delaytopic_cli.planning.outcome import Change, Step
from delaytopic_operator.decide.actions import Action, Apply, Remove, WriteRecord
from delaytopic_operator.decide.record import record_document, record_name
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.resources.hash import APPLIED_HASH

Document = Mapping[str, Any]
_PART = re.compile(r'\["(?P<quoted>[^"]+)"\]|\[(?P<index>\d+)\]|\.?(?P<name>[A-Za-z0-9_-]+)')
_MISSING = object()


def steps_of(actions: Iterable[Action], seen: Observation, record_is_there: bool) -> list[Step]:
    """One step for each object, in the order in which it is first touched; `seen` is how it was before."""
    found: dict[tuple[str, str], Step] = {}
    for action in actions:
        step = _step(action, seen, record_is_there)
        found[step.action, step.object] = step
    return list(found.values())


def _step(action: Action, seen: Observation, record_is_there: bool) -> Step:
    planned = action.planned()
    match action:
        case WriteRecord(record):
            place = f"ConfigMap {seen.config.namespace}/{record_name(record.key)}"
            document = record_document(record, seen.config.namespace)
            word = "Update" if record_is_there else "Create"
            return Step(word, place, "what is owned, kept beyond the DelayTopic", document=document)
        case Apply(document, differences, exists):
            live = _live(document, seen.children) if exists else None
            changes = list(_changes(document, live, differences)) if live is not None else []
            restarts = exists and any(".template." in f".{path}" for path in differences)
            return Step(planned.action, planned.object, None, changes, restarts, document)
        case Remove():
            return Step(planned.action, planned.object, None)
        case _:
            return Step(planned.action, planned.object, planned.detail)


def _live(document: Document, children: Sequence[Document]) -> Document | None:
    address = _address(document)
    return next((each for each in children if _address(each) == address), None)


def _address(document: Document) -> tuple[str, str, str]:
    metadata = document["metadata"]
    return document["kind"], metadata.get("namespace", ""), metadata["name"]


def _changes(document: Document, live: Document, paths: Sequence[str]) -> Iterator[Change]:
    """Without the digest of the document, unless nothing else tells of a change."""
    told = [path for path in paths if APPLIED_HASH not in path] or list(paths)
    for path in told:
        before, now = value_at(live, path), value_at(document, path)
        if isinstance(before, str) and isinstance(now, str) and "\n" in before + now:
            yield from _line_changes(path, before, now)
        else:
            yield Change(path, *(NOT_SET if value is _MISSING else shown(value) for value in (before, now)))


def _line_changes(path: str, before: str, now: str) -> Iterator[Change]:
    """Of a text, the lines that are others."""
    olds, news = before.splitlines(), now.splitlines()
    for tag, a, b, c, d in difflib.SequenceMatcher(None, olds, news, autojunk=False).get_opcodes():
        if tag != "equal":
            yield Change(
                path, *(shown("; ".join(map(str.strip, lines)) or NOT_SET) for lines in (olds[a:b], news[c:d]))
            )


def value_at(document: Document, path: str) -> Any:
    """What a path of `drift` leads to; a marker of its own when it leads nowhere."""
    found: Any = document
    for match in _PART.finditer(path):
        if match["index"] is not None:
            place = int(match["index"])
            found = found[place] if isinstance(found, list) and place < len(found) else _MISSING
        else:
            name = match["quoted"] or match["name"]
            found = found.get(name, _MISSING) if isinstance(found, Mapping) else _MISSING
    return found
