"""The simulated Kafka does what a broker does, as far as the histories rely on it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.simulation.faults import Fault, Gate, What
from tests.simulation.world.clocks import SimulatedClock
from tests.simulation.world.kafka import Kafka
from tests.simulation.world.source_client import SimulatedSource
from tests.simulation.world.target_client import SimulatedTarget
from tests.simulation.world.transactions import TIMEOUT_MS

from delaytopic_api.records import DeadLetter, dead_letter_headers
from delaytopic_relay.core.commands import Command, DueKey, Record, SourceMessage
from delaytopic_relay.core.membership import HAND_OVER_MS
from delaytopic_relay.core.progress import fresh_progress
from delaytopic_relay.errors import CommitUnknown, Fenced, KafkaUnavailable, TransactionAborted
from delaytopic_relay.ports import Committed

RECORD = Record("target", b"v", b"k", dead_letter_headers(DeadLetter("expired", "", "source", 0, 0, 0)))
PROGRESS = {0: fresh_progress(3)._replace(cursor=DueKey(5, 2))}


class Assigned:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, list[int]]] = []

    def assigned(self, partitions: Sequence[int]) -> None:
        self.told.append(("assigned", list(partitions)))

    def revoked(self, partitions: Sequence[int]) -> None:
        self.told.append(("revoked", list(partitions)))

    def lost(self, partitions: Sequence[int]) -> None:
        self.told.append(("lost", list(partitions)))


def unread(messages: Sequence[SourceMessage]) -> list[Command]:
    return []


def a_target(kafka: Kafka, name: str = "a") -> SimulatedTarget:
    gate = Gate(kafka.counts, lambda fault: None)
    return SimulatedTarget(kafka, gate, SimulatedClock(kafka), name, transactional=True)


def a_source(kafka: Kafka, name: str = "a", member_name: str | None = None) -> tuple[SimulatedSource, Assigned]:
    gate, assigned = Gate(kafka.counts, lambda fault: None), Assigned()
    source = SimulatedSource(kafka, gate, name, 10, 0, member_name)
    source.subscribe(assigned)
    source.poll(10, 0, unread)
    return source, assigned


def test_what_a_transaction_holds_is_seen_once_it_is_committed() -> None:
    kafka = Kafka(1, 6_000)
    source, _ = a_source(kafka)
    target = a_target(kafka)
    target.begin()
    target.send([RECORD])
    before = (len(kafka.read_committed()), len(kafka.read_uncommitted()), dict(kafka.committed))

    target.commit(PROGRESS, source.group_metadata())

    assert before == (0, 1, {})
    assert (len(kafka.read_committed()), kafka.committed[0].offset) == (1, 3)


def test_an_aborted_record_is_never_seen_by_a_read_committed_reader() -> None:
    kafka = Kafka(1, 6_000)
    target = a_target(kafka)
    target.begin()
    target.send([RECORD])

    target.abort()

    assert (kafka.read_committed(), len(kafka.read_uncommitted())) == ([], 1)


def test_a_fenced_producer_cannot_commit() -> None:
    kafka = Kafka(1, 6_000)
    source, _ = a_source(kafka)
    target = a_target(kafka)
    target.begin()
    target.send([RECORD])

    a_target(kafka, "b").fence("a")

    with pytest.raises(Fenced):
        target.commit(PROGRESS, source.group_metadata())
    assert kafka.committed == {}


def test_an_evicted_member_cannot_commit() -> None:
    kafka = Kafka(1, 6_000)
    source, _ = a_source(kafka)
    target = a_target(kafka)
    target.begin()
    assert source.member is not None
    kafka.group.evict(source.member, kafka.now_ms)

    with pytest.raises(TransactionAborted):
        target.commit(PROGRESS, source.group_metadata())


def test_offsets_of_an_open_transaction_are_in_doubt_until_it_ends() -> None:
    kafka = Kafka(1, 6_000)
    source, _ = a_source(kafka)
    a_target(kafka)
    kafka.transactions.current("a", 1, kafka.now_ms).offsets[0] = Committed(3, "")
    with pytest.raises(KafkaUnavailable):
        source.committed([0])

    kafka.pass_time(TIMEOUT_MS)

    assert source.committed([0]) == {}


def test_after_a_commit_without_an_answer_the_producer_is_of_no_more_use() -> None:
    kafka = Kafka(1, 6_000)
    target = a_target(kafka)
    target.begin()
    target._gate.arm(Fault("commit", 1, What.UNANSWERED))
    with pytest.raises(CommitUnknown):
        target.commit({}, (1, 1))
    with pytest.raises(CommitUnknown):
        target.begin()

    target.replace()

    target.begin()


def test_a_shard_moves_only_after_its_owner_has_let_go() -> None:
    kafka = Kafka(2, 6_000)
    first, told_first = a_source(kafka)
    second, told_second = a_source(kafka, "b")
    before = list(told_second.told)

    first.poll(10, 0, unread)
    second.poll(10, 0, unread)

    assert (before, told_first.told[-1], told_second.told) == ([], ("revoked", [1]), [("assigned", [1])])


def test_a_silent_member_holds_up_a_rebalance_until_its_session_ends() -> None:
    kafka = Kafka(1, 6_000)
    first, _ = a_source(kafka)
    assert first.member is not None
    kafka.group.silent(first.member, kafka.now_ms)
    second, told = a_source(kafka, "b")
    before = list(told.told)

    kafka.pass_time(6_000)
    second.poll(10, 0, unread)

    assert (before, told.told) == ([], [("assigned", [0])])


def test_who_joins_under_a_name_has_the_shards_of_the_member_that_had_it_without_a_rebalance() -> None:
    kafka = Kafka(2, 6_000)
    dead, _ = a_source(kafka, "a", "pod")
    _, told_other = a_source(kafka, "b", "other pod")
    dead.poll(10, 0, unread)
    assert dead.member is not None
    kafka.group.silent(dead.member, kafka.now_ms)
    before = (list(told_other.told), kafka.group.generation)

    started, told = a_source(kafka, "c", "pod")

    assert (told.told, started.group_metadata()) == ([("assigned", [0])], (3, kafka.group.generation))
    assert (told_other.told, kafka.group.generation) == before


def test_a_member_whose_name_another_took_cannot_commit_in_the_same_generation_and_joins_without_it() -> None:
    kafka = Kafka(1, 6_000)
    frozen, told = a_source(kafka, "a", "pod")
    number, generation = frozen.group_metadata()
    started, _ = a_source(kafka, "b", "pod")

    with pytest.raises(TransactionAborted):
        kafka.group.check(number, generation)
    frozen.poll(10, 0, unread)

    assert (told.told, frozen._member_name) == ([("assigned", [0]), ("lost", [0])], None)
    assert kafka.group.named("pod") is started.member


@pytest.mark.parametrize(("fenced", "name"), [(True, None), (False, "pod")])
def test_a_member_that_was_taken_out_although_it_lives_joins_again_under_its_name_unless_it_heard_of_another(
    fenced: bool, name: str | None
) -> None:
    kafka = Kafka(1, 6_000)
    source, told = a_source(kafka, "a", "pod")
    kafka.group.take_out("pod", kafka.now_ms, fenced=fenced)

    source.poll(10, 0, unread)
    source.poll(10, 0, unread)

    assert told.told == [("assigned", [0]), ("lost", [0]), ("assigned", [0])]
    assert source._member_name == name


def test_a_member_whose_own_session_is_over_takes_its_name_back() -> None:
    kafka = Kafka(1, 6_000)
    frozen, _ = a_source(kafka, "a", "pod")
    assert frozen.member is not None
    kafka.group.silent(frozen.member, kafka.now_ms)
    started, told = a_source(kafka, "b", "pod")
    kafka.pass_time(6_000)

    kafka.group.heard(frozen.member, kafka.now_ms)
    frozen.poll(10, 0, unread)
    started.poll(10, 0, unread)

    assert kafka.group.named("pod") is frozen.member
    assert (told.told, started._member_name) == ([("assigned", [0]), ("lost", [0])], None)


def test_what_a_member_was_letting_go_when_it_died_gets_an_owner_once_it_has_started_again_under_its_name() -> None:
    kafka = Kafka(2, 6_000)
    dies, _ = a_source(kafka, "a", "pod")
    assert dies.member is not None
    _, told_other = a_source(kafka, "b", "other pod")
    kafka.group.silent(dies.member, kafka.now_ms)
    started, _ = a_source(kafka, "c", "pod")
    before = (kafka.group.unowned(), list(told_other.told))

    kafka.pass_time(HAND_OVER_MS)
    started.poll(10, 0, unread)

    assert before == ({1}, [])
    assert kafka.group.unowned() == set()


def test_a_reader_stops_at_the_last_stable_offset_and_skips_what_was_aborted() -> None:
    log = Kafka(1, 6_000).source[0]
    log.append(1, None, b"a", None)
    transaction = log.begin()
    log.append(2, None, b"b", None, transaction)
    log.append(3, None, b"c", None)
    before = log.read(0, 10)

    log.end(transaction, commit=False)

    values = [record.record_value for record in log.read(0, 10)[0]]
    assert (len(before[0]), before[1], values, log.read(0, 10)[1]) == (1, 1, [b"a", b"c"], 4)
