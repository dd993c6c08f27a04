"""The gateway's own REST, described by OpenAPI at /openapi.json."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from delaytopic_api.records import DELIVER_AFTER, DELIVER_AT
from delaytopic_api.relay import PendingRecord
from delaytopic_gateway.access.rights import Right
from delaytopic_gateway.client.new_records import due_ms
from delaytopic_gateway.documents import (
    Accepted,
    DelayTopicDocument,
    ErrorDocument,
    NewRecord,
    NewTime,
    RecordPage,
    RecordSelection,
    delay_topic_document,
    record_page,
)
from delaytopic_gateway.rest.addresses import ends_before, with_address
from delaytopic_gateway.service.gateway import Gateway, hidden_headers
from delaytopic_process.errors import ProgramError

Namespace = Annotated[str, Path(max_length=63)]
Name = Annotated[str, Path(max_length=253)]
Id = Annotated[str, Path(min_length=1, max_length=256)]
Partition = Annotated[int | None, Query(ge=0, lt=1 << 31, description="Where the id waits in several.")]
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorDocument, "description": description}
    for status, description in {
        400: "The request is wrong.",
        401: "Nobody knows who the caller is.",
        403: "The caller may not do this.",
        404: "There is no such DelayTopic or record.",
        409: "The DelayTopic or the record does not allow it.",
        502: "Kafka refused it.",
        503: "No relay answers, or nobody tells what the caller may do.",
    }.items()
}


def rest(gateway: Gateway) -> APIRouter:
    """Return the routes of `/v1`."""
    router = APIRouter(prefix="/v1/delaytopics", tags=["delaytopics"], responses=ERRORS)

    @router.get("", summary="List the DelayTopics")
    def list_delay_topics() -> list[DelayTopicDocument]:
        found = []
        for served in gateway.visible():
            try:
                found.append(delay_topic_document(served, gateway.pending(served, {}, 0), state=gateway.state(served)))
            except ProgramError as error:
                found.append(delay_topic_document(served, None, str(error), gateway.state(served)))
        return found

    @router.get("/{namespace}/{name}", summary="Read a DelayTopic, with the due times of what waits")
    def read_delay_topic(namespace: Namespace, name: Name) -> DelayTopicDocument:
        served = gateway.served(namespace, name)
        return delay_topic_document(served, gateway.pending(served, {}, 0), state=gateway.state(served))

    @router.get("/{namespace}/{name}/records", summary="List pending records, in the order of delivery")
    def list_records(namespace: Namespace, name: Name, selection: Annotated[RecordSelection, Query()]) -> RecordPage:
        served = gateway.served(namespace, name)
        return record_page(gateway.pending(served, selection.to_parameters(), selection.limit))

    @router.post("/{namespace}/{name}/records", status_code=202, summary="Schedule a record")
    def schedule(namespace: Namespace, name: Name, record: NewRecord, response: Response) -> Accepted:
        served = gateway.served(namespace, name, Right.WRITE)
        outgoing = record.to_record()
        ends = ends_before(gateway, served, response)
        written = gateway.schedule(served, outgoing)
        times = [header for header in outgoing.headers if header[0] in (DELIVER_AT, DELIVER_AFTER)]
        accepted = Accepted(
            partition=written.partition, offset=written.offset, due_ms=due_ms(times, written.timestamp_ms)
        )
        return with_address(accepted, namespace, name, (written.partition, written.offset), ends, response)

    @router.get("/{namespace}/{name}/records/{id:path}", summary="Read a pending record by its id, with its content")
    def read_record(
        namespace: Namespace, name: Name, id: Id, response: Response, partition: Partition = None
    ) -> PendingRecord:
        served = gateway.served(namespace, name)
        response.headers.update(hidden_headers(served))
        return gateway.record_with(served, id, partition)

    @router.delete("/{namespace}/{name}/records/{id:path}", status_code=202, summary="Cancel a pending record")
    def cancel(namespace: Namespace, name: Name, id: Id, response: Response, partition: Partition = None) -> Accepted:
        served = gateway.served(namespace, name, Right.WRITE)
        # First: what is pending after it ends behind it.
        ends = ends_before(gateway, served, response)
        record = gateway.record_with(served, id, partition)
        written = gateway.cancel(served, record)
        accepted = Accepted(partition=written.partition, offset=written.offset)
        return with_address(accepted, namespace, name, (record.partition, record.offset), ends, response)

    @router.patch("/{namespace}/{name}/records/{id:path}", status_code=202, summary="Move a pending record")
    def move(
        namespace: Namespace, name: Name, id: Id, time: NewTime, response: Response, partition: Partition = None
    ) -> Accepted:
        served = gateway.served(namespace, name, Right.WRITE)
        asked_ms = time.due_ms(gateway.now_ms())
        ends = ends_before(gateway, served, response)
        record = gateway.record_with(served, id, partition)
        moved = gateway.move(served, record, asked_ms)
        accepted = Accepted(partition=moved.written.partition, offset=moved.written.offset, due_ms=moved.due_ms)
        return with_address(accepted, namespace, name, (record.partition, record.offset), ends, response)

    return router
