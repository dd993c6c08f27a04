"""Changes of an object itself by a document that is applied, and those that the API server would refuse. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from delaytopic_api import class_in_force
from delaytopic_api.documents import API_VERSION
from delaytopic_api.errors import ApiError
from delaytopic_api.loading import load_document
from delaytopic_operator.model.conditions import instant
from delaytopic_operator.offline.documents import Document, name_of
from delaytopic_operator.offline.outcome import Change, Step

NOT_YET_KNOWN = "known-after-apply"
"""The text in the place of what the API server gives."""
NOT_SET = "not set"
LONGEST_SHOWN = 60


def applied(written: Mapping[str, Any], live: Mapping[str, Any] | None, now_ms: int) -> Document:
    """Return the written document with what the API server has of it, or would give it."""
    given = {"uid": NOT_YET_KNOWN, "creationTimestamp": instant(now_ms), "resourceVersion": "1", "generation": 1}
    there: Mapping[str, Any] = live["metadata"] if live is not None else given
    own = {name: value for name, value in written["metadata"].items() if value is not None}
    merged = {part: {**(there.get(part) or {}), **(own.get(part) or {})} for part in ("labels", "annotations")}
    document = {"apiVersion": API_VERSION, **written, "metadata": {**own, **there, **merged}}
    document.pop("status", None)
    if live is not None and "status" in live:
        document["status"] = live["status"]
    return _with_replicas(document, live)


def own_step(written: Mapping[str, Any], live: Mapping[str, Any] | None, after: Mapping[str, Any]) -> Step | None:
    """Return the step that makes or changes the object itself; None when there is nothing to change."""
    shown = {name: written[name] for name in ("apiVersion", "kind", "metadata", "spec") if name in written}
    if live is None:
        return Step("Create", name_of(after), document=shown)
    changes = list(_changes(live, after))
    return Step("Update", name_of(after), changes=changes, document=shown) if changes else None


def shown(value: object) -> str | None:
    """Return a value as short text, or None."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= LONGEST_SHOWN and "\n" not in text else None


def _changes(live: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    before_spec, after_spec = _whole_spec(live), _whole_spec(after)
    before_fields, after_fields = dict(_fields(before_spec, "spec")), dict(_fields(after_spec, "spec"))
    for part in ("labels", "annotations"):
        before_fields |= dict(_fields(live["metadata"].get(part) or {}, f"metadata.{part}"))
        after_fields |= dict(_fields(after["metadata"].get(part) or {}, f"metadata.{part}"))
    for path in dict.fromkeys([*after_fields, *before_fields]):
        before, now = before_fields.get(path), after_fields.get(path)
        if before != now:
            yield Change(path, *(shown(value) if value is not None else NOT_SET for value in (before, now)))


def _whole_spec(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add every default, so that a field left out equals its default; an invalid spec stays as it is."""
    try:
        parsed = load_document({**document, "status": None})
    except ApiError:
        return document.get("spec") or {}
    return parsed.spec.to_document()


def _fields(part: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(part, Mapping) and part:
        for name, value in part.items():
            inside = f"{path}.{name}" if str(name).replace("-", "").isalnum() else f'{path}["{name}"]'
            yield from _fields(value, inside)
    elif part not in (None, {}, []):
        yield path, part


def _with_replicas(document: Document, live: Mapping[str, Any] | None) -> Document:
    relay = ((live or {}).get("spec") or {}).get("relay") or {}
    spec = document.get("spec")
    if "replicas" not in relay or not isinstance(spec, Mapping) or not isinstance(spec.get("relay", {}), Mapping):
        return document
    return {**document, "spec": {**spec, "relay": {"replicas": relay["replicas"], **(spec.get("relay") or {})}}}


def refused_change(live: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """Return why the API server would not take the change; None if it would.

    The rules are those of the custom resource definition that compare an object with what it was before: records that
    are pending would suffer from such a change.
    """
    before, now = live.get("spec") or {}, after.get("spec") or {}
    if live.get("kind") == "RecurringRecord":
        was, named = before.get("delayTopic"), now.get("delayTopic")
        fixed = f"spec.delayTopic: cannot be changed (it is {was}): make another RecurringRecord"
        return None if was == named else fixed
    return "; ".join(_refusals(before, now, class_in_force(live))) or None


def _refusals(before: Mapping[str, Any], now: Mapping[str, Any], in_force: str | None) -> Iterator[str]:
    was, named = before.get("delayClassName"), now.get("delayClassName")
    if was != named and (was is not None or named != in_force):
        yield _fixed("spec.delayClassName", was)
    topics = _topics(now)
    for path, old in _topics(before).items():
        new = topics.get(path)
        if new is None:  # another dialect has no history, and outcomes are optional
            continue
        if old.get("topic") != new.get("topic"):
            yield _fixed(f"{path}.topic", old.get("topic"))
        partitions = new.get("partitions")
        if "partitions" in old and (not isinstance(partitions, int) or partitions < old["partitions"]):
            yield f"{path}.partitions: is {old['partitions']} and can only grow: Kafka removes no partitions"


def _topics(spec: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return each topic of a spec by its path, with its name even where that is not written."""
    source = spec.get("source") or {}
    scheduler = (spec.get("schedule") or {}).get("scheduler")
    topics = {"spec.source": source, "spec.target": spec.get("target") or {}}
    topics["spec.deadLetter"] = spec.get("deadLetter") or {"topic": f"{source.get('topic')}.dlq"}
    if "outcomes" in spec:
        topics["spec.outcomes"] = spec["outcomes"]
    if isinstance(scheduler, Mapping):
        written = scheduler.get("history") or {"topic": f"{source.get('topic')}.history"}
        topics["spec.schedule.scheduler.history"] = written
    return {path: topic for path, topic in topics.items() if isinstance(topic, Mapping)}


def _fixed(path: str, value: object) -> str:
    was = f"it is {value}" if value is not None else "it is not set"
    return f"{path}: cannot be changed ({was}): drain this DelayTopic and make another"
