"""Rows of the extract, decoded from Kafka's records: the relay's own dialect, and what relays write on delivered
records.

Pure: a decoder is made once for each topic, and collects columns.
"""

from __future__ import annotations

from base64 import b64decode
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from operator import itemgetter
from typing import Any, Final, Protocol

import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import ValidationError

from delaytopic_api.errors import MalformedHeader
from delaytopic_api.records import OCCURRENCE as OCCURRENCE_HEADER
from delaytopic_api.records import RECEIPT, RESTATED, Headers, Receipt, parse_dead_letter
from delaytopic_api.recurrence import Occurrence
from delaytopic_api.relay import Ending, Outcome, RelayConfig
from delaytopic_audit.model.chains import link_of
from delaytopic_audit.model.manifest import Role, RulesFrom
from delaytopic_audit.model.words import Kind
from delaytopic_audit.reading.generations import by_partition, read_rules
from delaytopic_relay.core import (
    OCCURRENCE,
    TO_BE_RESOLVED,
    Cancel,
    Dialect,
    Ignore,
    Postpone,
    Reject,
    Schedule,
    SourceMessage,
)
from delaytopic_relay.dialects import dialect_for

_LARGEST: Final = (1 << 63) - 1
_OF_CHAINS: Final = (TO_BE_RESOLVED, OCCURRENCE)
LOG_APPEND_TIME: Final = 2
"""The kind of timestamp, in the client library's words, that a broker gives."""

