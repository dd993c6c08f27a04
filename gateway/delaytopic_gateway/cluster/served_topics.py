"""The DelayTopics of a cluster that a gateway serves, and where their relays are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from delaytopic_api import ApiError, DelayClass, DelayTopic, Settings, class_for, class_in_force, load_document, resolve
from delaytopic_api.documents import API_VERSION, GROUP, ConditionStatus, ConditionType
from delaytopic_api.loading import AnyDocument
from delaytopic_gateway.cluster.api_server import ApiServer, Document
from delaytopic_gateway.service.served_topics import ServedTopic
from delaytopic_gateway.service.state import UNKNOWN, State, state_of_status

REMEMBERED_MS: Final = 2_000
"""The time for which the API server is not asked again."""
PAGE_PORT: Final = 8080
RELAYS: Final = {"app.kubernetes.io/name": "delaytopic-relay", "app.kubernetes.io/managed-by": "delaytopic-operator"}
_ENDED: Final = frozenset({"Succeeded", "Failed"})


class Served(NamedTuple):
    """The DelayTopics of a cluster that a gateway serves."""

    namespaces: Mapping[ServedTopic, str]
    """Each DelayTopic, and the namespace where its relays run."""
    elsewhere: int = 0
    """The number of others that use another Kafka, or a connection of their own."""
    refused: int = 0
    """The number of others that the operator has not accepted as they are now."""
    states: Mapping[str, State] = MappingProxyType({})
    """The words of their statuses, by full name."""


def served_topics(
    topics: Iterable[Document], classes: Iterable[Document], bootstrap_servers: str, operator_namespace: str
) -> Served:
    """Choose the DelayTopics that a gateway with a login to this Kafka serves. Pure.

    The gateway writes with its own login. So it serves only what the operator has accepted as it is now: who looks
    after topics, and which namespaces may use a class, is asked by nobody else. And only with a class: a connection of
    its own is a tenant's, who would have the gateway's login in place of his.
    """
    known = [found for each in classes if isinstance(found := _loaded("DelayClass", each), DelayClass)]
    kafka, namespaces, states = _servers(bootstrap_servers), dict[ServedTopic, str](), dict[str, State]()
    elsewhere = refused = 0
    for document in topics:
        settings, of_class = _settings(document, known)
        if settings is None or not is_accepted(document):
            refused += 1
        elif (
            of_class is None or settings.connection is None or _servers(settings.connection.bootstrap_servers) != kafka
        ):
            elsewhere += 1
        else:
            served = ServedTopic.of(settings)
            namespaces[served] = of_class.spec.relay_namespace or operator_namespace
            states[served.full_name] = state_of_status(document["status"], settings)
    ordered = sorted(namespaces, key=lambda served: (served.namespace, served.name))
    return Served({served: namespaces[served] for served in ordered}, elsewhere, refused, states)


def is_accepted(document: Mapping[str, Any]) -> bool:
    """Tell whether the operator has accepted a DelayTopic in its present form. Pure."""
    generation = document["metadata"].get("generation")
    return any(
        each.get("type") == str(ConditionType.POLICY_ACCEPTED)
        and each.get("status") == str(ConditionStatus.TRUE)
        and each.get("observedGeneration") == generation
        for each in (document.get("status") or {}).get("conditions") or ()
    )


def page_url(pod: Mapping[str, Any]) -> str | None:
    """Return the address of the pages of a relay's pod; None while it has none, or has no more. Pure."""
    status = pod.get("status") or {}
    address = status.get("podIP")
    if not address or status.get("phase") in _ENDED:
        return None
    ports = [port for container in pod["spec"].get("containers") or () for port in container.get("ports") or ()]
    port = next((port["containerPort"] for port in ports if port.get("name") == "http"), PAGE_PORT)
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def _settings(document: Document, classes: Sequence[DelayClass]) -> tuple[Settings | None, DelayClass | None]:
    topic = _loaded("DelayTopic", document)
    if not isinstance(topic, DelayTopic):
        return None, None
    try:
        of_class = class_for(topic, classes, class_in_force(document))
        return resolve(topic, of_class), of_class
    except ApiError:
        return None, None


def _loaded(kind: str, document: Document) -> AnyDocument | None:
    try:
        return load_document({"apiVersion": API_VERSION, "kind": kind, **document})
    except ApiError:
        # Of another version, or from before a rule: it is told as one that is not accepted.
        return None


def _servers(text: str) -> frozenset[str]:
    return frozenset(each.strip().lower() for each in text.split(","))


class ClusterTopics:
    """The `ServedTopics` of a cluster; thread-safe."""

    def __init__(
        self,
        api: ApiServer,
        bootstrap_servers: str,
        operator_namespace: str,
        now_ms: Callable[[], int],
        say: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
    ) -> None:
        """`say` gets a line whenever another number of DelayTopics is not served."""
        self._api = api
        self._bootstrap_servers = bootstrap_servers
        self._operator_namespace = operator_namespace
        self._now_ms = now_ms
        self._say = say
        self._lock = Lock()
        self._served: Served | None = None
        self._since_ms = 0

    def all(self) -> Sequence[ServedTopic]:
        """See `ServedTopics.all`. Raises `ApiServerUnreachableError`."""
        return [*self._now().namespaces]

    def relay_urls(self, served: ServedTopic) -> Sequence[str]:
        """See `ServedTopics.relay_urls`. Raises `ApiServerUnreachableError`.

        Pods count only where the class lets relays run: a tenant could give his own the labels of relays.
        """
        places = {known.full_name: namespace for known, namespace in self._now().namespaces.items()}
        namespace = places.get(served.full_name)
        if namespace is None:
            return []
        labels = {**RELAYS, f"{GROUP}/namespace": served.namespace, f"{GROUP}/name": served.name}
        selector = ",".join(f"{name}={value}" for name, value in labels.items())
        pods = self._api.list(f"/api/v1/namespaces/{namespace}/pods", {"labelSelector": selector})
        return sorted(url for pod in pods if (url := page_url(pod)) is not None)

    def state(self, served: ServedTopic) -> State:
        """See `ServedTopics.state`. Raises `ApiServerUnreachableError`."""
        return self._now().states.get(served.full_name, UNKNOWN)

    def _now(self) -> Served:
        # One at a time: others wait for the same answer.
        with self._lock:
            now_ms = self._now_ms()
            if self._served is None or not self._since_ms <= now_ms < self._since_ms + REMEMBERED_MS:
                self._served = self._read()
                self._since_ms = now_ms
            return self._served

    def _read(self) -> Served:
        topics, classes = (self._api.list(f"/apis/{API_VERSION}/{each}") for each in ("delaytopics", "delayclasses"))
        found = served_topics(topics, classes, self._bootstrap_servers, self._operator_namespace)
        before = self._served
        if before is None or (before.elsewhere, before.refused) != (found.elsewhere, found.refused):
            self._say(
                f"{len(found.namespaces)} DelayTopics of {self._bootstrap_servers} are served. Not served: "
                f"{found.elsewhere} of other Kafkas or with a connection of their own, {found.refused} that the "
                "operator has not accepted"
            )
        return found
