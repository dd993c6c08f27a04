"""The service of a gateway, over ports: it asks relays, and writes what a producer would. It keeps nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from delaytopic_api.relay import Outcome, PendingRecord, RecordPlace
from delaytopic_gateway.access.bounds.pages import share_of_each
from delaytopic_gateway.access.rights import ANYBODY, CALLER, LoopbackAccess, Right, Rights, demand
from delaytopic_gateway.client.new_records import OutgoingRecord, Written
from delaytopic_gateway.client.pending import PendingReport, place_of, report
from delaytopic_gateway.client.raw_records import RawRecord
from delaytopic_gateway.errors import ConflictError, ForbiddenError, RecordMissingError, RelayUnreachableError
from delaytopic_gateway.kafka.endings import Endings, Search
from delaytopic_gateway.service.control_records import cancelling, moving, requested_by
from delaytopic_gateway.service.served_topics import Ask, Cluster, ServedTopic, ServedTopics
from delaytopic_gateway.service.state import State

MOST_OF_ONE_ID = 100
"""Partitions in which one id may wait; keys decide the partition, so that mostly it is one."""
_OF_KEYS = frozenset({"key", "keyPrefix"})
_HIDDEN = {"key": None, "key_base64": None, "key_bytes": None, "value_bytes": None, "content": None}
"""The fields of a record that a caller who may not write does not see: what it holds, and how much."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A record that was replaced by one with another time."""

    record: PendingRecord
    due_ms: int
    written: Written


def hidden_note(served: ServedTopic) -> str:
    """Return the words on what is left out of records."""
    return f"keys, values and headers are left out: {_missing(served)}"


def hidden_headers(*topics: ServedTopic) -> dict[str, str]:
    """Return the headers of an answer without room for notes, whose records may lack what they hold."""
    return next(({"Warning": warning(hidden_note(served))} for served in topics if not served.writable), {})


def warning(text: str) -> str:
    """Return a text as the header `Warning` has it."""
    return f'199 delaytopic "{text}"'


def _missing(served: ServedTopic) -> str:
    return Right.WRITE.missing(served.namespace)


