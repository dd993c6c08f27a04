"""Edge: DelayTopics of a gateway, by its REST."""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeVar
from urllib.parse import quote, urlencode

from delaytopic_api.documents.model import Model
from delaytopic_api.relay import Outcome, PendingRecord
from delaytopic_gateway.client.dead_letters import Place
from delaytopic_gateway.client.relay_listing import opener_for, printable_line
from delaytopic_gateway.dead_letters.documents import (
    DeadLetterDocument,
    DeadLetterPage,
    DeadLetterSelection,
    Resend,
    ResendResult,
)
from delaytopic_gateway.documents import Accepted, NewRecord, NewTime, OutcomePage, RecordPage, RecordSelection
from delaytopic_gateway.errors import (
    ConflictError,
    ForbiddenError,
    GatewayUnreachableError,
    RecordMissingError,
    TopicError,
    UnauthenticatedError,
)
from delaytopic_gateway.reach.cancelling import COUNT_SECONDS, Ends, Found
from delaytopic_process.errors import InputError, ProgramError

TIMEOUT_SECONDS = 30.0
WAIT_SECONDS: Final = 10.0
"""The longest time of one question for an outcome."""
_WARNING: Final = re.compile(r'199 \S+ "(.*)"')
_PLACE: Final = re.compile(r"^/v1/[^?]*/outcomes/([0-9]+):([0-9]+)\?")
_OF_A_JOB: Final = frozenset(
    {
        *("id", "action", "deliverAt", "moveByMs", "selector", "state", "message", "createdBy", "createdMs"),
        *("endedMs", "expected", "matched", "written", "skipped", "doneUpToMs", "notes"),
    }
)
_ERRORS: dict[int, type[ProgramError]] = {
    400: InputError,
    401: UnauthenticatedError,
    403: ForbiddenError,
    404: RecordMissingError,
    409: ConflictError,
    502: TopicError,
}


class GatewayClient:
    """Asks one gateway about its DelayTopics."""

    def __init__(self, url: str, token: str | None = None, *, warn: Callable[[str], None] = lambda _: None) -> None:
        """`url` is the address that `delaytopic local` prints; a gateway of a cluster takes a token of the cluster.

        `warn` gets what an answer says is left out of it.
        """
        self._url = (url if "://" in url else f"http://{url}").rstrip("/")
        credential = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._headers = {"Content-Type": "application/json", **credential}
        self._warn = warn

    def topic(self, topic: str) -> GatewayTopic:
        """Return a DelayTopic by its source or dead-letter topic, or its name with or without the namespace.

        Raises InputError for none or several.
        """
        all_topics = self.ask("GET", "/v1/delaytopics")
        found = [each for each in all_topics if topic in _names(each)]
        if len(found) != 1:
            known = ", ".join(f"{each['namespace']}/{each['name']}" for each in found or all_topics) or "none"
            why = "is the name of several DelayTopics here" if found else "is no DelayTopic here; there are"
            raise InputError(f"{topic} {why}: {known}")
        return GatewayTopic(self, found[0]["namespace"], found[0]["name"])

    def ask(self, method: str, path: str, document: Any = None) -> Any:
        """Return the answer's document. Raises the `ProgramError` that its status stands for."""
        body = None if document is None else json.dumps(document).encode()
        try:
            request = urllib.request.Request(self._url + path, body, self._headers, method=method)
            with opener_for(self._url).open(request, timeout=TIMEOUT_SECONDS) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise _error_of(error.code, error.read(10_000)) from error
        except (OSError, http.client.HTTPException) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            raise GatewayUnreachableError(
                f"no gateway answers at {self._url}: {printable_line(str(reason)) or type(reason).__name__}"
            ) from error
        except ValueError as error:
            raise GatewayUnreachableError(f"{self._url} is no gateway's address: {error}") from error
        warning = _WARNING.fullmatch(answer.headers.get("Warning", ""))
        if warning is not None:
            self._warn(printable_line(warning[1]))
        return found


