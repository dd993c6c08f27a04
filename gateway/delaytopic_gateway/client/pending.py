"""The lists of several relays of one DelayTopic in the order of delivery. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from delaytopic_api.relay import PendingList, PendingRecord
from delaytopic_gateway.client.relay_listing import RelayAnswer
from delaytopic_gateway.errors import RelayUnreachableError
from delaytopic_process.errors import InputError

Place = tuple[int, int, int]
"""Due time, source partition and source offset: the order of the list."""
LAST_PARTITION, LAST_OFFSET = (1 << 31) - 1, (1 << 63) - 1
END: Place = (1 << 63, 0, 0)
"""The place behind everything."""
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"))


@dataclass(frozen=True, slots=True)
class PendingReport:
    """The records that wait in one DelayTopic. `notes` give, a line each, reasons why there may be more.

    `histogram` counts what is due up to so many milliseconds ahead, and after the edge before.
    """

    delay_topic: str
    source: str
    pending: int
    overdue: int
    next_due_ms: int | None
    ingest_lag: int
    histogram: Sequence[tuple[int, int]]
    records: Sequence[PendingRecord]
    complete: bool
    notes: Sequence[str]
    next_after: Place | None = None
    """The place behind which the next page begins; None when nothing further could be listed."""
    source_partitions: int = 0


def report(topic: str, answers: Sequence[RelayAnswer], limit: int) -> PendingReport:
    """Merge the answers of the relays that serve the topic into one list of at most `limit` records.

    `topic` is a source topic, or a DelayTopic's name with or without its namespace. Raises RelayUnreachableError when
    nobody answered who serves it and some did not answer, and InputError when all did and none serves it, or when
    several DelayTopics are meant.
    """
    lists = _lists_of(topic, answers)
    notes = list(_notes(lists, answers))
    last = min((_last_place(each) for each in lists), default=END)
    found = {place_of(each): each for one in lists for each in one.records}
    ordered = [found[place] for place in sorted(found) if place <= last]
    more = len(ordered) > limit or any(each.limited for each in lists)
    if more and limit:
        full = len(ordered) >= limit
        notes.insert(0, f"there are more than {'were asked for' if full else 'one answer holds'}")
        last = min(last, place_of(ordered[:limit][-1])) if ordered else last
    return PendingReport(
        delay_topic=lists[0].delay_topic,
        source=lists[0].source,
        pending=sum(each.pending for each in lists),
        overdue=sum(each.overdue for each in lists),
        next_due_ms=min((each.next_due_ms for each in lists if each.next_due_ms is not None), default=None),
        ingest_lag=sum(each.ingest_lag for each in lists),
        histogram=_histogram(lists),
        records=ordered[:limit],
        complete=not notes and not more,
        notes=notes,
        next_after=None if last == END else last,
        source_partitions=max(each.source_partitions for each in lists),
    )


def place_of(record: PendingRecord) -> Place:
    """Return the place of a record in the list."""
    return record.due_ms, record.partition, record.offset


def _last_place(one: PendingList) -> Place:
    """Return the place up to which a relay has listed everything."""
    if one.limited and one.records:
        return place_of(one.records[-1])
    return END if one.listed_until_ms is None else (one.listed_until_ms - 1, LAST_PARTITION, LAST_OFFSET)


def _lists_of(topic: str, answers: Sequence[RelayAnswer]) -> list[PendingList]:
    every = [answer.document for answer in answers if answer.document is not None]
    silent = "; ".join(f"{answer.url} {answer.problem}" for answer in answers if answer.document is None)
    if not every:
        raise RelayUnreachableError(f"no relay told what is pending: {silent}; ask again when they answer")
    lists = [each for each in every if topic in _names(each)]
    served = sorted({f"{each.delay_topic} (source {each.source})" for each in lists or every})
    if not lists and silent:
        # Those that say nothing may be the ones that serve it.
        raise RelayUnreachableError(
            f"no relay of {topic} answered: those that did serve {', '.join(served)}, and {silent}; if one of these "
            "serves it, ask again when it answers"
        )
    if not lists:
        raise InputError(f"none of the relays serves {topic}; they serve {', '.join(served)}")
    if len(served) > 1:
        raise InputError(f"{topic} is the name of several DelayTopics here: {', '.join(served)}; write one of these")
    return lists


def _names(one: PendingList) -> tuple[str, ...]:
    return one.source, one.delay_topic, one.delay_topic.rpartition("/")[2]


def _notes(lists: Sequence[PendingList], answers: Sequence[RelayAnswer]) -> Iterator[str]:
    """Return reasons why there may be more records than are listed, the limit aside."""
    for one in lists:
        if one.message and not one.complete and not one.limited and any(shard.listed for shard in one.shards):
            yield f"relay {one.relay}: {one.message}"
    for answer in answers:
        if answer.problem is not None:
            yield f"{answer.url} {answer.problem}"
    here = {shard.partition for one in lists for shard in one.shards if shard.listed}
    named = {shard.partition for one in lists for shard in one.shards}
    elsewhere = sorted(named - here)
    if elsewhere:
        yield f"partitions that none of these relays lists: {', '.join(map(str, elsewhere))}"


def _histogram(lists: Sequence[PendingList]) -> list[tuple[int, int]]:
    """Add up bins of the same distance from now."""
    bins: defaultdict[int, int] = defaultdict(int)
    for one in lists:
        for each in one.due_histogram:
            bins[each.up_to_ms - one.as_of_ms] += each.records
    return sorted(bins.items())


def span_text(span_ms: int) -> str:
    """Return the two largest units of a span: `90m` is `1h30m`; `late` for one that has passed."""
    if span_ms < 0:
        return "late"
    for place, (unit_ms, unit) in enumerate(_UNITS):
        if span_ms >= unit_ms:
            rest = span_ms % unit_ms
            smaller_ms, smaller = _UNITS[place + 1] if place + 1 < len(_UNITS) else (1, "ms")
            more = rest // smaller_ms if smaller != "ms" else 0
            return f"{span_ms // unit_ms}{unit}" + (f"{more}{smaller}" if more else "")
    return f"{span_ms}ms"
