from __future__ import annotations

import pytest

from delaytopic_api.records import DeadLetterReason, headers


def test_the_control_headers_are_those_that_producers_were_promised() -> None:
    assert {
        "deliver-at",
        "deliver-after",
        "deliver-id",
        "deliver-action",
        "deliver-to",
        "deliver-expires-at",
        "deliver-cron",
        "deliver-every",
        "deliver-tz",
        "deliver-from",
        "deliver-until",
        "deliver-count",
        "deliver-jitter",
        "deliver-missed",
        "deliver-catch-up",
        "deliver-ladder",
        "deliver-window",
        "deliver-smear",
        "deliver-on-conflict",
        "deliver-no-later-than",
        "deliver-requested-by",
    } == headers.CONTROL_HEADERS


def test_what_relays_write_is_not_stripped_by_the_next_one() -> None:
    written = {
        headers.RECEIPT,
        headers.DEAD_LETTER_REASON,
        headers.DEAD_LETTER_DETAIL,
        headers.DEAD_LETTER_SOURCE,
        headers.DEAD_LETTER_AT,
        headers.DEAD_LETTER_VALUE_OMITTED,
    }

    assert written.isdisjoint(headers.CONTROL_HEADERS)


def test_the_reasons_of_dead_letters_are_stable_tokens() -> None:
    assert {reason.value for reason in DeadLetterReason} == {
        "malformed-header",
        "malformed-value",
        "malformed-key",
        "contradictory-headers",
        "unsupported",
        "unknown-action",
        "beyond-max-delay",
        "forbidden-target",
        "unknown-target",
        "target-unavailable",
        "expired",
        "too-large",
        "too-many-headers",
        "too-many-ids",
        "too-many-redeliveries",
        "refused-by-kafka",
    }


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Deliver-After", "deliver-after"),
        ("DELIVER_AT", "deliver-at"),
        ("deliverAfter", "deliver-after"),
        ("X-Deliver-At", "deliver-at"),
        ("deliver-att", "deliver-at"),
        ("delvier-at", "deliver-at"),
        ("delivery-id", "deliver-id"),
        ("deliver-expire-at", "deliver-expires-at"),
        ("deliver-at", None),
        ("delay-receipt", None),
        ("deliver-time", None),
        ("deliver-at-last", None),
        ("traceparent", None),
        ("", None),
        ("d" * 1_000, None),
    ],
)
def test_a_name_resembles_a_control_header_or_none(name: str, meant: str | None) -> None:
    assert headers.resembled_header(name) == meant
