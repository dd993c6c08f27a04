"""Edge: one run of `delaytopic local`, from the file to Ctrl-C."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fastapi import FastAPI
from rich.console import Console
from rich.live import Live

from delaytopic_api import Settings
from delaytopic_api.values import BackendType
from delaytopic_gateway.access.rights import LoopbackAccess
from delaytopic_gateway.app import gateway_app
from delaytopic_gateway.client.kafka_clients import partitions_of
from delaytopic_gateway.client.relay_listing import ask_relays
from delaytopic_gateway.client.topics import create_topics
from delaytopic_gateway.jobs import JOBS_TOPIC, Jobs, jobs_topic_plan, running_jobs
from delaytopic_gateway.kafka.cluster import KafkaCluster
from delaytopic_gateway.server import AuditFile, serving
from delaytopic_gateway.service.gateway import Gateway
from delaytopic_gateway.service.served_topics import ServedTopic
from delaytopic_gateway.service.state import HOW_TO_AUDIT_LOCAL, State, audit_of_report
from delaytopic_local.servers.running import Servers, data_directory, running_servers
from delaytopic_local.session.clock import LocalClock, Watched
from delaytopic_local.session.documents import (
    BROKERS_OWN_REPLICATION,
    check_addresses,
    checked_settings,
    kafka_client,
    known_topic,
    not_written,
    read_settings,
    relay_document,
    topic_plans,
)
from delaytopic_local.session.overview import Counters, Overview, overview_line, overview_table
from delaytopic_local.session.relays import CLOCK_FLAG, Buckets, RelayProcess, Supervisor, read_lateness, read_status
from delaytopic_local.session.rules import check_together
from delaytopic_local.session.state import (
    DEFAULT_NAME,
    NAME_VARIABLE,
    LocalState,
    claimed_name,
    read_last_report,
    remove_state,
    write_state,
)
from delaytopic_process.command_line import warn

_TURN_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """The options of `delaytopic local`; each is explained at its declaration."""

    file: Path
    bootstrap_servers: str | None = None
    redis_url: str | None = None
    data: Path | None = None
    relays: int = 1
    http_port: int = 0
    gateway_port: int = 0
    name: str | None = None
    clock: str = "machine"
    settings: tuple[tuple[str, str], ...] = ()
    accept_source: str | None = None
    accept_repeats: str | None = None

    @property
    def relay_flags(self) -> list[str]:
        """The flags that all relays get; an id is that of one topic."""
        flags = {"--accept-source": self.accept_source, "--accept-repeats": self.accept_repeats}
        return [part for flag, value in flags.items() if value is not None for part in (flag, value)]


@dataclass(frozen=True, slots=True)
class Group:
    """A DelayTopic, its relays, and what is remembered of them."""

    settings: Settings
    relays: Sequence[RelayProcess]
    counters: Counters


def run_local(options: LocalOptions, console: Console) -> None:
    """Run until KeyboardInterrupt, which ends everything in order; raises ProgramError and ApiError."""
    all_settings = read_settings(options.file)
    check_together(all_settings)
    check_addresses(options.bootstrap_servers, options.redis_url)
    settings = checked_settings(dict(options.settings), own_cluster=options.bootstrap_servers is not None)
    needs_redis = any(needs_a_redis(settings) for settings in all_settings)
    progress = partial(console.print, markup=False, highlight=False, soft_wrap=True)
    with (
        claimed_name(options.name) as name,
        data_directory(options.data) as directory,
        running_servers(
            directory,
            bootstrap_servers=options.bootstrap_servers,
            settings=settings,
            redis_url=options.redis_url,
            needs_redis=needs_redis,
            progress=progress,
        ) as servers,
    ):
        if options.name is None and name != DEFAULT_NAME:
            warn(_not_alone(name))
        plans = topic_plans(all_settings, on_own_cluster=servers.own_cluster)
        copies = BROKERS_OWN_REPLICATION if servers.own_cluster else 1
        jobs_topic = jobs_topic_plan(replication_factor=copies)
        create_topics(servers.bootstrap_servers, [*plans, jobs_topic], servers.settings)
        clock = LocalClock(directory / "clock") if options.clock == "manual" else None
        flags = [*options.relay_flags, *([CLOCK_FLAG, str(clock.file)] if clock is not None else [])]
        groups = relay_groups(all_settings, servers, relays=options.relays, http_port=options.http_port, flags=flags)
        if clock is not None:
            clock.watch([_watched(group, servers) for group in groups])
        now_ms = clock.now_ms if clock is not None else _now_ms
        gateway = _gateway(servers, groups, options.file, now_ms)
        with (
            _running(groups, progress) as supervisor,
            _jobs_of(gateway, servers, progress) as jobs,
            serving(_app(gateway, servers, jobs, clock), options.gateway_port) as address,
            _findable(name, servers, groups, address, options.clock) as publish_state,
        ):
            for line in (*_how_to_reach(servers, all_settings), *not_written(options.file, all_settings)):
                progress(line)
            progress(f"open:  {address}")
            if clock is not None:
                progress("clock: manual; move it with: delaytopic clock advance 7d")
            _show(groups, supervisor, publish_state, console, progress, now_ms)


def _not_alone(name: str) -> str:
    return (
        f"another `delaytopic local` runs here; this one is {name}. Commands use the one that has their topic; where "
        f"both have it, choose with --local {name}, or {NAME_VARIABLE}={name}"
    )


class LocalTopics:
    """The `ServedTopics` of this run."""

    def __init__(self, groups: Sequence[Group], directory: Path, file: Path) -> None:
        """Takes the addresses from the relays as they are when it is asked; `file` is what they were started from."""
        self._groups = {ServedTopic.of(group.settings): group for group in groups}
        self._directory = directory
        self._file = file

    def all(self) -> Sequence[ServedTopic]:
        """See `ServedTopics.all`."""
        return [*self._groups]

    def relay_urls(self, served: ServedTopic) -> Sequence[str]:
        """See `ServedTopics.relay_urls`."""
        return relay_urls([self._groups[served]])

    def state(self, served: ServedTopic) -> State:
        """See `ServedTopics.state`."""
        group = self._groups[served]
        report = read_last_report(self._directory, served.namespace, served.name)
        latest = group.counters.latest
        return State(
            audit=audit_of_report(report, group.settings) if report is not None else None,
            no_audit=HOW_TO_AUDIT_LOCAL.format(self._file),
            late_p99_ms=latest.late_p99_ms if latest is not None else None,
        )


def _gateway(servers: Servers, groups: Sequence[Group], file: Path, now_ms: Callable[[], int]) -> Gateway:
    routes = LocalTopics(groups, servers.directory, file)
    return Gateway(routes, KafkaCluster(_client(servers)), ask_relays, now_ms)


def _watched(group: Group, servers: Servers) -> Watched:
    settings = group.settings
    partitions = partitions_of(_client(servers), settings.source.topic)
    return Watched(f"{settings.namespace}/{settings.name}", partitions, lambda: relay_urls([group]))


def _jobs_of(gateway: Gateway, servers: Servers, progress: Callable[[str], None]) -> AbstractContextManager[Jobs]:
    # No secret signs here: everybody on this machine may do everything with the gateway.
    return running_jobs(gateway, _client(servers), JOBS_TOPIC, b"", progress)


def _client(servers: Servers) -> dict[str, str]:
    return {**servers.settings, "bootstrap.servers": servers.bootstrap_servers}


def _app(gateway: Gateway, servers: Servers, jobs: Jobs, clock: LocalClock | None) -> FastAPI:
    return gateway_app(gateway, LoopbackAccess(), AuditFile(servers.directory / "gateway.log"), jobs, clock)


def needs_a_redis(settings: Settings) -> bool:
    """Tell whether the DelayTopic's relays need a Redis."""
    return settings.backend.type is BackendType.REDIS_ZSET


