"""The error by which parts of a dialect say that a record cannot be scheduled."""

from __future__ import annotations

from delaytopic_api.records import DeadLetterReason

_SHOWN_CHARACTERS = 64


class HeaderError(Exception):
    """The record is for the dead-letter topic. Stays inside a dialect, which turns it into a `Reject`."""

    def __init__(self, reason: DeadLetterReason, detail: str) -> None:
        """`detail` is one ASCII sentence that names the header and says what is allowed."""
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def malformed(name: str, allowed: str, value: bytes | None) -> HeaderError:
    """A header whose value cannot be read; `allowed` says what could."""
    detail = f"header {name} must be {allowed}, but is {shown(value)}"
    return HeaderError(DeadLetterReason.MALFORMED_HEADER, detail)


def shown(value: bytes | None) -> str:
    """A header's value for a detail: ASCII, and of bounded length whatever the producer wrote."""
    if value is None:
        return "null"
    if not value:
        return "empty"
    text = repr(value[:_SHOWN_CHARACTERS])  # a repr is longer than its value: what is cut off here cannot fit
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
