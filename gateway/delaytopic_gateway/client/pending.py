"""The lists of several relays of one DelayTopic in the order of delivery, as a document and as a table. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from delaytopic_api.relay import PendingList, PendingRecord
from delaytopic_gateway.client.relay_listing import RelayAnswer
from delaytopic_gateway.client.time_text import clock_text
from delaytopic_gateway.errors import RelayUnreachableError
from delaytopic_process.errors import InputError

Place = tuple[int, int, int]
"""Due time, source partition and source offset: the order of the list."""
LAST_PARTITION, LAST_OFFSET = (1 << 31) - 1, (1 << 63) - 1
END: Place = (1 << 63, 0, 0)
"""Behind everything."""
_NAME_WIDTH = 24
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
    relays: Sequence[RelayAnswer]
    next_after: Place | None = None
    """The place behind which the next page begins; None when nothing further could be listed."""
    source_partitions: int = 0
    withdrawn: int | None = None
    """Pending records that are counted until their time, and not listed, as they were cancelled or replaced; records
    that have left since the count, too. None where not all are listed."""

    def to_json(self) -> dict[str, Any]:
        """Return the document that `-o json` prints."""
        return {
            "delayTopic": self.delay_topic,
            "source": self.source,
            "pending": self.pending,
            "overdue": self.overdue,
            "nextDueMs": self.next_due_ms,
            "ingestLag": self.ingest_lag,
            "dueHistogram": [{"aheadMs": edge_ms, "records": records} for edge_ms, records in self.histogram],
            "withdrawn": self.withdrawn,
            "complete": self.complete,
            "notes": list(self.notes),
            "relays": [_relay_json(answer) for answer in self.relays],
            "records": [record.model_dump(by_alias=True) for record in self.records],
        }


def report(topic: str, answers: Sequence[RelayAnswer], limit: int, *, of_all: bool = False) -> PendingReport:
    """Merge the answers of the relays that serve the topic into one list of at most `limit` records.

    `of_all` says that the relays were asked for all that is pending, whenever it is due.
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
        notes.insert(0, f"there are more than {f'the limit of {limit}' if full else 'one answer holds'}")
        last = min(last, place_of(ordered[:limit][-1])) if ordered else last
    pending = sum(each.pending for each in lists)
    silent = [answer for answer in answers if answer.document is None]
    return PendingReport(
        delay_topic=lists[0].delay_topic,
        source=lists[0].source,
        pending=pending,
        overdue=sum(each.overdue for each in lists),
        next_due_ms=min((each.next_due_ms for each in lists if each.next_due_ms is not None), default=None),
        ingest_lag=sum(each.ingest_lag for each in lists),
        histogram=_histogram(lists),
        records=ordered[:limit],
        complete=not notes and not more,
        notes=notes,
        relays=[*silent, *(answer for answer in answers if answer.document in lists)],
        next_after=None if last == END else last,
        source_partitions=max(each.source_partitions for each in lists),
        withdrawn=max(0, pending - len(ordered)) if of_all and not notes and not more else None,
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


def _relay_json(answer: RelayAnswer) -> dict[str, Any]:
    document = answer.document
    return {
        "url": answer.url,
        "relay": document.relay if document else None,
        "asOfMs": document.as_of_ms if document else None,
        "partitions": [shard.partition for shard in document.shards if shard.listed] if document else [],
        "problem": answer.problem,
    }


def table_lines(report: PendingReport, *, now_ms: int, width: int) -> Iterator[str]:
    """Yield a summary, a table with a line for each record, and the notes."""
    yield from _summary(report, now_ms)
    if report.records:
        yield ""
        yield from (line.rstrip()[:width] for line in _table(report.records, now_ms))
    if report.notes:
        yield ""
        yield from (f"not complete: {note}" for note in report.notes)


def _summary(report: PendingReport, now_ms: int) -> Iterator[str]:
    yield f"{report.delay_topic} (source {report.source})"
    facts = [f"{report.pending:,} pending", f"{report.overdue:,} overdue"]
    if report.next_due_ms is not None:
        facts.append(f"next due {clock_text(report.next_due_ms, now_ms=now_ms)}")
    if report.withdrawn:
        facts.append(f"{report.withdrawn:,} of them cancelled, replaced or just delivered")
    if report.ingest_lag:
        facts.append(f"{report.ingest_lag:,} not yet taken in")
    yield ", ".join(facts)
    sums = accumulate(records for _, records in report.histogram)
    due = [(edge_ms, sum_) for (edge_ms, records), sum_ in zip(report.histogram, sums, strict=True) if records]
    if due:
        yield "due within " + ", ".join(f"{span_text(edge_ms)}: {sum_:,}" for edge_ms, sum_ in due)


def _table(records: Sequence[PendingRecord], now_ms: int) -> Iterator[str]:
    dues = [clock_text(record.due_ms, now_ms=now_ms) for record in records]
    targets = [record.target for record in records]
    due_width = max(map(len, [*dues, "DUE"]))
    target_width = max(map(len, [*targets, "TARGET"]))
    form = (
        f"{{:<{due_width}}}  {{:>8}}  {{:>14}}  {{:<{target_width}}}  {{:<{_NAME_WIDTH}}}  {{:<{_NAME_WIDTH}}}  {{:>8}}"
    )
    yield form.format("DUE", "IN", "SOURCE", "TARGET", "ID", "KEY", "BYTES")
    for record, due in zip(records, dues, strict=True):
        yield form.format(
            due,
            span_text(record.due_ms - now_ms),
            f"{record.partition}:{record.offset}",
            record.target,
            _name(record.id, record.id_base64),
            _name(record.key, record.key_base64),
            "-" if record.value_bytes is None else f"{record.value_bytes:,}",
        )


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


def _name(text: str | None, base64: str | None) -> str:
    """Return a key or id in one line of bounded width; base64 is marked as such."""
    if text is None:
        return "-" if base64 is None else _cut(f"base64:{base64}")
    return _cut("".join(character if character.isprintable() else " " for character in text))


def _cut(text: str) -> str:
    return text if len(text) <= _NAME_WIDTH else text[: _NAME_WIDTH - 1] + "…"
