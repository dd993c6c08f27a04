"""The records that schedule, move and cancel: what a producer of the DelayTopic would write. Pure."""

from __future__ import annotations

from base64 import b64decode

from delaytopic_api.records import (
    ACTION_CANCEL,
    DELIVER_ACTION,
    DELIVER_AFTER,
    DELIVER_AT,
    DELIVER_ID,
    DELIVER_REQUESTED_BY,
    RECURRENCE_HEADERS,
    Headers,
)
from delaytopic_api.relay import LONGEST_SHOWN_BYTES, PendingContent, PendingRecord
from delaytopic_api.values import Dialect
from delaytopic_gateway.client.new_records import OutgoingRecord
from delaytopic_gateway.errors import ConflictError
from delaytopic_gateway.service.served_topics import ServedTopic

LONGEST_NAME_BYTES = 256
RECURRENCE_NAMES = frozenset(RECURRENCE_HEADERS)
NEAREST_MOVE_MS = 5_000
"""A record that is due sooner is not moved: it could leave before the relay has read of its new time."""


def content_bytes(text: str | None, base64: str | None) -> bytes | None:
    """Return what a page shows as text or as base64; None for neither."""
    if base64 is not None:
        return b64decode(base64)
    return None if text is None else text.encode()


def id_of(record: PendingRecord) -> bytes | None:
    """Return a record's id."""
    return content_bytes(record.id, record.id_base64)


def demand_cancels(served: ServedTopic) -> None:
    """Raise `ConflictError` where no pending record can be cancelled."""
    if not served.may_cancel:
        raise ConflictError(f"records of {served.full_name} cannot be cancelled: {_why(served)}")


def demand_moves(served: ServedTopic) -> None:
    """Raise `ConflictError` where no pending record can be moved."""
    if not served.may_move:
        raise ConflictError(f"records of {served.full_name} cannot be moved: {_why(served)}")


def cancelling(served: ServedTopic, record: PendingRecord) -> OutgoingRecord:
    """Return the record that cancels a pending one. Raises `ConflictError` where that is not possible."""
    demand_cancels(served)
    name = id_of(record)
    if name is None:
        raise ConflictError("this record has no id; only records with an id can be cancelled")
    if served.dialect is not Dialect.NATIVE:
        return OutgoingRecord(name, None, [])
    return OutgoingRecord(_key(record), None, [(DELIVER_ID, name), (DELIVER_ACTION, ACTION_CANCEL)])


def moving(served: ServedTopic, record: PendingRecord, due_ms: int, now_ms: int) -> OutgoingRecord:
    """Return the record that replaces a pending one and is due at another time. Raises `ConflictError`."""
    demand_moves(served)
    if id_of(record) is None:
        raise ConflictError("this record has no id; only records with an id can be moved")
    if record.due_ms - now_ms < NEAREST_MOVE_MS:
        raise ConflictError(
            f"this record is due within {NEAREST_MOVE_MS // 1_000} s: it is about to be delivered, and cannot be moved"
        )
    if record.expires_ms is not None and due_ms > record.expires_ms:
        raise ConflictError(f"this record expires at {record.expires_ms}, before the time asked for ({due_ms})")
    if due_ms - now_ms > served.max_delay_ms:
        raise ConflictError(f"the time asked for ({due_ms}) is further ahead than schedule.maxDelay allows")
    content = _content(record)
    if not RECURRENCE_NAMES.isdisjoint(header.name for header in content.headers):
        raise ConflictError(
            "this record recurs, or is due by the clocks of a zone, and its rule says when: send it with its id and"
            " another rule"
        )
    headers: Headers = [
        (header.name, content_bytes(header.value, header.value_base64))
        for header in content.headers
        if header.name not in (DELIVER_AT, DELIVER_AFTER)
    ]
    return OutgoingRecord(
        content_bytes(content.key, content.key_base64),
        content_bytes(content.value, content.value_base64),
        [*headers, (DELIVER_AT, b"%d" % due_ms)],
    )


def requested_by(served: ServedTopic, record: OutgoingRecord, caller: str) -> OutgoingRecord:
    """Return a record that names who asks for it, for the outcome; the same one where nobody would tell it.

    A record that is moved has the name of who moves it.
    """
    headers = [header for header in record.headers if header[0] != DELIVER_REQUESTED_BY]
    if served.outcomes is None or served.dialect is not Dialect.NATIVE or not caller:
        return record._replace(headers=headers)
    # A user's name has no bound of its own.
    name = caller.encode()[:LONGEST_NAME_BYTES].decode("utf-8", "ignore").encode()
    return record._replace(headers=[*headers, (DELIVER_REQUESTED_BY, name)])


def _key(record: PendingRecord) -> bytes | None:
    """Return the key of a cancel. It is there for readers: relays go by the id, and the partition is given."""
    if record.content is not None:
        return content_bytes(record.content.key, record.content.key_base64)
    # Lists without contents cut long keys.
    is_whole = (record.key_bytes or 0) <= LONGEST_SHOWN_BYTES
    return content_bytes(record.key, record.key_base64) if is_whole else None


def _content(record: PendingRecord) -> PendingContent:
    assert record.content is not None, "asked for without contents"
    return record.content


def _why(served: ServedTopic) -> str:
    if served.fixed_delay:
        return "its delay is fixed, so records have no ids"
    return f"with dialect {served.dialect} and schedule.ids {served.ids} there is no command for it"
