"""Records that `delaytopic.client` hands to a producer, and its import, which brings no library."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from delaytopic.client import (
    Answer,
    AnswerFuture,
    AnswerTimeoutError,
    Cancelled,
    DelayedTopic,
    NotPending,
    Outcome,
    OutcomesUnreadableError,
    Place,
    TooLate,
    partition_of,
)
from delaytopic.reading import best_of

TOPIC = "shop.delayed"
AT = datetime(2026, 11, 21, 15, 1, 26, 270_000, tzinfo=timezone(timedelta(hours=1)))


class Recorder:
    """A producer that keeps what it is given, for a topic of 12 partitions."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.callbacks: list[Any] = []
        self.asked = 0
        self.partitions = 12

    def produce(self, topic: str, *args: Any, on_delivery: Any = None, **kwargs: Any) -> None:
        self.records.append({"topic": topic, **kwargs})
        self.callbacks.append(on_delivery)

    def poll(self, *args: Any, **kwargs: Any) -> None:
        raise AssertionError("nobody awaits an answer")

    def list_topics(self, *args: Any, **kwargs: Any) -> Any:
        self.asked += 1
        partitions = dict.fromkeys(range(self.partitions))
        return SimpleNamespace(topics={TOPIC: SimpleNamespace(error=None, partitions=partitions)})


@pytest.fixture
def producer() -> Recorder:
    return Recorder()


@pytest.fixture
def delayed(producer: Recorder) -> DelayedTopic:
    return DelayedTopic(producer, TOPIC)


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_a_key_goes_where_kafkas_own_test_says(key: bytes, hashed: int) -> None:
    assert partition_of(key, 1 << 31) == hashed & 0x7FFFFFFF


def test_a_schedule_has_its_time_its_id_and_the_partition_of_its_key(producer: Recorder, delayed: DelayedTopic) -> None:
    delayed.schedule("pay", id="order-17", after=timedelta(hours=1), headers=[("trace", "1"), ("none", None)])

    assert producer.records == [
        {
            "topic": TOPIC,
            "value": b"pay",
            "key": b"order-17",
            "partition": partition_of(b"order-17", 12),
            "headers": [("trace", b"1"), ("none", None), ("deliver-after", b"3600000"), ("deliver-id", b"order-17")],
        }
    ]


def test_a_cancel_goes_where_the_record_went(producer: Recorder, delayed: DelayedTopic) -> None:
    delayed.schedule("pay", id="order-17", key="customer-4", at=AT)
    delayed.replace("pay now", id="order-17", key="customer-4", at=AT)
    delayed.cancel("order-17", key="customer-4")

    assert {(record["key"], record["partition"]) for record in producer.records} == {
        (b"customer-4", partition_of(b"customer-4", 12))
    }
    assert producer.records[2]["headers"] == [("deliver-id", b"order-17"), ("deliver-action", b"cancel")]
    assert producer.records[2]["value"] is None


def test_a_record_without_a_key_goes_where_the_producer_sends_it(producer: Recorder, delayed: DelayedTopic) -> None:
    delayed.schedule(b"tea", to="shop.vip", expires_at=1_795_269_700_000)

    headers = [("deliver-to", b"shop.vip"), ("deliver-expires-at", b"1795269700000")]
    assert producer.records == [{"topic": TOPIC, "value": b"tea", "key": None, "headers": headers}]
    assert producer.asked == 0


@pytest.mark.parametrize(
    ("at", "milliseconds"),
    [
        (AT, b"1795269686270"),
        (1_795_269_686_270, b"1795269686270"),
        (datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC), b"1"),
        (datetime(1970, 1, 1, tzinfo=UTC), b"0"),
    ],
)
def test_a_moment_is_written_so_that_nothing_is_early(
    producer: Recorder, delayed: DelayedTopic, at: datetime | int, milliseconds: bytes
) -> None:
    delayed.schedule(b"x", at=at)

    assert producer.records[0]["headers"] == [("deliver-at", milliseconds)]


