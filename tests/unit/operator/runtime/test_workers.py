"""The threads that do the passes, with a reconciler that does as it is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from threading import Event, Lock
from typing import Any

import pytest
from tests.support.relay.process import wait_for

from delaytopic_operator.clock import epoch_ms
from delaytopic_operator.errors import ApiServerUnavailable, NotLeading, ObjectRejected
from delaytopic_operator.model.reconciliation import Key, Result
from delaytopic_operator.runtime import workers as worker_threads
from delaytopic_operator.runtime.workers import Workers
from delaytopic_operator.runtime.workqueue import WorkQueue

A, B = Key("shop", "a"), Key("shop", "b")


class Passes:
    """The reconciliations that ran, and their ends; `do` is what one does."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.begun: Counter[Key] = Counter()
        self.at_once: Counter[Key] = Counter()
        self.results: list[str] = []
        self.twice = False
        self.most_at_once = 0
        self.leading = True
        self.do: Callable[[Key], Result] = lambda key: Result()

    def run(self, key: Key, now_ms: int, asked_for_ms: int) -> Result:
        with self.lock:
            self.begun[key] += 1
            self.at_once[key] += 1
            self.twice |= self.at_once[key] > 1
            self.most_at_once = max(self.most_at_once, self.at_once.total())
        try:
            return self.do(key)
        finally:
            with self.lock:
                self.at_once[key] -= 1

    def observe(self, result: str, seconds: float) -> None:
        self.results.append(result)


def waited(event: Event) -> Result:
    event.wait(30)
    return Result()


@pytest.fixture
def passes() -> Passes:
    return Passes()


@pytest.fixture
def workers(passes: Passes) -> Iterator[Workers]:
    pool = Workers(WorkQueue(lambda: 0.0), passes.run, 4, lambda: passes.leading, passes.observe)
    pool.start()
    yield pool
    pool.stop(1.0)


def test_what_is_put_is_looked_at_and_again_when_the_pass_says_so(workers: Workers, passes: Passes) -> None:
    passes.do = lambda key: Result(epoch_ms() + 10 if passes.begun[key] < 3 else None)

    workers.add([A])

    wait_for(lambda: len(passes.results) == 3)
    assert (passes.begun, passes.results) == ({A: 3}, ["Success"] * 3)
    assert workers.load().depth == 0


def test_a_key_is_never_looked_at_twice_at_once(workers: Workers, passes: Passes) -> None:
    for _ in range(300):
        workers.add([A, B])

    wait_for(lambda: workers.load().depth == 0 and not workers.load().running)
    assert passes.twice is False


def test_a_key_put_while_it_is_looked_at_is_looked_at_again(workers: Workers, passes: Passes) -> None:
    go_on = Event()
    passes.do = lambda key: waited(go_on)
    workers.add([A])
    wait_for(lambda: A in workers.load().running)

    workers.add([A])
    go_on.set()

    wait_for(lambda: passes.begun[A] == 2)


def test_others_that_a_look_names_are_looked_at_now(workers: Workers, passes: Passes) -> None:
    passes.do = lambda key: Result(others=[B] if key == A else [])
    workers.add_at({B: epoch_ms() + 3_600_000})

    workers.add([A])

    wait_for(lambda: passes.begun == {A: 1, B: 1})


def test_a_thread_that_is_at_work_does_what_may_come_early_before_it_is_due(workers: Workers, passes: Passes) -> None:
    far_ms = epoch_ms() + 3_600_000
    passes.do = lambda key: Result(far_ms, early_ms=3_600_000 if passes.begun[key] == 1 else 0)

    workers.add([A])

    wait_for(lambda: passes.begun[A] == 2)
    assert workers.load().depth == 0


def test_looks_that_wait_for_nobody_are_not_done_side_by_side(
    workers: Workers, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_threads, "BLOCKED_MS", 3_600_000)
    moment, keys = Event(), [Key("shop", str(number)) for number in range(100)]

    def look(_: Key) -> Result:
        moment.wait(0.001)
        return Result()

    passes.do = look
    workers.add(keys)

    wait_for(lambda: len(passes.results) == 100)
    assert (passes.begun, passes.most_at_once) == (Counter(keys), 1)


def test_another_thread_goes_on_where_the_one_at_work_is_blocked(workers: Workers, passes: Passes) -> None:
    go_on = Event()
    passes.do = lambda key: waited(go_on) if key == A else Result()
    workers.add([A])
    wait_for(lambda: A in workers.load().running)

    workers.add([B])

    wait_for(lambda: passes.results == ["Success"])
    assert list(workers.load().running) == [A]
    go_on.set()


class Fault(BaseException):
    """Nothing that anybody expects."""


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (ObjectRejected("no"), "ObjectRejected"),
        (ValueError("a bug"), "Unexpected"),
        (Fault("worse"), "Unexpected"),
        (SystemExit(1), "Unexpected"),
    ],
)
def test_whatever_a_pass_raises_the_others_go_on(
    workers: Workers, passes: Passes, error: BaseException, result: str
) -> None:
    def fail(key: Key) -> Result:
        if key == A:
            raise error
        return Result()

    passes.do = fail
    workers.add([A])
    wait_for(lambda: passes.results == [result])

    workers.add([B])

    wait_for(lambda: passes.begun[B] == 1)


def test_the_api_server_is_not_asked_before_it_wants_to_be(workers: Workers, passes: Passes) -> None:
    def fail(key: Key) -> Result:
        raise ApiServerUnavailable("busy", retry_after_s=3_600)

    passes.do = fail
    before_ms = epoch_ms()
    workers.add([A])
    wait_for(lambda: passes.results)

    next_ms: Any = workers._queue.next_due_ms(epoch_ms())
    assert next_ms - before_ms >= 3_600_000


def test_who_does_not_lead_takes_nothing_and_forgets_what_comes(workers: Workers, passes: Passes) -> None:
    passes.leading = False
    workers.add([A])
    passes.leading = True
    workers.add([B])

    wait_for(lambda: passes.begun[B] == 1)
    assert passes.begun[A] == 0


def test_a_pass_that_may_not_write_any_more_is_not_tried_again_by_itself(workers: Workers, passes: Passes) -> None:
    def fail(key: Key) -> Result:
        raise NotLeading("lost")

    passes.do = fail
    workers.add([A])

    wait_for(lambda: passes.results == ["NotLeading"])
    assert workers._queue.next_due_ms(epoch_ms()) is None


def test_stopping_waits_for_passes_and_names_those_that_do_not_end(workers: Workers, passes: Passes) -> None:
    go_on = Event()
    passes.do = lambda key: waited(go_on)
    workers.add([A])
    wait_for(lambda: A in workers.load().running)

    assert workers.stop(0.2) == [A]
    workers.add([B])
    go_on.set()
    assert workers.stop(10) == []
    assert passes.begun == {A: 1}
