"""The applications of a history: they append the records of its recipes, and the broker deletes old ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import cast
from zoneinfo import ZoneInfo

from tests.simulation.plans.plan import Produce, Recipe, Setup
from tests.simulation.plans.workloads import ELSEWHERE, MESSAGES
from tests.simulation.reading import Verdicts
from tests.simulation.world.kafka import Kafka
from tests.simulation.world.source_log import SourceRecord, SourceTransaction
from tests.support.relay import markers

from delaytopic_api.records import RECEIPT, Headers
from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.core.progress import Progress, decode_progress

BERLIN = ZoneInfo("Europe/Berlin")
PROBES_MS = (0, 300, 11_000)
LONG_DONE_MS = 5_000


class Applications:
    """Whoever writes to the source topic."""

    def __init__(self, kafka: Kafka, setup: Setup) -> None:
        self._kafka = kafka
        self._setup = setup
        self._read = Verdicts(kafka, setup).read
        self._unnamed = 0
        self.probes: set[tuple[int, int]] = set()
        """Shard and offset of the records that must leave on time."""

    def produce(self, action: Produce) -> None:
        """Append the records, in one transaction for each shard if the action says so."""
        open_: dict[int, SourceTransaction] = {}
        for recipe in action.recipes:
            partition = recipe.partition % self._setup.shards
            if action.commits is not None and partition not in open_:
                open_[partition] = self._kafka.source[partition].begin()
            self._append(partition, recipe, open_.get(partition))
        if action.commits is not None:
            for partition, transaction in open_.items():
                self._end_later(partition, transaction, action.commits, action.open_ms)

    def _end_later(self, partition: int, transaction: SourceTransaction, commits: bool, open_ms: int) -> None:
        log = self._kafka.source[partition]
        self._kafka.later(open_ms, lambda: log.end(transaction, commit=commits))

    def _append(self, partition: int, recipe: Recipe, transaction: SourceTransaction | None) -> int:
        if self._setup.scheduler:
            return self._append_scheduled(partition, recipe, transaction)
        if self._setup.redelivery:
            return self._append_marker(partition, recipe, transaction)
        value = None if recipe.cancel else recipe.value
        headers = [*self._absolute(recipe.others), *self._when(recipe)]
        if self._kafka.changes:
            headers.insert(0, ("life", b"%d" % len(self._kafka.changes)))
        offset = self._kafka.source[partition].append(self._kafka.now_ms, b"k", value, headers or None, transaction)
        self._kafka.counts_from[partition, offset] = self._kafka.shown_shift_ms
        return offset

    def _append_scheduled(self, partition: int, recipe: Recipe, transaction: SourceTransaction | None) -> int:
        """Append the recipe as a client of the dialect Scheduler writes it; without a name it has one of its own."""
        self._unnamed += recipe.name is None
        name = recipe.name if recipe.name is not None else b"unnamed %d" % self._unnamed
        due_ms = self._kafka.now_ms + (recipe.due_ms or 0) if recipe.at_ms is None else recipe.at_ms
        topic = b"other" if ("deliver-to", b"other") in recipe.others else b"target"
        headers: Headers = [
            *recipe.others,
            ("scheduler-epoch", b"%d" % -(-due_ms // 1_000)),
            ("scheduler-target-topic", topic),
            ("scheduler-target-key", b"k"),
        ]
        value = None if recipe.cancel else recipe.value or b""
        # A cancel may have the headers of a delivery that its application has seen.
        at = [*headers, (RECEIPT, b"0:%d:0:0:source" % partition)] if recipe.cancel else headers
        return self._kafka.source[partition].append(self._kafka.now_ms, name, value, at, transaction)

    def _append_marker(self, partition: int, recipe: Recipe, transaction: SourceTransaction | None) -> int:
        """Append the recipe as a consumer of a queue writes it: its name is the message's offset there."""
        self._unnamed += recipe.name is None
        message = MESSAGES.index(recipe.name) if recipe.name is not None else len(MESSAGES) + self._unnamed
        due_ms = self._kafka.now_ms + (recipe.due_ms or 0) if recipe.at_ms is None else recipe.at_ms
        after_ms = max(0, due_ms - self._kafka.now_ms)
        if recipe.cancel:
            value = markers.end(0, message)
        elif recipe.keeps:
            value = markers.keep_alive(0, message, after_ms)
        else:
            value = markers.start(0, message, after_ms, b"k", recipe.value or b"")
        if ("deliver-at", b"soon") in recipe.others:
            value = b"soon"
        return self._kafka.source[partition].append(self._kafka.now_ms, b"queue", value, [*recipe.others], transaction)

    def _absolute(self, headers: Sequence[tuple[str, bytes | None]]) -> Headers:
        """A time with a plus is relative to now."""
        now_ms = self._kafka.manual_ms
        return [
            (name, b"%d" % (now_ms + int(value)) if name == "deliver-expires-at" and value is not None else value)
            for name, value in headers
        ]

    def _when(self, recipe: Recipe) -> Headers:
        headers: Headers = []
        if recipe.name is not None:
            headers.append(("deliver-id", recipe.name))
        headers += [(name, self._moment(value)) for name, value in recipe.rule]
        if recipe.cancel:
            headers.append(("deliver-action", b"cancel"))
        elif recipe.at_ms is not None:
            headers.append(("deliver-at", b"%d" % recipe.at_ms))
        elif recipe.due_ms is not None and recipe.due_ms > 0 and self._setup.moves:
            headers.append(("deliver-after", b"%d" % recipe.due_ms))
        elif recipe.due_ms is not None:
            headers.append(("deliver-at", b"%d" % (self._kafka.manual_ms + recipe.due_ms)))
        return headers

    def _moment(self, value: bytes) -> bytes:
        if value[:1] == b"+":
            return b"%d" % (self._kafka.manual_ms + int(value))
        if value[:1] == b"~":
            seconds = (self._kafka.manual_ms + int(value[1:])) / 1_000
            return datetime.fromtimestamp(seconds, BERLIN).strftime("%Y-%m-%dT%H:%M:%S").encode()
        return value

    def produce_warm_up(self) -> None:
        """A record for each shard, so that every relay has used its producer."""
        for partition in self._kafka.source:
            plain = self._setup.delay_ms is not None or self._setup.rules is not None
            self._append(partition, Recipe(due_ms=None if plain else 0), None)

    def produce_probes(self) -> list[int]:
        """Records that must leave on time, as nothing disturbs them; when they are due, in order."""
        due_ms: set[int] = set()
        for partition in self._kafka.source:
            plain = self._setup.delay_ms is not None or self._setup.rules is not None
            for after_ms in PROBES_MS if not plain else (0,):
                recipe = Recipe(due_ms=None if plain else after_ms)
                offset = self._append(partition, recipe, None)
                self.probes.add((partition, offset))
                command = self._read(cast(SourceRecord, self._kafka.source[partition].entries[offset]))
                assert isinstance(command, Schedule)
                due_ms.add(command.due_ms)
            if self._kafka.silences and not plain and not self._setup.scheduler:
                self._append(partition, Recipe(due_ms=0, others=ELSEWHERE), None)
        return sorted(due_ms)

    def due_times(self) -> Iterator[int]:
        """Return when the records are due."""
        for log in self._kafka.source.values():
            for record in log.accepted():
                command = self._read(record)
                if isinstance(command, Schedule):
                    yield command.due_ms

    def retain(self) -> None:
        """Retention is longer than any delay: it deletes what has been done for long, and never anything else."""
        for partition, log in self._kafka.source.items():
            committed = self._kafka.committed.get(partition)
            if committed is None:
                continue
            progress, low = decode_progress(*committed), log.low
            while low < progress.offset and self._long_done(log.entries[low], progress):
                low += 1
            log.delete_before(low)

    def _long_done(self, entry: object, progress: Progress) -> bool:
        if not isinstance(entry, SourceRecord) or (entry.transaction is not None and not entry.transaction.committed):
            return True
        command = self._read(entry)
        if not isinstance(command, Schedule):
            return True
        is_old = command.due_ms + LONG_DONE_MS < self._kafka.manual_ms
        return is_old and (command.due_ms, command.offset) <= progress.cursor