@dataclass(frozen=True, slots=True)
class Gateway:
    """The service behind documents and pages, for who asks. All methods raise `ProgramError`s.

    Nothing reaches relays and Kafka but through here, with a `ServedTopic` from here: it knows what the caller may do.
    """

    topics: ServedTopics
    cluster: Cluster
    ask: Ask
    now_ms: Callable[[], int]
    rights: Rights = field(default_factory=lambda: Rights(LoopbackAccess()))

    def visible(self) -> list[ServedTopic]:
        """Return the DelayTopics that the caller may read, each with whether he may write."""
        return self._seen(self.topics.all())

    def served(self, namespace: str, name: str, right: Right = Right.READ) -> ServedTopic:
        """Return a DelayTopic.

        Raises `RecordMissingError`, also for one that the caller may not read, and `ForbiddenError` for one that he may
        only read.
        """
        place = (namespace, name)
        found = self._seen([served for served in self.topics.all() if (served.namespace, served.name) == place])
        if not found:
            raise RecordMissingError(f"there is no DelayTopic {namespace}/{name} here")
        demand(found[0].writable or right is Right.READ, namespace)
        return found[0]

    def _seen(self, topics: Sequence[ServedTopic]) -> list[ServedTopic]:
        readable = self.rights.allowed(Right.READ, [(served.namespace, served.name) for served in topics])
        found = [served for served, allowed in zip(topics, readable, strict=True) if allowed]
        writable = self.rights.allowed(Right.WRITE, [(served.namespace, served.name) for served in found])
        return [replace(served, writable=allowed) for served, allowed in zip(found, writable, strict=True)]

    def state(self, served: ServedTopic) -> State:
        """Return what is known of a DelayTopic beside its records."""
        return self.topics.state(served)

    def pending(self, served: ServedTopic, parameters: Mapping[str, int | str], limit: int) -> PendingReport:
        """Return the first records that the parameters of `GET /pending` select, as many as have room in an answer.

        Who may not write gets them without what they hold, and a note; a search by key would tell keys.
        """
        if not served.writable and not parameters.keys().isdisjoint(_OF_KEYS):
            raise ForbiddenError(f"records are found by their keys only by who may see them: {_missing(served)}")
        urls = self.topics.relay_urls(served)
        if not urls:
            raise RelayUnreachableError(f"no relay of {served.full_name} runs; ask again")
        asked = {**parameters, "limit": limit, "maxBytes": share_of_each(len(urls))}
        found = report(served.full_name, self.ask(urls, asked), limit)
        if served.writable or not limit:
            return found
        records = [record.model_copy(update=_HIDDEN) for record in found.records]
        return replace(found, records=records, notes=[*found.notes, hidden_note(served)])

    def history(self, served: ServedTopic, most: int) -> Iterator[RawRecord]:
        """Yield the last copies of what was delivered; without keys and values for who may not write."""
        for record in self.cluster.read(served.history, most) if served.history is not None else ():
            yield record if served.writable else replace(record, key=None, value=None)

    def _records_with(
        self, served: ServedTopic, name: str, partition: int | None, *, contents: bool = False
    ) -> list[PendingRecord]:
        """Return the pending records with an id. Raises `RecordMissingError`."""
        parameters: dict[str, int | str] = {"id": name, **({"contents": "true"} if contents else {})}
        if partition is not None:
            parameters["partition"] = partition
        found = self.pending(served, parameters, MOST_OF_ONE_ID)
        if partition is not None and partition >= found.source_partitions:
            text = f"{served.source} has {found.source_partitions} partitions, from 0 on; {partition} is none of them"
            raise RecordMissingError(text)
        if not found.records and not found.complete:
            raise RelayUnreachableError(f"not all of {served.full_name} could be searched: {'; '.join(found.notes)}")
        if not found.records:
            raise RecordMissingError(
                f"no record with id {name} is pending in {served.full_name}; it was delivered, cancelled or never there"
            )
        return list(found.records)

    def record_with(self, served: ServedTopic, name: str, partition: int | None) -> PendingRecord:
        """Return the one pending record with an id, with its content.

        Raises `RecordMissingError` and `ConflictError`. Contents are asked for when it is known where it waits: several
        may not have room in an answer.
        """
        if partition is None:
            found = self._records_with(served, name, None)
            if len(found) > 1:
                places = ", ".join(str(record.partition) for record in found)
                raise ConflictError(f"the id {name} waits in partitions {places}: say which")
            partition = found[0].partition
        return self._records_with(served, name, partition, contents=True)[0]

    def record_at(self, served: ServedTopic, due_ms: int, partition: int, offset: int) -> PendingRecord:
        """Return the pending record at a place of the list, with its content. Raises `RecordMissingError`."""
        parameters: dict[str, int | str] = {
            "dueFrom": due_ms,
            "dueBefore": due_ms + 1,
            "partition": partition,
            "contents": "true",
            **({"after": f"{due_ms}:{partition}:{offset - 1}"} if offset else {}),
        }
        place = (due_ms, partition, offset)
        found = [record for record in self.pending(served, parameters, 1).records if place_of(record) == place]
        if not found:
            raise RecordMissingError(f"the record {partition}:{offset} is no longer pending in {served.full_name}")
        return found[0]

    def outcome_ends(self, served: ServedTopic) -> Mapping[int, int]:
        """Return where the outcomes end now, by partition; nothing where relays write none.

        What is pending after this was asked for has its outcome behind it.
        """
        return self.cluster.outcomes.ends(served.outcomes) if served.outcomes is not None else {}

    def outcome(self, served: ServedTopic, partition: int, offset: int, start: int, wait_s: float) -> Search:
        """Search the outcome of the schedule at a place of the source, from an offset on; wait for it so long."""
        topic = _demand_outcomes(served)
        place = RecordPlace(topic=served.source, partition=partition, offset=offset)
        found = self.cluster.outcomes.first(topic, place, start, wait_s)
        return found if found.outcome is None else found._replace(outcome=_shown(served, found.outcome))

    def endings(self, served: ServedTopic, name: str, partition: int | None) -> Endings:
        """Return the outcomes of an id among the newest, the last one first. Raises `ConflictError` without any topic.

        A topic may be shared: those of other sources are left out.
        """
        topic = _demand_outcomes(served)
        found = self.cluster.outcomes.newest(topic, served.source, name.encode(), partition)
        return replace(found, outcomes=[_shown(served, each) for each in found.outcomes])

    def schedule(self, served: ServedTopic, record: OutgoingRecord) -> Written:
        """Write a new record."""
        demand(served.writable, served.namespace)
        if not served.may_schedule:
            raise ConflictError(
                f"records of {served.full_name} are written in dialect {served.dialect}, "
                "which only its own clients write"
            )
        return self._write(served, record, None)

    def cancel(self, served: ServedTopic, record: PendingRecord) -> Written:
        """Write the command that cancels a pending record, behind it in its partition."""
        demand(served.writable, served.namespace)
        return self._write(served, cancelling(served, record), record.partition)

    def move(self, served: ServedTopic, record: PendingRecord, due_ms: int) -> Moved:
        """Write the record that replaces a pending one, behind it in its partition.

        Not while relays are behind with reading: they might deliver the one before they read the other.
        """
        demand(served.writable, served.namespace)
        behind = self.pending(served, {"partition": record.partition}, 0).ingest_lag
        if behind:
            raise ConflictError(f"relays have {behind} records of this partition still to read; move it in a moment")
        written = self._write(served, moving(served, record, due_ms, self.now_ms()), record.partition)
        return Moved(record, due_ms, written)

    def _write(self, served: ServedTopic, record: OutgoingRecord, partition: int | None) -> Written:
        named = requested_by(served, record, CALLER.get(ANYBODY).name)
        return self.cluster.write(served.source, named, partition)


def _demand_outcomes(served: ServedTopic) -> str:
    if served.outcomes is None:
        raise ConflictError(
            f"{served.full_name} has no topic of outcomes, so that nobody knows how its schedules ended; name one in "
            "spec.outcomes"
        )
    return served.outcomes


def _shown(served: ServedTopic, outcome: Outcome) -> Outcome:
    """Return an outcome for who asks: the words of a header are for who may see headers."""
    return outcome if served.writable else outcome.model_copy(update={"requested_by": None})
