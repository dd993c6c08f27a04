"""The cancel of ids, in a world of a source topic and relays that read it in their own time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from delaytopic_api.relay import Ending, Outcome, PendingRecord, RecordPlace
from delaytopic_gateway.errors import RelayUnreachableError
from delaytopic_gateway.reach.cancelling import (
    Cancelled,
    Cancelling,
    Ends,
    Found,
    Verdict,
    exit_code,
    summary,
)

PARTITIONS = 4
HOUR_S = 3_600.0


@dataclass
class World:
    """A source topic and its relays: what is written at a time, they have read `lag_s` later."""

    lag_s: float = 0.2
    everywhere: bool = True
    silent: bool = False
    now_s: float = 1_000.0
    log: dict[int, list[tuple[float, str, float | None]]] = field(
        default_factory=lambda: {partition: [] for partition in range(PARTITIONS)}
    )
    """Of each partition: when a record was written, its id, and when it is due; None for a cancel."""
    said: list[str] = field(default_factory=list)
    outcomes: dict[tuple[int, int], Outcome] = field(default_factory=dict)
    """Of schedules, by partition and offset."""

    def schedule(self, name: str, partition: int, *, written_s: float = -HOUR_S, due_s: float = HOUR_S) -> World:
        self.log[partition].append((self.now_s + written_s, name, self.now_s + due_s))
        return self

    def _read(self, partition: int) -> int:
        return sum(written_s + self.lag_s <= self.now_s for written_s, _, _ in self.log[partition])

    # -- relays

    def find(self, name: str) -> Found:
        if self.silent:
            raise RelayUnreachableError("no relay answers")
        records = []
        for partition, log in self.log.items():
            read = [(offset, due_s) for offset, (_, found, due_s) in enumerate(log) if found == name]
            read = [each for each in read if each[0] < self._read(partition)]
            if read and read[-1][1] is not None and read[-1][1] > self.now_s:
                due_ms = int(read[-1][1] * 1_000)
                records.append(
                    PendingRecord(due_ms=due_ms, partition=partition, offset=read[-1][0], target="t", id=name)
                )
        return Found(records, complete=True)

    def have_read(self, ends: Ends, seconds: float) -> bool:
        if self.silent:
            raise RelayUnreachableError("no relay answers")
        return all(self._read(partition) >= end for partition, end in ends.items())

    # -- commands

    def ends(self) -> Ends:
        return {partition: len(log) for partition, log in self.log.items()}

    def cancel(self, places: Mapping[str, Sequence[int] | None]) -> Mapping[str, Mapping[int, int]]:
        written: dict[str, dict[int, int]] = {}
        for name, partitions in places.items():
            written[name] = {}
            for partition in range(PARTITIONS) if partitions is None else partitions:
                written[name][partition] = len(self.log[partition])
                self.log[partition].append((self.now_s, name, None))
        return written

    def outcome(self, partition: int, offset: int, seconds: float) -> Outcome | None:
        return self.outcomes.get((partition, offset))

    # -- the command

    def pause(self, seconds: float) -> None:
        self.now_s += seconds

    def cancel_all(self, *names: str, wait: bool = True) -> list[Cancelled]:
        cancelling = Cancelling(self, self, wait=wait, say=self.said.append, clock=lambda: self.now_s, pause=self.pause)
        return cancelling.cancel_all(names)

    def cancels(self) -> list[tuple[str, int]]:
        return sorted((name, number) for number, log in self.log.items() for _, name, due_s in log if due_s is None)


def test_an_id_is_cancelled_in_the_partition_where_it_waits() -> None:
    world = World().schedule("a", 2).schedule("b", 0)

    found = world.cancel_all("a")

    assert found == [Cancelled("a", Verdict.CANCELLED, [2], listed=True)]
    assert world.cancels() == [("a", 2)]
    assert not world.find("a").records


def test_an_id_that_waits_in_several_partitions_is_cancelled_in_each() -> None:
    world = World().schedule("a", 1).schedule("a", 3)

    assert world.cancel_all("a") == [Cancelled("a", Verdict.CANCELLED, [1, 3], listed=True)]


def test_several_ids_are_answered_in_their_order_and_each_once() -> None:
    world = World().schedule("a", 1).schedule("b", 3)

    found = world.cancel_all("b", "x", "a", "b")

    assert [(each.name, each.verdict) for each in found] == [
        ("b", Verdict.CANCELLED),
        ("x", Verdict.NOT_PENDING),
        ("a", Verdict.CANCELLED),
    ]


def test_of_an_id_that_waits_nowhere_nothing_is_written_once_relays_have_read_all() -> None:
    world = World()

    assert world.cancel_all("a") == [Cancelled("a", Verdict.NOT_PENDING)]
    assert world.cancels() == []


def test_an_id_that_relays_are_about_to_read_is_waited_for() -> None:
    world = World(lag_s=1.0).schedule("a", 2, written_s=0.0)

    assert world.cancel_all("a") == [Cancelled("a", Verdict.CANCELLED, [2], listed=True)]


@pytest.mark.parametrize(("lag_s", "outcome"), [(4.0, Verdict.SWEPT), (60.0, Verdict.UNREAD)])
def test_an_id_that_relays_are_long_in_reading_is_cancelled_in_all_partitions(lag_s: float, outcome: Verdict) -> None:
    world = World(lag_s=lag_s).schedule("a", 2, written_s=0.0)

    found = world.cancel_all("a")

    assert found == [Cancelled("a", outcome, [0, 1, 2, 3])]
    world.pause(lag_s)
    assert not world.find("a").records


def test_without_waiting_an_id_that_is_not_listed_is_cancelled_in_all_partitions_at_once() -> None:
    world = World(lag_s=60.0).schedule("a", 2).schedule("b", 1, written_s=0.0)

    found = world.cancel_all("a", "b", wait=False)

    assert found == [
        Cancelled("a", Verdict.UNREAD, [2], listed=True),
        Cancelled("b", Verdict.UNREAD, [0, 1, 2, 3]),
    ]
    assert world.now_s == 1_000.0


def test_where_nobody_is_asked_cancels_go_to_all_partitions() -> None:
    world = World().schedule("a", 2)
    cancelling = Cancelling(None, world, clock=lambda: world.now_s, pause=world.pause)

    assert cancelling.cancel_all(["a"]) == [Cancelled("a", Verdict.UNREAD, [0, 1, 2, 3])]
    assert world.now_s == 1_000.0


def test_relays_that_cannot_be_asked_are_told_of_once_and_reached_all_the_same() -> None:
    world = World(silent=True).schedule("a", 2)

    found = world.cancel_all("a", "b")

    assert [each.verdict for each in found] == [Verdict.UNREAD] * 2
    assert world.said == ["no relay answers"]
    assert world.cancels() == [(name, partition) for name in "ab" for partition in range(PARTITIONS)]


def test_relays_that_answer_again_in_time_tell_of_what_was_cancelled_meanwhile() -> None:
    world = World(silent=True).schedule("a", 2)

    def pause(seconds: float) -> None:
        world.silent = False
        world.pause(seconds)

    cancelling = Cancelling(world, world, say=world.said.append, clock=lambda: world.now_s, pause=pause)

    assert cancelling.cancel_all(["a"]) == [Cancelled("a", Verdict.SWEPT, [0, 1, 2, 3])]
    assert world.said == ["no relay answers"]


def test_a_record_that_is_due_before_the_cancel_is_read_is_not_called_cancelled() -> None:
    world = World(lag_s=1.0).schedule("a", 2, due_s=0.5)

    assert world.cancel_all("a") == [Cancelled("a", Verdict.TOO_LATE, [2], listed=True)]


def test_a_later_record_with_the_same_id_is_another_one() -> None:
    world = World().schedule("a", 2)

    def pause(seconds: float) -> None:
        if len(world.log[2]) == 2:
            world.schedule("a", 2, written_s=0.0)
        world.pause(seconds)

    cancelling = Cancelling(world, world, clock=lambda: world.now_s, pause=pause)

    assert [each.verdict for each in cancelling.cancel_all(["a"])] == [Verdict.CANCELLED]
    assert len(world.find("a").records) == 1


def test_where_only_one_partition_can_be_written_an_unseen_id_is_not_cancelled() -> None:
    world = World(lag_s=60.0, everywhere=False).schedule("a", 2, written_s=0.0)

    assert world.cancel_all("a") == [Cancelled("a", Verdict.UNKNOWN)]
    assert world.cancels() == []


@pytest.mark.parametrize(
    ("outcomes", "waited", "code"),
    [
        ([], True, 0),
        ([Verdict.CANCELLED, Verdict.SWEPT], True, 0),
        ([Verdict.CANCELLED, Verdict.NOT_PENDING], True, 7),
        ([Verdict.TOO_LATE], True, 7),
        ([Verdict.UNREAD, Verdict.NOT_PENDING], True, 8),
        ([Verdict.UNREAD, Verdict.NOT_PENDING], False, 7),
        ([Verdict.UNREAD], False, 0),
        ([Verdict.UNKNOWN], False, 8),
    ],
)
def test_the_exit_code_is_the_highest_of_all_ids(outcomes: list[Verdict], waited: bool, code: int) -> None:
    assert exit_code([Cancelled("a", outcome) for outcome in outcomes], waited=waited) == code


def test_people_get_a_sentence_for_each_id_and_a_sum() -> None:
    ended = [
        Cancelled("a", Verdict.CANCELLED, [2], listed=True),
        Cancelled("b", Verdict.UNREAD, [1, 3], listed=True),
        Cancelled("c", Verdict.SWEPT, [0, 1, 2, 3]),
        Cancelled("d", Verdict.NOT_PENDING),
    ]

    assert [each.sentence(0) for each in ended] == [
        "cancelled",
        "the cancel was written to partitions 1, 3; relays have not read it yet, as far as is known",
        "not pending any more; the cancel was written to all 4 partitions and read",
        "nothing with this id was pending",
    ]
    assert summary(ended) == "4 ids: 1 cancelled, 1 not pending any more, 1 not pending, 1 written, not read yet"


def ended(ending: Ending, offset: int = 0) -> Outcome:
    source = RecordPlace(topic="delayed", partition=2, offset=offset)
    return Outcome(outcome=ending, id="a", ended_ms=1_000_000, source=source, requested_by="shop-desk")


def test_a_cancel_that_outcomes_answer_has_won() -> None:
    world = World().schedule("a", 2)
    world.outcomes[2, 0] = ended(Ending.CANCELLED)

    (found,) = world.cancel_all("a")

    assert found == Cancelled("a", Verdict.CANCELLED, [2], listed=True, outcome=ended(Ending.CANCELLED))
    assert found.sentence(1_000_000).endswith(", by shop-desk")
    assert found.to_json()["ended"]["requestedBy"] == "shop-desk"


def test_a_cancel_after_a_delivery_that_outcomes_tell_was_too_late_whatever_was_due() -> None:
    world = World().schedule("a", 2)
    world.outcomes[2, 0] = ended(Ending.DELIVERED)

    (found,) = world.cancel_all("a")

    assert (found.verdict, found.sentence(1_000_000).startswith("too late: delivered at ")) == (Verdict.TOO_LATE, True)


def test_a_cancel_in_two_partitions_that_lost_in_one_was_too_late() -> None:
    world = World().schedule("a", 1).schedule("a", 2)
    world.outcomes |= {(1, 0): ended(Ending.CANCELLED), (2, 0): ended(Ending.DELIVERED)}

    (found,) = world.cancel_all("a")

    assert (found.verdict, found.outcome) == (Verdict.TOO_LATE, ended(Ending.DELIVERED))


def test_nobody_who_does_not_wait_asks_for_outcomes() -> None:
    world = World().schedule("a", 2)
    world.outcomes[2, 0] = ended(Ending.CANCELLED)

    assert world.cancel_all("a", wait=False) == [Cancelled("a", Verdict.UNREAD, [2], listed=True)]
