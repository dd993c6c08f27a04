from __future__ import annotations

import pytest

from delaytopic_api import Duration
from delaytopic_gateway.client.new_records import Addressing, Timing
from delaytopic_local.session.known_topics import KnownTopic, objection, warnings

NOW_MS = 1_795_000_000_000
PLAIN = KnownTopic(
    "shop/reminders", "shop.delayed", "shop.reminders", "shop.delayed.dlq", ("shop.vip.*",), None, 60_000
)
FIXED = KnownTopic("shop/retries", "shop.retry", "shop.orders", "shop.retry.dlq", (), 300_000, 300_000, takes_ids=False)
FOREIGN = KnownTopic("shop/jobs", "shop.jobs", "shop.work", "shop.jobs.dlq", dialect="Cesium")
ANY = Addressing()
KNOWN = [PLAIN, FIXED, FOREIGN]
AFTER_5S, AT_ONCE = Timing(after=Duration("5s")), Timing()


def objected(topic: str, timing: Timing = AT_ONCE, addressing: Addressing = ANY) -> str | None:
    return objection(topic, KNOWN, timing, addressing, now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("topic", "timing", "addressing"),
    [
        ("shop.delayed", AFTER_5S, Addressing(schedule_id="order-17")),
        ("shop.delayed", AFTER_5S, Addressing(to="shop.reminders")),
        ("shop.delayed", AFTER_5S, Addressing(to="shop.vip.gold")),
        ("shop.delayed", Timing(at_ms=NOW_MS - 5), Addressing()),
        ("shop.retry", AT_ONCE, Addressing(key="k")),
        ("shop.jobs", AT_ONCE, Addressing(key="k")),
        ("unknown", AFTER_5S, Addressing(to="anything", schedule_id="x")),
    ],
)
def test_what_a_delay_topic_takes_is_sent(topic: str, timing: Timing, addressing: Addressing) -> None:
    assert objected(topic, timing, addressing) is None


@pytest.mark.parametrize(("topic", "what"), [("shop.reminders", "target"), ("shop.delayed.dlq", "dead-letter")])
def test_a_record_for_the_wrong_end_is_not_sent(topic: str, what: str) -> None:
    assert objected(topic, AFTER_5S) == (
        f"{topic} is the {what} topic of shop/reminders: no relay delays what is sent there; "
        "send to its source topic shop.delayed"
    )


@pytest.mark.parametrize(
    ("topic", "timing", "addressing", "reason"),
    [
        (
            "shop.delayed",
            AFTER_5S,
            Addressing(to="post.letters"),
            "--to: shop/reminders does not deliver to post.letters; spec.target.allowedTopics has shop.vip.*",
        ),
        (
            "shop.retry",
            AFTER_5S,
            Addressing(),
            "shop/retries delays every record by 5m (spec.schedule.fixedDelay): leave --after and --at out",
        ),
        ("shop.retry", AT_ONCE, Addressing(schedule_id="1"), "shop/retries takes no ids: leave --id out"),
        (
            "shop.delayed",
            Timing(after=Duration("61s")),
            Addressing(),
            "shop/reminders takes what is due within 1m (spec.schedule.maxDelay), and this is later",
        ),
        (
            "shop.delayed",
            Timing(at_ms=NOW_MS + 30_000, spread_ms=30_001),
            Addressing(),
            "shop/reminders takes what is due within 1m (spec.schedule.maxDelay), and this is later",
        ),
        (
            "shop.jobs",
            AFTER_5S,
            Addressing(),
            "shop/jobs reads records in the dialect Cesium: leave --after, --at, --id and --to out, and write key, "
            "value and headers as that dialect does",
        ),
    ],
)
def test_what_would_become_a_dead_letter_is_not_sent(
    topic: str, timing: Timing, addressing: Addressing, reason: str
) -> None:
    assert objected(topic, timing, addressing) == reason


def test_a_topic_that_no_relay_reads_is_mentioned_where_relays_are_known() -> None:
    assert [*warnings("other", KNOWN, Addressing())] == [
        "other is the source topic of no DelayTopic of the running `delaytopic local`: nothing is delivered"
    ]
    assert [*warnings("other", [], Addressing())] == []


def test_a_header_that_resembles_a_control_header_is_mentioned() -> None:
    assert [*warnings("shop.delayed", KNOWN, Addressing(headers=[("Deliver-After", "5s"), ("trace", "1")]))] == [
        'the header "Deliver-After" is passed on like any other: did you mean deliver-after?'
    ]
