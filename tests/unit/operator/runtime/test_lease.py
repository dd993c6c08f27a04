"""One leader at most: candidates with clocks of their own, slow and lost requests, against one Lease."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from delaytopic_operator.model.conditions import micro_time
from delaytopic_operator.runtime.lease import (
    Decision,
    Sighting,
    Step,
    Terms,
    acquired,
    decide,
    released,
    renewed,
)

TERMS = Terms(15_000)
NAMESPACE, NAME = "delaytopic-system", "delaytopic-operator"
Document = dict[str, Any]


def lease(holder: str, renewed_ms: int = 0, **spec: object) -> Document:
    document = acquired(None, NAMESPACE, NAME, holder, TERMS, renewed_ms)
    return document | {"spec": document["spec"] | spec}


def test_a_lease_that_is_not_there_is_made() -> None:
    assert decide(None, None, "me", TERMS, 1_000) == Decision(Step.ACQUIRE, None, 2_875)
    assert acquired(None, NAMESPACE, NAME, "me", TERMS, 1_795_269_686_270) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": NAMESPACE, "name": NAME},
        "spec": {
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-11-21T14:01:26.270000Z",
            "renewTime": "2026-11-21T14:01:26.270000Z",
            "leaseTransitions": 0,
        },
    }


def test_another_ones_lease_is_waited_for_from_when_it_was_seen() -> None:
    first = decide(lease("other"), None, "me", TERMS, 100_000)
    later = decide(lease("other"), first.sighting, "me", TERMS, 114_000)
    last = decide(lease("other"), later.sighting, "me", TERMS, 115_000)

    assert (first.step, first.again_at_ms) == (Step.WAIT, 101_875)
    assert (later.step, later.again_at_ms) == (Step.WAIT, 115_000)
    assert last.step is Step.ACQUIRE


def test_a_renewal_that_is_seen_begins_the_wait_anew() -> None:
    first = decide(lease("other", 1), None, "me", TERMS, 100_000)

    assert decide(lease("other", 2), first.sighting, "me", TERMS, 115_000).step is Step.WAIT


def test_the_holders_own_duration_counts() -> None:
    seen = decide(lease("other", leaseDurationSeconds=60), None, "me", TERMS, 0).sighting

    assert decide(lease("other", leaseDurationSeconds=60), seen, "me", TERMS, 59_000).step is Step.WAIT
    assert decide(lease("other", leaseDurationSeconds=60), seen, "me", TERMS, 60_000).step is Step.ACQUIRE


def test_a_lease_that_was_released_is_taken_at_once() -> None:
    document = released(lease("other"), 5_000)

    assert decide(document, None, "me", TERMS, 0).step is Step.ACQUIRE
    assert acquired(document, NAMESPACE, NAME, "me", TERMS, 6_000)["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": micro_time(6_000),
        "renewTime": micro_time(6_000),
        "leaseTransitions": 1,
    }


def test_the_own_lease_is_renewed_and_nothing_else_in_it_changed() -> None:
    document = lease("me", 1_000)

    assert decide(document, None, "me", TERMS, 0).step is Step.RENEW
    assert renewed(document, 2_000) == document | {"spec": document["spec"] | {"renewTime": micro_time(2_000)}}


def test_a_lease_that_somebody_emptied_is_taken() -> None:
    empty = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": NAME}}

    assert decide(empty, None, "me", TERMS, 0).step is Step.ACQUIRE
    assert acquired(empty, NAMESPACE, NAME, "me", TERMS, 0)["spec"]["holderIdentity"] == "me"


# -- simulation: real time in ms; each candidate has a clock that is off, and runs a little fast or slow


@dataclass
class Server:
    """The API server: writes succeed on the version that was read."""

    document: Document | None = None
    version: int = 0

    def write(self, document: Document) -> bool:
        if document["metadata"].get("resourceVersion", "0") != str(self.version):
            return False
        self.version += 1
        metadata = document["metadata"] | {"resourceVersion": str(self.version)}
        self.document = document | {"metadata": metadata}
        return True


@dataclass
class Candidate:
    """The steps of `LeaderElection`, on a clock of its own."""

    identity: str
    offset_ms: int
    rate: float
    sighting: Sighting | None = None
    writable: list[tuple[int, int]] = field(default_factory=list)
    """Return the bounds, in real time, between which it may begin to write."""

    def clock_ms(self, real_ms: int) -> int:
        return int(real_ms * self.rate) + self.offset_ms

    def real_ms(self, clock_ms: int) -> int:
        return int((clock_ms - self.offset_ms) / self.rate)


Trip = tuple[int, int, str]
"""Of a request: how long until it arrives, and until the answer does; whether request or answer is lost."""


def trips_by(seed: int, count: int) -> list[Trip]:
    """Quick, slow and slowest ways, of which one in six loses something; drawing each of them would take longer."""
    chance = Random(seed)

    def way_ms() -> int:
        return chance.choice((0, chance.randint(0, 200), chance.randint(0, 3_000), 3_000))

    return [(way_ms(), way_ms(), chance.choice(["", "", "", "", "lost", "unheard"])) for _ in range(count)]


def simulate(candidates: list[Candidate], trips: list[Trip], ends: dict[str, int]) -> None:  # noqa: C901
    """Each candidate looks and writes until its end (real ms); `trips` are used up one after the other."""
    server, supply = Server(), iter(trips)
    queue: list[tuple[int, int, Callable[[int], None]]] = []
    numbers = count()

    def at(real_ms: int, me: Candidate, do: Callable[[int], None]) -> None:
        if real_ms < ends.get(me.identity, 10**9):
            heappush(queue, (real_ms, next(numbers), do))

    def look(me: Candidate, started_ms: int) -> None:
        there, back = next(supply, None), next(supply, None)
        if there is not None and back is not None:
            at(started_ms + there[0], me, lambda now_ms: read(me, started_ms, now_ms + there[1], back))

    def read(me: Candidate, started_ms: int, answered_ms: int, trip: Trip) -> None:
        document = server.document
        at(answered_ms, me, lambda now_ms: act(me, started_ms, now_ms, document, trip))

    def act(me: Candidate, started_ms: int, now_ms: int, document: Document | None, trip: Trip) -> None:
        decision = decide(document, me.sighting, me.identity, TERMS, me.clock_ms(now_ms))
        me.sighting = decision.sighting
        if decision.step is Step.WAIT:
            body = None
        elif decision.step is Step.RENEW and document is not None:
            body = renewed(document, now_ms)
        else:
            body = acquired(document, NAMESPACE, NAME, me.identity, TERMS, now_ms)
        again_ms = me.real_ms(decision.again_at_ms) + 1
        at(now_ms + trip[0], me, lambda then_ms: write(me, started_ms, then_ms, body, trip, again_ms))

    def write(me: Candidate, started_ms: int, now_ms: int, body: Document | None, trip: Trip, again_ms: int) -> None:
        heard_ms = now_ms + trip[1]
        if body is not None and trip[2] != "lost" and server.write(body) and trip[2] != "unheard":
            me.writable.append((heard_ms, me.real_ms(me.clock_ms(started_ms) + TERMS.writable_ms)))
        at(max(heard_ms, again_ms), me, lambda then_ms: look(me, then_ms))

    for candidate in candidates:
        at(0, candidate, lambda now_ms, me=candidate: look(me, now_ms))  # type: ignore[misc]
    while queue:
        real_ms, _, do = heappop(queue)
        do(real_ms)


@settings(max_examples=500)
@given(
    clocks=st.lists(st.tuples(st.integers(-2_000, 2_000), st.floats(0.99, 1.01)), min_size=2, max_size=3),
    seed=st.integers(0, 2**32),
    requests=st.integers(60, 240),
    first_ends_ms=st.integers(0, 120_000),
)
def test_no_two_may_write_at_once(
    clocks: list[tuple[int, float]], seed: int, requests: int, first_ends_ms: int
) -> None:
    candidates = [Candidate(f"operator-{n}", offset, rate) for n, (offset, rate) in enumerate(clocks)]

    simulate(candidates, trips_by(seed, requests), {"operator-0": first_ends_ms})

    spans = sorted((start, end, me.identity) for me in candidates for start, end in me.writable if start < end)
    latest = ("", -1)
    for start, end, identity in spans:
        assert start >= latest[1] or identity == latest[0], (start, end, identity, latest)
        latest = (identity, max(end, latest[1]))


@settings(max_examples=100)
@given(
    offset_ms=st.integers(-2_000, 2_000),
    killed_ms=st.integers(20_000, 60_000),
    phase_ms=st.integers(0, 2_000),
)
def test_a_standby_leads_within_twenty_seconds_of_a_leaders_sudden_end(
    offset_ms: int, killed_ms: int, phase_ms: int
) -> None:
    leader, standby = Candidate("leader", 0, 1.0), Candidate("standby", offset_ms, 1.0)
    trips = [(50 + phase_ms % 100, 50, "")] * 800

    simulate([leader, standby], trips, {"leader": killed_ms})

    assert standby.writable[0][0] - killed_ms < 20_000
