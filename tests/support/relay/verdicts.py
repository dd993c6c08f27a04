"""A corpus of verdicts: records, rules, and what a relay makes of each, recorded for each version of the reader.

`python -m tests.support.relay.verdicts` records those of further records, and changes none.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.paths import ROOT
from tests.support.relay.dialects.table import Stage
from tests.support.relay.dialects.tables import IN_MEMORY
from tests.support.relay.native_records import TIMESTAMP_MS, Header, record

from delaytopic_api.records import RECURRENCE_HEADERS, RESERVED_HEADERS
from delaytopic_api.relay import RelayConfig
from delaytopic_api.values import Dialect, Ids
from delaytopic_relay.core.commands import Cancel, Command, Postpone, Reject, Schedule, goes_on
from delaytopic_relay.core.rules import READER, Rules, target_mark
from delaytopic_relay.dialects import dialect_by, rules_of

HOUR_MS = 3_600_000
USUAL = Rules(Dialect.NATIVE, HOUR_MS, target_mark("target"), allowed=("other",))
RULES: Mapping[str, Rules] = {
    "usual": USUAL,
    "maxDelay 5s": USUAL._replace(max_delay_ms=5_000),
    "defaultDelay 1m": USUAL._replace(default_delay_ms=60_000),
    "delay 1m": USUAL._replace(delay_ms=60_000, ids=Ids.DISABLED),
    "ids Disabled": USUAL._replace(ids=Ids.DISABLED),
    "allowed none": USUAL._replace(allowed=()),
    "allowed too many to tell": USUAL._replace(allowed=None),
    "another target": USUAL._replace(target=target_mark("former")),
}
_AT = b"%d" % (TIMESTAMP_MS + 60_000)
_EVERY: list[Header] = [("deliver-id", b"a"), ("deliver-every", b"5s"), ("delay-occurrence", b"1:1795269686000")]
HEADERS: Mapping[str, list[Header]] = {
    "none": [],
    "at in ms": [("deliver-at", _AT)],
    "at in seconds": [("deliver-at", b"1795269686")],
    "at with an offset": [("deliver-at", b"2026-11-21T14:01:26.270+01:00")],
    "at without an offset": [("deliver-at", b"2026-11-21T14:01:26")],
    "at null": [("deliver-at", None)],
    "at empty": [("deliver-at", b"")],
    "at soon": [("deliver-at", b"soon")],
    "at in the year 10000": [("deliver-at", b"253402300800000")],
    "at below 1970": [("deliver-at", b"-1")],
    "after in ms": [("deliver-after", b"4000")],
    "after 1h30m": [("deliver-after", b"1h30m")],
    "after 5s and a ms": [("deliver-after", b"5001")],
    "after nonsense": [("deliver-after", b"1 h")],
    "at and after": [("deliver-after", b"4000"), ("deliver-at", _AT)],
    "at twice": [("deliver-at", b"soon"), ("deliver-at", _AT)],
    "id": [("deliver-id", b"a"), ("deliver-after", b"4000")],
    "id of 256": [("deliver-id", b"a" * 256)],
    "id of 257": [("deliver-id", b"a" * 257)],
    "id empty": [("deliver-id", b"")],
    "cancel": [("deliver-id", b"a"), ("deliver-action", b"cancel")],
    "cancel without an id": [("deliver-action", b"cancel")],
    "cancel with a time": [("deliver-id", b"a"), ("deliver-action", b"cancel"), ("deliver-at", _AT)],
    "schedule": [("deliver-action", b"schedule")],
    "another action": [("deliver-action", b"replace")],
    "to the target": [("deliver-to", b"target")],
    "to the former target": [("deliver-to", b"former")],
    "to another": [("deliver-to", b"other")],
    "to a stranger": [("deliver-to", b"stranger")],
    "to no topic": [("deliver-to", b"no topic")],
    "expires": [("deliver-expires-at", _AT)],
    "expires before": [("deliver-at", _AT), ("deliver-expires-at", b"1")],
    **{name: [(name, b"1")] for name in (*RESERVED_HEADERS, *RECURRENCE_HEADERS)},
    "cron": [("deliver-id", b"a"), ("deliver-cron", b"0 9 * * *"), ("deliver-tz", b"Europe/Berlin")],
    "cron without an id": [("deliver-cron", b"0 9 * * *")],
    "every": [("deliver-id", b"a"), ("deliver-every", b"5s"), ("deliver-to", b"other")],
    "every two hours": [("deliver-id", b"a"), ("deliver-every", b"2h")],
    "ladder": [("deliver-id", b"a"), ("deliver-ladder", b"1d,1h"), ("deliver-at", _AT)],
    "a local time": [("deliver-id", b"a"), ("deliver-at", b"2026-11-21T14:01:26"), ("deliver-tz", b"Nowhere")],
    "every with 255 headers": [("deliver-id", b"a"), ("deliver-every", b"5s"), *[("h", b"")] * 253],
    "an occurrence": [*_EVERY, ("delay-restated", b"%b:0:0:0:source" % _AT)],
    "an occurrence of another day": [*_EVERY, ("delay-restated", b"%d:0:0:0:source" % (TIMESTAMP_MS + 86_400_000))],
    "an occurrence behind it": [*_EVERY, ("delay-restated", b"%b:0:99:99:source" % _AT)],
    "a cancel that a relay has written": [
        *(("deliver-id", b"a"), ("deliver-action", b"cancel"), ("delay-restated", b":0:0:1:source"))
    ],
    "asked for by somebody": [("deliver-requested-by", b"ann")],
    "asked for by nobody": [("deliver-requested-by", b"")],
    "256 headers": [("h", b"")] * 256,
    "257 headers": [("h", b"")] * 257,
    "another case": [("Deliver-At", _AT)],
}


def file_of(reader: int) -> Path:
    """The verdicts of a version of the reader."""
    return ROOT / "tests" / "data" / "relay" / "verdicts" / f"{reader}.txt"


def recorded(reader: int) -> dict[str, str]:
    """The verdict of a version of the reader on each record."""
    path = file_of(reader)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return dict(line.rsplit(" => ", 1) for line in lines)


def verdicts() -> dict[str, str]:
    """The verdict of the relay as it is on each record of the corpus."""
    return dict(_verdicts())


def _verdicts() -> Iterator[tuple[str, str]]:
    for rules_name, rules in RULES.items():
        dialect = dialect_by(rules, "target")
        for what, headers in HEADERS.items():
            yield f"Native, {rules_name}: {what}", _told(dialect.read(record(*headers)))
    stage = Stage(TIMESTAMP_MS, "target", "other", "source", "history")
    for name, table in IN_MEMORY.items():
        dialect = dialect_by(rules_of(_config(table.schedule)), "target")
        for what, case in table.cases(stage).items():
            produced = case.produced
            message = record(*produced.headers, key=produced.key, value=produced.value)
            yield f"{name}: {what}", _told(dialect.read(message))


def _config(schedule: object) -> RelayConfig:
    return RelayConfig.model_validate(
        {
            "name": "reminders",
            "namespace": "shop",
            "groupId": "group",
            "source": {"topic": "source"},
            "target": {"topic": "target", "allowedTopics": ["other"]},
            "deadLetter": {"topic": "dead"},
            "schedule": schedule,
            "precision": "50ms",
            "guarantee": "ExactlyOnce",
            "backend": {"type": "KafkaBuckets", "id": "backend"},
            "kafka": {"bootstrapServers": "kafka:9092"},
        }
    )


def _told(command: Command) -> str:
    """The part of a command that must be the same each time that its record is read; not the words of a refusal."""
    match command:
        case Schedule():
            verdict = f"due {command.due_ms} id {command.id!r} to {command.target} expires {command.expires_ms}"
            return verdict + _of_relay(command)
        case Cancel():
            return f"cancels {command.id!r}{_of_relay(command)}"
        case Postpone():
            return f"puts {command.id!r} off to {command.due_ms}"
        case Reject():
            return f"refused {command.reason.value}"
        case _:
            return "asks for nothing"


def _of_relay(command: Schedule | Cancel) -> str:
    again = " and goes on" if isinstance(command, Schedule) and goes_on(command) else ""
    return again if command.rank is None else f"{again} as {command.rank}"


def main() -> None:
    """Record the verdicts on records that have none."""
    known, found = recorded(READER), verdicts()
    changed = sorted(what for what in known if known[what] != found.get(what))
    if changed:
        sys.exit(f"other verdicts than recorded, for which READER in core/rules.py has to change: {changed}")
    text = "".join(f"{what} => {verdict}\n" for what, verdict in (known | found).items())
    file_of(READER).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
