"""Whole lists and whole sendings of a DelayTopic, however many calls they take."""

from __future__ import annotations

from delaytopic_gateway.client.dead_letters import dead_letters_text
from delaytopic_gateway.dead_letters.documents import (
    MOST_LETTERS,
    MOST_TOLD,
    DeadLetterPage,
    DeadLetterSelection,
    Resend,
    ResendResult,
)
from delaytopic_gateway.documents import RecordPage, RecordSelection
from delaytopic_gateway.reach.service import TopicService
from delaytopic_process.errors import ProgramError


def pending_records(topic: TopicService, selection: RecordSelection) -> RecordPage:
    """Return what waits as one page with as many records as were asked for: an answer has room for so many bytes."""
    page = topic.pending(selection)
    counts, records = page, page.records
    while page.next is not None and page.records and len(records) < selection.limit:
        rest = {"after": page.next, "limit": selection.limit - len(records)}
        page = topic.pending(selection.model_copy(update=rest))
        records = [*records, *page.records]
    end = {"next": page.next, "complete": page.complete, "notes": page.notes}
    return counts.model_copy(update={"records": records, **end})


def dead_letters(topic: TopicService, reasons: list[str], limit: int) -> DeadLetterPage:
    """Return the newest dead letters as one page: a call looks at so many offsets."""
    page, after = topic.dead_letters(DeadLetterSelection(reason=reasons, limit=min(limit, MOST_LETTERS))), None
    whole = page
    while page.next is not None and len(whole.dead_letters) < limit and page.next != after:
        after = page.next
        rest = min(limit - len(whole.dead_letters), MOST_LETTERS)
        page = topic.dead_letters(DeadLetterSelection(reason=reasons, limit=rest, after=after))
        update = {"dead_letters": [*whole.dead_letters, *page.dead_letters], "next": page.next}
        whole = whole.model_copy(update=update)
    return whole


def sent_again(topic: TopicService, resend: Resend) -> ResendResult:
    """Ask until the end is reached, or no more is sent; return what was sent by all calls together."""
    last = whole = topic.resend(resend)
    while not (last.complete or last.dry_run) and last.sent:
        try:
            last = topic.resend(resend)
        except ProgramError as error:
            before = f"{dead_letters_text(whole.sent)} sent again before; the same command goes on behind them"
            raise type(error)(f"{error}; {before}") from error
        update = {
            "sent": whole.sent + last.sent,
            "places": [*whole.places, *last.places][:MOST_TOLD],
            "incomplete": [*whole.incomplete, *last.incomplete][:MOST_TOLD],
            "incomplete_count": whole.incomplete_count + last.incomplete_count,
            "from_first": whole.from_first,
        }
        whole = last.model_copy(update=update)
    return whole