def relay_groups(
    all_settings: Sequence[Settings],
    servers: Servers,
    *,
    relays: int = 1,
    http_port: int = 0,
    flags: Sequence[str] = (),
) -> list[Group]:
    """Make the relay processes of each DelayTopic, not yet started. Their ports count up from `http_port`."""
    groups = []
    kafka = kafka_client(servers.bootstrap_servers, servers.settings, servers.directory)
    ports = iter(range(http_port, http_port + relays * len(all_settings)) if http_port else ())
    for settings in all_settings:
        full_name = f"{settings.namespace}/{settings.name}"
        processes = []
        for number in range(1, relays + 1):
            document = relay_document(
                settings,
                kafka=kafka,
                redis_url=servers.redis_url if needs_a_redis(settings) else None,
                http_port=next(ports, 0),
            )
            name = f"{settings.namespace}.{settings.name}-{number}"
            processes.append(RelayProcess(name, document, servers.directory / "relays", flags))
        groups.append(Group(settings, processes, Counters(full_name, relays)))
    return groups


def take_overview(group: Group, clock_ms: Callable[[], int] | None = None) -> Overview:
    """Ask the relays of a DelayTopic for their status and put it together, by `clock_ms` if it tells their time."""
    statuses, lateness = [], defaultdict[float, int](int)
    for relay in group.relays:
        port = relay.port if relay.is_running() else None
        status = read_status(port) if port is not None else None
        if port is not None and status is not None:
            statuses.append(status)
            _add(lateness, read_lateness(port))
    troubles = (relay.trouble(_now_ms() / 1000) for relay in group.relays)
    now_ms = (clock_ms or _now_ms)()
    return group.counters.take(statuses, lateness, next(filter(None, troubles), None), now_ms=now_ms)


