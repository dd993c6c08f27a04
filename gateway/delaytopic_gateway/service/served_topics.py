"""The DelayTopics that a gateway serves, and how their records are written. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from delaytopic_api import Settings
from delaytopic_api.values import Dialect, Ids
from delaytopic_gateway.client.new_records import OutgoingRecord, Written
from delaytopic_gateway.client.raw_records import RawRecord
from delaytopic_gateway.client.relay_listing import RelayAnswer
from delaytopic_gateway.kafka.endings import OutcomeTopics
from delaytopic_gateway.kafka.window import DeadLetterTopics
from delaytopic_gateway.service.state import State


@dataclass(frozen=True, slots=True)
class ServedTopic:
    """A DelayTopic, as far as a gateway needs it."""

    namespace: str
    name: str
    source: str
    target: str
    dead_letter: str
    history: str | None
    dialect: Dialect
    ids: Ids
    fixed_delay: bool
    max_delay_ms: int
    writable: bool = True
    """True if who asks may write here, and see what records hold."""
    outcomes: str | None = None
    """The topic of outcomes; None where relays write none."""

    @classmethod
    def of(cls, settings: Settings) -> ServedTopic:
        """Return the served of a DelayTopic with these settings."""
        schedule = settings.schedule
        outcomes = settings.outcomes
        return cls(
            settings.namespace,
            settings.name,
            settings.source.topic,
            settings.target.topic,
            settings.dead_letter.topic,
            settings.history.topic if settings.history is not None else None,
            schedule.dialect,
            schedule.ids,
            schedule.fixed_delay is not None,
            schedule.max_delay.ms,
            outcomes=outcomes.topic if outcomes is not None else None,
        )

    @property
    def full_name(self) -> str:
        """`namespace/name`; the name alone where that is all that is known."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def may_cancel(self) -> bool:
        """True if a pending record with an id can be cancelled."""
        dialects = (Dialect.NATIVE, Dialect.SCHEDULER, Dialect.SCHEDULER_JSON)
        return self.writable and self.ids is not Ids.DISABLED and self.dialect in dialects

    @property
    def may_move(self) -> bool:
        """True if a pending record with an id can get another time."""
        return self.writable and self.ids is not Ids.DISABLED and self.dialect is Dialect.NATIVE

    @property
    def may_schedule(self) -> bool:
        """True if the gateway can write new records."""
        return self.writable and self.dialect is Dialect.NATIVE


class ServedTopics(Protocol):
    """The DelayTopics that there are now, their relays, and their state."""

    def all(self) -> Sequence[ServedTopic]:
        """Return them, in the order in which they are shown. Raises `ProgramError`s."""
        ...

    def relay_urls(self, served: ServedTopic) -> Sequence[str]:
        """Return where the pages of its relays are. Raises `ProgramError`s."""
        ...

    def state(self, served: ServedTopic) -> State:
        """Return what is known of it beside its records. Raises `ProgramError`s."""
        ...


class Cluster(Protocol):
    """The Kafka of the DelayTopics."""

    @property
    def bootstrap_servers(self) -> str:
        """Its address."""
        ...

    @property
    def letters(self) -> DeadLetterTopics:
        """Its dead-letter topics."""
        ...

    @property
    def outcomes(self) -> OutcomeTopics:
        """Its topics of outcomes."""
        ...

    def read(self, topic: str, last: int) -> Iterable[RawRecord]:
        """Return the committed records among the last so many offsets of each partition, read as they are taken.

        Raises `ProgramError`s.
        """
        ...

    def write(self, topic: str, record: OutgoingRecord, partition: int | None) -> Written:
        """Produce a record and wait for Kafka; None leaves the partition to the key. Raises `TopicError`."""
        ...


Ask = Callable[[Sequence[str], Mapping[str, int | str]], list[RelayAnswer]]
"""Asks relays for what is pending."""
