"""Records as producers write them: their times, ids and keys. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from delaytopic_api.records import (
    ACTION_CANCEL,
    DELIVER_ACTION,
    DELIVER_AFTER,
    DELIVER_AT,
    DELIVER_ID,
    DELIVER_TO,
    Headers,
)
from delaytopic_api.values import Duration
from delaytopic_gateway.client.recurring import explained, is_recurring
from delaytopic_gateway.client.time_text import duration, instant_ms
from delaytopic_process.errors import InputError

NUMBER = "{n}"


def records_text(records: int) -> str:
    """Return a number of records in words, with the verb that follows."""
    return "1 record was" if records == 1 else f"{records:,} records were"


class OutgoingRecord(NamedTuple):
    """A record to produce."""

    key: bytes | None
    value: bytes | None
    headers: Headers


class Written(NamedTuple):
    """The place and the timestamp that Kafka gave a record."""

    partition: int
    offset: int
    timestamp_ms: int


class KeyedValue(NamedTuple):
    """A value, and the key that came with it, if any."""

    key: bytes | None
    value: bytes


@dataclass(frozen=True, slots=True)
class Timing:
    """The time of delivery: a moment, a delay, or the DelayTopic's default when both are None.

    With `spread_ms` the times are spread evenly over that span, from `at_ms` on.
    """

    at_ms: int | None = None
    after: Duration | None = None
    spread_ms: int | None = None
    recurrence: tuple[tuple[str, bytes | None], ...] = ()
    """Headers of a record that recurs, or that is due by the clocks of a zone; then the others are None."""


@dataclass(frozen=True, slots=True)
class Addressing:
    """The common part of the records of one `send`. `key` and `schedule_id` may hold `{n}`, the record's number.

    Without a key the schedule's id is the key too: a later cancel must reach the same partition.
    """

    key: str | None = None
    schedule_id: str | None = None
    to: str | None = None
    headers: Sequence[tuple[str, str]] = ()


def values_of_lines(lines: Iterable[bytes], key_separator: str | None) -> Iterator[KeyedValue]:
    """Yield one value a line; with a separator, key and value. Raises InputError naming the line without separator."""
    separator = key_separator.encode() if key_separator else None
    for number, line in enumerate(lines, start=1):
        content = line.removesuffix(b"\n").removesuffix(b"\r")
        if separator is None:
            yield KeyedValue(None, content)
            continue
        key, found, value = content.partition(separator)
        if not found:
            raise InputError(f"line {number} of the input has no key separator {key_separator!r}")
        yield KeyedValue(key, value)


def generated_values(count: int, text: str | None) -> Iterator[KeyedValue]:
    """Yield `count` values: the text, with `{n}` replaced by 1, 2, ...; without a text `record 1`, `record 2`, ..."""
    for number in range(1, count + 1):
        yield KeyedValue(None, (text if text is not None else f"record {NUMBER}").replace(NUMBER, str(number)).encode())


def records_to_send(
    values: Iterable[KeyedValue], addressing: Addressing, timing: Timing, *, total: int | None = None
) -> Iterator[OutgoingRecord]:
    """Yield the records, numbered from 1. `total` is needed to spread them."""
    for number, (own_key, value) in enumerate(values, start=1):
        schedule_id = _numbered(addressing.schedule_id, number)
        key = own_key if own_key is not None else _numbered(addressing.key, number)
        yield OutgoingRecord(
            key if key is not None else schedule_id,
            value,
            [
                *((name, text.encode()) for name, text in addressing.headers),
                *time_headers(timing, number, total),
                *([(DELIVER_ID, schedule_id)] if schedule_id is not None else []),
                *([(DELIVER_TO, addressing.to.encode())] if addressing.to else []),
            ],
        )


def cancel_record(schedule_id: str, key: str | None) -> OutgoingRecord:
    """Return the command that ends the pending schedules of an id; by default the id is the key, as in `send`."""
    identity = schedule_id.encode()
    headers: Headers = [(DELIVER_ID, identity), (DELIVER_ACTION, ACTION_CANCEL)]
    return OutgoingRecord(key.encode() if key is not None else identity, None, headers)


def due_ms(headers: Headers, timestamp_ms: int) -> int | None:
    """Return a record's due time, given its timestamp; None when the DelayTopic decides, or refuses the record."""
    if is_recurring(headers):
        try:
            return explained(dict(headers), timestamp_ms, most=1).occurrences[0].due_ms
        except InputError:
            return None
    times = {name: value.decode("utf-8", "replace") for name, value in headers if value is not None}
    try:
        if DELIVER_AT in times:
            return instant_ms(times[DELIVER_AT])
        if DELIVER_AFTER in times:
            after = times[DELIVER_AFTER]
            return timestamp_ms + (int(after) if after.isdecimal() else duration(after).ms)
    except InputError:
        return None
    return None


def time_headers(timing: Timing, number: int = 1, total: int | None = None) -> Headers:
    """Return the headers that ask for a time of delivery; `number` and `total` place the record in a spread."""
    if timing.recurrence:
        return [*timing.recurrence]
    if timing.after is not None:
        return [(DELIVER_AFTER, timing.after.encode())]
    if timing.at_ms is None:
        return []
    share_ms = (timing.spread_ms or 0) * (number - 1) // max(1, (total or 1) - 1)
    return [(DELIVER_AT, b"%d" % (timing.at_ms + share_ms))]


def _numbered(text: str | None, number: int) -> bytes | None:
    return None if text is None else text.replace(NUMBER, str(number)).encode()
