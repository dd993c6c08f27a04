"""One source record as the careful parts of a dialect see it."""

from __future__ import annotations

from typing import NamedTuple

from delaytopic_api.records import Headers


class Record(NamedTuple):
    """A record as the client handed it over, each part fetched once.

    `control` is as in `Schedule`. `timestamp_ms` is None when the record has none, or one that is no
    instant between 1970 and the year 9999.
    """

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None
    control: int
    timestamp_ms: int | None
