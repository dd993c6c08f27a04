"""Settings of Kafka's topics whose values are numbers or booleans, as brokers read their texts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Final

MOST_MESSAGE_BYTES: Final = (1 << 31) - 1
"""The largest `max.message.bytes`."""
_LONGEST: Final = (1 << 63) - 1

WHOLE_NUMBERS: Final[Mapping[str, tuple[int, int]]] = {
    "compression.gzip.level": (-1, 9),
    "compression.lz4.level": (1, 17),
    "compression.zstd.level": (-131_072, 22),
    "delete.retention.ms": (0, _LONGEST),
    "file.delete.delay.ms": (0, _LONGEST),
    "flush.messages": (1, _LONGEST),
    "flush.ms": (0, _LONGEST),
    "index.interval.bytes": (0, MOST_MESSAGE_BYTES),
    "local.retention.bytes": (-2, _LONGEST),
    "local.retention.ms": (-2, _LONGEST),
    "max.compaction.lag.ms": (1, _LONGEST),
    "max.message.bytes": (0, MOST_MESSAGE_BYTES),
    "message.timestamp.after.max.ms": (0, _LONGEST),
    "message.timestamp.before.max.ms": (0, _LONGEST),
    "message.timestamp.difference.max.ms": (0, _LONGEST),
    "min.compaction.lag.ms": (0, _LONGEST),
    "min.insync.replicas": (1, MOST_MESSAGE_BYTES),
    "retention.bytes": (-_LONGEST, _LONGEST),
    "retention.ms": (-1, _LONGEST),
    "segment.bytes": (14, MOST_MESSAGE_BYTES),
    "segment.index.bytes": (4, MOST_MESSAGE_BYTES),
    "segment.jitter.ms": (0, _LONGEST),
    "segment.ms": (1, _LONGEST),
}
"""The least and the largest value that a broker takes, by `LogConfig` of Kafka 4.3; `segment.bytes` as before 4.0."""
MOST_DIGITS: Final = len(str(_LONGEST)) + 1
"""The longest text of a number, sign and leading zeros included."""
BOOLEANS: Final = (
    "message.downconversion.enable",
    "preallocate",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
    "unclean.leader.election.enable",
)
SHARE: Final = "min.cleanable.dirty.ratio"

WHOLE: Final = "-?[0-9]+"
FRACTION: Final = "[+]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][-+]?[0-9]+)?"
TRUTH: Final = "[tT][rR][uU][eE]|[fF][aA][lL][sS][eE]"


def objections_to_config(config: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each setting whose value no broker takes, and why. Settings that are not known here are not judged."""
    for name, text in config.items():
        objection = _objection(name, text)
        if objection is not None:
            yield name, objection


def _objection(name: str, text: str) -> str | None:
    if name in WHOLE_NUMBERS:
        least, most = WHOLE_NUMBERS[name]
        if not re.fullmatch(WHOLE, text):
            return f'must be a whole number in digits, not "{text}"{_meant(text)}'
        if len(text) > MOST_DIGITS or not least <= int(text) <= most:
            return f"must be between {least} and {most}, not {text}"
    if name in BOOLEANS and not re.fullmatch(TRUTH, text):
        return f'must be true or false, not "{text}"'
    if name == SHARE and not (re.fullmatch(FRACTION, text) and float(text) <= 1):
        return f'must be a number between 0 and 1, not "{text}"'
    return None


def _meant(text: str) -> str:
    """Return what to write for a number that is whole, and written as Go's templates print large ones."""
    if not re.fullmatch("[0-9]([.][0-9]+)?e[+][01][0-9]", text):
        return ""
    number = Decimal(text)
    return f'; write "{number:.0f}" (a Helm template does with: int64 | quote)' if number % 1 == 0 else ""