@contextmanager
def _running(groups: Sequence[Group], progress: Callable[[str], None]) -> Iterator[Supervisor]:
    supervisor = Supervisor([relay for group in groups for relay in group.relays], progress=progress)
    try:
        supervisor.start()
        yield supervisor
    finally:
        progress("stopping ...")
        supervisor.stop()


@contextmanager
def _findable(
    name: str, servers: Servers, groups: Sequence[Group], gateway_url: str, clock: str
) -> Iterator[Callable[[], None]]:
    """Let other commands find this run; what is yielded tells them of relays that have come up since."""
    topics = tuple(known_topic(group.settings) for group in groups)
    told: list[LocalState] = []

    def publish_state() -> None:
        state = LocalState(
            os.getpid(),
            servers.bootstrap_servers,
            servers.redis_url,
            topics,
            relay_urls(groups),
            gateway_url,
            name,
            str(servers.directory),
            clock,
        )
        if told != [state]:
            write_state(state)
            told[:] = [state]

    publish_state()
    try:
        yield publish_state
    finally:
        remove_state(name)


def relay_urls(groups: Sequence[Group]) -> tuple[str, ...]:
    """Return the addresses of the pages of relays that run."""
    ports = [relay.port for group in groups for relay in group.relays if relay.is_running()]
    return tuple(f"http://127.0.0.1:{port}" for port in ports if port is not None)


def _show(
    groups: Sequence[Group],
    supervisor: Supervisor,
    publish_state: Callable[[], None],
    console: Console,
    progress: Callable[[str], None],
    now_ms: Callable[[], int],
) -> None:
    """Look after the relays once a second, and show their state; never returns."""
    if not console.is_terminal:
        while True:
            supervisor.tick()
            publish_state()
            for group in groups:
                progress(overview_line(take_overview(group, now_ms), now_ms=now_ms()))
            time.sleep(_TURN_SECONDS)
    with Live(console=console, auto_refresh=False) as live:
        while True:
            supervisor.tick()
            publish_state()
            overviews = [take_overview(group, now_ms) for group in groups]
            live.update(overview_table(overviews, now_ms=now_ms(), width=console.width), refresh=True)
            time.sleep(_TURN_SECONDS)


def _how_to_reach(servers: Servers, all_settings: Sequence[Settings]) -> Iterator[str]:
    yield f"Kafka: {servers.bootstrap_servers}"
    if servers.redis_url is not None:
        yield f"Redis: {servers.redis_url}"
    yield f"logs:  {servers.directory / 'relays'}"
    for settings in all_settings:
        source, target, dead_letter = settings.source.topic, settings.target.topic, settings.dead_letter.topic
        yield f"{settings.namespace}/{settings.name}: {source} -> {target}, dead letters to {dead_letter}"
        how = "" if settings.schedule.fixed_delay else " --after 5s"
        yield f"  send:  echo 'hello, later' | delaytopic send {source}{how}"
        yield f"  watch: delaytopic watch {target}"
        yield f"  list:  delaytopic pending {source}"


def _add(total: defaultdict[float, int], buckets: Buckets) -> None:
    for edge, count in buckets.items():
        total[edge] += count


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
