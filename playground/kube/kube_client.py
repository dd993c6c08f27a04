"""Requests to an API server by their paths, with documents as plain dicts, through the client of `kubernetes`."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

from kubernetes import config as kubernetes_config
from kubernetes.client import ApiClient, Configuration
from urllib3 import HTTPResponse
from urllib3.exceptions import HTTPError

Object = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
ANSWER_SECONDS = 30.0
_load: Any = kubernetes_config
"""The module, which has no types of its own."""


class RequestRefused(Exception):
    """The API server's answer to a request that it did not serve; `reason` is a word such as NotFound."""

    def __init__(self, status: int, answer: Object) -> None:
        self.status = status
        self.reason = str(answer.get("reason", ""))
        self.message = str(answer.get("message", ""))
        super().__init__(f"{status} {self.reason}: {self.message}")


class Change(NamedTuple):
    """One line of a watch."""

    type: str
    object: Object


class Watch:
    """The changes of a collection, one after the other, until the server's time is over or `close` is called.

    Not `kubernetes.watch.Watch`, which forgets a stop that comes before its stream.
    """

    def __init__(self, response: HTTPResponse) -> None:
        self._response = response
        connection: Any = response.connection  # None only of a response that was read
        self._connection = connection.sock
        self._closed = False

    def __iter__(self) -> Iterator[Change]:
        """Raises RequestRefused (410) when the version asked for is too long ago, HTTPError when the server goes."""
        with self._response:
            for line in self._lines():
                if not line.endswith(b"\n"):
                    return  # the server was killed while it wrote
                change = json.loads(line)
                if change["type"] == "ERROR":
                    raise RequestRefused(change["object"].get("code", 0), change["object"])
                yield Change(change["type"], change["object"])

    def close(self) -> None:
        """End it, from any thread."""
        self._closed = True
        with suppress(OSError):  # it has ended by itself
            # Below TLS: an SSLSocket's own would have who reads take what is still encrypted as it comes.
            socket.socket.shutdown(self._connection, socket.SHUT_RDWR)

    def _lines(self) -> Iterator[bytes]:
        try:
            yield from self._response
        except HTTPError:
            if not self._closed:
                raise


class KubeClient:
    """Requests as one user. Safe in several threads; nothing is tried again.

    Every method raises RequestRefused, and urllib3's HTTPError while the server is away.
    """

    def __init__(self, kubeconfig: Path, *, agent: str = "tests") -> None:
        """`agent` is the user agent, by which the audit log tells clients of one user apart."""
        configuration = Configuration()
        _load.load_kube_config(str(kubeconfig), client_configuration=configuration, persist_config=False)
        configuration.retries = 0
        self._client = ApiClient(configuration)
        self._client.user_agent = agent

    def get(self, path: str, **query: str) -> Object:
        """An object, or a list of them, such as `/api/v1/namespaces/shop/pods`."""
        return self.request("GET", path, query=query)

    def create(self, path: str, body: Object, **query: str) -> Object:
        """A new object in a collection; `query` is such as dryRun="All", fieldValidation="Strict"."""
        return self.request("POST", path, body, query=query)

    def replace(self, path: str, body: Object, **query: str) -> Object:
        """The whole object, which must have the resourceVersion that was read."""
        return self.request("PUT", path, body, query=query)

    def merge(self, path: str, body: Object) -> Object:
        """Change some fields (a JSON merge patch)."""
        return self.request("PATCH", path, body, content_type=MERGE_PATCH)

    def apply(self, path: str, body: Object, *, manager: str = "tests") -> Object:
        """Server-side apply, taking over fields of others."""
        query = {"fieldManager": manager, "force": "true"}
        return self.request("PATCH", path, body, content_type=APPLY_PATCH, query=query)

    def delete(self, path: str, **options: Any) -> Object:
        """`options` are those of DeleteOptions, such as gracePeriodSeconds=0."""
        return self.request("DELETE", path, options or None)

    def find(self, path: str) -> Object | None:
        """The object, or None when there is none."""
        try:
            return self.get(path)
        except RequestRefused as refused:
            if refused.status != HTTPStatus.NOT_FOUND:
                raise
            return None

    def request(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        *,
        content_type: str = "application/json",
        query: dict[str, str] | None = None,
    ) -> Object:
        """Any request that is answered with JSON."""
        return dict(json.loads(self._send(method, path, body, content_type, query).data or b"{}"))

    def text(self, path: str) -> str:
        """A page that is not JSON, such as `/metrics`."""
        return self._send("GET", path).data.decode()

    def watch(self, path: str, resource_version: str, *, seconds: int, **query: str) -> Watch:
        """Return what changes after a version, for some seconds."""
        asked = {"watch": "true", "resourceVersion": resource_version, "timeoutSeconds": str(seconds), **query}
        return Watch(self._send("GET", path, query=asked, seconds=seconds + ANSWER_SECONDS))

    def _send(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        content_type: str = "application/json",
        query: dict[str, str] | None = None,
        seconds: float = ANSWER_SECONDS,
    ) -> HTTPResponse:
        """Return the answer, of which nothing has been read yet."""
        request = self._client.param_serialize(
            method,
            path,
            query_params=list((query or {}).items()),
            header_params={"Content-Type": content_type} if body is not None else {},
            body=body,
            auth_settings=["BearerToken"],
        )
        response: HTTPResponse = self._client.call_api(*request, _request_timeout=seconds).response
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise RequestRefused(response.status, _answer(response.data))
        return response


def _answer(content: bytes) -> Object:
    try:
        return dict(json.loads(content))
    except ValueError:
        return {"message": content.decode(errors="replace")}
