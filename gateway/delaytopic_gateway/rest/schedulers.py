"""The REST of etf1's kafka-message-scheduler and of its admin, for DelayTopics of the dialect Scheduler.

Shapes, defaults and sorting follow the sources of kafka-message-scheduler (`/schedules`, `/info`, `/liveness`) and of
its admin (`/api/...`). All DelayTopics of a namespace are one scheduler, as the original reads several schedule topics.
Times are seconds.
"""

from __future__ import annotations

import json
import socket
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from itertools import chain, islice
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from delaytopic_api.relay import PendingRecord
from delaytopic_api.values import Dialect
from delaytopic_gateway.access.bounds.pages import PAGE_BYTES
from delaytopic_gateway.client.raw_records import RawRecord
from delaytopic_gateway.documents import place_text
from delaytopic_gateway.errors import ApiServerUnreachableError
from delaytopic_gateway.rest.local_zone import local_zone
from delaytopic_gateway.service.control_records import content_bytes
from delaytopic_gateway.service.gateway import Gateway, hidden_headers, warning
from delaytopic_gateway.service.served_topics import ServedTopic
from delaytopic_process.errors import ProgramError

PAGE: Final = 1_000
MOST_SEARCHED: Final = 10_000
"""Pending schedules of one DelayTopic, and copies in each partition of its history: the next, and the last ones."""
MOST_SEARCHED_BYTES: Final = 64 << 20
"""The bound of the pending schedules of one DelayTopic that are searched."""
SCHEDULE_BYTES: Final = 500
"""The memory that a schedule takes, about, beside its texts and its value."""
CUT: Final = "there are more than one answer holds: ask for fewer"
DEFAULT_MAX: Final = 300
LARGEST_MAX: Final = 1_000


class Kind(StrEnum):
    """The schedules that are searched."""

    ALL = "all"
    LIVE = "live"
    HISTORY = "history"


class Schedule(NamedTuple):
    """A schedule as that service shows it."""

    id: str
    epoch: int
    timestamp: int
    topic: str
    target_topic: str
    target_key: str
    value: bytes | None

    @property
    def bytes(self) -> int:
        """The memory that it takes, about."""
        texts = sum(map(len, (self.id, self.topic, self.target_topic, self.target_key)))
        return SCHEDULE_BYTES + texts + len(self.value or b"")

    def to_document(self) -> dict[str, Any]:
        """Return the document; a null value stays null, as Go's encoder writes it."""
        return {
            "id": self.id,
            "epoch": self.epoch,
            "timestamp": self.timestamp,
            "topic": self.topic,
            "target-topic": self.target_topic,
            "target-key": self.target_key,
            "value": None if self.value is None else b64encode(self.value).decode("ascii"),
        }


class Search(NamedTuple):
    """A search, with what the original falls back to when it cannot read a part of it."""

    id: str = ""
    epoch_from: int = 0
    epoch_to: int = 0
    most: int = DEFAULT_MAX
    field: str = "timestamp"
    descending: bool = True

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Search:
        """Read the query of a search; never fails."""
        words = query.get("sort-by", "").lower().split()
        if len(words) == 1 and words[0] in ("asc", "desc"):
            words = ["timestamp", *words]
        field = words[0] if words and words[0] in ("timestamp", "id", "epoch") else "timestamp"
        most = _number(query.get("max", ""))
        return cls(
            query.get("schedule-id", "").strip(),
            _number(query.get("epoch-from", "")),
            _number(query.get("epoch-to", "")),
            min(most, LARGEST_MAX) if most > 0 else DEFAULT_MAX,
            field,
            words[1:2] != ["asc"],
        )

    def finds(self, schedule: Schedule) -> bool:
        """Tell whether a schedule fits: both ends of the epochs are included, an id may be a part of one."""
        until = self.epoch_to if self.epoch_to and self.epoch_from <= self.epoch_to else schedule.epoch
        return self.id in schedule.id and self.epoch_from <= schedule.epoch <= until

    def sort(self, schedules: Iterable[Schedule]) -> list[Schedule]:
        """Sort by the field; among equals by id, or for ids by timestamp, upwards."""
        second = "timestamp" if self.field == "id" else "id"
        found = sorted(schedules, key=lambda schedule: getattr(schedule, second))
        return sorted(found, key=lambda schedule: getattr(schedule, self.field), reverse=self.descending)


