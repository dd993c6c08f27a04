"""Rows of made-up records, as the tasks of a data source yield them: an hour in which all is well, each with an id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa  # type: ignore[import-untyped]

from delaytopic_audit.model.manifest import Range, Role
from delaytopic_audit.model.words import Kind
from delaytopic_audit.reading.decoding import Row, batch_of

THIS_MODULE: Final = "bench.audit.made_up"
HOUR_MS: Final = 3_600_000
BATCH_ROWS: Final = 10_000
NOW_MS: Final = 500_000 * HOUR_MS
_ODD: Final = 0x9E37_79B9_7F4A_7C15
"""Knuth's multiplier: products with it, cut to 64 bits, differ for all offsets, and their last bits too."""


def share_of(_options: dict[str, str], share: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one range."""
    piece = Range.model_validate_json(share)
    for start in range(piece.start, piece.end, BATCH_ROWS):
        yield batch_of(
            {1: [row for offset in range(start, min(start + BATCH_ROWS, piece.end)) for row in _rows(piece, offset)]}
        )


def _rows(piece: Range, offset: int) -> Iterator[Row]:
    """Yield a record's row: a schedule of ten minutes, and its delivery in time."""
    due_ms = NOW_MS - 2 * HOUR_MS + offset * 7_200 // 1_000 % HOUR_MS
    at = (piece.partition, offset)
    if piece.role is Role.SOURCE:
        yield (
            int(Kind.SCHEDULE),
            *at,
            due_ms,
            due_ms - 600_000,
            True,
            None,
            _id_hash(offset),
            "target",
            None,
            None,
            None,
        )
    elif piece.role is Role.TARGET:
        place = ("target", piece.partition, offset, None)
        yield (int(Kind.DELIVERED), *at, due_ms, due_ms + offset % 97, True, due_ms, None, *place)


def _id_hash(offset: int) -> int:
    return (offset * _ODD & (1 << 64) - 1) - (1 << 63)
