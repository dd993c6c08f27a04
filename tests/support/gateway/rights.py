"""Rights to a gateway, as a test gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType

from starlette.datastructures import Headers

from delaytopic_gateway.access.rights import PROBES, Caller, Right
from delaytopic_gateway.errors import ApiServerUnreachableError, UnauthenticatedError


class Table:
    """An `Access` over a table. Each caller's token is his name."""

    is_down = False
    rights: Mapping[str, Set[Right]] = MappingProxyType(
        {"viewer": {Right.READ}, "editor": {Right.READ, Right.WRITE}, "other": frozenset[Right]()}
    )
    """In the namespace of all DelayTopics here."""

    def admits(self, client: str, host: str) -> str | None:
        return None

    def open_pages(self) -> frozenset[str]:
        return PROBES

    def remembered(self, client: str, headers: Headers) -> Caller | None:
        return None

    def caller(self, client: str, headers: Headers) -> Caller:
        name = headers.get("authorization", "").removeprefix("Bearer ")
        if name not in self.rights:
            raise UnauthenticatedError("who is it?")
        return Caller(name)

    def allowed(self, caller: Caller, right: Right, places: Sequence[tuple[str, str]]) -> list[bool]:
        if self.is_down:
            raise ApiServerUnreachableError("nobody tells")
        return [right in self.rights[caller.name] for _ in places]


class Everybody(Table):
    """Lets everybody do everything, by the name that he gives himself in the header `user`."""

    def remembered(self, client: str, headers: Headers) -> Caller | None:
        return Caller(headers["user"])

    def allowed(self, caller: Caller, right: Right, places: Sequence[tuple[str, str]]) -> list[bool]:
        return [True] * len(places)
