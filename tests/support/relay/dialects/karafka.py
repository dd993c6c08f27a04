"""The conformance table of the dialect Karafka, after Karafka Pro's scheduled messages.

The original stops its consumer at a record that it cannot read; here that record is a dead letter.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.relay.dialects.table import (
    FAR_MS,
    Arrived,
    Beside,
    Case,
    Headers,
    Origin,
    Produced,
    Stage,
    Table,
    nothing,
    untouched,
)

VALUE = b'{"a": 1}'


def _headers(epoch_s: int, topic: str, *more: tuple[str, bytes | None]) -> Headers:
    """Return the headers that its proxy writes: the producer's own, then those of the envelope."""
    return [
        ("trace", b"1"),
        ("schedule_schema_version", b"1.0.0"),
        ("schedule_target_epoch", b"%d" % epoch_s),
        ("schedule_source_type", b"schedule"),
        ("schedule_target_topic", topic.encode()),
        *more,
    ]


def _cancel(kind: bytes = b"cancel") -> Headers:
    return [("schedule_schema_version", b"1.0.0"), ("schedule_source_type", kind)]


def _sent(stage: Stage, name: bytes, headers: Headers, epoch_s: int, topic: str = "", key: bytes | None = None) -> Case:
    def written(origin: Origin) -> Headers:
        place: Headers = [
            ("schedule_source_topic", origin.topic.encode()),
            ("schedule_source_partition", b"%d" % origin.partition),
            ("schedule_source_offset", b"%d" % origin.offset),
            ("schedule_source_key", name),
        ]
        return [*headers, *place]

    def stone(origin: Origin) -> Headers:
        instead = {"schedule_schema_version": b"1.0.0", "schedule_source_type": b"tombstone"}
        merged = [(name, instead.get(name, value)) for name, value in headers]
        return [*merged, ("schedule_source_offset", b"%d" % origin.offset)]

    return Case(
        Produced(name, VALUE, headers),
        lambda origin: Arrived(topic or stage.target, epoch_s * 1000, key, VALUE, written(origin)),
        lambda origin: [
            Beside(stage.source, name, None, [*stone(origin), ("delay-ended", b"delivered")], origin.partition)
        ],
    )


def cases(stage: Stage) -> Mapping[str, Case]:
    """Return what its producers write, and what they should not."""
    soon_s, target = stage.now_ms // 1000 + 2, stage.target
    usual, past_s = _headers(soon_s, target), soon_s - 3_600
    far = _headers((stage.now_ms + FAR_MS) // 1000, target)
    keyed = _headers(soon_s, target, ("schedule_target_key", b"user-1"))
    placed = _headers(soon_s, target, ("schedule_target_partition", b"3"))
    nowhere = _headers(soon_s, target, ("schedule_target_partition", b"99"))
    by_key = _headers(soon_s, target, ("schedule_target_partition_key", b"user-1"))
    newer: Headers = [("schedule_schema_version", b"2.0.0"), *usual[2:]]
    return {
        "a message": _sent(stage, b"a", usual, soon_s),
        "another topic": _sent(stage, b"b", _headers(soon_s, stage.other), soon_s, stage.other),
        "a key": _sent(stage, b"c", keyed, soon_s, key=b"user-1"),
        "a partition": _sent(stage, b"d", placed, soon_s),
        "a partition by key": _sent(stage, b"e", by_key, soon_s),
        "past": _sent(stage, b"f", _headers(past_s, target), past_s),
        "the first minor versions": _sent(
            stage, b"g", [("schedule_schema_version", b"0.9"), *usual[2:], ("trace", b"2")], soon_s
        ),
        "one that is replaced": nothing(Produced(b"h", b"old", far)),
        "its replacement": _sent(stage, b"h", _headers(soon_s + 1, target), soon_s + 1),
        "one that is cancelled": nothing(Produced(b"i", VALUE, far)),
        "its cancel": nothing(Produced(b"i", None, _cancel())),
        "one with a tombstone of somebody else": nothing(Produced(b"j", VALUE, far)),
        "that tombstone": nothing(Produced(b"j", None, _cancel(b"tombstone"))),
        "a partition that is not there": untouched(Produced(b"k", VALUE, nowhere), "unknown-target"),
        "no headers": untouched(Produced(b"l", VALUE), "unsupported"),
        "a newer version": untouched(Produced(b"m", VALUE, newer), "unsupported"),
        "an unknown kind": untouched(Produced(b"n", VALUE, _cancel(b"move")), "unknown-action"),
        "no epoch": untouched(Produced(b"o", VALUE, [*usual[:2], *usual[3:]]), "malformed-header"),
        "a fraction": untouched(
            Produced(b"p", VALUE, [*usual[:2], ("schedule_target_epoch", b"1.5"), *usual[3:]]), "malformed-header"
        ),
        "no topic": untouched(Produced(b"q", VALUE, usual[:-1]), "malformed-header"),
        "a partition in words": untouched(
            Produced(b"r", VALUE, _headers(soon_s, target, ("schedule_target_partition", b"one"))), "malformed-header"
        ),
        "too far": untouched(Produced(b"s", VALUE, _headers(soon_s + 3_700, target)), "beyond-max-delay"),
        "a forbidden topic": untouched(Produced(b"t", VALUE, _headers(soon_s, "payments")), "forbidden-target"),
        "no name": untouched(Produced(None, VALUE, usual), "malformed-key"),
    }


TABLE = Table({"karafka": {}, "maxDelay": "1h"}, cases)
