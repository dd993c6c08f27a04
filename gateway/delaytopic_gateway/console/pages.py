"""The console: pages for people, made on the server, that need no script."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from delaytopic_api.relay import Ending, Outcome, PendingRecord
from delaytopic_gateway.access.rights import Right
from delaytopic_gateway.client.lateness import milliseconds_text
from delaytopic_gateway.client.pending import place_of, span_text
from delaytopic_gateway.client.recurring import Explained, waiting
from delaytopic_gateway.client.time_text import clock_text, duration
from delaytopic_gateway.documents import (
    DelayTopicDocument,
    NewRecord,
    NewTime,
    delay_topic_document,
    place_text,
    time_ms,
)
from delaytopic_gateway.errors import RecordMissingError
from delaytopic_gateway.links import link
from delaytopic_gateway.service.control_records import content_bytes
from delaytopic_gateway.service.gateway import Gateway, hidden_note
from delaytopic_gateway.service.served_topics import ServedTopic
from delaytopic_process.command_line import printable
from delaytopic_process.errors import InputError, ProgramError

PAGE: Final = 50
MOST_SHOWN_BYTES: Final = 64 << 10
"""The longest value that is shown."""
LONGEST_NAME: Final = 60
_SAID: Final = {
    "scheduled": "The record is in the source topic; it is listed when a relay has read it.",
    "moved": "The new time is in the source topic; it counts when a relay has read it.",
    "cancelled": "The cancel is in the source topic; it counts when a relay has read it.",
}
_ENDINGS: Final = {
    Ending.DELIVERED: "delivered",
    Ending.CANCELLED: "cancelled",
    Ending.REPLACED: "replaced",
    Ending.DEAD_LETTERED: "dead letter",
}
SEARCH: Final = ("idPrefix", "keyPrefix", "dueFrom", "dueBefore")
_WIDTH, _HEIGHT, _FLOOR = 720, 200, 176


class Bar(NamedTuple):
    """A bar of the due curve, in units of the picture."""

    x: float
    y: float
    width: float
    height: float
    records: int
    name: str
    title: str

    @property
    def middle(self) -> float:
        """The place of its texts."""
        return self.x + self.width / 2


class Curve(NamedTuple):
    """The picture of when records are due."""

    bars: Sequence[Bar]
    label: str
    most: int
    width: int = _WIDTH
    height: int = _HEIGHT
    floor: int = _FLOOR


class View(NamedTuple):
    """A way to look at a value."""

    name: str
    text: str


class End(NamedTuple):
    """The end of one schedule of an id."""

    record: str
    due_ms: int | None
    ended: str
    at_ms: int
    by: str
    to: str
    met_nothing: bool
    """True for a cancel that found nothing to end."""


class Life(NamedTuple):
    """The schedules of an id that have ended, the first one first, and a remark on what is left out."""

    ends: Sequence[End]
    note: str


def _end(outcome: Outcome) -> End:
    is_command = outcome.outcome is Ending.NOT_PENDING
    ended = "a cancel that found nothing pending" if is_command else _ENDINGS[outcome.outcome]
    by = [
        *([printable(outcome.requested_by)] if outcome.requested_by is not None else []),
        *([f"record {outcome.ended_by.partition}:{outcome.ended_by.offset}"] if outcome.ended_by is not None else []),
    ]
    to = f"{outcome.target.topic}:{outcome.target.partition}:{outcome.target.offset}" if outcome.target else ""
    return End(
        f"{outcome.source.partition}:{outcome.source.offset}",
        outcome.due_ms,
        f"{ended}: {printable(outcome.reason)}" if outcome.reason else ended,
        outcome.ended_ms,
        ", ".join(by),
        printable(to),
        is_command,
    )


def due_curve(topic: DelayTopicDocument) -> Curve:
    """Return a bar for each span ahead, and one for all that is due later."""
    spans = [(span_text(count.ahead_ms), count.records) for count in topic.due_histogram]
    later = (topic.pending or 0) - sum(records for _, records in spans)
    spans.append(("later", max(0, later)))
    step, most = _WIDTH / len(spans), max(1, *(records for _, records in spans))
    bars = []
    for number, (name, records) in enumerate(spans):
        height = round((_FLOOR - 24) * records / most, 1)
        title = f"{records:,} {name if name == 'later' else f'within {name}'}"
        x = round((number + 0.1) * step, 1)
        bars.append(Bar(x, _FLOOR - height, round(step * 0.8, 1), height, records, name, title))
    return Curve(bars, "; ".join(bar.title for bar in bars if bar.records) or "nothing is pending", most)


def views_of(value: bytes | None) -> Iterator[View]:
    """Yield the value as JSON or text where it is, else in hexadecimal; long ones are cut."""
    if value is None:
        return
    shown = value[:MOST_SHOWN_BYTES]
    cut = f" (the first {MOST_SHOWN_BYTES:,} of {len(value):,} bytes)" if len(shown) < len(value) else ""
    try:
        text = shown.decode("utf-8", "strict" if not cut else "ignore")
    except UnicodeDecodeError:
        yield View(f"Hexadecimal{cut}", _hexadecimal(shown[: MOST_SHOWN_BYTES // 16]))
        return
    pretty = None if cut else _pretty(text)
    if pretty is not None:
        yield View("JSON", "\n".join(map(printable, pretty.splitlines())))
    yield View(f"Text{cut}", "\n".join(map(printable, text.splitlines())))


def _pretty(text: str) -> str | None:
    try:
        content = json.loads(text)
        return json.dumps(content, indent=2, ensure_ascii=False) if isinstance(content, dict | list) else None
    except (ValueError, RecursionError):
        return None


def _hexadecimal(content: bytes) -> str:
    lines = []
    for start in range(0, len(content), 16):
        part = content[start : start + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{start:08x}  {part.hex(' '):<47}  {text}")
    return "\n".join(lines)


def _name(pair: tuple[str | None, str | None]) -> str:
    text, encoded = pair
    if text is None:
        return "-" if encoded is None else _short(f"base64:{encoded}")
    return _short(printable(text))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _verdict(word: str) -> Markup:
    told, kind = {"Met": ("Met", "good"), "Missed": ("Missed", "bad")}.get(word, ("Cannot judge", "doubt"))
    return Markup('<strong class="{}">{}</strong>').format(kind, told)


class Console:
    """The pages over a gateway."""

    def __init__(self, gateway: Gateway, *, keeps_jobs: bool = False) -> None:
        """Loads the templates. `keeps_jobs`: there are pages for jobs."""
        self._gateway = gateway
        self._keeps_jobs = keeps_jobs
        self._templates = Environment(
            loader=PackageLoader("delaytopic_gateway.console"),
            autoescape=select_autoescape(default=True),
            undefined=StrictUndefined,
            trim_blocks=True,
        )
        self._templates.filters |= {
            "shown": printable,
            "name": _name,
            "count": _count,
            "place": lambda record: place_text(place_of(record)),
            "clock": self.clock,
            "ahead": self._ahead,
            "age": self._age,
            "verdict": _verdict,
            "lateness": milliseconds_text,
            "sentence": lambda text: f"{text[:1].upper()}{text[1:].removesuffix('.')}.",
            "is_link": lambda text: text.startswith(("https://", "http://")),
        }

    def clock(self, ms: int) -> str:
        """Return a time as people read it."""
        return clock_text(ms, now_ms=self._gateway.now_ms())

    def _ahead(self, due_ms: int) -> str:
        ahead_ms = due_ms - self._gateway.now_ms()
        return "due" if ahead_ms < 0 else f"in {span_text(ahead_ms)}"

    def _age(self, at_ms: int) -> str:
        return f"{span_text(max(0, self._gateway.now_ms() - at_ms))} ago"

    def page(self, template: str, status: int = 200, **content: Any) -> Response:
        """Return a page."""
        zone = f"{datetime.now().astimezone().tzname()} (of the gateway)"
        return HTMLResponse(self._templates.get_template(template).render(zone=zone, root=link(""), **content), status)

    def style(self) -> Response:
        """Return the style sheet."""
        source, _, _ = self._templates.loader.get_source(self._templates, "console.css")  # type: ignore[union-attr]
        return Response(source, media_type="text/css")

    def home(self) -> Response:
        """Return the page of all DelayTopics."""
        found = []
        for served in self._gateway.visible():
            state = self._gateway.state(served)
            try:
                document = delay_topic_document(served, self._gateway.pending(served, {}, 0), state=state)
            except ProgramError as error:
                document = delay_topic_document(served, None, str(error), state)
            found.append((path_of(served), document, state))
        with_ready = any(document.ready is not None for _, document, _ in found)
        return self.page("home.html", delay_topics=found, with_ready=with_ready)

    def delay_topic(self, served: ServedTopic, query: Mapping[str, str]) -> Response:
        """Return the page of a DelayTopic, with the records that fit the search."""
        search = {name: query[name] for name in SEARCH if query.get(name)}
        parameters: dict[str, int | str] = {**search}
        for name in ("dueFrom", "dueBefore"):
            if name in search:
                parameters[name] = self.time_ms(name, search[name])
        if query.get("after"):
            parameters["after"] = query["after"]
        state = self._gateway.state(served)
        topic = delay_topic_document(served, self._gateway.pending(served, {}, 0), state=state)
        found = self._gateway.pending(served, parameters, PAGE)
        after = place_text(found.next_after)
        return self.page(
            "delay_topic.html",
            path=path_of(served),
            topic=topic,
            state=state,
            curve=due_curve(topic),
            search=dict.fromkeys(SEARCH, "") | search,
            searching=bool(search),
            records=found.records,
            notes=[note for note in found.notes if not note.startswith("there are more than")],
            next_page=f"{path_of(served)}?{urlencode({**search, 'after': after})}" if after else None,
            said=_SAID.get(query.get("said", "")),
            keeps_jobs=self._keeps_jobs,
        )

    def record(self, served: ServedTopic, query: Mapping[str, str]) -> Response:
        """Return the page of a record: while it waits all that it holds, and then how it ended, if that is known."""
        try:
            record = self._at(served, query) if query.get("place") else self._named(served, query)
        except RecordMissingError as missing:
            return self._ended(served, query, missing)
        return self.page(
            "record.html",
            life=self._life(served, record.id),
            path=path_of(served),
            topic=delay_topic_document(served, None),
            record=record,
            has_id=(record.id, record.id_base64) != (None, None),
            views=[*views_of(_value_of(record))],
            rule=_rule_of(record),
            hidden=None if served.writable else hidden_note(served),
        )

    def _named(self, served: ServedTopic, query: Mapping[str, str]) -> PendingRecord:
        if not query.get("id"):
            raise InputError("say which record: by its place, or by its id")
        return self._gateway.record_with(served, query["id"], _partition(query))

    def _ended(self, served: ServedTopic, query: Mapping[str, str], missing: RecordMissingError) -> Response:
        name = query.get("id")
        life = self._life(served, name)
        if name is None or life is None or not life.ends:
            looked = "" if life is None else f"; {life.note}"
            raise RecordMissingError(f"{missing}{looked}") from missing
        return self.page(
            "ended.html",
            path=path_of(served),
            topic=delay_topic_document(served, None),
            name=name,
            life=life,
            last=next((end for end in reversed(life.ends) if not end.met_nothing), life.ends[-1]),
        )

    def _life(self, served: ServedTopic, name: str | None) -> Life | None:
        """Return how schedules of an id ended; None where that is not written, or the record has no id."""
        if name is None or served.outcomes is None:
            return None
        try:
            found = self._gateway.endings(served, name, None)
        except ProgramError as error:
            return Life([], f"how schedules of this id ended cannot be read: {error}")
        ends = [*map(_end, reversed(found.outcomes))]
        if not found.is_whole:
            return Life(ends, f"the newest {found.looked_at:,} outcomes were looked at; older ones are left out")
        return Life(ends, "" if ends else "the topic of outcomes knows of none that has ended")

    def schedule(self, served: ServedTopic, form: Mapping[str, str]) -> Response:
        """Write a record, and go back to the DelayTopic."""
        given = {name: form[name] for name in ("deliverAfter", "deliverAt", "id", "key") if form.get(name)}
        record = NewRecord.model_validate({**given, "value": form.get("value", "")}).to_record()
        self._gateway.schedule(served, record)
        return _back(served, "scheduled")

    def cancel(self, served: ServedTopic, form: Mapping[str, str]) -> Response:
        """Cancel a record, and go back to the DelayTopic."""
        self._gateway.cancel(served, self._at(served, form))
        return _back(served, "cancelled")

    def move(self, served: ServedTopic, form: Mapping[str, str]) -> Response:
        """Move a record, and go back to the DelayTopic."""
        given = {name: form[name] for name in ("deliverAfter", "deliverAt") if form.get(name)}
        if not given and not form.get("now"):
            raise InputError("say when the record is due: after how long, or at which time")
        time = NewTime.model_validate({} if form.get("now") else given)
        self._gateway.move(served, self._at(served, form), time.due_ms(self._gateway.now_ms()))
        return _back(served, "moved")

    def _at(self, served: ServedTopic, given: Mapping[str, str]) -> PendingRecord:
        parts = given.get("place", "").split(":")
        if len(parts) != len(("due", "partition", "offset")) or not all(is_number(part) for part in parts):
            raise InputError("place: it is due time, partition and offset, such as 1795269686270:3:17")
        due_ms, partition, offset = map(int, parts)
        return self._gateway.record_at(served, due_ms, partition, offset)

    def time_ms(self, name: str, text: str) -> int:
        """Return the time that a field of a search names. Raises `InputError`."""
        if text == "now":
            return self._gateway.now_ms()
        if text[-1:] in ("s", "m", "h"):
            return self._gateway.now_ms() + duration(text).ms
        return time_ms(name, text)


def path_of(served: ServedTopic) -> str:
    """Return the address of a DelayTopic's page, relative to that of the request."""
    return link(f"delaytopics/{quote(served.namespace, safe='')}/{quote(served.name, safe='')}")


