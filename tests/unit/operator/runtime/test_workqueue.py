"""The work queue against a plain model of what it promises: nothing lost, nothing out twice, first due first out."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.runtime.manager import of_cluster
from delaytopic_operator.runtime.workqueue import FIRST_BACKOFF_MS, LONGEST_BACKOFF_MS, WorkQueue, backoff_ms, spread

KEYS = st.sampled_from([Key("shop", name) for name in "abcde"])
MOMENTS = st.integers(0, 5_000)


class AgainstModel(RuleBasedStateMachine):
    """The model: when each key is wanted next, and which keys are out."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 1_000
        self.queue = WorkQueue(lambda: 0.5)
        self.wanted: dict[Key, int] = {}
        self.out: set[Key] = set()

    def want(self, key: Key, at_ms: int) -> None:
        self.wanted[key] = min(at_ms, self.wanted.get(key, at_ms))

    @rule(key=KEYS, after_ms=MOMENTS)
    def put(self, key: Key, after_ms: int) -> None:
        self.queue.add(key, self.now_ms + after_ms)
        self.want(key, self.now_ms + after_ms)

    @rule(after_ms=MOMENTS)
    def time_goes_by(self, after_ms: int) -> None:
        self.now_ms += after_ms

    @rule()
    def take(self) -> None:
        due = {key: at_ms for key, at_ms in self.wanted.items() if key not in self.out and at_ms <= self.now_ms}

        key = self.queue.get(self.now_ms)

        if key is None:
            assert due == {}
            return
        assert due[key] == min(due.values())
        del self.wanted[key]
        self.out.add(key)

    @precondition(lambda self: self.out)
    @rule(data=st.data(), next_after_ms=st.none() | MOMENTS)
    def done(self, data: st.DataObject, next_after_ms: int | None) -> None:
        key = data.draw(st.sampled_from(sorted(self.out)))
        next_at_ms = None if next_after_ms is None else self.now_ms + next_after_ms

        self.queue.done(key, next_at_ms)

        self.out.discard(key)
        if next_at_ms is not None:
            self.want(key, next_at_ms)

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def failed(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.out)))

        self.want(key, self.queue.add_rate_limited(key, self.now_ms))

        self.out.discard(key)

    @invariant()
    def it_knows_how_much_there_is_to_do(self) -> None:
        waiting = {key: at_ms for key, at_ms in self.wanted.items() if key not in self.out}
        assert self.queue.next_due_ms(self.now_ms) == min(waiting.values(), default=None)
        assert self.queue.depth(self.now_ms) == sum(at_ms <= self.now_ms for at_ms in waiting.values())
        assert set(self.queue.processing()) == self.out


TestAgainstModel = AgainstModel.TestCase


def test_a_key_that_fails_waits_longer_each_time_and_forgets_it_on_success() -> None:
    key, queue, now_ms, waits = Key("shop", "a"), WorkQueue(lambda: 0.0), 0, []
    queue.add(key, now_ms)
    for _ in range(10):
        assert queue.get(now_ms) == key
        again_ms = queue.add_rate_limited(key, now_ms)
        waits.append((again_ms - now_ms) // 1_000)
        now_ms = again_ms

    assert queue.get(now_ms) == key
    queue.done(key, now_ms)
    queue.get(now_ms)

    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 150, 150]
    assert queue.add_rate_limited(key, now_ms) == now_ms + FIRST_BACKOFF_MS


@given(failures=st.integers(1, 100), random=st.floats(0, 1, exclude_max=True))
def test_backoff_is_within_bounds_and_never_shorter_than_that_of_fewer_failures(failures: int, random: float) -> None:
    wait_ms = backoff_ms(failures, random)

    assert FIRST_BACKOFF_MS <= wait_ms <= LONGEST_BACKOFF_MS
    assert wait_ms >= backoff_ms(failures, 0.0) >= backoff_ms(max(1, failures - 1), 0.0)


def test_the_other_side_may_ask_for_more_time() -> None:
    key, queue = Key("shop", "a"), WorkQueue(lambda: 0.0)
    queue.add(key, 0)
    queue.get(0)

    assert queue.add_rate_limited(key, 1_000, not_before_ms=61_000) == 61_000