class First:
    """The first of the schedules that are added, by a search's order, as many as have room in an answer."""

    def __init__(self, search: Search) -> None:
        """Begins with none."""
        self._search = search
        self._found: list[Schedule] = []
        self._bytes = 0
        self._behind: Schedule | None = None
        self.added = 0

    def add(self, schedule: Schedule) -> None:
        """Keep it, for as long as it is among them."""
        self.added += 1
        self._found.append(schedule)
        self._bytes += schedule.bytes
        if len(self._found) > 2 * self._search.most or self._bytes > 2 * PAGE_BYTES:
            self._prune()

    def schedules(self) -> list[Schedule]:
        """Return them in order; the first one is there, however large."""
        self._prune()
        return self._found

    def _prune(self) -> None:
        # What was left out once marks the end: behind it something smaller would have room.
        end = [] if self._behind is None else [self._behind]
        ordered = self._search.sort([*end, *self._found])
        if self._behind is not None:
            place = next(place for place, schedule in enumerate(ordered) if schedule is self._behind)
            ordered = ordered[:place]
        self._found, behind = bounded(ordered, self._search.most)
        if behind is not None:
            self._behind = behind._replace(value=None)
        self._bytes = sum(schedule.bytes for schedule in self._found)


def bounded(schedules: Iterable[Schedule], most: int) -> tuple[list[Schedule], Schedule | None]:
    """Return the first schedules, as many as have room in an answer, and the first that has none."""
    found, total = list[Schedule](), 0
    for schedule in schedules:
        total += schedule.bytes
        if len(found) == most or (found and total > PAGE_BYTES):
            return found, schedule
        found.append(schedule)
    return found, None


def _number(text: str) -> int:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else 0