def _partition(query: Mapping[str, str]) -> int | None:
    text = query.get("partition")
    if not text:
        return None
    if not is_number(text):
        raise InputError("partition: it is a number, such as 3")
    return int(text)


def _rule_of(record: PendingRecord) -> Explained | None:
    """Return the rule of a record that recurs, and its next occurrences."""
    if record.content is None:
        return None
    headers = [(each.name, content_bytes(each.value, each.value_base64)) for each in record.content.headers]
    return waiting(headers, record.due_ms)


def _value_of(record: PendingRecord) -> bytes | None:
    content = record.content
    return None if content is None else content_bytes(content.value, content.value_base64)


def _back(served: ServedTopic, said: str) -> Response:
    return RedirectResponse(f"{path_of(served)}?said={said}", 303)


def is_number(text: str) -> bool:
    """Tell whether it is a whole number of a size that Kafka knows."""
    return text.isascii() and text.isdigit() and len(text) < 20


def console_router(console: Console, gateway: Gateway) -> APIRouter:
    """Return the routes of the pages."""
    router = APIRouter(include_in_schema=False)
    actions = {"schedule": console.schedule, "cancel": console.cancel, "move": console.move}

    @router.get("/")
    def home() -> Response:
        return console.home()

    @router.get("/console.css")
    def style() -> Response:
        return console.style()

    @router.get("/delaytopics/{namespace}/{name}")
    def delay_topic(namespace: str, name: str, request: Request) -> Response:
        return console.delay_topic(gateway.served(namespace, name), request.query_params)

    @router.get("/delaytopics/{namespace}/{name}/record")
    def record(namespace: str, name: str, request: Request) -> Response:
        return console.record(gateway.served(namespace, name), request.query_params)

    @router.post("/delaytopics/{namespace}/{name}/{action}")
    async def act(namespace: str, name: str, action: str, request: Request) -> Response:
        form = await form_of(request)
        served = await run_in_threadpool(gateway.served, namespace, name, Right.WRITE)
        if action not in actions:
            raise InputError(f"there is no {action} here")
        return await run_in_threadpool(actions[action], served, form)

    return router


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form. Raises `InputError`."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/x-www-form-urlencoded":
        raise InputError("a form is sent as application/x-www-form-urlencoded")
    body = await request.body()
    try:
        # Megabytes of it take their time.
        return dict(await run_in_threadpool(parse_qsl, body.decode("utf-8", "replace"), True, max_num_fields=64))
    except ValueError as error:
        raise InputError("a form has at most 64 fields") from error
