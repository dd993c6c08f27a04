"""A sender belongs to one producer, outlives it, and takes its failures: all of it without Kafka."""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from tests.support.paths import ROOT
from tests.support.relay.speedups import in_c, in_python, of

from delaytopic_relay._speedups import Sender
from delaytopic_relay.core.commands import Schedule

PLUGIN = {"plugin.library.paths": in_c.__file__, "log_level": 0}
SCHEDULES = of(in_c, [Schedule(5, offset, b"key", b"value", [("a", b"1")]) for offset in range(200)])
RECEIPT = ("delay-receipt", b":3:", b":6:source")


@pytest.fixture(autouse=True)
def _no_sender_is_left_over() -> None:
    # Given that what other tests made in this thread is taken
    while True:
        try:
            in_c.Sender()
        except RuntimeError:
            return


def producer(**settings: Any) -> Producer:
    """A producer that keeps its records for long, as it has no broker but the client's own that answers."""
    named = {name if name == "on_delivery" else name.replace("_", "."): value for name, value in settings.items()}
    return Producer({**PLUGIN, "test.mock.num.brokers": 1, "linger.ms": 60_000, **named})


def hopeless(**settings: Any) -> Producer:
    """A producer that never reaches a broker, and gives records up at once."""
    return Producer({**PLUGIN, "bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": 1, **settings})


def produce(sender: Sender, schedules: list[Schedule] = SCHEDULES, place: int = 0) -> int:
    return sender.produce("topic", 0, schedules, place, *RECEIPT)


# -- whose it is


def test_without_a_producer_there_is_no_sender() -> None:
    with pytest.raises(RuntimeError, match="this thread has made no producer with this plugin, or its Sender is made"):
        in_c.Sender()


def test_a_producer_has_one_sender() -> None:
    made = producer()
    sender = in_c.Sender()

    with pytest.raises(RuntimeError):
        in_c.Sender()

    assert produce(sender) == len(made) == len(SCHEDULES)


def test_a_sender_is_of_the_producer_that_was_made_last() -> None:
    producers = [producer() for _ in range(3)]
    sender = in_c.Sender()

    produce(sender)

    assert [len(each) for each in producers] == [0, 0, len(SCHEDULES)]


def test_a_producer_without_the_plugin_has_no_sender() -> None:
    made = Producer({"test.mock.num.brokers": 1, "log_level": 0})

    with pytest.raises(RuntimeError):
        in_c.Sender()
    assert len(made) == 0


# -- which of them ends first


def test_a_sender_whose_producer_is_gone_sends_nothing_and_has_no_failures() -> None:
    made = producer()
    sender = in_c.Sender()
    del made
    gc.collect()

    with pytest.raises(ValueError, match="the producer is gone"):
        produce(sender)
    assert sender.failures() == []


def test_a_sender_that_is_made_after_its_producer_is_gone_sends_nothing() -> None:
    made = producer()
    del made
    gc.collect()

    with pytest.raises(ValueError, match="the producer is gone"):
        produce(in_c.Sender())


def test_a_producer_whose_sender_is_gone_goes_on() -> None:
    made = producer()
    sender = in_c.Sender()
    produce(sender)
    del sender
    gc.collect()

    made.produce("topic", b"value")

    assert len(made) == len(SCHEDULES) + 1


@pytest.mark.parametrize("waits_for_reports", [True, False])
def test_both_may_end_with_records_on_the_way(waits_for_reports: bool) -> None:
    made = hopeless()
    sender = in_c.Sender()
    produce(sender)

    if waits_for_reports:
        made.flush(10)
    del made, sender
    gc.collect()

    assert len(producer()) == 0


SHORT_LIVES = """
from concurrent.futures import ThreadPoolExecutor
from confluent_kafka import Producer
from delaytopic_relay._speedups import Schedule, Sender, __file__

BROKERS = ",".join(f"127.0.0.1:{port}" for port in range(1, 20))
SETTINGS = {"plugin.library.paths": __file__, "log_level": 0, "bootstrap.servers": BROKERS, "message.timeout.ms": 1}

def live(number):
    made, sender = Producer(SETTINGS), Sender()
    if number % 2:
        sender.produce("topic", 0, [Schedule(5, 6, None, b"value", None)], 0, "delay-receipt", b":3:", b":x")
    del sender, made

with ThreadPoolExecutor(8) as threads:
    print(len([*threads.map(live, range(500))]))
"""
"""Makes producers of many threads, and ends them before all of these have begun."""


@pytest.mark.nightly
def test_producers_may_end_while_their_threads_begin() -> None:
    # In a process of its own, which would end, and whose freed memory is overwritten
    environment = {**os.environ, "MALLOC_PERTURB_": "85", "PYTHONPATH": str(ROOT)}

    done = subprocess.run(
        [sys.executable, "-c", SHORT_LIVES], env=environment, capture_output=True, text=True, check=False, timeout=600
    )

    assert (done.returncode, done.stdout) == (0, "500\n"), done.stderr[-2_000:]


