"""The relays that are measured beside each other: ours with both guarantees, and others, as the well-known design."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from bench.bed import Bed
from bench.dialects import NATIVE, SPEECHES, Speech
from bench.processes.measured import BenchProcess, Relay, by_record, module, relay_config
from bench.selection import IN_C, PURE, Way
from delaytopic_api.relay import RelayConfig, RelaySchedule
from delaytopic_api.values import BackendType, Dialect, Guarantee

PRECISION = "100ms"
"""Ticks of 50 ms, with ExactlyOnce."""
PROMPT = {Guarantee.AT_LEAST_ONCE: "10ms", Guarantee.EXACTLY_ONCE: "50ms"}
"""The precision where lateness is measured."""


class Peer(NamedTuple):
    """A relay that is not ours: the dialect that it reads, and the command that starts it, as a shell splits it."""

    dialect: Dialect
    command: str
    """The command, with `{bootstrap_servers}`, `{redis_url}`, `{source}`, `{target}` and `{group}` where it needs
    these."""

    def arguments(self, bed: Bed, source: str, target: str, group: str) -> list[str]:
        """Return the program and its arguments. Raises `KeyError` for what is not there to be named."""
        places = {"bootstrap_servers": bed.bootstrap_servers, "redis_url": bed.redis_url, "group": group}
        return [word.format(source=source, target=target, **places) for word in shlex.split(self.command)]


class Contender(NamedTuple):
    """A kind of relay: a way of ours, or a peer."""

    name: str
    way: Way | None = None
    prompt: bool = False
    peer: Peer | None = None

    @property
    def guarantee(self) -> Guarantee | None:
        """The guarantee of a relay of ours."""
        return self.way.guarantee if self.way is not None else None

    @property
    def transactional(self) -> bool:
        """Return whether a record counts when a `read_committed` reader sees it, and none may come twice."""
        return self.guarantee is Guarantee.EXACTLY_ONCE

    @property
    def speech(self) -> Speech:
        """Return the way in which its records are written."""
        return SPEECHES[self.peer.dialect] if self.peer is not None else NATIVE

    def make(self, bed: Bed, name: str, source: str, target: str, number: int = 1) -> BenchProcess:
        """A process between two topics, not yet started; several of one name share the work."""
        if self.peer is not None:
            group = f"peer.{name}"
            return BenchProcess(name, self.peer.arguments(bed, source, target, group), bed.directory, group)
        assert self.way is not None
        precision = PROMPT[self.way.guarantee] if self.prompt else PRECISION
        return relay_of(bed, name, (source, target), self.way, by_record(), precision=precision, number=number)


RELAYS = tuple(Contender(str(way), way) for way in PURE)
RELAYS_IN_C = tuple(Contender(str(way), way) for way in IN_C)
_PLACES = "--bootstrap-servers {bootstrap_servers} --redis-url {redis_url} --source {source} --target {target}"
_DESIGN = f"{shlex.join(module('bench.processes.redis_design'))} {_PLACES} --group {{group}}"
DESIGN = Contender("Redis design", peer=Peer(Dialect.NATIVE, _DESIGN))
DESCRIBED = Contender("Redis design, as described", peer=Peer(Dialect.NATIVE, f"{_DESIGN} --as-described"))


def relays_as_shipped(ways: Sequence[Way]) -> tuple[Contender, ...]:
    """Return relays of these ways, which are those that come, each by the name of its guarantee."""
    return tuple(Contender(str(way.guarantee), way) for way in ways)


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
