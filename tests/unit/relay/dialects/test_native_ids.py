from __future__ import annotations

import pytest
from tests.support.relay.native_records import OFFSET, TIMESTAMP_MS, native, record, reject, schedule

from delaytopic_api.records import RESERVED_HEADERS, DeadLetterReason
from delaytopic_relay.core.commands import SEVERAL_CONTROL_HEADERS, Cancel


@pytest.mark.parametrize("identity", [b"a", b"\x00\xff", b" ", b"i" * 256])
def test_an_id_is_any_1_to_256_bytes(identity: bytes) -> None:
    message = record(("deliver-id", identity), ("deliver-after", b"5s"))

    command = native().read(message)

    assert command == schedule(message, TIMESTAMP_MS + 5_000, control=SEVERAL_CONTROL_HEADERS, id=identity)


@pytest.mark.parametrize(
    ("identity", "shown"),
    [(None, "null"), (b"", "empty"), (b"i" * 257, f"'{'i' * 63}...")],
)
def test_any_other_id_is_malformed(identity: bytes | None, shown: str) -> None:
    message = record(("deliver-id", identity))

    command = native().read(message)

    detail = f"header deliver-id must be 1 to 256 bytes, but is {shown}"
    assert command == reject(message, DeadLetterReason.MALFORMED_HEADER, detail)


def test_the_action_schedule_is_what_happens_without_an_action() -> None:
    message = record(("deliver-action", b"schedule"), ("deliver-id", b"a"))

    command = native().read(message)

    assert command == schedule(message, TIMESTAMP_MS, control=SEVERAL_CONTROL_HEADERS, id=b"a")


def test_the_action_cancel_withdraws_an_id() -> None:
    message = record(("deliver-id", b"a"), ("trace", b"1"), ("deliver-action", b"cancel"))

    command = native().read(message)

    assert command == Cancel(OFFSET, b"a")


@pytest.mark.parametrize("action", [b"schedule", b"cancel"])
def test_a_record_may_say_who_asks_for_it(action: bytes) -> None:
    asks: tuple[str, bytes | None] = ("deliver-requested-by", "é".encode() * 128)
    message = record(("deliver-id", b"a"), ("deliver-action", action), asks)

    command = native().read(message)

    cancels = action == b"cancel"
    scheduled = schedule(message, TIMESTAMP_MS, control=SEVERAL_CONTROL_HEADERS, id=b"a")
    assert command == (Cancel(OFFSET, b"a", requested_by=asks[1]) if cancels else scheduled)


@pytest.mark.parametrize(
    ("text", "shown"),
    [(None, "null"), (b"", "empty"), (b"a" * 257, f"'{'a' * 63}..."), (b"\xff", "'\\xff'")],
)
def test_whoever_asks_has_a_name_in_1_to_256_bytes_of_text(text: bytes | None, shown: str) -> None:
    message = record(("deliver-requested-by", text))

    command = native().read(message)

    detail = f"header deliver-requested-by must be 1 to 256 bytes of text in UTF-8, but is {shown}"
    assert command == reject(message, DeadLetterReason.MALFORMED_HEADER, detail)


@pytest.mark.parametrize(
    ("action", "shown"),
    [(b"explode", "'explode'"), (b"Cancel", "'Cancel'"), (b"cancel ", "'cancel '"), (b"", "empty"), (None, "null")],
)
def test_any_other_action_is_unknown(action: bytes | None, shown: str) -> None:
    message = record(("deliver-action", action), ("deliver-id", b"a"))

    command = native().read(message)

    detail = f"header deliver-action must be schedule or cancel, but is {shown}"
    assert command == reject(message, DeadLetterReason.UNKNOWN_ACTION, detail)


def test_a_cancel_without_an_id_is_malformed() -> None:
    message = record(("deliver-action", b"cancel"))

    command = native().read(message)

    detail = "header deliver-action is cancel: header deliver-id must name the schedule to cancel"
    assert command == reject(message, DeadLetterReason.MALFORMED_HEADER, detail)


@pytest.mark.parametrize("name", ["deliver-at", "deliver-after", "deliver-to", "deliver-expires-at"])
@pytest.mark.parametrize("value", [b"1795269686270", None])
def test_a_cancel_that_says_how_to_deliver_contradicts_itself(name: str, value: bytes | None) -> None:
    message = record((name, value), ("deliver-action", b"cancel"), ("deliver-id", b"a"))

    command = native().read(message)

    detail = f"header deliver-action is cancel, which makes no schedule: remove header {name}"
    assert command == reject(message, DeadLetterReason.CONTRADICTORY_HEADERS, detail)


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ([("deliver-id", b"a")], "deliver-id"),
        ([("deliver-id", b"a"), ("deliver-action", b"cancel")], "deliver-id"),
        ([("deliver-action", b"cancel")], "deliver-action"),
    ],
)
def test_an_id_is_unsupported_where_ids_are_disabled(headers: list[tuple[str, bytes]], name: str) -> None:
    message = record(*headers)

    command = native(ids_enabled=False).read(message)

    detail = f"header {name} needs schedule ids, which this DelayTopic has disabled (schedule.ids: Disabled)"
    assert command == reject(message, DeadLetterReason.UNSUPPORTED, detail)


def test_the_action_schedule_needs_no_ids() -> None:
    message = record(("deliver-action", b"schedule"))

    command = native(ids_enabled=False).read(message)

    assert command == schedule(message, TIMESTAMP_MS, control=0)


@pytest.mark.parametrize("name", RESERVED_HEADERS)
@pytest.mark.parametrize("rule", [{}, {"delay_ms": 30_000}])
def test_a_reserved_header_is_unsupported(name: str, rule: dict[str, int]) -> None:
    message = record((name, b"1"), ("deliver-after", b"1s"))

    command = native(**rule).read(message)

    detail = f"header {name} is reserved and has no meaning yet: send the record without it"
    assert command == reject(message, DeadLetterReason.UNSUPPORTED, detail)
