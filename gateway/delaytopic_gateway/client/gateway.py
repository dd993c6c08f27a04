"""Edge: a client of the gateway's REST."""

from __future__ import annotations

import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

from delaytopic_api.relay import PendingRecord
from delaytopic_gateway.client.relay_listing import opener_for, printable_line
from delaytopic_gateway.errors import (
    ConflictError,
    ForbiddenError,
    GatewayUnreachableError,
    RecordMissingError,
    TopicError,
    UnauthenticatedError,
)
from delaytopic_process.errors import InputError, ProgramError

TIMEOUT_SECONDS = 30.0
_WARNING: Final = re.compile(r'199 \S+ "(.*)"')
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
        """Return a DelayTopic by its source topic, or its name with or without the namespace.

        Raises InputError for none or several.
        """
        all_topics = self.ask("GET", "/v1/delaytopics")
        found = [each for each in all_topics if topic in _names(each)]
        if len(found) != 1:
            known = ", ".join(f"{each['namespace']}/{each['name']}" for each in found or all_topics) or "none"
            why = "is the name of several DelayTopics here" if found else "is no DelayTopic here; there are"
            raise InputError(f"{topic} {why}: {known}")
        return GatewayTopic(self, found[0]["namespace"], found[0]["name"], found[0]["source"])

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


class WrittenCommand(NamedTuple):
    """The place of a command in the source topic, and when its record is due; None for a cancel."""

    partition: int
    offset: int
    due_ms: int | None

    def to_json(self) -> dict[str, int | None]:
        """Return the gateway's own document."""
        return {"partition": self.partition, "offset": self.offset, "dueMs": self.due_ms}


@dataclass(frozen=True, slots=True)
class GatewayTopic:
    """One DelayTopic of a gateway."""

    client: GatewayClient
    namespace: str
    name: str
    source: str = ""
    """Its source topic, where the gateway was asked for it."""

    def facts(self) -> dict[str, Any]:
        """Return the gateway's document of it. Raises RecordMissingError where it serves none of this name."""
        found: dict[str, Any] = self.client.ask("GET", self._base)
        return found

    def record(self, name: str, partition: int | None) -> PendingRecord:
        """Return the pending record with an id. Raises RecordMissingError and ConflictError."""
        return _parsed(PendingRecord.model_validate, self.client.ask("GET", self._place(name, partition)))

    def records(self, name: str) -> tuple[list[PendingRecord], bool]:
        """Return the pending records with an id, of all partitions, and whether these are all."""
        page = self.client.ask("GET", f"{self._base}/records?{urlencode({'id': name})}")
        return _parsed(
            lambda found: ([PendingRecord.model_validate(each) for each in found["records"]], bool(found["complete"])),
            page,
        )

    def move(self, name: str, partition: int | None, time: dict[str, Any]) -> WrittenCommand:
        """Move the pending record with an id."""
        return _parsed(_written, self.client.ask("PATCH", self._place(name, partition), time))

    def cancel(self, name: str, partition: int | None) -> WrittenCommand:
        """Cancel the pending record with an id."""
        return _parsed(_written, self.client.ask("DELETE", self._place(name, partition)))

    def dead_letters(self, reasons: Sequence[str], limit: int, after: str | None) -> dict[str, Any]:
        """Return the gateway's page of dead letters, the newest first, or those behind a page's `next`."""
        query = [*(("reason", each) for each in reasons), ("limit", limit), *([("after", after)] if after else [])]
        found: dict[str, Any] = self.client.ask("GET", f"{self._base}/dead-letters?{urlencode(query)}")
        return found

    def resend(self, document: dict[str, Any]) -> dict[str, Any]:
        """Send dead letters again, as the gateway's document asks for; return what was sent."""
        found: dict[str, Any] = self.client.ask("POST", f"{self._base}/dead-letters/resend", document)
        return found

    def jobs(self) -> list[dict[str, Any]]:
        """Return the jobs, the last one first."""
        return _parsed(lambda found: [_job(each) for each in found], self.client.ask("GET", self._jobs))

    def job(self, name: str) -> dict[str, Any]:
        """Return a job. Raises RecordMissingError."""
        return _parsed(_job, self.client.ask("GET", self._job(name)))

    def count_job(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return how many records a job would mean now: `matched`, and whether that is `complete`."""
        found: dict[str, Any] = self.client.ask("POST", self._jobs, {**document, "dryRun": True})
        return found

    def start_job(self, document: dict[str, Any]) -> dict[str, Any]:
        """Start a job, or return the one that was started by the same id. Raises ConflictError."""
        return _parsed(_job, self.client.ask("POST", self._jobs, document))

    def stop_job(self, name: str) -> dict[str, Any]:
        """Stop a job. Raises RecordMissingError, and ConflictError for one that is over."""
        return _parsed(_job, self.client.ask("DELETE", self._job(name)))

    @property
    def _jobs(self) -> str:
        return f"{self._base}/jobs"

    def _job(self, name: str) -> str:
        return f"{self._jobs}/{quote(name, safe='')}"

    @property
    def _base(self) -> str:
        return f"/v1/delaytopics/{quote(self.namespace, safe='')}/{quote(self.name, safe='')}"

    def _place(self, name: str, partition: int | None) -> str:
        query = "" if partition is None else f"?{urlencode({'partition': partition})}"
        return f"{self._base}/records/{quote(name, safe='')}{query}"


T = TypeVar("T")


def _parsed(read: Callable[[Any], T], document: Any) -> T:
    try:
        return read(document)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise GatewayUnreachableError(f"the gateway's answer is not the one that was asked for: {error}") from error


def _written(document: Any) -> WrittenCommand:
    due_ms = document.get("dueMs")
    return WrittenCommand(int(document["partition"]), int(document["offset"]), None if due_ms is None else int(due_ms))


def _job(document: Any) -> dict[str, Any]:
    if not document.keys() >= _OF_A_JOB:
        raise ValueError(f"a job without {', '.join(sorted(_OF_A_JOB - document.keys()))}")
    return dict(document)


def _names(document: dict[str, Any]) -> tuple[str, ...]:
    return document["source"], f"{document['namespace']}/{document['name']}", document["name"]


def _error_of(status: int, body: bytes) -> ProgramError:
    try:
        message = str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        message = f"the gateway answered {status}"
    kind = _ERRORS.get(status, GatewayUnreachableError)
    return kind(printable_line(message))