def live_schedule(served: ServedTopic, record: PendingRecord) -> Schedule:
    """Return a pending record as a schedule."""
    content = record.content
    if content is None:
        # What it holds is not for who asks. Its id is its key.
        name = content_bytes(record.id, record.id_base64)
        return Schedule(_text(name), record.due_ms // 1_000, 0, served.source, record.target, "", None)
    headers = [(header.name, content_bytes(header.value, header.value_base64)) for header in content.headers]
    name = content_bytes(content.key, content.key_base64)
    value = content_bytes(content.value, content.value_base64)
    timestamp = (content.timestamp_ms or 0) // 1_000
    return Schedule(
        _text(name), record.due_ms // 1_000, timestamp, served.source, record.target, _target_key(headers), value
    )


def past_schedule(record: RawRecord) -> Schedule:
    """Return a copy in the history as the schedule that it was."""
    first = dict(reversed(record.headers))
    return Schedule(
        _text(first.get("scheduler-key")),
        _number(_text(first.get("scheduler-epoch"))),
        _number(_text(first.get("scheduler-timestamp"))),
        _text(first.get("scheduler-topic")),
        _text(first.get("scheduler-target-topic")),
        _target_key(record.headers),
        record.value,
    )


def without_content(schedule: Schedule) -> Schedule:
    """Return a schedule for who may not see what its record holds."""
    return schedule._replace(target_key="", value=None)


def _target_key(headers: Sequence[tuple[str, bytes | None]]) -> str:
    return _text(next((value for name, value in headers if name == "scheduler-target-key"), None))


def _text(content: bytes | None) -> str:
    return (content or b"").decode("utf-8", "replace")


class Answer(NamedTuple):
    """A document, and whether something of it had no room."""

    document: Any
    is_cut: bool = False


def _named(name: str, schedule: Schedule) -> dict[str, Any]:
    return {"scheduler": name, "schedule": schedule.to_document()}


def next_midnight_ms(now_ms: int, zone: tzinfo) -> int:
    """Return the next midnight of a zone; a day in which its clock changes has 23 or 25 hours. Pure."""
    today = datetime.fromtimestamp(now_ms / 1_000, zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    return round((today + timedelta(days=1)).timestamp() * 1_000)


class Schedulers:
    """The schedulers of a gateway, by namespace."""

    def __init__(self, gateway: Gateway) -> None:
        """Asks the gateway each time."""
        self._gateway = gateway

    def topics(self, name: str | None = None) -> list[ServedTopic]:
        """Return the DelayTopics of a scheduler, or of all."""
        found = (served for served in self._gateway.visible() if served.dialect is Dialect.SCHEDULER)
        return [served for served in found if name in (None, served.namespace)]

    def live(
        self, name: str | None, before_ms: int | None = None, id: str | None = None, *, contents: bool = True
    ) -> Iterator[Schedule]:
        """Yield what is pending, by DelayTopic in the order of delivery; page by page, as it is taken."""
        for served in self.topics(name):
            parameters: dict[str, int | str] = {"contents": "true"} if contents else {}
            parameters |= {"dueBefore": before_ms} if before_ms is not None else {}
            parameters |= {"id": id} if id is not None else {}
            left, bytes_left = MOST_SEARCHED, MOST_SEARCHED_BYTES
            while left > 0 and bytes_left > 0:
                page = self._gateway.pending(served, parameters, min(PAGE, left))
                schedules = [live_schedule(served, record) for record in page.records]
                left -= max(1, len(schedules))
                bytes_left -= sum(schedule.bytes for schedule in schedules)
                after = place_text(page.next_after)
                # While the next page is made, this one is no longer held here.
                del page
                while schedules:
                    yield schedules.pop(0)
                if after is None or after == parameters.get("after"):
                    break
                parameters["after"] = after

    def today(self) -> Iterator[Schedule]:
        """Yield what is due before the next midnight of this machine, as it is taken."""
        return self.live(None, next_midnight_ms(self._gateway.now_ms(), local_zone()))

    def history(self, name: str) -> Iterator[Schedule]:
        """Yield what was delivered lately, as it is taken."""
        topics = self.topics(name)
        # Several may have one history topic; who may see what one of them delivered may not see what another did.
        for topic in dict.fromkeys(
            (served.history, served.writable) for served in topics if served.history is not None
        ):
            of_topic = [served for served in topics if (served.history, served.writable) == topic]
            sources = {served.source for served in of_topic}
            copies = map(past_schedule, self._gateway.history(of_topic[0], MOST_SEARCHED))
            shown = copies if of_topic[0].writable else map(without_content, copies)
            yield from (copy for copy in shown if copy.topic in sources)

    def names(self) -> list[str]:
        """Return the names of the schedulers."""
        return sorted({served.namespace for served in self.topics()})

    def of_kind(self, kind: Kind, name: str, id: str | None = None) -> Iterator[Schedule]:
        """Yield the schedules of a scheduler; `id` is known when only one is asked for."""
        if kind is not Kind.HISTORY:
            yield from self.live(name, id=id)
        if kind is not Kind.LIVE:
            yield from self.history(name)

    def search(self, kind: Kind, name: str, search: Search) -> Answer:
        """Return how many schedules fit, and the first of them."""
        first = First(search)
        for schedule in self.of_kind(kind, name):
            if search.finds(schedule):
                first.add(schedule)
        shown = [_named(name, schedule) for schedule in first.schedules()]
        return Answer({"found": first.added, "schedules": shown}, len(shown) < min(first.added, search.most))

    def versions(self, kind: Kind, name: str, id: str) -> Answer | None:
        """Return all that is known of an id; None for nothing."""
        of_id = (schedule for schedule in self.of_kind(kind, name, id) if schedule.id == id)
        found, behind = bounded(of_id, MOST_SEARCHED)
        return Answer([_named(name, schedule) for schedule in found], behind is not None) if found else None

    def stats(self, name: str) -> dict[str, Any]:
        """Return how many schedules there are."""
        live, past = sum(1 for _ in self.live(name, contents=False)), sum(1 for _ in self.history(name))
        return {"scheduler": name, "total_live": live, "total_history": past, "total": live + past}

    def info(self, host: str, name: str | None = None) -> dict[str, Any]:
        """Return what `/info` tells of a process."""
        topics = self.topics(name)
        return {
            "hostname": socket.gethostname(),
            "address": ["127.0.0.1"],
            "server_address": host,
            "kafka": {
                "bootstrap_servers": self._gateway.cluster.bootstrap_servers if topics else "",
                "topics": [served.source for served in topics],
                "history_topic": next((served.history for served in topics), None) or "",
            },
        }

    def document(self, name: str, host: str) -> dict[str, Any]:
        """Return a scheduler as `/api/schedulers` lists it: this gateway is its only instance."""
        info = self.info(host, name)
        instance = {
            "ip": info["address"][0],
            "hostname": [info["hostname"]],
            "topics": info["kafka"]["topics"],
            "history_topic": info["kafka"]["history_topic"],
            "bootstrap_servers": info["kafka"]["bootstrap_servers"],
        }
        return {"name": name, "http_port": str(urlsplit(f"//{host}").port or 80), "instances": [instance]}


def scheduler_router(schedulers: Schedulers) -> APIRouter:
    """Return the routes of both services; errors are theirs, too."""
    router = APIRouter(include_in_schema=False)

    @router.get("/schedules")
    def today() -> Response:
        return _or_error(lambda: _streamed(schedulers.today(), hidden_headers(*schedulers.topics())))

    @router.get("/info")
    def info(request: Request) -> Response:
        return _or_error(lambda: JSONResponse(schedulers.info(request.headers.get("host", ""))))

    @router.get("/liveness")
    def liveness() -> Response:
        return Response()

    @router.get("/api/stats")
    def stats() -> Response:
        return _or_error(lambda: JSONResponse([schedulers.stats(name) for name in schedulers.names()]))

    @router.get("/api/schedulers")
    def list_schedulers(request: Request) -> Response:
        host = request.headers.get("host", "")
        return _or_error(lambda: JSONResponse([schedulers.document(name, host) for name in schedulers.names()]))

    for kind in Kind:
        _add_searches(router, schedulers, kind)
    return router


def _add_searches(router: APIRouter, schedulers: Schedulers, kind: Kind) -> None:
    prefix = "/api" if kind is Kind.ALL else f"/api/{kind}"

    @router.get(f"{prefix}/scheduler/{{name}}/schedules")
    def search(name: str, request: Request) -> Response:
        search = Search.of(request.query_params)
        return _or_error(lambda: _answered(schedulers.search(kind, name, search), schedulers.topics(name)))

    @router.get(f"{prefix}/scheduler/{{name}}/schedule/{{id:path}}")
    def versions(name: str, id: str) -> Response:
        return _or_error(lambda: _answered(schedulers.versions(kind, name, id), schedulers.topics(name)))


def _or_error(answer: Callable[[], Response]) -> Response:
    """Answer as those services do: 500 when something is wrong.

    They know no rights: 503 while nobody tells what the caller may do.
    """
    try:
        return answer()
    except ProgramError as error:
        return JSONResponse({"error": str(error)}, 503 if isinstance(error, ApiServerUnreachableError) else 500)


def _answered(answer: Answer | None, topics: Sequence[ServedTopic]) -> Response:
    """Return a document, with a header where something is left out; an empty 404 for what is not there."""
    if answer is None:
        return Response(status_code=404, media_type="application/json")
    warnings = [*hidden_headers(*topics).values(), *([warning(CUT)] if answer.is_cut else [])]
    return JSONResponse(answer.document, headers={"Warning": ", ".join(warnings)} if warnings else None)


def _streamed(schedules: Iterator[Schedule], headers: Mapping[str, str]) -> Response:
    """Return an array of schedules that are asked for as it is read. What goes wrong with the first is an error."""
    first = [*islice(schedules, 1)]
    return StreamingResponse(_array(chain(first, schedules)), media_type="application/json", headers=headers)


def _array(schedules: Iterable[Schedule]) -> Iterator[bytes]:
    before = b"["
    for schedule in schedules:
        yield before + json.dumps(schedule.to_document(), ensure_ascii=False, separators=(",", ":")).encode()
        before = b","
    yield b"[]" if before == b"[" else b"]"
