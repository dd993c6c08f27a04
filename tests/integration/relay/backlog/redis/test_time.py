"""The clock of a real Redis."""

from __future__ import annotations

import pytest
from tests.harness.shared_servers import RedisAddress
from tests.support.relay.process import wait_for
from tests.support.relay.records import now_ms

from delaytopic_api.relay import RedisClient
from delaytopic_relay.backlog.redis.time import RedisTime
from delaytopic_relay.backlog.second_clock import BackendClock
from delaytopic_relay.clock import SystemClock
from delaytopic_relay.core.second_clock import Reading
from delaytopic_relay.errors import BacklogUnavailable

NOBODY = RedisClient(url="redis://127.0.0.1:1")


@pytest.mark.integration
def test_redis_tells_the_time_between_question_and_answer(redis: RedisAddress) -> None:
    time = RedisTime(RedisClient(url=redis.url))

    asked_ms, time_ms, answered_ms = now_ms(), time.time_ms(), now_ms()
    time.close()

    assert asked_ms <= time_ms <= answered_ms
    assert time.name.startswith("Redis at ")


def test_a_redis_that_is_away_is_named() -> None:
    with pytest.raises(BacklogUnavailable, match=r"^Redis at 127\.0\.0\.1:1"):
        RedisTime(NOBODY).time_ms()


@pytest.mark.integration
def test_whoever_asks_waits_for_no_answer(redis: RedisAddress) -> None:
    clock = BackendClock(RedisTime(RedisClient(url=redis.url)), SystemClock())

    before = clock.answer()
    clock.ask()
    answer = wait_for(clock.answer)
    clock.close()

    assert before is None
    assert isinstance(answer, Reading)
    assert answer.asked_ms <= answer.answered_ms


def test_a_question_without_an_answer_says_why() -> None:
    clock = BackendClock(RedisTime(NOBODY), SystemClock())
    clock.ask()

    answer = wait_for(clock.answer)
    clock.close()

    assert str(answer).startswith("Redis at 127.0.0.1:1")
