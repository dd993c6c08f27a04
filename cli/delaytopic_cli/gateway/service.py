"""What a gateway does, over ports: it asks relays, and writes what a producer would. It keeps nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from delaytopic_api.relay import PendingRecord
from delaytopic_cli.client.pending import PendingReport, place_of, report
from delaytopic_cli.client.sending import OutgoingRecord
from delaytopic_cli.errors import ConflictError, RecordMissingError, RelayUnreachableError
from delaytopic_cli.gateway.commands import cancelling, moving
from delaytopic_cli.gateway.routes import Ask, Cluster, Route, Routes, Written

MOST_OF_ONE_ID = 100
"""Partitions in which one id may wait; keys decide the partition, so that mostly it is one."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A record that was replaced by one with another time."""

    record: PendingRecord
    due_ms: int
    written: Written


@dataclass(frozen=True, slots=True)
class Gateway:
    """The service behind documents and pages. All methods raise `CliError`s."""

    routes: Routes
    cluster: Cluster
    ask: Ask
    now_ms: Callable[[], int]

    def route(self, namespace: str, name: str) -> Route:
        """Return a DelayTopic. Raises `RecordMissingError`."""
        for route in self.routes.all():
            if (route.namespace, route.name) == (namespace, name):
                return route
        raise RecordMissingError(f"there is no DelayTopic {namespace}/{name} here")

    def pending(self, route: Route, parameters: Mapping[str, int | str], limit: int) -> PendingReport:
        """Return the first records that the parameters of `GET /pending` select."""
        urls = self.routes.relay_urls(route)
        if not urls:
            raise RelayUnreachableError(f"no relay of {route.full_name} runs; ask again")
        return report(route.full_name, self.ask(urls, {**parameters, "limit": limit}), limit)

    def records_with(self, route: Route, name: str, partition: int | None) -> list[PendingRecord]:
        """Return the pending records with an id, with their contents. Raises `RecordMissingError`."""
        parameters: dict[str, int | str] = {"id": name, "contents": "true"}
        if partition is not None:
            parameters["partition"] = partition
        found = self.pending(route, parameters, MOST_OF_ONE_ID)
        if partition is not None and partition >= found.source_partitions:
            text = f"{route.source} has {found.source_partitions} partitions, from 0 on; {partition} is none of them"
            raise RecordMissingError(text)
        if not found.records and not found.complete:
            raise RelayUnreachableError(f"not all of {route.full_name} could be searched: {'; '.join(found.notes)}")
        if not found.records:
            raise RecordMissingError(
                f"no record with id {name} is pending in {route.full_name}; it was delivered, cancelled or never there"
            )
        return list(found.records)

    def record_with(self, route: Route, name: str, partition: int | None) -> PendingRecord:
        """Return the one pending record with an id. Raises `RecordMissingError` and `ConflictError`."""
        found = self.records_with(route, name, partition)
        if len(found) > 1:
            places = ", ".join(str(record.partition) for record in found)
            raise ConflictError(f"the id {name} waits in partitions {places}: say which")
        return found[0]

    def record_at(self, route: Route, due_ms: int, partition: int, offset: int) -> PendingRecord:
        """Return the pending record at a place of the list, with its content. Raises `RecordMissingError`."""
        parameters: dict[str, int | str] = {
            "dueFrom": due_ms,
            "dueBefore": due_ms + 1,
            "partition": partition,
            "contents": "true",
            **({"after": f"{due_ms}:{partition}:{offset - 1}"} if offset else {}),
        }
        place = (due_ms, partition, offset)
        found = [record for record in self.pending(route, parameters, 1).records if place_of(record) == place]
        if not found:
            raise RecordMissingError(f"the record {partition}:{offset} is no longer pending in {route.full_name}")
        return found[0]

    def schedule(self, route: Route, record: OutgoingRecord) -> Written:
        """Write a new record."""
        if not route.may_schedule:
            raise ConflictError(
                f"records of {route.full_name} are written in dialect {route.dialect}, which only its own clients write"
            )
        return self.cluster.write(route.source, record, None)

    def cancel(self, route: Route, record: PendingRecord) -> Written:
        """Write the command that cancels a pending record, behind it in its partition."""
        return self.cluster.write(route.source, cancelling(route, record), record.partition)

    def move(self, route: Route, record: PendingRecord, due_ms: int) -> Moved:
        """Write the record that replaces a pending one, behind it in its partition.

        Not while relays are behind with reading: they might deliver the one before they read the other.
        """
        behind = self.pending(route, {"partition": record.partition}, 0).ingest_lag
        if behind:
            raise ConflictError(f"relays have {behind} records of this partition still to read; move it in a moment")
        written = self.cluster.write(route.source, moving(route, record, due_ms, self.now_ms()), record.partition)
        return Moved(record, due_ms, written)
