"""A job's choice of the relay, and of the list, that it believes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from tests.support.gateway.gateway import NOW_MS, REMINDERS
from tests.support.gateway.jobs import World

from delaytopic_api.relay import PendingList, PendingRecord, PendingShard
from delaytopic_gateway.client.pending import LAST_OFFSET
from delaytopic_gateway.client.relay_listing import RelayAnswer
from delaytopic_gateway.errors import RelayUnreachableError
from delaytopic_gateway.jobs.job import BEFORE_ALL, Action, Job, Part, Place, Selector
from delaytopic_gateway.jobs.relays import PartPage, Relays

PART = Part(partition=0, before_offset=9)
JOB = Job(
    id="one",
    namespace=REMINDERS.namespace,
    name=REMINDERS.name,
    source=REMINDERS.source,
    action=Action.CANCEL,
    selector=Selector(),
    created_ms=NOW_MS,
    updated_ms=NOW_MS,
    skipped={},
    parts=(PART,),
)


def record(offset: int, due_ms: int = NOW_MS) -> PendingRecord:
    return PendingRecord(due_ms=due_ms, partition=0, offset=offset, target="t", id="a")


def answer(*records: PendingRecord, ingested: int | None = 9, why: str | None = None, **changes: object) -> RelayAnswer:
    document = PendingList(
        relay="relay-0",
        delay_topic=REMINDERS.full_name,
        source=REMINDERS.source,
        source_partitions=1,
        as_of_ms=NOW_MS,
        pending=0,
        overdue=0,
        ingest_lag=0,
        limit=10,
        complete=True,
        shards=[PendingShard(partition=0, listed=True, ingested=ingested, message=why)],
        records=[*records],
    )
    return RelayAnswer("relay", document.model_copy(update=changes))


def page(*answers: RelayAnswer, place: Place = BEFORE_ALL) -> PartPage:
    def ask(urls: Sequence[str], parameters: Mapping[str, int | str]) -> list[RelayAnswer]:
        return [*answers]

    return Relays(World(), ask).page(REMINDERS, JOB, PART, place, 9, contents=False)


def test_of_two_that_list_a_partition_the_one_that_has_read_further_is_believed() -> None:
    found = page(answer(record(1), ingested=9), answer(record(2), ingested=12), answer(record(3), ingested=10))

    assert found == PartPage([record(2)], None)


def test_a_page_reaches_as_far_as_its_limit_or_as_the_relay_could_list() -> None:
    limited = page(answer(record(1), record(2, NOW_MS + 5), limited=True))
    cut = page(answer(record(1), listed_until_ms=NOW_MS + 7))

    assert (limited.end, cut.end) == ((NOW_MS + 5, 2), (NOW_MS + 6, LAST_OFFSET))


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([answer(record(1), ingested=8)], "no relay lists all of partition 0 now"),
        ([answer(record(1), why="being read again")], "no relay of shop/reminders runs"),
        ([answer(record(1), source="another")], "no relay of shop/reminders runs"),
        ([answer(record(1), ingested=None)], "relay relay-0 is of an earlier version, and cannot take part"),
        ([RelayAnswer("http://r", problem="does not answer")], "http://r does not answer"),
    ],
)
def test_what_may_lack_something_is_not_believed(answers: list[RelayAnswer], message: str) -> None:
    with pytest.raises(RelayUnreachableError) as error:
        page(*answers)

    assert str(error.value) == message


def test_a_list_that_ends_where_it_began_tells_what_is_waited_for() -> None:
    cut = answer(listed_until_ms=NOW_MS, message="too many are due at once")

    with pytest.raises(RelayUnreachableError) as error:
        page(cut, place=page(cut).end or BEFORE_ALL)

    assert str(error.value) == "partition 0: too many are due at once"