def test_what_changed_meanwhile_is_looked_at_without_waiting_for_the_backoff() -> None:
    key, queue = Key("shop", "a"), WorkQueue(lambda: 0.0)
    queue.add(key, 0)
    queue.get(0)
    queue.add(key, 500)

    queue.add_rate_limited(key, 500)

    assert queue.get(500) == key


def test_a_queue_that_is_cleared_still_knows_what_is_out() -> None:
    one, two = Key("shop", "a"), Key("shop", "b")
    queue = WorkQueue(lambda: 0.0)
    queue.add(one, 0)
    queue.get(0)
    queue.add(one, 0)
    queue.add(two, 0)

    queue.clear()

    assert (queue.next_due_ms(0), queue.processing()) == (None, {one: 0})
    queue.done(one)
    assert queue.next_due_ms(0) is None


@given(count=st.integers(0, 50), width_ms=st.integers(0, 60_000), random=st.floats(0, 1, exclude_max=True))
def test_looks_at_everything_are_spread(count: int, width_ms: int, random: float) -> None:
    keys = [Key("shop", str(number)) for number in range(count)]

    times = spread(keys, 1_000, width_ms, lambda: random)

    assert set(times) == set(keys)
    assert all(1_000 <= at_ms <= 1_000 + width_ms for at_ms in times.values())


TENANTS = st.sampled_from([Key(namespace, name) for namespace in ("shop", "bank", "post") for name in "abcd"])
CLUSTERS = st.sampled_from([None, "blue:9092", "red:9092"])
MOST, MOST_OF_CLUSTER = 2, 3


