"""The verdict on each source record, by the rules that are committed for its offset: every relay has to keep to it."""

from __future__ import annotations

from functools import cache

from tests.simulation.plans.plan import Setup
from tests.simulation.relays import TARGET, rules_of
from tests.simulation.world.kafka import Kafka
from tests.simulation.world.source_log import SourceRecord

from delaytopic_relay.core.commands import Command, Dialect
from delaytopic_relay.core.rules import Rules
from delaytopic_relay.dialects import dialect_by


class Verdicts:
    """The rules of each shard by the offset from which on they are in force, as all commits together say."""

    def __init__(self, kafka: Kafka, setup: Setup) -> None:
        self._kafka = kafka
        self._first = rules_of(setup)
        self._known = 0
        self._begins: dict[int, dict[int, Rules]] = {}
        self._verdicts: dict[int, tuple[SourceRecord, Dialect, Command]] = {}

    def read(self, record: SourceRecord) -> Command:
        """Return the command that a record is."""
        begins = self.generations(record.shard)
        since = max((since for since in begins if since <= record.place), default=None)
        dialect = _dialect(begins[since] if since is not None else self._first)
        # An application looks at all that it has produced at each step of the time: few verdicts are new ones.
        known, by, command = self._verdicts.get(id(record), (None, None, None))
        if command is None or known is not record or by is not dialect:
            command = dialect.read(record)
            self._verdicts[id(record)] = record, dialect, command
        return command

    def shift_ms(self, record: SourceRecord) -> int:
        """Return the time by which the clock was ahead from which a record counts."""
        begins = self.generations(record.shard)
        since = max((since for since in begins if since <= record.place), default=None)
        return begins[since].shift_ms if since is not None else 0

    def generations(self, partition: int) -> dict[int, Rules]:
        """Return the rules by the first offset that they are for; those that nothing was read by may be replaced."""
        for commit in self._kafka.commits[self._known :]:
            for each, progress in commit.progress.items():
                self._begins.setdefault(each, {}).update({g.since: g.rules for g in progress.generations})
        self._known = len(self._kafka.commits)
        return self._begins.get(partition, {})


@cache
def _dialect(rules: Rules) -> Dialect:
    return dialect_by(rules, TARGET)
