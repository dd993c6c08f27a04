"""The query of `GET /pending?dueBefore=...&limit=...&partition=...`, and which records it selects. Pure."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

from delaytopic_api.relay import DEFAULT_LIMIT, LARGEST_ANSWER_BYTES, MOST_LISTED
from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.errors import BadRequest

LATEST_MS = 253_402_300_800_000
"""The year 10000: no record is due after it."""
LARGEST_PARTITION = (1 << 31) - 1
LARGEST_OFFSET = (1 << 63) - 1
LONGEST_TEXT_BYTES = 1_024
"""The longest text that is compared with keys and ids."""

Place = tuple[int, int, int]
"""Due time, source partition and source offset: the order of lists."""
BEFORE_ALL: Final[Place] = (-1, -1, -1)


class Selection(NamedTuple):
    """The records that are listed: those that come behind a place and fit all that is set."""

    after: Place = BEFORE_ALL
    id: bytes | None = None
    id_prefix: bytes | None = None
    key: bytes | None = None
    key_prefix: bytes | None = None

    @property
    def from_ms(self) -> int:
        """The due time before which nothing is selected."""
        return max(0, self.after[0])

    def takes(self, partition: int, schedule: Schedule) -> bool:
        """Tell whether a schedule is selected."""
        return (
            (schedule.due_ms, partition, schedule.offset) > self.after
            and self.id in (None, schedule.id)
            and self.key in (None, schedule.key)
            and _begins(schedule.id, self.id_prefix)
            and _begins(schedule.key, self.key_prefix)
        )


def _begins(text: bytes | None, prefix: bytes | None) -> bool:
    return prefix is None or (text is not None and text.startswith(prefix))


EVERYTHING: Final = Selection()


class PendingQuery(NamedTuple):
    """The first `limit` records that are due before a time, of one source partition or of all."""

    due_before_ms: int = LATEST_MS
    limit: int = DEFAULT_LIMIT
    partition: int | None = None
    selection: Selection = EVERYTHING
    contents: bool = False
    """True: value and headers are shown, too."""
    most_bytes: int | None = None
    """The bound of all that is shown, records without contents included; None: of contents, as many as an answer has.
    """

    @property
    def asked_before_ms(self) -> int | None:
        """The time that was asked for, if one was."""
        return None if self.due_before_ms == LATEST_MS else self.due_before_ms


_PARAMETERS: Final = (
    "dueFrom",
    "dueBefore",
    "limit",
    "partition",
    "after",
    "id",
    "idBase64",
    "idPrefix",
    "key",
    "keyBase64",
    "keyPrefix",
    "contents",
    "maxBytes",
)


def parse_query(text: str) -> PendingQuery:
    """Read the part of the address behind the question mark. Raises `BadRequest`."""
    given: dict[str, str] = {}
    for name, value in parse_qsl(text, keep_blank_values=True, max_num_fields=64):
        if name not in _PARAMETERS:
            known = f"{', '.join(_PARAMETERS[:-1])} and {_PARAMETERS[-1]}"
            raise BadRequest(f"{name[:80]!r} is no parameter of this page; there are {known}")
        if name in given:
            raise BadRequest(f"{name} is given twice")
        given[name] = value
    partition, most_bytes = given.get("partition"), given.get("maxBytes")
    return PendingQuery(
        _number("dueBefore", given.get("dueBefore", str(LATEST_MS)), 0, LATEST_MS, "epoch milliseconds"),
        _number("limit", given.get("limit", str(DEFAULT_LIMIT)), 0, MOST_LISTED, "a number of records"),
        None if partition is None else _number("partition", partition, 0, LARGEST_PARTITION, "a source partition"),
        Selection(
            _after(given),
            _bytes(given, "id", "idBase64"),
            _bytes(given, "idPrefix"),
            _bytes(given, "key", "keyBase64"),
            _bytes(given, "keyPrefix"),
        ),
        _truth("contents", given.get("contents", "false")),
        None if most_bytes is None else _number("maxBytes", most_bytes, 1, LARGEST_ANSWER_BYTES, "a number of bytes"),
    )


def _after(given: Mapping[str, str]) -> Place:
    after = BEFORE_ALL
    if "after" in given:
        parts = given["after"].split(":")
        if len(parts) != len(after):
            what = "it is due time, partition and offset, such as 1795269686270:3:17"
            raise BadRequest(f"after={given['after'][:80]!r}: {what}")
        after = (
            _number("after", parts[0], 0, LATEST_MS, "epoch milliseconds"),
            _number("after", parts[1], 0, LARGEST_PARTITION, "a source partition"),
            _number("after", parts[2], 0, LARGEST_OFFSET, "a source offset"),
        )
    if "dueFrom" in given:
        from_ms = _number("dueFrom", given["dueFrom"], 0, LATEST_MS, "epoch milliseconds")
        after = max(after, (from_ms, -1, -1))
    return after


def _bytes(given: Mapping[str, str], plain: str, encoded: str = "") -> bytes | None:
    if plain in given and encoded in given:
        raise BadRequest(f"{plain} and {encoded} are given: one of them is enough")
    if encoded in given:
        try:
            found = b64decode(given[encoded], validate=True)
        except ValueError:
            raise BadRequest(f"{encoded}={given[encoded][:80]!r}: it is no base64") from None
    elif plain in given:
        found = given[plain].encode("utf-8", "surrogatepass")
    else:
        return None
    if len(found) > LONGEST_TEXT_BYTES:
        raise BadRequest(f"{plain} has {len(found)} bytes: it may have {LONGEST_TEXT_BYTES}")
    return found


def _truth(name: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise BadRequest(f"{name}={text[:80]!r}: it is true or false")
    return text == "true"


def _number(name: str, text: str, least: int, most: int, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and least <= int(text) <= most):
        raise BadRequest(f"{name}={text[:80]!r}: it is {what}, from {least} to {most}")
    return int(text)
