"""The service of one DelayTopic that commands ask, however it is reached."""

from __future__ import annotations

from typing import Protocol

from delaytopic_api.relay import PendingRecord
from delaytopic_gateway.client.dead_letters import Place
from delaytopic_gateway.dead_letters.documents import (
    DeadLetterDocument,
    DeadLetterPage,
    DeadLetterSelection,
    Resend,
    ResendResult,
)
from delaytopic_gateway.documents import Accepted, NewTime, OutcomePage, RecordPage, RecordSelection
from delaytopic_gateway.reach.cancelling import Commands, Relays


class TopicService(Relays, Commands, Protocol):
    """One DelayTopic: what waits in it, commands to it, and its dead letters. All methods raise `ProgramError`s."""

    @property
    def asks_relays(self) -> bool:
        """False where no relay is known that could be asked."""
        ...

    def pending(self, selection: RecordSelection) -> RecordPage:
        """Return a page of what waits, in the order of delivery."""
        ...

    def record(self, name: str, partition: int | None) -> PendingRecord:
        """Return the pending record with an id. Raises `RecordMissingError` and `ConflictError`."""
        ...

    def endings(self, name: str, partition: int | None) -> OutcomePage:
        """Return how schedules of an id ended. Raises `ConflictError` where no outcomes are written."""
        ...

    def move(self, name: str, partition: int | None, time: NewTime) -> Accepted:
        """Give the pending record with an id another time. Raises `RecordMissingError` and `ConflictError`."""
        ...

    def dead_letters(self, selection: DeadLetterSelection) -> DeadLetterPage:
        """Return a page of dead letters, the newest first."""
        ...

    def dead_letter(self, place: Place) -> DeadLetterDocument:
        """Return a dead letter with its content. Raises `RecordMissingError`."""
        ...

    def resend(self, resend: Resend) -> ResendResult:
        """Send dead letters to the source topic again, each once; a call may end before all are sent."""
        ...
