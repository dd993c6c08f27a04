"""The service of a gateway for dead letters: each DelayTopic's own, with its own source."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Final

from delaytopic_api.values import Dialect
from delaytopic_gateway.access.rights import demand
from delaytopic_gateway.client.dead_letters import Choice, Place, Progress, StoredRecord, missing_part
from delaytopic_gateway.dead_letters.documents import (
    DeadLetterDocument,
    DeadLetterPage,
    Resend,
    ResendResult,
    content_document,
    letter_document,
    letter_page,
    resend_result,
)
from delaytopic_gateway.errors import ConflictError, RecordMissingError
from delaytopic_gateway.kafka.window import Before, Letter, page_of
from delaytopic_gateway.service.gateway import Gateway, hidden_note
from delaytopic_gateway.service.served_topics import ServedTopic

NOT_KNOWN: Final = (
    "whether they were sent again is not known: the gateway's Kafka login needs READ on group delaytopic-resend.{}"
)


@dataclass(frozen=True, slots=True)
class Letters:
    """Dead letters of the DelayTopics of a gateway. All methods raise `ProgramError`s.

    Several DelayTopics may share a dead-letter topic. A letter is of the one whose source topic it names: no other
    shows or sends it.
    """

    gateway: Gateway

    def page(self, served: ServedTopic, reasons: Set[str], before: Before | None, limit: int) -> DeadLetterPage:
        """Return the newest dead letters, or those below `before`.

        Who may not write gets them without what they hold, and a note. Details count as that: they quote headers.
        """
        strangers = set[Place]()

        def keep(record: StoredRecord, progress: Progress | None) -> Letter | None:
            letter = Letter.of(record, progress)
            if letter is None:
                strangers.add(record.place)
            return letter if letter is not None and letter.said.topic == served.source else None

        window = self.gateway.cluster.letters.window(served.dead_letter, before, keep)
        notes = [] if served.writable else [hidden_note(served)]
        if not window.is_whole:
            notes.append(
                f"{window.looked_at:,} offsets of {served.dead_letter} were looked at; older ones are not counted"
            )
        if strangers:
            notes.append(f"records of {served.dead_letter} that no relay wrote are left out: {len(strangers):,}")
        if any(letter.sent_again is None for letter in window.letters):
            notes.append(NOT_KNOWN.format(served.dead_letter))
        return letter_page(page_of(window, reasons, limit), notes, with_contents=served.writable)

    def at(self, served: ServedTopic, place: Place) -> DeadLetterDocument:
        """Return a dead letter with its content. Raises `RecordMissingError`, also for one of another DelayTopic."""
        found = self.gateway.cluster.letters.at(served.dead_letter, place)
        letter = Letter.of(*found) if found is not None else None
        if found is None or letter is None or letter.said.topic != served.source:
            raise RecordMissingError(f"there is no dead letter of {served.full_name} at {place}")
        document = letter_document(letter, with_contents=served.writable)
        if not served.writable:
            return document
        record, _ = found
        whole = {"content": content_document(record), "cannot_be_sent": missing_part(record)}
        return document.model_copy(update=whole)

    def send(self, served: ServedTopic, resend: Resend) -> ResendResult:
        """Send dead letters to the source topic again, each once."""
        demand(served.writable, served.namespace)
        places, timing = resend.chosen_places(), resend.timing()
        if timing is not None and (served.dialect is not Dialect.NATIVE or served.fixed_delay):
            raise ConflictError(f"records of {served.full_name} take no other time: their own dialect or delay has it")
        choice = Choice(served.source, frozenset(resend.reasons), timing)
        topics = self.gateway.cluster.letters
        outcome = topics.send(served.dead_letter, choice, places, dry_run=resend.dry_run)
        return resend_result(served.source, outcome, dry_run=resend.dry_run)