def test_a_delay_is_rounded_up_to_milliseconds(producer: Recorder, delayed: DelayedTopic) -> None:
    delayed.schedule(b"x", after=timedelta(microseconds=1_001))

    assert producer.records[0]["headers"] == [("deliver-after", b"2")]


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda topic: topic.schedule(b"x", at=AT, after=timedelta(1)), "set at or after"),
        (lambda topic: topic.schedule(b"x", at=datetime(2026, 1, 1)), "at has no time zone"),
        (lambda topic: topic.schedule(b"x", at=-1), "at is not between 1970"),
        (lambda topic: topic.schedule(b"x", at=1_795_269_686), "at: 1795269686 as epoch .* 1795269686000 for it"),
        (lambda topic: topic.schedule(b"x", at=1_795_269_686_270_000), "at: .* microseconds, write 1795269686270 "),
        (lambda topic: topic.schedule(b"x", expires_at=1_795_269_686), "expires_at: .* if it is in seconds"),
        (lambda topic: topic.schedule(b"x", after=timedelta(-1)), "after is negative"),
        (lambda topic: topic.schedule(b"x", id=""), "an id has 1 to 256 bytes"),
        (lambda topic: topic.cancel(b"i" * 257), "an id has 1 to 256 bytes"),
        (lambda topic: topic.schedule(b"x", headers=[("deliver-at", b"1")]), "the headers deliver-at are set by"),
    ],
)
def test_what_the_relay_would_refuse_is_not_sent(
    producer: Recorder, delayed: DelayedTopic, wrong: Callable[[DelayedTopic], None], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        wrong(delayed)
    assert producer.records == []


class Acknowledged:
    """A message of which Kafka has told the place."""

    def topic(self) -> str:
        return TOPIC

    def partition(self) -> int:
        return 9

    def offset(self) -> int:
        return 17


def test_a_handle_has_its_place_once_kafka_told_it(producer: Recorder, delayed: DelayedTopic) -> None:
    told: list[Any] = []
    scheduled = delayed.schedule("pay", id="order-17", on_delivery=lambda error, _: told.append(error))
    before = scheduled.place
    producer.callbacks[0](None, Acknowledged())

    assert (scheduled.id, scheduled.key, before, scheduled.place) == (
        "order-17",
        "order-17",
        None,
        Place(TOPIC, 9, 17),
    )
    assert told == [None]


def test_a_handle_of_a_record_that_kafka_refused_has_no_place(producer: Recorder, delayed: DelayedTopic) -> None:
    scheduled = delayed.schedule("pay", id="order-17")
    producer.callbacks[0]("too large", Acknowledged())

    assert scheduled.place is None


def test_a_handle_cancels_with_its_key(producer: Recorder, delayed: DelayedTopic) -> None:
    delayed.schedule("pay", id="order-17", key="customer-4").cancel()

    assert producer.records[1]["key"] == b"customer-4"
    assert producer.records[1]["headers"] == [("deliver-id", b"order-17"), ("deliver-action", b"cancel")]


def test_every_record_names_who_asks_for_it(producer: Recorder) -> None:
    delayed = DelayedTopic(producer, TOPIC, requested_by="shop-desk")
    delayed.schedule("pay", id="order-17")
    delayed.cancel("order-17")

    assert [record["headers"][-1] for record in producer.records] == [("deliver-requested-by", b"shop-desk")] * 2


def test_a_name_of_who_asks_that_is_too_long_is_refused(producer: Recorder) -> None:
    with pytest.raises(ValueError, match="requested_by has 1 to 256 bytes"):
        DelayedTopic(producer, TOPIC, requested_by="é" * 129)


def test_a_handle_without_an_id_cannot_cancel(delayed: DelayedTopic) -> None:
    with pytest.raises(ValueError, match="sent without an id"):
        delayed.schedule("pay").cancel()


def test_a_cancel_whose_outcome_nobody_reads_is_sent_and_its_answer_says_so(
    producer: Recorder, delayed: DelayedTopic
) -> None:
    answer = delayed.cancel("order-17")

    assert len(producer.records) == 1
    with pytest.raises(OutcomesUnreadableError, match=r"the cancel was sent, and nobody reads what became of it"):
        answer.result(0)


def test_the_topic_is_asked_for_its_partitions_now_and_then(producer: Recorder) -> None:
    now_s = [0.0]
    delayed = DelayedTopic(producer, TOPIC, clock=lambda: now_s[0])
    delayed.cancel("a")
    producer.partitions = 24
    delayed.cancel("a")
    now_s[0] = 300.0
    delayed.cancel("a")

    partitions = [record["partition"] for record in producer.records]
    assert partitions == [partition_of(b"a", 12), partition_of(b"a", 12), partition_of(b"a", 24)]
    assert producer.asked == 2


def test_the_import_brings_no_library() -> None:
    script = "import sys; import delaytopic.client; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    packages = {name.partition(".")[0] for name in done.stdout.split()}
    assert packages & {"confluent_kafka", "pydantic", "click", "yaml"} == set()


def test_a_record_may_recur_by_the_clocks_of_a_zone(producer: Recorder, delayed: DelayedTopic) -> None:
    delayed.schedule(
        b"x",
        id="report",
        cron="0 9 * * mon-fri",
        tz="Europe/Berlin",
        begin=1_795_269_686_270,
        until=4_000_000_000_000,
        count=3,
        jitter=timedelta(minutes=5),
        missed="All",
        catch_up=timedelta(hours=1),
    )

    assert producer.records[0]["headers"] == [
        ("deliver-id", b"report"),
        ("deliver-cron", b"0 9 * * mon-fri"),
        ("deliver-tz", b"Europe/Berlin"),
        ("deliver-from", b"1795269686270"),
        ("deliver-until", b"4000000000000"),
        ("deliver-count", b"3"),
        ("deliver-jitter", b"300000"),
        ("deliver-missed", b"All"),
        ("deliver-catch-up", b"3600000"),
    ]


def test_a_record_may_recur_at_an_interval(producer: Recorder, delayed: DelayedTopic) -> None:
    delayed.schedule(b"x", id="ping", every=timedelta(minutes=5))

    assert producer.records[0]["headers"] == [("deliver-id", b"ping"), ("deliver-every", b"300000")]


def test_a_ladder_counts_back_from_a_local_time(producer: Recorder, delayed: DelayedTopic) -> None:
    rungs: list[timedelta | str] = ["7d", timedelta(days=1, hours=1, milliseconds=5), timedelta(0)]
    delayed.schedule(b"x", id="stay", at=datetime(2027, 3, 28, 2, 30), tz="Europe/Berlin", ladder=rungs)

    assert producer.records[0]["headers"] == [
        ("deliver-at", b"2027-03-28T02:30:00"),
        ("deliver-id", b"stay"),
        ("deliver-ladder", b"7d,25h5ms,0s"),
        ("deliver-tz", b"Europe/Berlin"),
    ]


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda topic: topic.schedule(b"x", cron="0 9 * * *"), "needs an id"),
        (lambda topic: topic.schedule(b"x", id="i", cron="0 0 30 2 *"), "deliver-cron is .* bad day-of-month"),
        (lambda topic: topic.schedule(b"x", id="i", cron="0 9 * * *", every=timedelta(1)), "leave one of them out"),
        (lambda topic: topic.schedule(b"x", id="i", at=AT, tz="Europe/Berlin"), "header deliver-tz goes with"),
        (lambda topic: topic.schedule(b"x", id="i", every=timedelta(-1)), "every is negative"),
    ],
)
def test_a_rule_that_the_relay_would_refuse_is_not_sent(
    producer: Recorder, delayed: DelayedTopic, wrong: Callable[[DelayedTopic], None], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        wrong(delayed)

    assert producer.records == []


def test_a_cancel_everywhere_goes_to_each_partition_once(producer: Recorder, delayed: DelayedTopic) -> None:
    delayed.cancel("report", everywhere=True)

    assert [record["partition"] for record in producer.records] == list(range(12))
    assert {tuple(record["headers"]) for record in producer.records} == {
        (("deliver-id", b"report"), ("deliver-action", b"cancel"))
    }


def answered(answer: Answer | Exception) -> AnswerFuture:
    future = AnswerFuture()
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
    return future


ENDED = Outcome("Delivered", Place(TOPIC, 3, 7), 1_795_269_686_270)
NOTHING, LATE, WON = NotPending(ENDED), TooLate(ENDED), Cancelled(ENDED)


@pytest.mark.parametrize(
    ("answers", "best"),
    [
        ([NOTHING, NOTHING], NOTHING),
        ([NOTHING, LATE, NOTHING], LATE),
        ([LATE, WON, NOTHING], WON),
        ([AnswerTimeoutError("late"), WON], WON),
    ],
)
def test_the_answer_of_several_partitions_is_the_best_of_theirs(
    answers: list[Answer | Exception], best: Answer
) -> None:
    assert best_of([answered(answer) for answer in answers]).result() == best


def test_without_the_answer_of_one_partition_nobody_says_that_nothing_was_pending() -> None:
    with pytest.raises(AnswerTimeoutError, match="late"):
        best_of([answered(NOTHING), answered(AnswerTimeoutError("late"))]).result()


def test_a_cancel_that_won_needs_no_other_answer() -> None:
    assert best_of([AnswerFuture(), answered(WON)]).result(0) == WON
