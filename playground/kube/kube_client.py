"""Plain REST with the API server, for the tests' own needs: no discovery, no models, no retries."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from playground.kube.certificates import KeyPair

Object = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
ANSWER_SECONDS = 30.0


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
    """The changes of a collection, one after the other, until the server's time is over or `close` is called."""

    def __init__(self, response: http.client.HTTPResponse, connection: socket.socket) -> None:
        self._response = response
        self._connection = connection
        self._closed = False

    def __iter__(self) -> Iterator[Change]:
        """Raises RequestRefused (410) when the version asked for is too long ago, OSError when the server goes."""
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
        except (OSError, ValueError, http.client.HTTPException):
            if not self._closed:
                raise


class KubeClient:
    """Requests as one user. Safe in several threads: each request has its own connection.

    Every method raises RequestRefused, and OSError or http.client.HTTPException while the server is away.
    """

    def __init__(self, url: str, context: ssl.SSLContext, *, token: str | None = None, agent: str = "tests") -> None:
        """`agent` is the user agent, by which the audit log tells clients of one user apart."""
        self._server = urlsplit(url)
        self._context = context
        self._headers = {"User-Agent": agent} | ({"Authorization": f"Bearer {token}"} if token else {})

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
            if refused.status != http.client.NOT_FOUND:
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
        response, _ = self._send(method, path, body, content_type, query or {}, ANSWER_SECONDS)
        with response:
            return dict(json.loads(response.read() or b"{}"))

    def text(self, path: str) -> str:
        """A page that is not JSON, such as `/metrics`."""
        response, _ = self._send("GET", path, None, "", {}, ANSWER_SECONDS)
        with response:
            return response.read().decode()

    def watch(self, path: str, resource_version: str, *, seconds: int, **query: str) -> Watch:
        """Return what changes after a version, for some seconds."""
        asked = {"watch": "true", "resourceVersion": resource_version, "timeoutSeconds": str(seconds), **query}
        return Watch(*self._send("GET", path, None, "", asked, seconds + ANSWER_SECONDS))

    def _send(
        self, method: str, path: str, body: Object | None, content_type: str, query: dict[str, str], timeout: float
    ) -> tuple[http.client.HTTPResponse, socket.socket]:
        host, port = str(self._server.hostname), self._server.port
        connection = http.client.HTTPSConnection(host, port, context=self._context, timeout=timeout)
        content = None if body is None else json.dumps(body)
        headers = self._headers | ({"Content-Type": content_type} if body is not None else {})
        # The response keeps the socket open, and closing the response closes it.
        connection.request(method, f"{path}?{urlencode(query)}", content, headers | {"Connection": "close"})
        channel = connection.sock
        response = connection.getresponse()
        if response.status >= http.client.BAD_REQUEST:
            with response:
                raise RequestRefused(response.status, _answer(response.read()))
        return response, channel


def client_context(authority: str, pair: KeyPair | None = None) -> ssl.SSLContext:
    """TLS that trusts an authority (a file), and shows a certificate if there is one."""
    context = ssl.create_default_context(cafile=authority)
    if pair is not None:
        context.load_cert_chain(pair.certificate, pair.key)
    return context


def _answer(content: bytes) -> Object:
    try:
        return dict(json.loads(content))
    except ValueError:
        return {"message": content.decode(errors="replace")}
