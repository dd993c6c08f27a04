"""An app team's producers and consumers around one DelayTopic of a cluster: what it sends, and what arrived."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.support.operator.platform import Platform
from tests.support.relay.process import patient
from tests.support.relay.records import at, now_ms
from tests.support.relay.route import ClientHeaders, Route, Servers

from delaytopic_local.verifier.reading import read_delivered
from delaytopic_local.verifier.verdict import DeliveredRecord, Verdict


class AppTeam(Route):
    """Sends to the source of a DelayTopic, and reads its target; the audit judges from the topics alone."""

    @classmethod
    def of(cls, platform: Platform, name: str, directory: Path) -> AppTeam:
        """The team of the platform's DelayTopic of that name, whether or not it is there yet."""
        team = cls(Servers(platform.kafka.bootstrap_servers, platform.redis.url), directory, name)
        team.target = f"{platform.team}.{name}"
        team.source = f"{team.target}.delayed"
        team.dead_letter = f"{team.source}.dlq"
        return team

    def send_due_in(self, delays_ms: Sequence[int]) -> list[int]:
        """A record for each delay from now on; answers with their due times."""
        start_ms = now_ms()
        due = [start_ms + delay_ms for delay_ms in delays_ms]
        headers: list[ClientHeaders] = [[at(due_ms)] for due_ms in due]
        self.send([(b"key-%d" % number, b"value-%d" % number, each) for number, each in enumerate(headers)])
        return due

    def delivered(self) -> list[DeliveredRecord]:
        """Return the records that arrived."""
        return [read_delivered(record) for record in self.read(self.target)]

    def await_delivered(self, count: int, seconds: float = 60.0) -> list[DeliveredRecord]:
        """Wait until so many have arrived, and return all that arrived."""
        arrived: list[DeliveredRecord] = []

        def enough() -> bool:
            arrived[:] = self.delivered()
            return len(arrived) >= count

        assert patient(enough, seconds), f"{len(arrived)} of {count} records arrived at {self.target}"
        return arrived

    def audited(self, seconds: float = 40.0) -> Verdict:
        """The verdict once everything sent so far has arrived, or after so long."""
        return self.settled_verdict(seconds)
