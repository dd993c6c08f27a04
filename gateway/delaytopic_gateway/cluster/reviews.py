"""Callers and their rights: the documents of Kubernetes' reviews, and the rules for a proxy's headers. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final, Generic, TypeVar

from starlette.datastructures import Headers

from delaytopic_gateway.access.rights import GROUP, Caller, Right
from delaytopic_gateway.errors import ForbiddenError, UnauthenticatedError
from delaytopic_process.errors import InputError

Document = dict[str, Any]
K = TypeVar("K")
V = TypeVar("V")

AUTHENTICATED: Final = "system:authenticated"
"""The group that Kubernetes puts everybody into whom it knows."""
RESERVED: Final = "system:"
"""Names of users and groups that are Kubernetes' own: `system:masters` may do everything."""
MOST_GROUPS: Final = 1_000
LONGEST_TOKEN: Final = 16_384
HOW_TO_ASK: Final = "send Authorization: Bearer TOKEN, such as kubectl create token gives"


def bearer_token(headers: Headers) -> str:
    """Return the token of a request. Raises `UnauthenticatedError`."""
    given = headers.getlist("authorization")
    if not given:
        raise UnauthenticatedError(f"this gateway has to know who asks: {HOW_TO_ASK}")
    scheme, _, token = given[0].partition(" ")
    token = token.strip()
    if len(given) > 1 or scheme.lower() != "bearer" or not token or len(token) > LONGEST_TOKEN:
        raise UnauthenticatedError(f"the header Authorization cannot be used: {HOW_TO_ASK}")
    return token


def token_key(token: str) -> bytes:
    """Return what a token is remembered by."""
    return sha256(token.encode("utf-8", "surrogateescape")).digest()


def token_review(token: str) -> Document:
    """Return the question whose token it is."""
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}


def reviewed_caller(review: Mapping[str, Any]) -> Caller:
    """Return whose token it is. Raises `UnauthenticatedError`."""
    status = review.get("status") or {}
    user = status.get("user") or {}
    if status.get("authenticated") is not True or status.get("error") or not user.get("username"):
        raise UnauthenticatedError("the token is not valid here, or no longer: get a new one")
    extra = sorted((str(name), tuple(map(str, values))) for name, values in (user.get("extra") or {}).items())
    groups = tuple(map(str, user.get("groups") or ()))
    return Caller(str(user["username"]), groups, str(user.get("uid") or ""), tuple(extra))


def access_review(caller: Caller, right: Right, namespace: str, name: str) -> Document:
    """Return the question whether somebody has a right to a DelayTopic."""
    attributes = {
        "group": GROUP,
        "resource": right.resource,
        "subresource": right.subresource,
        "verb": right.verb,
        "namespace": namespace,
        "name": name,
    }
    who = {
        "user": caller.name,
        "groups": [*caller.groups],
        "uid": caller.uid,
        "extra": {name: [*values] for name, values in caller.extra},
    }
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {**who, "resourceAttributes": attributes},
    }


def is_allowed(review: Mapping[str, Any]) -> bool:
    """Return the answer of a SubjectAccessReview."""
    status = review.get("status") or {}
    return status.get("allowed") is True and status.get("denied") is not True


@dataclass(frozen=True, slots=True)
class TrustedProxy:
    """A proxy that has asked people who they are, and says so in headers."""

    user_header: str
    groups_header: str
    networks: Sequence[IPv4Network | IPv6Network]

    @classmethod
    def of(cls, user_header: str | None, groups_header: str | None, networks: Sequence[str]) -> TrustedProxy | None:
        """Return the proxy that options name; None for none. Raises `InputError`."""
        if not (user_header or groups_header or networks):
            return None
        if not (user_header and groups_header and networks):
            raise InputError("--user-header, --groups-header and --trusted-proxy go together: give all, or none")
        try:
            return cls(user_header, groups_header, [ip_network(each) for each in networks])
        except ValueError as error:
            raise InputError(f"--trusted-proxy takes a network such as 10.1.2.0/24: {error}") from error

    def caller(self, client: str, headers: Headers) -> Caller | None:
        """Return who asks through the proxy; None for a request without its headers.

        Raises `ForbiddenError` for headers that come from elsewhere: whoever sends them wants to be somebody.
        """
        users, groups = headers.getlist(self.user_header), headers.getlist(self.groups_header)
        if not users and not groups:
            return None
        if not self._is_at(client):
            raise ForbiddenError(
                f"the headers {self.user_header} and {self.groups_header} are taken from the trusted proxy alone, and "
                f"{client} is not it"
            )
        names = [name.strip() for header in groups for name in header.split(",") if name.strip()]
        if len(users) != 1 or not users[0].strip() or len(names) > MOST_GROUPS:
            raise ForbiddenError(
                f"the proxy has to name one user in {self.user_header}, in at most {MOST_GROUPS} groups"
            )
        reserved = [name for name in (users[0].strip(), *names) if name.startswith(RESERVED)]
        if reserved:
            raise ForbiddenError(f"no proxy may name users and groups of Kubernetes' own ({RESERVED}...)")
        return Caller(users[0].strip(), (*names, AUTHENTICATED))

    def _is_at(self, client: str) -> bool:
        try:
            address = ip_address(client)
        except ValueError:
            return False
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self.networks)


class Remembered(Generic[K, V]):
    """Answers that hold for a while, at most so many; the oldest go first."""

    def __init__(self, most: int, for_ms: int) -> None:
        """Remembers nothing yet."""
        self._most = most
        self._for_ms = for_ms
        self._known: OrderedDict[K, tuple[int, V]] = OrderedDict()

    def get(self, key: K, now_ms: int) -> V | None:
        """Return the answer, or None when there is none that holds."""
        found = self._known.get(key)
        if found is None or not found[0] <= now_ms < found[0] + self._for_ms:
            return None
        return found[1]

    def put(self, key: K, value: V, now_ms: int) -> None:
        """Remember an answer of this time."""
        self._known.pop(key, None)
        self._known[key] = (now_ms, value)
        while len(self._known) > self._most:
            self._known.popitem(last=False)
