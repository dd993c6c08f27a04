"""`python -m bench.dialect_costs`: what a delivery costs the relay's thread in each dialect, without any server.

All dialects in turn, with the records of `bench.dialects`. Counted is the processor time of the one thread that all of
this happens in, so that other work on the machine disturbs the figures little. `produce` hands the records to a client
that reaches no broker; its own threads, the consumer, and what the broker does are not in these figures.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar, cast

import click
from confluent_kafka import Message, Producer

from bench.clock import now_ms
from bench.dialects import NATIVE, OTHERS, Speech
from bench.figures.goals import records_written
from bench.figures.table import Table
from bench.parts import fresh
from bench.processes.measured import by_record, relay_config
from bench.processes.quiet import QUIET
from delaytopic_api.records import Headers
from delaytopic_api.relay import RelayBackend, RelayConfig
from delaytopic_api.values import BackendType, Dialect, Guarantee, Partitioning
from delaytopic_relay.backlog.redis.shard import RedisShard
from delaytopic_relay.backlog.store import END_MS, StoreVersion
from delaytopic_relay.core.commands import Command, Record, Schedule, SourceMessage
from delaytopic_relay.core.commands import Dialect as Reader
from delaytopic_relay.core.progress import fresh_progress
from delaytopic_relay.delivery.further_targets import FurtherTargets
from delaytopic_relay.delivery.record_writer import RecordWriter
from delaytopic_relay.delivery.refusals import Refusals
from delaytopic_relay.dialects import dialect_for, forms_for

SOURCE, TARGET = "source", "target"
STEPS: Final = ("read", "take in", "take out", "write", "produce", "own records")
"""`own records`: reading and ignoring what the relay itself has written into the source."""
FIRST_DUE_MS, SPREAD_MS, HORIZON_MS = 1_000, 2_000, 10_000
READ, STEP_MS, DUE, QUEUED = 250, 10, 2_000, 20_000
LARGEST_BYTES = 1 << 20

T = TypeVar("T")
Costs = dict[str, float]
"""The cost of each step, nanoseconds for a delivery."""


class Way:
    """The way of so many records of one dialect through a relay's thread."""

    def __init__(self, speech: Speech, records: int) -> None:
        """Take a dialect and a number of records; nothing is made yet."""
        config = _config(speech.dialect)
        self._speech = speech
        self._records = records
        self._dialect: Reader = dialect_for(config)
        further = FurtherTargets([], config.backend.id)
        limit, forms = (lambda topic: LARGEST_BYTES), forms_for(config)
        self._writer = RecordWriter(SOURCE, TARGET, Partitioning.BY_KEY, 4, limit, further, Refusals(), forms)
        self._writer.certain_bytes = LARGEST_BYTES // 2
        self._begun_ms = int(now_ms())
        self._shard = RedisShard(0, fresh_progress(0), 0, StoreVersion("", 0, 0), HORIZON_MS)
        # As if the backlog was listed and has nothing.
        self._shard.listed_until_ms = END_MS
        self._shard.next_load(self._begun_ms, room=True)
        self.costs: Costs = {}

    def go(self) -> Costs:
        """Take all of them through, and return what it cost."""
        made = self._made()
        commands = self._time("read", lambda: self._read(made))
        made.clear()
        self._time("take in", lambda: self._take_in(commands))
        commands.clear()
        due = self._time("take out", self._take_out)
        sent_ms = self._begun_ms + HORIZON_MS
        written = self._time("write", lambda: [self._writer.records(0, batch, sent_ms)[0] for batch in due])
        leaving = [record for batch in written for record in batch]
        _require(self._speech, len(leaving), self._records * records_written(self._speech.dialect))
        self.costs["produce"] = self._produce(leaving)
        own = [
            _message(self._records + place, record.key, record.value, record.headers, self._begun_ms)
            for place, record in enumerate(record for record in leaving if record.topic == SOURCE)
        ]
        self._time("own records", lambda: self._take_in(self._read(own)))
        return self.costs

    def _time(self, step: str, work: Callable[[], T]) -> T:
        started_ns = time.thread_time_ns()
        result = work()
        self.costs[step] = (time.thread_time_ns() - started_ns) / self._records
        return result

    def _made(self) -> list[SourceMessage]:
        draw, speech = random.Random(self._records).randrange, self._speech
        dues = (speech.due_ms(self._begun_ms + FIRST_DUE_MS + draw(SPREAD_MS)) for _ in range(self._records))
        written = (speech.write(sequence, due_ms, TARGET) for sequence, due_ms in enumerate(dues))
        return [_message(place, *each, self._begun_ms) for place, each in enumerate(written)]

    def _read(self, messages: Sequence[SourceMessage]) -> list[list[Command]]:
        read = self._dialect.read
        return [[*map(read, messages[first : first + READ])] for first in range(0, len(messages), READ)]

    def _take_in(self, commands: Iterable[Sequence[Command]]) -> None:
        for chunk in commands:
            self._shard.unknown_ids(chunk)
            self._shard.ingest(chunk, chunk[-1].offset + 1, {})

    def _take_out(self) -> list[Sequence[Schedule]]:
        taken: list[Sequence[Schedule]] = []
        until_ms = self._begun_ms
        while self._shard.calendar.count:
            until_ms += STEP_MS
            taken.append(self._shard.take_due(until_ms, DUE).schedules)
        return taken

    def _produce(self, records: Sequence[Record]) -> float:
        producer = Producer({"bootstrap.servers": "127.0.0.1:1", "enable.idempotence": True}, logger=QUIET)
        produce: Any = producer.produce
        taken_ns = 0
        for first in range(0, len(records), QUEUED):
            started_ns = time.thread_time_ns()
            for topic, value, key, headers, partition in records[first : first + QUEUED]:
                produce(topic, value, key, partition, None, None, 0, headers)
            taken_ns += time.thread_time_ns() - started_ns
            producer.purge()
            producer.poll(0)
        return taken_ns / self._records


