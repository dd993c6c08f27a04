"""Callers, and their rights to read and write. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from enum import Enum
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from urllib.parse import urlsplit

from delaytopic_gateway.errors import ForbiddenError

if TYPE_CHECKING:
    # Commands that ask for no server's pages are installed without what serves them.
    from starlette.datastructures import Headers

PROBES: Final = frozenset({"/healthz", "/readyz"})
"""Pages that say nothing of records."""
GROUP: Final = "delaytopic.dev"


class Right(Enum):
    """A right to a DelayTopic, as the verb and the resource that RBAC knows."""

    READ = ("get", "delaytopics", "")
    WRITE = ("update", "delaytopics", "records")

    @property
    def verb(self) -> str:
        """The verb."""
        return self.value[0]

    @property
    def resource(self) -> str:
        """The resource."""
        return self.value[1]

    @property
    def subresource(self) -> str:
        """Its part; empty for the whole."""
        return self.value[2]

    def missing(self, namespace: str) -> str:
        """Return the words on who has it not."""
        resource = "/".join(filter(None, (self.resource, self.subresource)))
        return f"this needs {self.verb} on {resource} of {GROUP} in namespace {namespace}"


class Caller(NamedTuple):
    """Somebody who asks, as a SubjectAccessReview names him."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


ANYBODY: Final = Caller("")
"""The caller at a machine where everybody may do everything."""
CALLER: ContextVar[Caller] = ContextVar("caller")
"""The caller of the request that is being answered, also in the thread that does it."""


class Access(Protocol):
    """The rules by which a gateway lets somebody in."""

    def admits(self, client: str, host: str) -> str | None:
        """Return why a request from this address to this host name is refused; None if it is not."""
        ...

    def open_pages(self) -> frozenset[str]:
        """Return the paths that anybody may read, by any name."""
        ...

    def remembered(self, client: str, headers: Headers) -> Caller | None:
        """Return who asks, if it is known at once; None if it has to be asked for.

        Raises `UnauthenticatedError` and `ForbiddenError`.
        """
        ...

    def caller(self, client: str, headers: Headers) -> Caller:
        """Return who asks.

        Raises `UnauthenticatedError`, `ForbiddenError` and `ApiServerUnreachableError`. May take its time.
        """
        ...

    def allowed(self, caller: Caller, right: Right, places: Sequence[tuple[str, str]]) -> list[bool]:
        """Tell for DelayTopics, each by namespace and name, whether the caller has the right.

        Raises `ApiServerUnreachableError`.
        """
        ...


class LoopbackAccess:
    """Everybody on this machine may do everything, and nobody else anything."""

    def admits(self, client: str, host: str) -> str | None:
        """See `Access.admits`.

        A name that only leads to this machine is refused: pages of other sites could reach it by a name of theirs.
        """
        if not _is_loopback(client):
            return "this gateway answers to clients on its own machine"
        if not _is_loopback(host_name(host)):
            return "this gateway is asked as localhost or 127.0.0.1"
        return None

    def open_pages(self) -> frozenset[str]:
        """See `Access.open_pages`."""
        return frozenset()

    def remembered(self, client: str, headers: Headers) -> Caller | None:
        """See `Access.remembered`."""
        return ANYBODY

    def caller(self, client: str, headers: Headers) -> Caller:
        """See `Access.caller`."""
        return ANYBODY

    def allowed(self, caller: Caller, right: Right, places: Sequence[tuple[str, str]]) -> list[bool]:
        """See `Access.allowed`."""
        return [True] * len(places)


class Rights:
    """The rights of the caller of the request that is being answered."""

    def __init__(self, access: Access) -> None:
        """Asks `access` each time."""
        self._access = access

    def allowed(self, right: Right, places: Sequence[tuple[str, str]]) -> list[bool]:
        """See `Access.allowed`."""
        return self._access.allowed(CALLER.get(), right, places)


def demand(writable: bool, namespace: str) -> None:
    """Raise `ForbiddenError` for who may not write."""
    if not writable:
        raise ForbiddenError(Right.WRITE.missing(namespace))


def host_name(host: str) -> str:
    """Return the name in a Host header, without the port; empty for none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
