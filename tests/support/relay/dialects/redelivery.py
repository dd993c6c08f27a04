"""The conformance tables of the dialect Redelivery, after Splunk's kafka-mq-go.

The original's tracker counts a deadline by the timestamps of the markers that it reads, as is done here, and ignores a
KEEPALIVE or END of a message that it does not know. A KEEPALIVE that would shorten a deadline does so there, not here.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.relay import markers
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

QUEUE = b"queue-1"
PAYLOAD = b"payload"
SOON_MS, VERY_SOON_MS, BEYOND_MS = 2_000, 1_000, 3_600_001
UNKNOWN_FIELDS = b"".join(
    [
        markers.number(15, 300),
        markers.varint(9 << 3 | 1) + b"\x08" * 8,
        markers.varint(10 << 3 | 5) + b"\x04" * 4,
        markers.length_delimited(1_000, b"something new"),
    ]
)
NAMED = markers.length_delimited(3, markers.number(2, 70))
"""The message_id of what is refused."""


def _redelivered(
    stage: Stage,
    value: bytes,
    after_ms: int,
    ended: bytes,
    *,
    queue: bytes = QUEUE,
    key: bytes = QUEUE,
    payload: bytes | None = PAYLOAD,
    headers: Headers = (),
    kept: Headers = (),
    count: bytes = b"1",
) -> Case:
    """A START marker that becomes a message, with an END marker beside it."""

    def end(origin: Origin) -> list[Beside]:
        return [Beside(stage.source, queue, ended, [("delay-ended", b"redelivered")], origin.partition)]

    return Case(
        Produced(queue, value, headers),
        lambda origin: Arrived(
            stage.target, origin.timestamp_ms + after_ms, key, payload, [*kept, ("redelivery-count", count)]
        ),
        end,
    )


def _usual(stage: Stage, offset: int, after_ms: int = SOON_MS, headers: Headers = (), **rest: bytes) -> Case:
    value = markers.start(3, offset, after_ms, QUEUE, PAYLOAD)
    kept = [header for header in headers if header[0] not in ("redelivery-count", "delay-restated")]
    count = rest.get("count", b"1")
    return _redelivered(stage, value, after_ms, markers.end(3, offset), headers=headers, kept=kept, count=count)


def _withdrawn(offset: int, after_ms: int = FAR_MS) -> Case:
    return nothing(Produced(QUEUE, markers.start(3, offset, after_ms, QUEUE, PAYLOAD)))


def _put_off(stage: Stage, offset: int) -> Case:
    """A START marker that is written again when its own time has come."""
    value = markers.start(3, offset, VERY_SOON_MS, QUEUE, PAYLOAD)
    return Case(
        Produced(QUEUE, value, [("trace", b"1")]),
        lambda origin: None,
        lambda origin: [Beside(stage.source, QUEUE, value, [("trace", b"1")], origin.partition)],
    )


def _start(offset: int, after_ms: int = FAR_MS) -> bytes:
    return markers.start(3, offset, after_ms, QUEUE, PAYLOAD)


def _end(offset: int) -> bytes:
    return markers.end(3, offset)


def _keep_alive(offset: int, after_ms: int = FAR_MS) -> bytes:
    return markers.keep_alive(3, offset, after_ms)


def cases(stage: Stage) -> Mapping[str, Case]:
    """Return what consumers of queues write, and what they should not."""
    largest = (1 << 31) - 1, (1 << 53) + 1
    split = [markers.length_delimited(3, markers.number(field, value)) for field, value in ((1, 3), (2, 14))]
    return {
        "a message that nobody ends": _usual(stage, 1),
        "the first message of all": _redelivered(
            stage, markers.start(0, 0, SOON_MS, QUEUE, PAYLOAD), SOON_MS, markers.end(0, 0)
        ),
        "a message far behind": _redelivered(
            stage, markers.start(*largest, SOON_MS, QUEUE, PAYLOAD), SOON_MS, markers.end(*largest)
        ),
        "a message without a value": _redelivered(
            stage, markers.start(3, 2, SOON_MS, QUEUE, b""), SOON_MS, _end(2), payload=None
        ),
        "a message without a key": _redelivered(
            stage, markers.start(3, 3, SOON_MS, b"", PAYLOAD), SOON_MS, _end(3), key=b""
        ),
        "a message of bytes": _redelivered(
            stage,
            markers.start(3, 4, SOON_MS, b"\xff\x00", b"\x00\xff"),
            SOON_MS,
            _end(4),
            key=b"\xff\x00",
            payload=b"\x00\xff",
        ),
        "at once": _usual(stage, 5, 0),
        "with headers": _usual(stage, 6, SOON_MS, [("trace", b"1"), ("trace", None)]),
        "redelivered before": _usual(stage, 7, SOON_MS, [("redelivery-count", b"2"), ("trace", b"")], count=b"3"),
        "with a header that no relay writes": _usual(stage, 8, SOON_MS, [("delay-restated", b"1:0:0:now:source")]),
        "with a receipt that a client has copied": _usual(stage, 9, SOON_MS, [("delay-receipt", b"1:0:0:1:other")]),
        "one that is ended": _withdrawn(10),
        "its end": nothing(Produced(QUEUE, _end(10), [("delay-receipt", b"1:0:0:1:other")])),
        "one that begins again": _withdrawn(11),
        "its other beginning": _usual(stage, 11),
        "one that fails": _withdrawn(12),
        "its failure": _usual(stage, 12, 0),
        "one that is kept alive": _put_off(stage, 13),
        "its first sign of life": nothing(Produced(QUEUE, _keep_alive(13, 1_500))),
        "its second sign of life": nothing(Produced(QUEUE, _keep_alive(13))),
        "one in two parts": _redelivered(
            stage,
            split[0]
            + markers.number(4, SOON_MS)
            + split[1]
            + markers.length_delimited(5, QUEUE)
            + markers.length_delimited(6, PAYLOAD),
            SOON_MS,
            _end(14),
        ),
        "one that says it twice": _redelivered(
            stage, _start(15, FAR_MS) + markers.number(4, SOON_MS), SOON_MS, _end(15)
        ),
        "with fields of a later version": _redelivered(
            stage, UNKNOWN_FIELDS + _start(16, SOON_MS) + UNKNOWN_FIELDS, SOON_MS, _end(16)
        ),
        "one that is to leave earlier": _usual(stage, 17),
        "a shorter time": nothing(Produced(QUEUE, _keep_alive(17, 0))),
        "a message of another queue": _usual(stage, 18),
        "the end of this queue's": nothing(Produced(b"queue-2", _end(18))),
        "an end of nothing": nothing(Produced(QUEUE, _end(19))),
        "a sign of life of nothing": nothing(Produced(QUEUE, _keep_alive(20))),
        "a null": untouched(Produced(QUEUE, None), "malformed-value"),
        "an empty marker": untouched(Produced(QUEUE, b""), "malformed-value"),
        "no marker": untouched(Produced(QUEUE, b"a message for a person"), "malformed-value"),
        "half a marker": untouched(Produced(QUEUE, _start(70)[:-1]), "malformed-value"),
        "no message": untouched(Produced(QUEUE, markers.number(4, SOON_MS)), "malformed-value"),
        "a negative partition": untouched(
            Produced(QUEUE, markers.length_delimited(3, markers.number(1, (1 << 64) - 1))), "malformed-value"
        ),
        "a group": untouched(Produced(QUEUE, NAMED + markers.varint(9 << 3 | 3)), "malformed-value"),
        "a number for a message": untouched(Produced(QUEUE, markers.number(3, 70)), "malformed-value"),
        "a number of eleven bytes": untouched(Produced(QUEUE, NAMED + b"\x20" + b"\x80" * 10), "malformed-value"),
        "a later version": untouched(Produced(QUEUE, NAMED + markers.number(1, 1)), "unsupported"),
        "another type": untouched(Produced(QUEUE, NAMED + markers.number(2, 3)), "unknown-action"),
        "beyond the longest delay": untouched(Produced(QUEUE, _start(71, BEYOND_MS)), "beyond-max-delay"),
        "the longest number": untouched(Produced(QUEUE, _start(72, (1 << 64) - 1)), "beyond-max-delay"),
        "kept alive beyond it": untouched(Produced(QUEUE, _keep_alive(73, BEYOND_MS)), "beyond-max-delay"),
        "no queue": untouched(Produced(None, _start(74)), "malformed-key"),
        "a long queue": untouched(Produced(b"x" * 242, _start(75)), "malformed-key"),
        "too many headers": untouched(
            Produced(QUEUE, _start(76), [("trace", b"%d" % number) for number in range(256)]), "too-many-headers"
        ),
        "no count": untouched(Produced(QUEUE, _start(77), [("redelivery-count", b"many")]), "malformed-header"),
    }


def bounded_cases(stage: Stage) -> Mapping[str, Case]:
    """Return what comes of messages that were redelivered before, where twice is the most."""
    twice = [("redelivery-count", b"2")]
    failed = Produced(QUEUE, markers.start(3, 3, 0, QUEUE, PAYLOAD), twice)
    return {
        "never": _usual(stage, 1),
        "once": _usual(stage, 2, SOON_MS, [("redelivery-count", b"1")], count=b"2"),
        "twice": untouched(failed, "too-many-redeliveries"),
    }


TABLE = Table({"redelivery": {}, "maxDelay": "1h"}, cases)
BOUNDED = Table({"maxDelay": "1h", "redelivery": {"maxRedeliveries": 2}}, bounded_cases)
