"""Records that wait, and those that could not be delivered, as lines for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from delaytopic_api.relay import Ending, Outcome, PendingContent, PendingRecord, RecordPlace
from delaytopic_gateway.client.dead_letters import dead_letters_text
from delaytopic_gateway.client.pending import span_text
from delaytopic_gateway.client.time_text import clock_text
from delaytopic_gateway.dead_letters.documents import DeadLetterDocument, DeadLetterPage, ResendResult
from delaytopic_gateway.documents import OutcomePage, RecordPage
from delaytopic_process.command_line import printable

NAME_WIDTH: Final = 24
LONGEST_DETAIL: Final = 300
_LETTERS: Final = f"{{:<10}}  {{:<23}}  {{:<21}}  {{:>9}}  {{:<{NAME_WIDTH}}}  {{:<10}}  {{:<5}}  {{}}"
_AGAIN: Final = {True: "yes", False: "no", None: "-"}


def pending_lines(page: RecordPage, *, of_all: bool, now_ms: int, width: int) -> Iterator[str]:
    """Yield a summary, a table with a line for each record, and the notes.

    `of_all` says that the page is of all that is pending, whenever it is due.
    """
    yield f"{page.delay_topic} (source {page.source})"
    yield ", ".join(_counts(page, now_ms, of_all=of_all))
    sums = accumulate(each.records for each in page.due_histogram)
    due = [(each.ahead_ms, sum_) for each, sum_ in zip(page.due_histogram, sums, strict=True) if each.records]
    if due:
        yield "due within " + ", ".join(f"{span_text(edge_ms)}: {sum_:,}" for edge_ms, sum_ in due)
    if page.records:
        yield ""
        yield from (line.rstrip()[:width] for line in _table(page.records, now_ms))
    if page.notes:
        yield ""
        yield from (note if page.complete else f"not complete: {note}" for note in page.notes)


def _counts(page: RecordPage, now_ms: int, *, of_all: bool) -> Iterator[str]:
    yield f"{page.pending:,} pending"
    yield f"{page.overdue:,} overdue"
    if page.next_due_ms is not None:
        yield f"next due {clock_text(page.next_due_ms, now_ms=now_ms)}"
    # Those that only a former relay knew of are counted until their time, and not listed; what has left since the
    # count is not, either.
    withdrawn = page.pending - len(page.records)
    if of_all and page.complete and withdrawn > 0:
        yield f"{withdrawn:,} of them cancelled, replaced or just delivered"
    if page.ingest_lag:
        yield f"{page.ingest_lag:,} not yet taken in"


def _table(records: Sequence[PendingRecord], now_ms: int) -> Iterator[str]:
    dues = [clock_text(record.due_ms, now_ms=now_ms) for record in records]
    targets = [record.target for record in records]
    due_width = max(map(len, [*dues, "DUE"]))
    target_width = max(map(len, [*targets, "TARGET"]))
    form = (
        f"{{:<{due_width}}}  {{:>8}}  {{:>14}}  {{:<{target_width}}}  {{:<{NAME_WIDTH}}}  {{:<{NAME_WIDTH}}}  {{:>8}}"
    )
    yield form.format("DUE", "IN", "SOURCE", "TARGET", "ID", "KEY", "BYTES")
    for record, due in zip(records, dues, strict=True):
        yield form.format(
            due,
            span_text(record.due_ms - now_ms),
            f"{record.partition}:{record.offset}",
            record.target,
            _short(record.id, record.id_base64),
            _short(record.key, record.key_base64),
            "-" if record.value_bytes is None else f"{record.value_bytes:,}",
        )


def record_lines(record: PendingRecord, *, now_ms: int) -> Iterator[str]:
    """Yield a pending record, whole."""
    yield f"due      {due_text(record.due_ms, now_ms=now_ms)}"
    yield f"place    {record.partition}:{record.offset}"
    yield f"target   {printable(record.target)}"
    yield from _content_lines(record.content)


def due_text(due_ms: int, *, now_ms: int) -> str:
    """Return a due time, and how far ahead it is."""
    ahead = "due" if due_ms <= now_ms else f"in {span_text(due_ms - now_ms)}"
    return f"{clock_text(due_ms, now_ms=now_ms)} ({ahead})"


def ending_text(outcome: Outcome, *, now_ms: int) -> str:
    """Return how a schedule ended: `delivered at 09:30:00.123 to shop.reminders:3:17`."""
    at = f"at {clock_text(outcome.ended_ms, now_ms=now_ms)}"
    by = f", by {printable(outcome.requested_by)}" if outcome.requested_by is not None else ""
    to = f" to {_place_text(outcome.target)}" if outcome.target is not None else ""
    ended_by = f", by the record {_place_text(outcome.ended_by)}" if outcome.ended_by is not None and not by else ""
    match outcome.outcome:
        case Ending.DELIVERED:
            return f"delivered {at}{to}"
        case Ending.CANCELLED:
            return f"cancelled {at}{by or ended_by}"
        case Ending.REPLACED:
            return f"replaced {at}{by or ended_by}"
        case Ending.DEAD_LETTERED:
            return f"dead-lettered {at}{to}: {printable(outcome.reason or 'no reason is told')}"
        case Ending.NOT_PENDING:
            return f"a cancel {at} found nothing pending{by}"


def ended_lines(page: OutcomePage, *, now_ms: int) -> Iterator[str]:
    """Yield the life of an id that is no longer pending, the last end first."""
    ends = [each for each in page.outcomes if each.outcome is not Ending.NOT_PENDING]
    last = (ends or page.outcomes)[0]
    yield f"ended    {ending_text(last, now_ms=now_ms)}"
    if last.due_ms is not None:
        yield f"due      {clock_text(last.due_ms, now_ms=now_ms)}"
    yield f"place    {_place_text(last.source)}"
    before = page.outcomes.index(last)
    for number, each in enumerate(page.outcomes):
        if number != before:
            word = "before  " if number > before else "after   "
            yield f"{word} {each.source.partition}:{each.source.offset} {ending_text(each, now_ms=now_ms)}"
    if not page.complete:
        yield f"the newest {page.looked_at:,} outcomes were looked at; there may be older ones"


def _place_text(place: RecordPlace) -> str:
    return f"{printable(place.topic)}:{place.partition}:{place.offset}"


def _content_lines(content: PendingContent | None) -> Iterator[str]:
    if content is None:
        return
    yield f"key      {_whole(content.key, content.key_base64)}"
    yield f"value    {_whole(content.value, content.value_base64)}"
    for header in content.headers:
        yield f"header   {printable(header.name)}={_whole(header.value, header.value_base64)}"


def dead_letters_lines(page: DeadLetterPage, *, now_ms: int) -> Iterator[str]:
    """Yield a line for each dead letter, the sum of each reason, and the notes."""
    yield _LETTERS.format("PLACE", "WHEN", "REASON", "BYTES", "KEY", "SOURCE", "AGAIN", "DETAIL").rstrip()
    for letter in page.dead_letters:
        yield _LETTERS.format(
            letter.place,
            clock_text(letter.at_ms, now_ms=now_ms),
            _line(letter.reason),
            "-" if letter.value_bytes is None else f"{letter.value_bytes:,}",
            _short(letter.key, letter.key_base64),
            f"{letter.source_partition}:{letter.source_offset}",
            _AGAIN[letter.sent_again],
            _cut(_line(letter.detail or "-"), LONGEST_DETAIL),
        ).rstrip()
    reasons = [f"{count:,} {_line(reason)}" for reason, count in page.reasons.items()]
    yield ": ".join([dead_letters_text(sum(page.reasons.values())), *([", ".join(reasons)] if reasons else [])])
    yield from page.notes


def dead_letter_lines(letter: DeadLetterDocument, *, now_ms: int) -> Iterator[str]:
    """Yield a dead letter, whole."""
    yield f"place    {letter.place}"
    yield f"when     {clock_text(letter.at_ms, now_ms=now_ms)}"
    yield f"reason   {_line(letter.reason)}"
    if letter.detail is not None:
        yield f"detail   {printable(letter.detail)}"
    yield f"source   {letter.source_partition}:{letter.source_offset}"
    yield f"again    {_AGAIN[letter.sent_again]}"
    if letter.cannot_be_sent is not None:
        yield f"cannot be sent again: {printable(letter.cannot_be_sent)}"
    yield from _content_lines(letter.content)


def resend_lines(result: ResendResult, *, chosen_by_place: bool) -> Iterator[str]:
    """Yield what was sent again, or would be, and what was sent before."""
    if result.dry_run:
        yield from (f"would send {place}" for place in result.places)
    verb = "would send" if result.dry_run else "sent"
    whence = ", from the first on" if result.from_first and not chosen_by_place else ""
    more = "" if result.complete else "; there may be more"
    yield f"{verb} {dead_letters_text(result.sent)} to {result.source} again{whence}{more}"
    yield from (f"not sent: {place}: it was sent again before" for place in result.sent_before)


def _whole(text: str | None, encoded: str | None) -> str:
    if text is not None:
        return printable(text)
    return "-" if encoded is None else f"base64:{encoded}"


def _short(text: str | None, encoded: str | None) -> str:
    """Return a key or id in one line of bounded width; base64 is marked as such."""
    if text is None:
        return "-" if encoded is None else _cut(f"base64:{encoded}", NAME_WIDTH)
    return _cut(_line(text), NAME_WIDTH)


def _line(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
