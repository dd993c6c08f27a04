"""A gateway in this process, over one DelayTopic on real servers and its relay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.relay.process import RelayProcess
from tests.support.relay.records import now_ms
from tests.support.relay.route import Route

from delaytopic_api.values import Dialect, Ids
from delaytopic_gateway.access.rights import LoopbackAccess
from delaytopic_gateway.app import gateway_app
from delaytopic_gateway.client.relay_listing import ask_relays
from delaytopic_gateway.kafka.cluster import KafkaCluster
from delaytopic_gateway.server import serving
from delaytopic_gateway.service.gateway import Gateway
from delaytopic_gateway.service.served_topics import ServedTopic
from delaytopic_gateway.service.state import UNKNOWN, State


@dataclass(frozen=True)
class _OneTopic:
    """The only DelayTopic of a gateway."""

    served: ServedTopic
    relay: RelayProcess

    def all(self) -> Sequence[ServedTopic]:
        return [self.served]

    def relay_urls(self, served: ServedTopic) -> Sequence[str]:
        return [page_of(self.relay)]

    def state(self, served: ServedTopic) -> State:
        return UNKNOWN


def page_of(relay: RelayProcess) -> str:
    """Return the address of a relay's pages."""
    return f"http://127.0.0.1:{relay.port()}"


def rest_of(route: Route) -> str:
    """Return the path of a DelayTopic in the REST of its gateway."""
    return f"/v1/delaytopics/{route.config().namespace}/{route.name}"


@contextmanager
def gateway_of(route: Route, relay: RelayProcess) -> Iterator[str]:
    """Yield the address of a gateway that everybody on this machine may use."""
    config = route.config()
    served = ServedTopic(
        config.namespace,
        config.name,
        route.source,
        route.target,
        route.dead_letter,
        None,
        Dialect.NATIVE,
        Ids.BY_HEADER,
        fixed_delay=False,
        max_delay_ms=config.schedule.max_delay.ms,
        outcomes=config.outcomes.topic if config.outcomes is not None else None,
    )
    cluster = KafkaCluster({"bootstrap.servers": route.servers.bootstrap_servers})
    gateway = Gateway(_OneTopic(served, relay), cluster, ask_relays, now_ms)
    with serving(gateway_app(gateway, LoopbackAccess(), lambda line: None)) as url:
        yield url
