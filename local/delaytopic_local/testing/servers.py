"""Edge: the servers of one session of pytest, and the relays of the files that its tests name."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from delaytopic_gateway.client.kafka_clients import partitions_of
from delaytopic_gateway.client.topics import create_topics
from delaytopic_local.errors import RelayError
from delaytopic_local.servers.running import Servers, running_servers
from delaytopic_local.session.clock import LocalClock, Watched, read_clock
from delaytopic_local.session.documents import known_topic, read_settings, recurring_records, topic_plans
from delaytopic_local.session.known_topics import KnownTopic
from delaytopic_local.session.relays import CLOCK_FLAG, Supervisor
from delaytopic_local.session.rules import check_together
from delaytopic_local.session.session import Group, relay_groups, relay_urls
from delaytopic_local.testing.topic import TopicUnderTest
from delaytopic_process.errors import InputError

PATIENCE_SECONDS: Final = 30.0
_TURN_SECONDS: Final = 0.01
_LOOK_AFTER_SECONDS: Final = 1.0


class SessionServers:
    """Kafka, Redis and relays of a session. One clock is for all of its tests, and only goes forward."""

    def __init__(self, servers: Servers, stack: ExitStack) -> None:
        """`stack` ends relays with the session."""
        self.settings = {"bootstrap.servers": servers.bootstrap_servers}
        self.clock = LocalClock(servers.directory / "clock")
        self._moved = [(0, self.clock.shift_ms)]
        self._servers = servers
        self._stack = stack
        self._groups: dict[str, tuple[Group, Watched]] = {}
        self._files: dict[Path, list[KnownTopic]] = {}
        self._supervisors: list[Supervisor] = []

    def topic(self, file: Path, name: str | None = None) -> TopicUnderTest:
        """Run what a file declares, unless it runs, and return one of its DelayTopics: that of a name if several.

        Raises InputError, and ApiError with the path of each wrong field.
        """
        file = file.resolve()
        known = self._files.get(file) or self._run(file)
        meant = [each for each in known if name is None or each.is_meant_by(name)]
        if len(meant) != 1:
            names = ", ".join(each.name for each in known)
            raise InputError(f"{file} declares {names}: name one of them, as in delay_topic({file.name!r}, NAME)")
        settings = self._groups[meant[0].name][0].settings
        return TopicUnderTest(self, meant[0], settings, recurring_records(file, meant[0].name))

    def _run(self, file: Path) -> list[KnownTopic]:
        all_settings = [each for each in read_settings(file) if known_topic(each).name not in self._groups]
        running = [group.settings for group, _ in self._groups.values()]
        check_together([*running, *all_settings])
        create_topics(self._servers.bootstrap_servers, topic_plans(all_settings, on_own_cluster=False), {})
        groups = relay_groups(all_settings, self._servers, flags=[CLOCK_FLAG, str(self.clock.file)])
        supervisor = Supervisor([relay for group in groups for relay in group.relays], progress=lambda line: None)
        self._stack.callback(supervisor.stop)
        supervisor.start()
        self._supervisors.append(supervisor)
        for group in groups:
            topic = known_topic(group.settings)
            partitions = partitions_of(self.settings, topic.source)
            watched = Watched(topic.name, partitions, lambda group=group: relay_urls([group]))  # type: ignore[misc]
            self._groups[topic.name] = (group, watched)
            self.settle(topic, dict.fromkeys(range(partitions), 0))
        self.clock.watch([watched for _, watched in self._groups.values()])
        self._files[file] = [known_topic(each) for each in read_settings(file)]
        return self._files[file]

    def advance(self, duration_ms: int) -> None:
        """Move the clock on, for all DelayTopics of the session."""
        shift_ms = self.clock.advance(duration_ms).shift_ms
        self._moved.append((time.time_ns() // 1_000_000, shift_ms))

    def counts_from_ms(self, timestamp_ms: int) -> int:
        """Return the time that the clock showed when a record was produced, by its timestamp on its topic."""
        return timestamp_ms + max(shift_ms for since_ms, shift_ms in self._moved if since_ms <= timestamp_ms)

    def settle(self, topic: KnownTopic, ends: dict[int, int]) -> None:
        """Wait until all that is due by now has left, of what lies below these offsets of the source's partitions.

        Raises RelayError where that takes too long.
        """
        _, watched = self._groups[topic.name]
        asked_ms, began_s = self.clock.now_ms(), time.monotonic()
        looked_s, page = began_s, {}
        while time.monotonic() < began_s + PATIENCE_SECONDS:
            for url in watched.urls():
                page = {**read_clock(url)}
                positions = page.get("positions", {})
                read = all(positions.get(str(partition), -1) >= end for partition, end in ends.items())
                if read and page["atRest"] and page["nowMs"] >= asked_ms:
                    return
            if time.monotonic() >= looked_s + _LOOK_AFTER_SECONDS:
                looked_s = time.monotonic()
                for supervisor in self._supervisors:
                    supervisor.tick()
            time.sleep(_TURN_SECONDS)
        raise RelayError(
            f"the relay of {topic.name} has not delivered all that is due for {PATIENCE_SECONDS:g} s; it tells {page}, "
            f"and was to read up to {ends}; its log is in {self._servers.directory / 'relays'}"
        )


@contextmanager
def session_servers() -> Iterator[SessionServers]:
    """Run Kafka and Redis until the body ends; they, and what they hold, are gone then."""
    with tempfile.TemporaryDirectory(prefix="delaytopic-", ignore_cleanup_errors=True) as directory:
        servers = running_servers(Path(directory), progress=lambda line: None)
        with servers as running, ExitStack() as stack:
            yield SessionServers(running, stack)
