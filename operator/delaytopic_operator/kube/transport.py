"""Edge: requests to the API server over kept connections, with a deadline each, counted; answers as plain documents.

Not `kubernetes.client.ApiClient`: that one turns documents into thousands of model classes and back. Its login and its
connection pool are in use, through `ClusterLogin`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, Final
from urllib.parse import urlencode

import urllib3
from urllib3.exceptions import HTTPError, NewConnectionError, SSLError
from urllib3.exceptions import TimeoutError as DeadlineExceeded

from delaytopic_operator.clock import epoch_ms
from delaytopic_operator.errors import ApiServerUnavailable, OperatorError
from delaytopic_operator.kube.errors import Call, refusal
from delaytopic_operator.kube.login import ClusterLogin

Document = dict[str, Any]

JSON: Final = "application/json"
APPLY: Final = "application/apply-patch+yaml"
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"

CONNECT_SECONDS: Final = 5.0
_ESCAPED: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_METHODS: Final = {"get": "GET", "list": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
# A kept connection may have been closed by the other side meanwhile: what only reads is sent once more.
_RETRIES: Final = urllib3.Retry(
    total=2, connect=1, read=1, redirect=0, status=0, other=0, allowed_methods={"GET"}, raise_on_status=False
)

RequestObserver = Callable[[Call, str, float], None]
"""Told of each request, its outcome (the HTTP status, or `unreachable`) and its seconds."""


class KubeTransport:
    """Sends requests; thread-safe."""

    def __init__(self, login: ClusterLogin, observe: RequestObserver, at_once: int = 16) -> None:
        """`at_once` connections are kept; further ones are made and closed as needed."""
        self._login = login
        self._observe = observe
        self._connections = login.connections(at_once)
        self.answered_ms = epoch_ms()
        """The time of the API server's last answer, whatever it said; at first, when this began (epoch ms)."""

    def send(
        self,
        call: Call,
        deadline_s: float,
        *,
        query: Mapping[str, str | int | None] | None = None,
        body: object = None,
        content_type: str = JSON,
    ) -> Document:
        """The document that the API server answers with; raises `OperatorError`."""
        started = monotonic()
        outcome = "unreachable"
        try:
            response = self._request(call, deadline_s, query or {}, body, content_type)
            outcome = str(response.status)
            self.answered_ms = epoch_ms()
        except HTTPError as error:
            raise self._unreachable(call, deadline_s, error) from error
        finally:
            self._observe(call, outcome, monotonic() - started)
        if response.status >= 300:
            raise refusal(call, response.status, response.headers, response.data)
        return _document(call, response.data)

    def serves(self, path: str, deadline_s: float) -> bool:
        """Return whether there is something at a path of the API's own directory, such as `/apis/apps/v1`."""
        try:
            headers = self._login.headers()
            timeout = urllib3.Timeout(connect=CONNECT_SECONDS, total=deadline_s)
            url = self._login.server + path
            response = self._connections.request("GET", url, headers=headers, timeout=timeout, retries=_RETRIES)
        except HTTPError as error:
            raise ApiServerUnavailable(f"cannot reach the API server at {self._login.server}: {error}") from error
        if response.status not in {200, 404}:
            raise ApiServerUnavailable(f"the API server answered {response.status} for {path}")
        return response.status == 200

    def close(self) -> None:
        """Close the kept connections."""
        self._connections.clear()

    def _request(
        self, call: Call, deadline_s: float, query: Mapping[str, str | int | None], body: object, content_type: str
    ) -> urllib3.BaseHTTPResponse:
        path = call.kind.path(call.namespace, call.name, call.subresource)
        text = urlencode({name: value for name, value in query.items() if value is not None})
        return self._connections.request(
            _METHODS[call.verb],
            f"{self._login.server}{path}{'?' if text else ''}{text}",
            body=None if body is None else _encoded(body),
            headers=self._login.headers() | {"content-type": content_type, "accept": JSON},
            timeout=urllib3.Timeout(connect=min(CONNECT_SECONDS, deadline_s), total=deadline_s),
            retries=_RETRIES,
        )

    def _unreachable(self, call: Call, deadline_s: float, error: HTTPError) -> OperatorError:
        cause = getattr(error, "reason", None) or error
        if isinstance(cause, SSLError):
            hint = "; the certificate authority of the login does not fit this API server"
        elif isinstance(cause, DeadlineExceeded) and not isinstance(cause, NewConnectionError):
            return ApiServerUnavailable(f"{call}: the API server did not answer within {deadline_s:g} s")
        else:
            hint = ""
        return ApiServerUnavailable(f"{call}: cannot reach the API server at {self._login.server}: {cause}{hint}")


def _encoded(body: object) -> bytes:
    """Return a body as JSON that is YAML, too: a server-side apply is read as YAML.

    YAML has no surrogate pairs, which JSON in ASCII writes characters with that lie beyond the first 65,536: those go
    as they are. And it takes no unprintable characters as they are, nor keeps all line ends: those are escaped.
    """
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def _document(call: Call, data: bytes) -> Document:
    try:
        document = json.loads(data)
    except ValueError as error:
        raise ApiServerUnavailable(f"{call}: the answer is no JSON: is there a proxy before the API server?") from error
    if not isinstance(document, dict):
        raise ApiServerUnavailable(f"{call}: the answer is no object: is there a proxy before the API server?")
    return document
