"""Edge: a client of the gateway's REST."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote, urlencode

from delaytopic_api.relay import PendingRecord
from delaytopic_cli.client.relay_listing import opener_for, printable_line
from delaytopic_cli.errors import (
    CliError,
    ConflictError,
    ForbiddenError,
    GatewayUnreachableError,
    InputError,
    RecordMissingError,
    TopicError,
    UnauthenticatedError,
)

TIMEOUT_SECONDS = 30.0
_ERRORS: dict[int, type[CliError]] = {
    400: InputError,
    401: UnauthenticatedError,
    403: ForbiddenError,
    404: RecordMissingError,
    409: ConflictError,
    502: TopicError,
}


class GatewayClient:
    """Asks one gateway about its DelayTopics."""

    def __init__(self, url: str, token: str | None = None) -> None:
        """`url` is the address that `delaytopic local` prints; a gateway of a cluster takes a token of the cluster."""
        self._url = (url if "://" in url else f"http://{url}").rstrip("/")
        credential = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._headers = {"Content-Type": "application/json", **credential}

    def path_of(self, topic: str) -> str:
        """Return the path of a DelayTopic by its source topic, or its name with or without the namespace.

        Raises InputError for none or several.
        """
        all_topics = self._ask("GET", "/v1/delaytopics")
        found = [each for each in all_topics if topic in _names(each)]
        if len(found) != 1:
            known = ", ".join(f"{each['namespace']}/{each['name']}" for each in found or all_topics) or "none"
            why = "is the name of several DelayTopics here" if found else "is no DelayTopic here; there are"
            raise InputError(f"{topic} {why}: {known}")
        return f"/v1/delaytopics/{quote(found[0]['namespace'], safe='')}/{quote(found[0]['name'], safe='')}/records"

    def record(self, topic: str, name: str, partition: int | None) -> PendingRecord:
        """Return the pending record with an id. Raises RecordMissingError and ConflictError."""
        return PendingRecord.model_validate(self._ask("GET", self._place(topic, name, partition)))

    def move(self, topic: str, name: str, partition: int | None, time: dict[str, Any]) -> dict[str, Any]:
        """Move the pending record with an id; returns where the move is, and when the record is due."""
        answer: dict[str, Any] = self._ask("PATCH", self._place(topic, name, partition), time)
        return answer

    def _place(self, topic: str, name: str, partition: int | None) -> str:
        query = "" if partition is None else f"?{urlencode({'partition': partition})}"
        return f"{self.path_of(topic)}/{quote(name, safe='')}{query}"

    def _ask(self, method: str, path: str, document: Any = None) -> Any:
        body = None if document is None else json.dumps(document).encode()
        try:
            request = urllib.request.Request(self._url + path, body, self._headers, method=method)
            with opener_for(self._url).open(request, timeout=TIMEOUT_SECONDS) as answer:
                return json.load(answer)
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


def _names(document: dict[str, Any]) -> tuple[str, ...]:
    return document["source"], f"{document['namespace']}/{document['name']}", document["name"]


def _error_of(status: int, body: bytes) -> CliError:
    try:
        message = str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        message = f"the gateway answered {status}"
    kind = _ERRORS.get(status, GatewayUnreachableError)
    return kind(printable_line(message))