def _require(speech: Speech, found: int, expected: int) -> None:
    if found != expected:
        raise click.ClickException(f"{speech.dialect}: {found} records were written instead of {expected}")


def _config(dialect: Dialect) -> RelayConfig:
    return relay_config(
        "costs",
        bootstrap_servers="127.0.0.1:1",
        backend=RelayBackend(type=BackendType.KAFKA_BUCKETS, id="delaytopic.bench.costs"),
        source=SOURCE,
        target=TARGET,
        guarantee=Guarantee.AT_LEAST_ONCE,
        precision="100ms",
        schedule=by_record(dialect),
    )


def _message(offset: int, key: bytes | None, value: bytes | None, headers: Headers, timestamp_ms: int) -> SourceMessage:
    copied = bytes(bytearray(value)) if value is not None else None
    return cast(
        SourceMessage,
        Message(SOURCE, 0, offset, key, copied, fresh(headers), timestamp=(2, timestamp_ms)),
    )


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--records", type=click.IntRange(READ), default=20_000, show_default=True)
@click.option("--runs", type=click.IntRange(1), default=3, show_default=True, help="The best of so many is shown.")
@click.option("-o", "--output", type=click.Choice(["table", "markdown"]), default="table", show_default=True)
def main(records: int, runs: int, output: str) -> None:
    """Print what each step costs a delivery, in each dialect."""
    gc.disable()
    best: dict[Dialect, Costs] = {}
    for _ in range(runs):
        for speech in (NATIVE, *OTHERS.values()):
            costs = Way(speech, records).go()
            known = best.setdefault(speech.dialect, costs)
            known.update({step: min(cost, known[step]) for step, cost in costs.items()})
            gc.collect()
    rows = [
        (str(dialect), f"{records_written(dialect)}", *(f"{costs[step] / 1_000:.1f}" for step in (*STEPS, "all")))
        for dialect, costs in ((dialect, {**costs, "all": sum(costs.values())}) for dialect, costs in best.items())
    ]
    table = Table(("microseconds a delivery", "records each", *STEPS, "all"), rows)
    click.echo(table.markdown() if output == "markdown" else table.text())


if __name__ == "__main__":
    main()
