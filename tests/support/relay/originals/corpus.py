"""Corpora of odd inputs: what the services that dialects stand in for read in each, and what a relay does.

A line of a file is an input as Python writes it, `=>`, and the original's verdict; where a relay's differs on purpose
` / ours ` and that one follow. A verdict of `-` is a refusal.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.support.paths import DATA
from tests.support.relay.native_records import TIMESTAMP_MS, Header, record

from delaytopic_api.values import CesiumNumbers
from delaytopic_relay.core.commands import Command, Reject, Schedule
from delaytopic_relay.dialects.cesium import CesiumDialect, CesiumRules
from delaytopic_relay.dialects.karafka import KarafkaDialect
from delaytopic_relay.dialects.kaspr import KasprDialect
from delaytopic_relay.dialects.reading import ReadingDialect, RoutePolicy, TopicGlobs
from delaytopic_relay.dialects.scheduler import SchedulerDialect, SchedulerRules
from delaytopic_relay.dialects.scheduler_json import SchedulerJsonDialect
from delaytopic_relay.dialects.timebridge import TimebridgeDialect
from delaytopic_relay.dialects.writing import Draft, Sending, WritingDialect

REFUSED: Final = "-"
HOUR_MS: Final = 3_600_000
UNBOUNDED: Final = RoutePolicy("target", TopicGlobs(["*"]), (1 << 63) - 1 - TIMESTAMP_MS)
"""Allows every instant that 64 bits hold."""
BOUNDED: Final = RoutePolicy("target", TopicGlobs([]), HOUR_MS)
SENDING: Final = Sending("source", 0, TIMESTAMP_MS)


class Verdict(NamedTuple):
    """The original's verdict on an input, and a relay's."""

    theirs: str
    ours: str


def file_of(name: str) -> Path:
    """The corpus of this name."""
    return DATA / "relay" / "originals" / f"{name}.txt"


def read(name: str) -> dict[str, Verdict]:
    """The verdicts of a corpus by their inputs, as they are written."""
    found = {}
    for line in file_of(name).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            text, _, verdicts = line.rpartition(" => ")
            theirs, _, ours = verdicts.partition(" / ours ")
            found[text] = Verdict(theirs, ours or theirs)
    return found


def write(name: str, about: str, theirs: Mapping[str, str]) -> None:
    """Write a corpus, with what a relay does by now."""
    lines = [f"# {line}" for line in about.splitlines()]
    for text, verdict in theirs.items():
        ours = verdict_of(name, text)
        lines.append(f"{text} => {verdict}" + ("" if ours == verdict else f" / ours {ours}"))
    file_of(name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def verdict_of(name: str, text: str) -> str:
    """Return a relay's verdict on an input, in the words of this corpus."""
    return _OURS[name](literal_eval(text))


def _due(dialect: ReadingDialect, *headers: Header, key: bytes = b"name") -> str:
    command = dialect.read(record(*headers, key=key))
    return f"{command.due_ms}" if isinstance(command, Schedule) else REFUSED


def _timebridge(text: bytes) -> str:
    return _due(TimebridgeDialect(UNBOUNDED), ("X-Timebridge-When", text), ("X-Timebridge-Where", b"target"))


def _kaspr(text: bytes) -> str:
    return _due(KasprDialect(UNBOUNDED), ("x-scheduler-deliver-at", text), ("x-scheduler-deliver-to", b"target"))


def _scheduler_epoch(text: bytes) -> str:
    dialect = SchedulerDialect(UNBOUNDED, SchedulerRules())
    due = _due(dialect, ("scheduler-epoch", text), ("scheduler-target-topic", b"target"))
    return due if due == REFUSED else f"{int(due) // 1000}"


def _scheduler_name(key: bytes) -> str:
    dialect = SchedulerDialect(UNBOUNDED, SchedulerRules())
    due = _due(dialect, ("scheduler-epoch", b"1"), ("scheduler-target-topic", b"target"), key=key)
    return due if due == REFUSED else "a name"


def _karafka_epoch(text: bytes) -> str:
    headers: list[Header] = [
        ("schedule_schema_version", b"1.0.0"),
        ("schedule_source_type", b"schedule"),
        ("schedule_target_topic", b"target"),
    ]
    due = _due(KarafkaDialect(UNBOUNDED), *headers, ("schedule_target_epoch", text))
    return due if due == REFUSED else f"{int(due) // 1000}"


def _cesium(case: tuple[str, int | None, list[Header]]) -> str:
    """Judge a form of numbers, a timestamp and headers."""
    numbers, timestamp_ms, headers = case
    dialect = CesiumDialect(BOUNDED, CesiumRules(numbers=CesiumNumbers(numbers)))
    kind = 0 if timestamp_ms is None else 1
    command: Command = dialect.read(record(*headers, timestamp=(kind, timestamp_ms or 0)))
    if isinstance(command, Reject):
        return f"{REFUSED} {command.reason}"
    assert isinstance(command, Schedule)
    return f"{command.due_ms}" if command.due_ms > TIMESTAMP_MS else "at once"


def _scheduler_json(value: bytes) -> str:
    dialect: WritingDialect = SchedulerJsonDialect(UNBOUNDED)
    command = dialect.read(record(value=value))
    if not isinstance(command, Schedule):
        return REFUSED
    written = dialect.write(command, SENDING)
    assert isinstance(written, Draft)
    body = "null" if written.value is None else written.value.hex()
    headers = sorted((name.encode(), content or b"") for name, content in written.headers)
    named = "".join(f" {name.hex()}={content.hex()}" for name, content in headers)
    topic = (command.target or UNBOUNDED.target_topic).encode().hex()
    return f"{command.due_ms} {topic} {(written.key or b'').hex()} {body}{named}"


_OURS: Mapping[str, Callable[[Any], str]] = {
    "cesium": _cesium,
    "karafka_epoch": _karafka_epoch,
    "kaspr": _kaspr,
    "scheduler_epoch": _scheduler_epoch,
    "scheduler_json": _scheduler_json,
    "scheduler_name": _scheduler_name,
    "timebridge": _timebridge,
}
NAMES: Final = tuple(_OURS)