ARROW: Final = pa.schema(
    [
        *(
            ("delay_topic", pa.int32()),
            ("kind", pa.int8()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("due_ms", pa.int64()),
        ),
        *(("append_ms", pa.int64()), ("by_broker", pa.bool_()), ("sent_ms", pa.int64()), ("id_hash", pa.int64())),
        *(("topic", pa.string()), ("at_partition", pa.int32()), ("at_offset", pa.int64()), ("reason", pa.string())),
    ]
)
"""`schemas.EXTRACT`, for Arrow."""

Row = tuple[
    int, int, int, int | None, int, bool, int | None, int | None, str | None, int | None, int | None, str | None
]


class Message(SourceMessage, Protocol):
    """A record as the Kafka client hands it over."""

    def topic(self) -> str | None:
        """Return the topic that it was read from."""
        ...


Decode = Callable[[Any], Row]
"""A function from a `Message` to a row of the extract, without the number of its DelayTopic."""


def decoder_for(role: Role, topic: str, config: RelayConfig, generations: Sequence[RulesFrom] = ()) -> Decode:
    """Return the function that reads the records of one topic.

    Source records are read by the rules of their offset; without any, all by the configuration's.
    """
    if role is Role.SOURCE:
        return _by_offset(config.target.topic, generations) if generations else _configured(config)
    if role is Role.TARGET:
        return _target_decoder(topic, config.source.topic)
    return _letter_decoder(topic, config) if role is Role.DEAD_LETTER else _outcome_decoder(topic, config.source.topic)


def batch_of(rows: Mapping[int, Sequence[Row]]) -> pa.RecordBatch:
    """Return the rows of DelayTopics, by their numbers, as Arrow's columns."""
    numbers = [pa.repeat(pa.scalar(number, pa.int32()), len(some)) for number, some in rows.items()]
    all_rows = [row for some in rows.values() for row in some]
    columns = zip(*all_rows, strict=True) if all_rows else ([] for _ in ARROW.types[1:])
    arrays = [pa.array(column, kind) for column, kind in zip(columns, ARROW.types[1:], strict=True)]
    return pa.RecordBatch.from_arrays([pa.concat_arrays([pa.array([], pa.int32()), *numbers]), *arrays], schema=ARROW)


def unread(topic: str, partition: int, reason: str) -> Row:
    """Return the row that stands for a range of a topic that Kafka did not let be read."""
    at = (int(Kind.UNREAD), partition, -1, None, 0, False, None, None)
    return (*at, topic, None, None, reason)


def id_hash_of(identity: bytes) -> int:
    """Hash a schedule's id to 64 bits: a million ids a day meet once in a hundred thousand years."""
    return int.from_bytes(blake2b(identity, digest_size=8).digest(), "little", signed=True)


def _by_offset(target: str, generations: Sequence[RulesFrom]) -> Decode:
    decoders = {text: _by_rules(text, target) for text in {each.rules for each in generations}}
    if len(decoders) == 1:
        return next(iter(decoders.values()))
    ways = {
        partition: [(each.offset, decoders[each.rules]) for each in its]
        for partition, its in by_partition(generations).items()
    }

    def decode(message: Message) -> Row:
        way, offset = ways[message.partition() or 0], message.offset() or 0
        since, decoder = way[-1]
        if offset < since:
            # What is older than all that is known is read by the oldest.
            _, decoder = way[max(0, bisect_right(way, offset, key=_since) - 1)]
        return decoder(message)

    return decode


_since = itemgetter(0)


def _by_rules(text: str, target: str) -> Decode:
    known = read_rules(text, target)
    return _source_decoder(known[1], target) if known is not None else _not_judged


def _configured(config: RelayConfig) -> Decode:
    return _source_decoder(dialect_for(config), config.target.topic)


def _not_judged(message: Message) -> Row:
    clock, append_ms = message.timestamp()
    at = (int(Kind.IGNORED), message.partition() or 0, message.offset() or 0, None, append_ms)
    return (*at, clock == LOG_APPEND_TIME, None, None, None, None, None, None)


def _source_decoder(dialect: Dialect, default_target: str) -> Decode:
    read = dialect.read
    schedule, reject, cancel = int(Kind.SCHEDULE), int(Kind.REJECT), int(Kind.CANCEL)
    postpone, ignored, rule = int(Kind.POSTPONE), int(Kind.IGNORED), int(Kind.RULE)

    def decode(message: Message) -> Row:
        command = read(message)
        clock, append_ms = message.timestamp()
        partition, by_broker = message.partition() or 0, clock == LOG_APPEND_TIME
        if type(command) is Schedule:
            id_hash = None if command.id is None else id_hash_of(command.id)
            target = command.target or default_target
            kind = rule if command.control == TO_BE_RESOLVED else schedule
            at = (kind, partition, command.offset, command.due_ms, append_ms, by_broker)
            origin = None if command.rank is None else _origin(message)
            link = _link(command) if command.control in _OF_CHAINS else None
            return (*at, None, id_hash, target, None, origin, link)
        if type(command) is Cancel and command.rank is None:
            at_cancel = (cancel, partition, command.offset, None, append_ms, by_broker)
            return (*at_cancel, None, id_hash_of(command.id), None, None, None, None)
        if type(command) is Postpone:
            at_postpone = (postpone, partition, command.offset, command.due_ms, append_ms, by_broker)
            return (*at_postpone, None, id_hash_of(command.id), None, None, None, None)
        if type(command) is Ignore or type(command) is Cancel:
            # What a relay withdraws it does for a command that is there, too: that one is judged by.
            at_ignored = (ignored, partition, command.offset, None, append_ms, by_broker)
            return (*at_ignored, None, None, None, None, None, None)
        at_reject = (reject, partition, command.offset, None, append_ms, by_broker, None)
        if type(command) is Reject and command.rank is not None:
            # What a relay has written is refused by rules, such as `maxDelay`, of the offset that it got.
            return (*at_reject, id_hash_of(command.id or b""), None, None, _origin(message), _link(command))
        return (*at_reject, None, None, None, None, None)

    return decode


def _link(command: Schedule | Reject) -> str:
    """Return the text of the place in its chain of a record that recurs, or of an occurrence."""
    headers, occurrence = command.headers or [], None
    if command.rank is not None:
        occurrence = Occurrence.parse(dict(headers).get(OCCURRENCE_HEADER), command.due_ms or 0)
    return link_of(headers, command.id or b"", command.timestamp_ms or 0, occurrence).text()


def _origin(message: Message) -> int:
    """Return the offset of the schedule that this record stands for, as a relay has put it off, or that it follows."""
    headers: Headers = message.headers() or []
    stated = dict(headers)[RESTATED] or b""
    return min(int(stated.split(b":")[2]), _LARGEST)


def _target_decoder(topic: str, source: str) -> Decode:
    delivered = int(Kind.DELIVERED)

    def decode(message: Message) -> Row:
        clock, append_ms = message.timestamp()
        by_broker = clock == LOG_APPEND_TIME
        receipt = _receipt_of(message)
        if receipt is None or receipt.topic != source:
            return _foreign(message, topic, append_ms, by_broker)
        due_ms, partition, offset, sent_ms = receipt[:4]
        place = (topic, message.partition(), message.offset(), None)
        return (delivered, partition, offset, due_ms, append_ms, by_broker, sent_ms, None, *place)

    return decode


def _letter_decoder(topic: str, config: RelayConfig) -> Decode:
    def decode(message: Message) -> Row:
        clock, append_ms = message.timestamp()
        by_broker = clock == LOG_APPEND_TIME
        try:
            letter = parse_dead_letter(message.headers())
        except (MalformedHeader, SystemError, UnicodeDecodeError):
            letter = None
        if letter is None or letter.topic != config.source.topic:
            return _foreign(message, topic, append_ms, by_broker)
        at = (int(Kind.DEAD_LETTER), letter.partition, letter.offset, None, append_ms, by_broker, letter.at_ms)
        return (*at, None, None, message.partition(), message.offset(), letter.reason)

    return decode


def _outcome_decoder(topic: str, source: str) -> Decode:
    told = int(Kind.TOLD)

    def decode(message: Message) -> Row:
        clock, append_ms = message.timestamp()
        by_broker = clock == LOG_APPEND_TIME
        try:
            outcome = Outcome.model_validate_json(message.value() or b"")
        except ValidationError:
            outcome = None
        if outcome is None or outcome.source.topic != source:
            return _foreign(message, topic, append_ms, by_broker)
        denied = outcome.outcome is Ending.NOT_PENDING
        # A place in another topic than the source withdraws nothing.
        by = outcome.ended_by if outcome.ended_by is not None and outcome.ended_by.topic == source else None
        ended_by = (None, by.partition, by.offset) if by is not None else (None, None, None)
        at = outcome.target
        place = (at.topic, at.partition, at.offset) if at is not None else ended_by
        of_source = (told, outcome.source.partition, outcome.source.offset, outcome.due_ms, append_ms, by_broker)
        return (*of_source, outcome.ended_ms, _id_hash(outcome) if denied else None, *place, str(outcome.outcome))

    return decode


def _id_hash(outcome: Outcome) -> int | None:
    if outcome.id is not None:
        return id_hash_of(outcome.id.encode())
    return id_hash_of(b64decode(outcome.id_base64)) if outcome.id_base64 is not None else None


def _receipt_of(message: Message) -> Receipt | None:
    """Return the last receipt: that of the relay that wrote this record, not of one before it."""
    try:
        headers: Headers = message.headers() or []
        for name, value in reversed(headers):
            if name == RECEIPT:
                receipt = Receipt.parse(value)
                return receipt if _fits(receipt) else None
    except (MalformedHeader, SystemError, UnicodeDecodeError):  # the client cannot read a name that is not UTF-8
        return None
    return None


def _fits(receipt: Receipt) -> bool:
    """Tell whether its numbers are such as a relay writes: of 64 bits, the partition of 32."""
    return max(abs(receipt.due_ms), receipt.offset, receipt.sent_ms) < 1 << 63 and receipt.partition < 1 << 31


def _foreign(message: Message, topic: str, append_ms: int, by_broker: bool) -> Row:
    place = (topic, message.partition(), message.offset(), None)
    return (int(Kind.FOREIGN), -1, -1, None, append_ms, by_broker, None, None, *place)
