"""What is known of one DelayTopic, as `-o json` prints it and the page tells it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from delaytopic_cli.kubectl.verdict import conditions_of, verdict

MOST_EVENTS = 8
_ROLES = ("source", "target", "deadLetter")


def facts_of(document: Mapping[str, Any], events: Iterable[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Plain JSON; a part of which nothing is known is null."""
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
    """Of events of the API events.k8s.io/v1 or v1 the last ones, the newest first."""
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
