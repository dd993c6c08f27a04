"""The relays that are measured beside each other: ours with both guarantees, and the well-known design."""

from __future__ import annotations

from typing import NamedTuple

from bench.bed import Bed
from bench.processes.measured import BenchProcess, RedisDesign, Relay, by_record, relay_config
from bench.selection import IN_C, PURE, Way
from delaytopic_api.relay import RelayConfig, RelaySchedule
from delaytopic_api.values import BackendType, Guarantee

PRECISION = "100ms"
"""Ticks of 50 ms, with ExactlyOnce."""
PROMPT = {Guarantee.AT_LEAST_ONCE: "10ms", Guarantee.EXACTLY_ONCE: "50ms"}
"""The precision where lateness is measured."""


class Contender(NamedTuple):
    """A kind of relay; without a way of ours it is the well-known design."""

    name: str
    way: Way | None = None
    prompt: bool = False
    as_described: bool = False

    @property
    def guarantee(self) -> Guarantee | None:
        """The guarantee of a relay of ours."""
        return self.way.guarantee if self.way is not None else None

    @property
    def transactional(self) -> bool:
        """Return whether a record counts when a `read_committed` reader sees it, and none may come twice."""
        return self.guarantee is Guarantee.EXACTLY_ONCE

    def make(self, bed: Bed, name: str, source: str, target: str, number: int = 1) -> BenchProcess:
        """A process between two topics, not yet started; several of one name share the work."""
        if self.way is None:
            return RedisDesign(
                name,
                bed.directory,
                bootstrap_servers=bed.bootstrap_servers,
                redis_url=bed.redis_url,
                source=source,
                target=target,
                as_described=self.as_described,
            )
        precision = PROMPT[self.way.guarantee] if self.prompt else PRECISION
        return relay_of(bed, name, (source, target), self.way, by_record(), precision=precision, number=number)


RELAYS = tuple(Contender(str(way), way) for way in PURE)
RELAYS_IN_C = tuple(Contender(str(way), way) for way in IN_C)
PROMPT_RELAYS = tuple(relay._replace(prompt=True) for relay in RELAYS)
DESIGN = Contender("Redis design")
DESCRIBED = Contender("Redis design, as described", as_described=True)


def relay_of(
    bed: Bed,
    name: str,
    topics: tuple[str, str],
    way: Way,
    schedule: RelaySchedule,
    backend: BackendType = BackendType.REDIS_ZSET,
    precision: str = PRECISION,
    number: int = 1,
) -> Relay:
    """A relay between source and target, not yet started; the first, or a further one, of its DelayTopic."""
    config = config_of(bed, name, topics, way.guarantee, schedule, backend, precision)
    return Relay(f"{name}-{number}", bed.directory, config, in_c=way.in_c)


def config_of(
    bed: Bed,
    name: str,
    topics: tuple[str, str],
    guarantee: Guarantee,
    schedule: RelaySchedule,
    backend: BackendType = BackendType.REDIS_ZSET,
    precision: str = PRECISION,
) -> RelayConfig:
    """The configuration of relays between source and target."""
    return relay_config(
        name,
        bootstrap_servers=bed.bootstrap_servers,
        backend=bed.backend(name, backend),
        source=topics[0],
        target=topics[1],
        guarantee=guarantee,
        precision=precision,
        schedule=schedule,
    )
