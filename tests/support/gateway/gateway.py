"""A gateway over records that a test names: the whole application behind a real port, with relays that answer."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from urllib.parse import urlencode, urljoin

from tests.support.gateway.dead_letters import LettersOfAScene
from tests.support.relay.statuses import relay_status, shard

from delaytopic_api.relay import Outcome, RecordPlace, ShardState
from delaytopic_api.values import Dialect, Ids
from delaytopic_gateway.access.guard import AuditLine
from delaytopic_gateway.access.rights import Access, LoopbackAccess
from delaytopic_gateway.app import gateway_app
from delaytopic_gateway.client.new_records import OutgoingRecord, Written
from delaytopic_gateway.client.raw_records import RawRecord
from delaytopic_gateway.client.relay_listing import RelayAnswer
from delaytopic_gateway.errors import TopicMissingError
from delaytopic_gateway.kafka.endings import Endings, Search
from delaytopic_gateway.server import serving
from delaytopic_gateway.service.gateway import Gateway
from delaytopic_gateway.service.served_topics import Cluster, ServedTopic
from delaytopic_gateway.service.state import UNKNOWN, State
from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.errors import BadRequest
from delaytopic_relay.pending.document import Subject, pending_list
from delaytopic_relay.pending.query import parse_query
from delaytopic_relay.pending.search import Listed, PendingResult
from delaytopic_relay.pending.snapshot import Copies, ShardCopy

NOW_MS = 1_795_269_600_000
REMINDERS = ServedTopic(
    "shop",
    "reminders",
    "shop.reminders.delayed",
    "shop.reminders",
    "shop.reminders.dlq",
    None,
    Dialect.NATIVE,
    Ids.BY_HEADER,
    False,
    86_400_000,
)
TIMERS = replace(
    REMINDERS,
    name="timers",
    source="timers.delayed",
    target="timers",
    dialect=Dialect.SCHEDULER,
    ids=Ids.BY_KEY,
    history="timers.history",
)
"""Of another dialect."""


class Answer(NamedTuple):
    """An answer of the gateway."""

    status: int
    text: str
    headers: Mapping[str, str]

    @property
    def document(self) -> Any:
        """The answer as JSON."""
        return json.loads(self.text)


@dataclass
class OutcomesOfAScene:
    """The `OutcomeTopics` of a scene: one topic, in memory, whose outcomes have their places as offsets."""

    told: list[tuple[int, Outcome]] = field(default_factory=list)
    """Partition and outcome."""
    waited_s: list[float] = field(default_factory=list)
    broken: str | None = None
    """The reason why it cannot be read."""

    def ends(self, topic: str) -> Mapping[int, int]:
        self._demand()
        return {number: sum(partition == number for partition, _ in self.told) for number in range(4)}

    def _demand(self) -> None:
        if self.broken is not None:
            raise TopicMissingError(self.broken)

    def first(self, topic: str, schedule: RecordPlace, start: int, wait_s: float) -> Search:
        self.waited_s.append(wait_s)
        of_partition = [outcome for partition, outcome in self.told if partition == schedule.partition]
        for offset, outcome in enumerate(of_partition):
            if offset >= start and outcome.source == schedule:
                return Search(outcome, offset)
        return Search(None, max(start, len(of_partition)))

    def newest(self, topic: str, source: str, name: bytes, partition: int | None) -> Endings:
        self._demand()
        found = [
            each
            for number, each in self.told
            if (each.source.topic, (each.id or "").encode()) == (source, name) and partition in (None, number)
        ]
        return Endings(found[::-1], len(self.told), is_whole=True)


@dataclass
class Scene:
    """A gateway's surroundings: what waits, what is written, what is noted."""

    waiting: dict[ServedTopic, list[tuple[int, Schedule]]] = field(default_factory=dict)
    """Source partition and schedule."""
    written: list[tuple[str, OutgoingRecord, int | None]] = field(default_factory=list)
    audit: list[AuditLine] = field(default_factory=list)
    past: dict[str, list[RawRecord]] = field(default_factory=dict)
    """Records of topics."""
    letters: LettersOfAScene = field(default_factory=LettersOfAScene)
    outcomes: OutcomesOfAScene = field(default_factory=OutcomesOfAScene)
    states: dict[str, State] = field(default_factory=dict)
    """By the full name of a DelayTopic."""
    ingest_lag: int = 0
    bootstrap_servers: str = "kafka:9092"
    silent: bool = False
    """No relay runs."""
    url: str = ""

    def begin(self, waiting: dict[ServedTopic, list[tuple[int, Schedule]]]) -> Scene:
        """Forget what was, and let this wait: a server is started once for many tests."""
        self.waiting, self.ingest_lag, self.silent = waiting, 0, False
        self.written.clear()
        self.past.clear()
        self.audit.clear()
        self.letters = LettersOfAScene()
        self.outcomes = OutcomesOfAScene()
        self.states.clear()
        return self

    # -- what the gateway asks for

    def all(self) -> Sequence[ServedTopic]:
        return [*self.waiting]

    def relay_urls(self, served: ServedTopic) -> Sequence[str]:
        return [] if self.silent else [served.full_name]

    def state(self, served: ServedTopic) -> State:
        return self.states.get(served.full_name, UNKNOWN)

    def write(self, topic: str, record: OutgoingRecord, partition: int | None) -> Written:
        self.written.append((topic, record, partition))
        return Written(partition or 0, len(self.written), NOW_MS)

    def read(self, topic: str, last: int) -> Sequence[RawRecord]:
        return self.past.get(topic, [])[-last:]

    def ask(self, urls: Sequence[str], parameters: Mapping[str, int | str]) -> list[RelayAnswer]:
        return [self.answer(url, urlencode(parameters)) for url in urls]

    def answer(self, name: str, parameters: str) -> RelayAnswer:
        """Return what a relay with one shard for each partition answers."""
        (served,) = [served for served in self.waiting if served.full_name == name]
        try:
            query = parse_query(parameters)
        except BadRequest as error:
            return RelayAnswer(name, problem=f"answered 400: {error}")
        found = sorted(
            Listed.of(partition, schedule, contents=query.contents)
            for partition, schedule in self.waiting[served]
            if query.selection.takes(partition, schedule)
            and schedule.due_ms < query.due_before_ms
            and query.partition in (None, partition)
        )
        behind = {"ingest_lag": self.ingest_lag}
        shards = [shard(number, ShardState.DELIVERING).model_copy(update=behind) for number in range(4)]
        pending = len(self.waiting[served])
        status = relay_status(delay_topic=served.full_name, pending=pending, overdue=0, shards=shards, **behind)
        copies = Copies({partition: ShardCopy(partition, []) for partition in range(4)}, {})
        result = PendingResult(found[: query.limit + 1])
        document = pending_list(status, Subject(served.source, 4, served.target), query, copies, result)
        return RelayAnswer(name, document)

    # -- what a client does

    def get(self, path: str, **headers: str) -> Answer:
        return self.send("GET", path, None, **headers)

    def send(self, method: str, path: str, document: Any, **headers: str) -> Answer:
        """Send JSON, or the fields of a form when they are bytes."""
        is_form = isinstance(document, bytes)
        body = document if is_form else None if document is None else json.dumps(document).encode()
        kind = "application/x-www-form-urlencoded" if is_form else "application/json"
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(
            self.url + path, body, {"Content-Type": kind, **given} if body is not None else given, method=method
        )
        opener = urllib.request.build_opener(_NoRedirects, urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60) as answer:
                return _as_a_browser_reads(path, answer)
        except urllib.error.HTTPError as error:
            with error:
                return _as_a_browser_reads(path, error)


def _as_a_browser_reads(path: str, answer: Any) -> Answer:
    """Return an answer with its addresses as paths of the gateway, whatever they are relative to."""
    headers, text = dict(answer.headers), answer.read().decode()
    if "location" in headers:
        headers["location"] = urljoin(path, headers["location"])
    if headers.get("content-type", "").startswith("text/html"):
        text = re.sub('(href|action)="([^"]*)"', lambda found: f'{found[1]}="{urljoin(path, found[2])}"', text)
    return Answer(answer.status, text, headers)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any) -> None:
        """Return no further request."""


@contextmanager
def gateway_over(scene: Scene, access: Access | None = None, cluster: Cluster | None = None) -> Iterator[Scene]:
    """Serve a gateway over this scene while the body runs; to everybody on this machine unless `access` is given.

    `cluster` is a Kafka in place of the scene's.
    """
    gateway = Gateway(scene, cluster or scene, scene.ask, lambda: NOW_MS)
    app = gateway_app(gateway, access or LoopbackAccess(), scene.audit.append)
    with serving(app, forwarded=access is None) as url:
        scene.url = url
        yield scene