@dataclass(frozen=True, slots=True)
class GatewayTopic:
    """The `TopicService` of a gateway, which writes where it finds an id, and nowhere else."""

    client: GatewayClient
    namespace: str
    name: str
    asks_relays: ClassVar = True
    everywhere: ClassVar = False
    _addresses: dict[tuple[int, int], str] = field(default_factory=dict, compare=False)
    """The addresses that tell the ends of schedules, as answers to their cancels have named them."""

    def facts(self) -> dict[str, Any]:
        """Return the gateway's document of it. Raises RecordMissingError where it serves none of this name."""
        found: dict[str, Any] = self.client.ask("GET", self._base)
        return found

    def pending(self, selection: RecordSelection) -> RecordPage:
        """See `TopicService.pending`."""
        query = urlencode(selection.to_document())
        return _parsed(RecordPage, self.client.ask("GET", f"{self._base}/records?{query}"))

    def record(self, name: str, partition: int | None) -> PendingRecord:
        """See `TopicService.record`."""
        return _parsed(PendingRecord, self.client.ask("GET", self._place(name, partition)))

    def move(self, name: str, partition: int | None, time: NewTime) -> Accepted:
        """See `TopicService.move`."""
        return _parsed(Accepted, self.client.ask("PATCH", self._place(name, partition), time.to_document()))

    def schedule(self, record: NewRecord) -> Accepted:
        """Write a new record. Raises `ForbiddenError`, and `ConflictError` where no gateway writes any."""
        return _parsed(Accepted, self.client.ask("POST", f"{self._base}/records", record.to_document()))

    def dead_letters(self, selection: DeadLetterSelection) -> DeadLetterPage:
        """See `TopicService.dead_letters`."""
        query = urlencode(selection.to_document(), doseq=True)
        return _parsed(DeadLetterPage, self.client.ask("GET", f"{self._letters}?{query}"))

    def dead_letter(self, place: Place) -> DeadLetterDocument:
        """See `TopicService.dead_letter`."""
        return _parsed(DeadLetterDocument, self.client.ask("GET", f"{self._letters}/{place}"))

    def resend(self, resend: Resend) -> ResendResult:
        """See `TopicService.resend`."""
        return _parsed(ResendResult, self.client.ask("POST", f"{self._letters}/resend", resend.to_document()))

    def find(self, name: str) -> Found:
        """See `Relays.find`."""
        page = self.pending(RecordSelection(id=name))
        return Found(page.records, page.complete)

    def have_read(self, ends: Ends, seconds: float) -> bool:
        """See `Relays.have_read`. Offsets are not to be had here, so that nothing at all may be unread."""
        return seconds >= COUNT_SECONDS and self.facts().get("ingestLag") == 0

    def ends(self) -> Ends:
        """See `Commands.ends`."""
        return {}

    def cancel(self, places: Mapping[str, Sequence[int] | None]) -> Mapping[str, Mapping[int, int]]:
        """See `Commands.cancel`."""
        written: dict[str, dict[int, int]] = {}
        try:
            for name, partitions in places.items():
                written[name] = {}
                for partition in partitions or ():
                    with suppress(RecordMissingError):
                        answer = self.client.ask("DELETE", self._place(name, partition))
                        accepted = _parsed(Accepted, answer)
                        written[name][partition] = accepted.offset
                        self._note(accepted)
        except ProgramError as error:
            done = sum(bool(offsets) for offsets in written.values())
            raise type(error)(f"{error}; {done:,} cancels were written before" if done else str(error)) from error
        return written

    def outcome(self, partition: int, offset: int, seconds: float) -> Outcome | None:
        """See `Commands.outcome`."""
        until_s = time.monotonic() + seconds
        address = self._addresses.get((partition, offset))
        while address is not None:
            left_s = max(0.0, min(until_s - time.monotonic(), WAIT_SECONDS))
            found = self.client.ask("GET", f"{address}&{urlencode({'wait': f'{left_s * 1_000:.0f}ms'})}")
            if found.get("outcome") is not None:
                return _parsed(Outcome, found)
            address = found.get("next") if time.monotonic() < until_s else None
        return None

    def endings(self, name: str, partition: int | None) -> OutcomePage:
        """See `TopicService.endings`."""
        query = {"id": name} | ({} if partition is None else {"partition": partition})
        return _parsed(OutcomePage, self.client.ask("GET", f"{self._base}/outcomes?{urlencode(query)}"))

    def _note(self, accepted: Accepted) -> None:
        place = _PLACE.search(accepted.outcome or "")
        if place is not None and accepted.outcome is not None:
            self._addresses[int(place[1]), int(place[2])] = accepted.outcome

    def jobs(self) -> list[dict[str, Any]]:
        """Return the jobs, the last one first."""
        return _read(lambda found: [_job(each) for each in found], self.client.ask("GET", self._jobs))

    def job(self, name: str) -> dict[str, Any]:
        """Return a job. Raises RecordMissingError."""
        return _read(_job, self.client.ask("GET", self._job(name)))

    def count_job(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return how many records a job would mean now: `matched`, and whether that is `complete`."""
        found: dict[str, Any] = self.client.ask("POST", self._jobs, {**document, "dryRun": True})
        return found

    def start_job(self, document: dict[str, Any]) -> dict[str, Any]:
        """Start a job, or return the one that was started by the same id. Raises ConflictError."""
        return _read(_job, self.client.ask("POST", self._jobs, document))

    def stop_job(self, name: str) -> dict[str, Any]:
        """Stop a job. Raises RecordMissingError, and ConflictError for one that is over."""
        return _read(_job, self.client.ask("DELETE", self._job(name)))

    @property
    def _jobs(self) -> str:
        return f"{self._base}/jobs"

    def _job(self, name: str) -> str:
        return f"{self._jobs}/{quote(name, safe='')}"

    @property
    def _letters(self) -> str:
        return f"{self._base}/dead-letters"

    @property
    def _base(self) -> str:
        return f"/v1/delaytopics/{quote(self.namespace, safe='')}/{quote(self.name, safe='')}"

    def _place(self, name: str, partition: int | None) -> str:
        query = "" if partition is None else f"?{urlencode({'partition': partition})}"
        return f"{self._base}/records/{quote(name, safe='')}{query}"


T = TypeVar("T")
M = TypeVar("M", bound=Model)


def _parsed(model: type[M], document: Any) -> M:
    # The gateway may be newer.
    return _read(lambda found: model.model_validate(found, extra="ignore"), document)


def _read(read: Callable[[Any], T], document: Any) -> T:
    try:
        return read(document)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise GatewayUnreachableError(f"the gateway's answer is not the one that was asked for: {error}") from error


def _job(document: Any) -> dict[str, Any]:
    if not document.keys() >= _OF_A_JOB:
        raise ValueError(f"a job without {', '.join(sorted(_OF_A_JOB - document.keys()))}")
    return dict(document)


def _names(document: dict[str, Any]) -> tuple[str, ...]:
    names = document["source"], document["deadLetter"], document["name"]
    return *names, f"{document['namespace']}/{document['name']}"


def _error_of(status: int, body: bytes) -> ProgramError:
    try:
        message = str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        message = f"the gateway answered {status}"
    kind = _ERRORS.get(status, GatewayUnreachableError)
    return kind(printable_line(message))