UNTAKEN = """
import ctypes, threading
from confluent_kafka import Producer
from delaytopic_relay._speedups import __file__

SETTINGS = {"plugin.library.paths": __file__, "log_level": 0}

class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks used".split()]
    _fields_ += [(name, ctypes.c_size_t) for name in ("free", "keepcost")]

mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = Memory

def live(threads):
    for _ in range(threads):
        thread = threading.Thread(target=lambda: Producer(SETTINGS) and None)
        thread.start()
        thread.join()
    return mallinfo2().used

print(-live(10) + live(100))
"""
"""Prints the memory that 100 threads leave in use, each of which made a producer and no sender."""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="NOT TESTED: only glibc tells what memory is in use")
def test_a_thread_that_ends_before_it_makes_a_sender_leaves_nothing_behind() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    done = subprocess.run(
        [sys.executable, "-c", UNTAKEN], env=environment, capture_output=True, text=True, check=False, timeout=600
    )

    assert done.returncode == 0, done.stderr[-2_000:]
    # Then 64 failures could be kept for each, which is 17 kB.
    assert int(done.stdout) < 100 * 4_000


# -- what it takes


def test_a_queue_that_is_full_takes_so_many_and_the_rest_from_there_once_it_has_room() -> None:
    made = producer(queue_buffering_max_messages=50)
    sender = in_c.Sender()

    places = [produce(sender), produce(sender, place=50)]
    made.purge()
    made.flush(10)

    assert places == [50, 50]
    assert produce(sender, place=50) == 100


@pytest.mark.parametrize("place", [len(SCHEDULES), len(SCHEDULES) + 1])
def test_from_the_end_on_nothing_is_sent(place: int) -> None:
    made = producer()

    assert produce(in_c.Sender(), place=place) == place
    assert len(made) == 0


def test_a_record_that_is_too_large_for_the_client_is_where_it_stops_and_no_failure() -> None:
    made = producer(message_max_bytes=1_000)
    sender = in_c.Sender()
    schedules = of(in_c, [Schedule(5, n, None, b"x" * size, None) for n, size in enumerate([1, 2, 5_000, 3])])

    place = produce(sender, schedules)

    assert (place, len(made), sender.failures()) == (2, 2, [])


WRONG: list[Callable[[Sender], object]] = [
    lambda sender: produce(sender, place=-1),
    lambda sender: produce(sender, [*SCHEDULES, in_python.Schedule(5, 6, None, None, None)]),
    lambda sender: sender.produce("topic", 0, SCHEDULES, 0, "delay-receipt", b"", b"x" * 1_000),
    lambda sender: produce(sender, of(in_c, [Schedule(5, 6, None, None, None, target="other")])),
    lambda sender: sender.produce("topic", 0, SCHEDULES, 0, "r" * 32, b"", b""),
    lambda sender: sender.produce("to\0pic", 0, SCHEDULES, 0, *RECEIPT),
    lambda sender: sender.produce("topic", 2**40, SCHEDULES, 0, *RECEIPT),
]


@pytest.mark.parametrize("call", WRONG)
def test_arguments_that_make_no_sense_are_refused_and_nothing_is_sent(
    call: Callable[[Sender], object],
) -> None:
    made = producer()
    sender = in_c.Sender()

    with pytest.raises((ValueError, TypeError, OverflowError)):
        call(sender)
    assert len(made) == 0


# -- failures


def test_records_that_time_out_are_failures_and_alike_ones_are_told_once() -> None:
    made = hopeless()
    sender = in_c.Sender()
    produce(sender)

    left = made.flush(10)

    assert left == 0
    assert sender.failures() == [(KafkaError._MSG_TIMED_OUT, "topic", 0, 3)]
    assert sender.failures() == []


def test_of_failures_that_differ_64_are_kept() -> None:
    made = hopeless()
    sender = in_c.Sender()
    for partition in range(100):
        sender.produce("topic", partition, SCHEDULES[:2], 0, *RECEIPT)

    made.flush(10)

    assert len({*sender.failures()}) == 64


def test_records_that_are_purged_name_where_they_were_to_go_and_the_source_partition_of_their_receipts() -> None:
    made = producer()
    sender = in_c.Sender()
    for partition, shard in ((0, 3), (1, 3), (0, 17)):
        sender.produce("topic", partition, SCHEDULES, 0, "delay-receipt", b":%d:" % shard, b":6:source")

    made.purge()
    made.flush(10)

    assert {*sender.failures()} == {
        (KafkaError._PURGE_QUEUE, "topic", partition, shard) for partition, shard in ((0, 3), (1, 3), (0, 17))
    }


@pytest.mark.parametrize("between", [b":x:", b"::", b":2147483648:", b":18446744073709551619:", b":3"])
def test_a_failure_without_a_source_partition_in_its_receipt_says_so(between: bytes) -> None:
    made = hopeless()
    sender = in_c.Sender()
    sender.produce("topic", 0, SCHEDULES, 0, "delay-receipt", between, b"source")

    made.flush(10)

    assert sender.failures() == [(KafkaError._MSG_TIMED_OUT, "topic", 0, -1)]


def test_records_that_others_send_through_the_producer_are_no_failures_of_the_sender() -> None:
    reported: list[KafkaError | None] = []
    made = hopeless(on_delivery=lambda error, _: reported.append(error))
    sender = in_c.Sender()

    made.produce("topic", b"value")
    made.flush(10)

    assert [error and error.code() for error in reported] == [KafkaError._MSG_TIMED_OUT]
    assert sender.failures() == []


def test_the_longest_name_of_a_topic_is_told_whole() -> None:
    made = hopeless()
    sender = in_c.Sender()

    sender.produce("t" * 249, 0, SCHEDULES[:1], 0, *RECEIPT)
    made.flush(10)

    assert sender.failures() == [(KafkaError._MSG_TIMED_OUT, "t" * 249, 0, 3)]
