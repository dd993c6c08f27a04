"""Another time for records, as the command line asks a gateway for it."""

from __future__ import annotations

from typing import Any

from delaytopic_gateway.client.time_text import duration, instant_ms
from delaytopic_process.errors import InputError


def asked_time(after: str | None, at: str | None) -> dict[str, Any]:
    """Return `deliver_after` or `deliver_at` of a request, or nothing where neither is given. Raises InputError."""
    if after is not None and at is not None:
        raise InputError("set --after or --at, not both")
    if after is not None:
        return {"deliver_after": str(duration(after))}
    return {} if at is None else {"deliver_at": instant_ms(at)}


def before_ms(text: str, *, now_ms: int, option: str = "--due-before") -> int:
    """Return a point in time, or a duration from now; raises InputError that names the option."""
    try:
        return instant_ms(text)
    except InputError as no_time:
        try:
            return now_ms + duration(text).ms
        except InputError:
            raise InputError(f"{option}: {no_time}; or a duration from now: 90s, 1h30m") from no_time
