"""Records of the dialect BlackBox one after another: the form of the last decides how one is read, never as what."""

from __future__ import annotations

import json

import pytest
from tests.simulation.world.source_log import SourceRecord

from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.dialects.black_box import BlackBoxDialect
from delaytopic_relay.dialects.reading import RoutePolicy, TopicGlobs
from delaytopic_relay.dialects.writing import Draft, Sending

NOW_MS = 1_795_269_600_000
SENDING = Sending("source", 0, NOW_MS + 60_000)
MESSAGES: dict[str, object] = {
    "a text": "now",
    "an empty text": "",
    "escapes": 'ü "\n',
    "null": None,
    "a number": 7,
    "an object": {"a": ["now"]},
}
VALUES: dict[str, bytes | None] = {
    **{what: json.dumps({"topic": "target", "message": of, "countdown": 5}).encode() for what, of in MESSAGES.items()},
    "the last of two": b'{"topic": "target", "message": {}, "message": "now", "countdown": 5}',
    "no UTF-8": b'{"topic": "target", "message": "\xff", "countdown": 5}',
    "no UTF-8 in front": b'{"topic": "target", "message": "\xff", "message": "now", "countdown": 5}',
    "half a surrogate": b'{"topic": "target", "message": "\\ud800", "countdown": 5}',
    "no countdown": b'{"topic": "target", "message": "now"}',
    "no JSON": b"remind me",
    "nothing": None,
}


def dialect() -> BlackBoxDialect:
    return BlackBoxDialect(RoutePolicy("target", TopicGlobs([]), 3_600_000))


class Relay:
    """Reads by one dialect and writes by another, as a relay does."""

    def __init__(self) -> None:
        self._reading, self._writing = dialect(), dialect()

    def outcome(self, value: bytes | None) -> object:
        """Return what becomes of a record: its command, or the delivery of its schedule."""
        command = self._reading.read(SourceRecord(0, 1, NOW_MS, b"key", value, []))
        return self._writing.write(command, SENDING) if isinstance(command, Schedule) else command


@pytest.mark.parametrize("before", VALUES)
def test_a_record_becomes_the_same_whatever_came_before_it(before: str) -> None:
    found, alone = {}, {}
    for what, value in VALUES.items():
        relay = Relay()
        relay.outcome(VALUES[before])
        found[what], alone[what] = relay.outcome(value), Relay().outcome(value)

    assert found == alone


def test_a_message_is_delivered_as_a_text_or_as_it_is_written() -> None:
    relay = Relay()

    found = {what: relay.outcome(VALUES[what]) for what in MESSAGES}

    contents = [b"now", b"", 'ü "\n'.encode(), None, b"7", b'{"a": ["now"]}']
    assert found == {what: Draft(b"key", content, []) for what, content in zip(MESSAGES, contents, strict=True)}
