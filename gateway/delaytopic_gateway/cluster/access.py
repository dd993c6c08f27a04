"""Edge: who comes in on a cluster, and what he may do, as the API server says."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Final

from starlette.datastructures import Headers

from delaytopic_gateway.access.rights import PROBES, Caller, Right, host_name
from delaytopic_gateway.cluster.api_server import ApiServer
from delaytopic_gateway.cluster.reviews import (
    Remembered,
    TrustedProxy,
    access_review,
    bearer_token,
    is_allowed,
    reviewed_caller,
    token_key,
    token_review,
)
from delaytopic_gateway.errors import UnauthenticatedError

REMEMBERED_MS: Final = 10_000
"""The time for which a right that was taken away still holds here."""
REFUSED_MS: Final = 5_000
"""The time for which a token that was refused is refused again without a question."""
MOST_TOKENS: Final = 1_000
MOST_RIGHTS: Final = 50_000
AT_ONCE: Final = 8
_TOKENS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_RIGHTS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class ClusterAccess:
    """An `Access` for callers with tokens of Kubernetes, or behind a proxy that names them. Thread-safe."""

    def __init__(
        self,
        api: ApiServer,
        proxy: TrustedProxy | None = None,
        hosts: Sequence[str] = (),
        now_ms: Callable[[], int] = _now_ms,
    ) -> None:
        """`hosts` are the names that the gateway is asked by; none: any."""
        self._api = api
        self._proxy = proxy
        self._hosts = frozenset(host.lower() for host in hosts)
        self._now_ms = now_ms
        self._lock = Lock()
        self._tokens: Remembered[bytes, Caller] = Remembered(MOST_TOKENS, REMEMBERED_MS)
        # Of their own, so that made-up tokens push no others out.
        self._refused: Remembered[bytes, str] = Remembered(MOST_TOKENS, REFUSED_MS)
        self._rights: Remembered[tuple[Caller, Right, str, str], bool] = Remembered(MOST_RIGHTS, REMEMBERED_MS)
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="reviews")

    def admits(self, client: str, host: str) -> str | None:
        """See `Access.admits`."""
        if self._hosts and host_name(host).lower() not in self._hosts:
            return "this gateway is asked by another name (--host)"
        return None

    def open_pages(self) -> frozenset[str]:
        """See `Access.open_pages`."""
        return PROBES

    def remembered(self, client: str, headers: Headers) -> Caller | None:
        """See `Access.remembered`."""
        named = self._proxy.caller(client, headers) if self._proxy is not None else None
        if named is not None:
            return named
        key, now_ms = token_key(bearer_token(headers)), self._now_ms()
        with self._lock:
            refused, known = self._refused.get(key, now_ms), self._tokens.get(key, now_ms)
        if refused is not None:
            raise UnauthenticatedError(refused)
        return known

    def caller(self, client: str, headers: Headers) -> Caller:
        """See `Access.caller`."""
        # It may have been asked for meanwhile, by another request.
        return self.remembered(client, headers) or self._of_token(bearer_token(headers))

    def allowed(self, caller: Caller, right: Right, places: Sequence[tuple[str, str]]) -> list[bool]:
        """See `Access.allowed`."""
        return list(self._threads.map(lambda place: self._is_allowed(caller, right, *place), places))

    def _of_token(self, token: str) -> Caller:
        key, now_ms = token_key(token), self._now_ms()
        review = self._api.create(_TOKENS, token_review(token))
        try:
            caller = reviewed_caller(review)
        except UnauthenticatedError as error:
            with self._lock:
                self._refused.put(key, str(error), now_ms)
            raise
        with self._lock:
            self._tokens.put(key, caller, now_ms)
        return caller

    def _is_allowed(self, caller: Caller, right: Right, namespace: str, name: str) -> bool:
        key, now_ms = (caller, right, namespace, name), self._now_ms()
        with self._lock:
            known = self._rights.get(key, now_ms)
        if known is not None:
            return known
        found = is_allowed(self._api.create(_RIGHTS, access_review(caller, right, namespace, name)))
        with self._lock:
            self._rights.put(key, found, now_ms)
        return found
