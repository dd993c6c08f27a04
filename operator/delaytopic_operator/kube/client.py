"""Edge: reads and writes of Kubernetes objects, which are plain dicts. Every call has a deadline; thread-safe."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from delaytopic_operator.errors import ApiServerUnavailable
from delaytopic_operator.kube.errors import Call, ObjectGone
from delaytopic_operator.kube.transport import APPLY, JSON, JSON_PATCH, MERGE_PATCH, Document, KubeTransport
from delaytopic_operator.model.kinds import CONFIG_MAP, DECLARED, Kind, kind_of

PAGE_SIZE: Final = 100
LARGE_OBJECTS_PAGE_SIZE: Final = 10
"""The objects of a page of what tenants may write, of 1 MiB each."""
_MAY_BE_LARGE: Final = frozenset({CONFIG_MAP, *DECLARED})
"""ConfigMaps where relays run beside tenants, and what people declare: Kubernetes bounds no labels."""
DEADLINE_SECONDS: Final = 30.0
_LIST_ATTEMPTS: Final = 3

WriteGuard = Callable[[], float]
"""A function that returns for how many seconds writing is still allowed; it raises `NotLeading` when it is not."""


def page_size(kind: Kind) -> int:
    """Return how many objects of a kind a page has: it is held whole, as text and as objects."""
    return LARGE_OBJECTS_PAGE_SIZE if kind in _MAY_BE_LARGE else PAGE_SIZE


class Sink(Protocol):
    """A listener to what the API server answered to a write."""

    def written(self, document: Document) -> object:
        """The object is so now."""

    def deleted(self, document: Document) -> object:
        """The object is gone; it was so last."""


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list; all parts are as of `resource_version`."""

    items: builtins.list[Document]
    resource_version: str


def always() -> float:
    """The guard for those who may write whether they lead or not."""
    return DEADLINE_SECONDS


class KubeApi:
    """The API server; raises `OperatorError` only.

    Server-side apply makes an object that is not there. Who means an existing one puts `metadata.uid` into the
    document: then there is a `Conflict` instead of a new object.
    """

    def __init__(
        self,
        transport: KubeTransport,
        guard: WriteGuard,
        sink: Sink | None = None,
        deadline_s: float = DEADLINE_SECONDS,
    ) -> None:
        """Take a transport; before each write, `guard` is asked, and `sink` gets what was written."""
        self._transport = transport
        self._guard = guard
        self._sink = sink
        self._deadline_s = deadline_s

    # -- reading

    def get(self, kind: Kind, namespace: str | None, name: str) -> Document | None:
        """The object as it is now, or None."""
        try:
            return self._transport.send(Call("get", kind, namespace, name), self._deadline_s)
        except ObjectGone:
            return None

    def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> builtins.list[Document]:
        """All objects of the namespace, or of all namespaces, that have these labels and fields."""
        return [item for page in self.pages(kind, namespace, labels, fields) for item in page.items]

    def pages(
        self,
        kind: Kind,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> Iterator[Page]:
        """List objects page by page, for a caller who need not have all of them at once.

        A list that takes too long for the API server (some minutes) starts over, and objects come twice.
        """
        query = {"limit": page_size(kind), "labelSelector": _selector(labels), "fieldSelector": _selector(fields)}
        token, attempts = "", 1
        while True:
            try:
                answer = self._transport.send(
                    Call("list", kind, namespace), self._deadline_s, query=query | {"continue": token or None}
                )
            except ApiServerUnavailable:
                if not token or attempts == _LIST_ATTEMPTS:
                    raise
                token, attempts = "", attempts + 1
                continue
            yield _page(kind, answer)
            token = answer["metadata"].get("continue", "")
            if not token:
                return

    def serves(self, kind: Kind) -> bool:
        """Return whether the API server knows the kind's group and version; for kinds of others, such as Strimzi's."""
        directory = kind.path().removesuffix(f"/{kind.plural}")
        return self._transport.serves(directory, self._deadline_s)

    # -- writing

    def apply(self, document: Document, manager: str, force: bool = True) -> Document:
        """Server-side apply: `manager` owns the fields of the document, and gives up those it no longer has."""
        return self._write(_call("patch", document), document, {"fieldManager": manager, "force": _flag(force)}, APPLY)

    def apply_status(self, document: Document, manager: str, force: bool = True) -> Document:
        """Apply the status alone; everything else in the document but its name is ignored."""
        query = {"fieldManager": manager, "force": _flag(force)}
        return self._write(_call("patch", document, "status"), document, query, APPLY)

    def create(self, document: Document, manager: str | None = None) -> Document:
        """Make the object; raises `Conflict` if there is one of that name."""
        call = _call("create", document)
        call = Call("create", call.kind, call.namespace)
        return self._write(call, document, {"fieldManager": manager}, JSON)

    def replace(self, document: Document, manager: str | None = None) -> Document:
        """Write the whole object; raises `Conflict` if it has another `metadata.resourceVersion` by now."""
        return self._write(_call("update", document), document, {"fieldManager": manager}, JSON)

    def patch(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        patch: Document | builtins.list[Document],
        manager: str,
        subresource: str | None = None,
    ) -> Document:
        """Patch where apply does not do: a JSON merge patch (a dict) or a JSON patch (a list of operations)."""
        call = Call("patch", kind, namespace, name, subresource)
        content_type = JSON_PATCH if isinstance(patch, builtins.list) else MERGE_PATCH
        return self._write(call, patch, {"fieldManager": manager}, content_type)

    def scale(self, kind: Kind, namespace: str, name: str, replicas: int, manager: str) -> Document:
        """Set the replicas through `/scale`; answers with the Scale. A Deployment's managedFields do not show it."""
        return self.patch(kind, namespace, name, {"spec": {"replicas": replicas}}, manager, "scale")

    def delete(
        self, kind: Kind, namespace: str | None, name: str, uid: str | None = None, propagation: str = "Background"
    ) -> None:
        """Delete the object; that it is gone already is fine. Raises `Conflict` if it has another `uid` than given."""
        body: Document = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        try:
            answer = self._transport.send(Call("delete", kind, namespace, name), self._time_to_write(), body=body)
        except ObjectGone:
            return
        self._tell(answer, gone="deletionTimestamp" not in answer.get("metadata", {}))

    def _write(self, call: Call, body: object, query: Mapping[str, str | None], content_type: str) -> Document:
        deadline_s = self._time_to_write()
        answer = self._transport.send(call, deadline_s, query=query, body=body, content_type=content_type)
        if call.subresource != "scale":
            self._tell(answer)
        return answer

    def _time_to_write(self) -> float:
        """No answer is awaited for longer than the right to write lasts."""
        return min(self._deadline_s, self._guard())

    def _tell(self, answer: Document, gone: bool = False) -> None:
        if self._sink is None or answer.get("kind") == "Status":
            return
        (self._sink.deleted if gone else self._sink.written)(answer)


def _call(verb: str, document: Document, subresource: str | None = None) -> Call:
    metadata = document["metadata"]
    return Call(verb, kind_of(document), metadata.get("namespace"), metadata.get("name"), subresource)


def _page(kind: Kind, answer: Document) -> Page:
    """Objects in lists do not say what they are; here they do."""
    stamp = {"apiVersion": kind.api_version, "kind": kind.name}
    return Page([stamp | item for item in answer["items"] or []], answer["metadata"].get("resourceVersion", ""))


def _selector(wanted: Mapping[str, str] | None) -> str | None:
    return ",".join(f"{name}={value}" for name, value in wanted.items()) if wanted else None


def _flag(value: bool) -> str:
    return "true" if value else "false"