class WithGroups(RuleBasedStateMachine):
    """The model: of a namespace and of a cluster no more than so many keys are out, and nothing that waits for that is
    forgotten, whatever becomes of clusters."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 1_000
        self.queue = WorkQueue(lambda: 0.5, MOST, MOST_OF_CLUSTER)
        self.wanted: dict[Key, int] = {}
        self.cluster_of: dict[Key, str | None] = {}
        self.out: dict[Key, str | None] = {}

    def is_free(self, key: Key) -> bool:
        namespaces, clusters = Counter(key.namespace for key in self.out), Counter(self.out.values())
        cluster = self.cluster_of.get(key)
        return namespaces[key.namespace] < MOST and (cluster is None or clusters[cluster] < MOST_OF_CLUSTER)

    def may_go(self) -> dict[Key, int]:
        free = {key: at_ms for key, at_ms in self.wanted.items() if key not in self.out}
        return {key: at_ms for key, at_ms in free.items() if at_ms <= self.now_ms and self.is_free(key)}

    @rule(key=TENANTS, after_ms=MOMENTS)
    def put(self, key: Key, after_ms: int) -> None:
        at_ms = self.now_ms + after_ms
        self.queue.add(key, at_ms)
        self.wanted[key] = min(at_ms, self.wanted.get(key, at_ms))

    @rule(after_ms=MOMENTS)
    def time_goes_by(self, after_ms: int) -> None:
        self.now_ms += after_ms

    @rule()
    def take(self) -> None:
        may_go = self.may_go()

        key = self.queue.get(self.now_ms)

        assert (key is None) == (not may_go)
        if key is not None:
            assert key in may_go
            del self.wanted[key]
            self.out[key] = self.cluster_of.get(key)

    @precondition(lambda self: self.out)
    @rule(data=st.data(), cluster=CLUSTERS)
    def done(self, data: st.DataObject, cluster: str | None) -> None:
        key = data.draw(st.sampled_from(sorted(self.out)))
        self.queue.done(key, cluster=cluster)
        self.cluster_of[key] = cluster
        del self.out[key]


TestWithGroups = WithGroups.TestCase
TestWithGroups.settings = settings(max_examples=100, stateful_step_count=60, deadline=None)


def test_a_cluster_whose_passes_hang_leaves_workers_to_others() -> None:
    queue = WorkQueue(lambda: 0.0, 4, of_cluster(8))
    for number in range(64):
        key = Key(f"team-{number}", "a")
        queue.add(key, 0)
        assert queue.get(0) == key
        queue.done(key, 1, cluster="dead:9092")
    queue.add(Key("shop", "a"), 2)

    taken = [queue.get(2) for _ in range(8)]

    assert [key.namespace.partition("-")[0] for key in taken if key is not None] == ["team"] * 6 + ["shop"]


@pytest.mark.parametrize(("workers", "most"), [(1, 1), (2, 1), (4, 3), (8, 6), (1_000, 750)])
def test_one_cluster_may_have_all_workers_but_a_quarter(workers: int, most: int) -> None:
    assert of_cluster(workers) == most


def test_a_namespace_whose_passes_hang_leaves_workers_to_others() -> None:
    queue = WorkQueue(lambda: 0.0, 4)
    for number in range(64):
        queue.add(Key("hostile", f"t{number}"), 0)
    queue.add(Key("shop", "a"), 1)

    taken = [queue.get(1) for _ in range(8)]

    assert [key.namespace for key in taken if key is not None] == ["hostile"] * 4 + ["shop"]


def test_one_that_is_due_does_not_stand_behind_those_of_its_namespace_that_are_not() -> None:
    queue = WorkQueue(lambda: 0.0, 1)
    out, edited = Key("shop", "out"), Key("shop", "edited")
    queue.add(out, 0)
    for name in "abc":
        queue.add(Key("shop", name), 15_000)
    queue.get(0)
    before = queue.next_due_ms(0)

    queue.add(edited, 1)
    held = queue.get(1)
    queue.done(out)

    assert (before, held, queue.get(1)) == (15_000, None, edited)


def test_a_key_that_another_group_holds_passes_its_place_in_a_cluster_on() -> None:
    """One key of the cluster is out, two wait for it, and the namespace of the first has no worker left."""
    queue = WorkQueue(lambda: 0.0, 1, 1)
    out, barred, free = Key("shop", "a"), Key("bank", "b"), Key("post", "c")
    for key in (out, barred, free):
        queue.add(key, 0)
        queue.get(0)
        queue.done(key, cluster="blue:9092")
    busy = Key("bank", "of-no-cluster")
    taken = []
    for key in (out, barred, busy, free):
        queue.add(key, 1)
        taken.append(queue.get(1))

    queue.done(out, cluster="blue:9092")
    taken.append(queue.get(1))

    assert taken == [out, None, busy, None, free]


def test_a_key_that_may_come_early_is_taken_before_it_is_due_by_whoever_is_at_work_and_by_nobody_else() -> None:
    queue, key = WorkQueue(lambda: 0.0), Key("shop", "a")
    queue.add(key, 0)
    queue.get(0)
    queue.done(key, 15_000, early_ms=250)

    taken = [queue.get(14_749, early=True), queue.get(14_750), queue.get(14_750, early=True)]

    assert taken == [None, None, key]


def test_a_key_that_is_added_for_a_time_does_not_come_before_it() -> None:
    queue, before, meanwhile = WorkQueue(lambda: 0.0), Key("shop", "before"), Key("shop", "meanwhile")
    for key in (before, meanwhile):
        queue.add(key, 0)
        queue.get(0)
    queue.add(meanwhile, 10_000)
    for key in (before, meanwhile):
        queue.done(key, 15_000, early_ms=250)
    queue.add(before, 10_000)

    assert [queue.get(9_999, early=True), queue.get(10_000), queue.get(10_000)] == [None, before, meanwhile]


def test_a_key_of_a_namespace_that_has_all_its_workers_does_not_come_early() -> None:
    queue, key, other = WorkQueue(lambda: 0.0, 1), Key("shop", "a"), Key("shop", "b")
    queue.add(key, 0)
    queue.get(0)
    queue.done(key, 15_000, early_ms=250)
    queue.add(other, 1)
    queue.get(1)
    held = queue.get(14_900, early=True)
    queue.done(other)

    assert (held, queue.get(14_900, early=True)) == (None, key)
