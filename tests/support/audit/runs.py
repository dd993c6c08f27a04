"""Runs of one ledger without a Kafka: each over the records that a test makes up for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from tests.support.audit.delay_topics import DAY_MS
from tests.support.audit.truth import Sent
from tests.unit.audit.messages import FakeMessage, config_for

from delaytopic_api import Percent
from delaytopic_api.records import RECEIPT, DeadLetter, Receipt, dead_letter_headers
from delaytopic_api.values import Guarantee
from delaytopic_audit.audit import reports_of
from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.model.manifest import Commit, FirstOffset, Plan, PlannedTopic, Range, Role, RunPlan, State
from delaytopic_audit.model.report import Report
from delaytopic_audit.model.rules import Rules
from delaytopic_audit.model.words import Kind
from delaytopic_audit.pipeline.ports import silent
from delaytopic_audit.pipeline.run import execute_plan
from delaytopic_audit.reading.decoding import Row, batch_of, decoder_for
from delaytopic_audit.tables.schemas import EXTRACT

NAME = "tests/orders"
SOURCE, TARGET, DEAD_LETTERS = "orders.source", "orders.target", "orders.dlq"
ROLES = {SOURCE: Role.SOURCE, TARGET: Role.TARGET, DEAD_LETTERS: Role.DEAD_LETTER}
_OF_SOURCE = (Kind.SCHEDULE, Kind.REJECT, Kind.CANCEL, Kind.POSTPONE, Kind.IGNORED, Kind.RULE)
CONFIG = config_for(SOURCE, TARGET, DEAD_LETTERS, ["orders.other"])


_ATTEMPT = re.compile(r"(?<=runs/\d{8})-[0-9a-f]{8}")
_BUCKET = re.compile(r"/recurs=\w+/bucket=\d+")
_MINUTES = re.compile(r"/\d+-\d+-\d+(?=/)")


def without_attempt(place: str) -> str:
    """Return the place of a table as any attempt at its run has it, without the minutes of a part, and buckets."""
    return _BUCKET.sub("", _MINUTES.sub("", _ATTEMPT.sub("", place)))


def rules_of(**given: Any) -> Rules:
    """Late after 5 s, judged 65 s after the end of a minute, unless given otherwise."""
    usual: dict[str, Any] = {"lateness_ms": 5_000, "grace_ms": 65_000, "window_ms": DAY_MS, "retention_ms": 3 * DAY_MS}
    return Rules(objective=Percent("99.9%"), guarantee=Guarantee.EXACTLY_ONCE, **{**usual, **given})


def plan_of(sequence: int, now_ms: int, rules: Rules, asks: tuple[int, int]) -> RunPlan:
    """Of a run that reads these offsets of the source."""
    start, end = asks
    plan = Plan(
        delay_topic=NAME,
        number=1,
        sequence=sequence,
        epoch=1,
        planned_at_ms=now_ms,
        source=SOURCE,
        target=TARGET,
        dead_letter=DEAD_LETTERS,
        rules=rules,
        topics=[PlannedTopic(topic=name, role=role, topic_id="x", partitions=4) for name, role in ROLES.items()],
        ranges=[Range(topic=SOURCE, role=Role.SOURCE, partition=0, start=start, end=end)],
        scope=[FirstOffset(partition=0, offset=0)],
    )
    return RunPlan(sequence=sequence, plans=[plan])


def carry_out_with(spark: SparkSession, ledger: Ledger, plan: RunPlan, rows: Sequence[Row]) -> Commit:
    """The run, as if it had read these rows: of the source, the offsets that they are of."""
    (of_one,) = plan.plans
    plan = plan.model_copy(update={"plans": [of_one.model_copy(update={"ranges": _ranges_of(rows)})]})
    # From Arrow's columns, as a list of tuples would go through a Python worker.
    read = partial(_as_it_is, spark.createDataFrame(pa.Table.from_batches([batch_of({1: rows})]), EXTRACT))
    return execute_plan(plan, ledger, ledger.last_commit(), read, silent)


def _ranges_of(rows: Sequence[Row]) -> list[Range]:
    offsets = dict[int, list[int]]()
    for kind, partition, offset, *_ in rows:
        if kind in _OF_SOURCE:
            offsets.setdefault(partition, []).append(offset)
    return [
        Range(topic=SOURCE, role=Role.SOURCE, partition=partition, start=min(its), end=max(its) + 1)
        for partition, its in offsets.items()
    ]


def state_of(commit: Commit) -> State:
    """Return the state that a commit holds of the DelayTopic of these runs."""
    (state,) = commit.states
    return state


def with_rules(commit: Commit, rules: Rules) -> Commit:
    """The same commit, as if its only DelayTopic had been judged by these rules."""
    state = state_of(commit)
    plan = state.plan.model_copy(update={"rules": rules})
    return commit.model_copy(update={"states": [state.model_copy(update={"plan": plan})]})


def report_of(ledger: Ledger, commit: Commit, window_ms: int | None, now_ms: int) -> Report:
    """The report on the only DelayTopic of a commit."""
    name = state_of(commit).plan.delay_topic
    return reports_of(ledger, commit, [name], window_ms, now_ms)[name]


def _as_it_is(frame: DataFrame, _ranges: Mapping[int, Sequence[Range]]) -> DataFrame:
    return frame


def scheduled(append_ms: int, due_ms: int, identity: bytes | None = None) -> Sent:
    """A record of the source that is to be delivered."""
    named = [] if identity is None else [("deliver-id", identity)]
    return Sent(append_ms, SOURCE, 0, [("deliver-at", b"%d" % due_ms), *named])


def cancelled(append_ms: int, identity: bytes) -> Sent:
    """A record of the source that withdraws another."""
    return Sent(append_ms, SOURCE, 0, [("deliver-id", identity), ("deliver-action", b"cancel")])


def delivered(offset: int, due_ms: int, append_ms: int) -> Sent:
    """An arrival."""
    return Sent(append_ms, TARGET, 0, [(RECEIPT, Receipt(due_ms, 0, offset, append_ms, SOURCE).encode())])


def refused(offset: int, append_ms: int) -> Sent:
    """A dead letter."""
    letter = DeadLetter("expired", "why", SOURCE, 0, offset, append_ms)
    return Sent(append_ms, DEAD_LETTERS, 0, list(dead_letter_headers(letter)))


@dataclass
class Runs:
    """One ledger's runs; offsets of the source go on from run to run."""

    spark: SparkSession
    ledger: Ledger
    asked: int = field(default=0)

    def run(self, now_ms: int, rules: Rules, *sent: Sent) -> Commit:
        """The next run, which reads these records."""
        last, start = self.ledger.last_commit(), self.asked
        rows = [self._row(each, number) for number, each in enumerate(sent)]
        plan = plan_of(last.sequence + 1 if last is not None else 1, now_ms, rules, (start, self.asked))
        return carry_out_with(self.spark, self.ledger, plan, rows)

    def _row(self, sent: Sent, number: int) -> Row:
        of_source = sent.topic == SOURCE
        at = (sent.topic, sent.partition, self.asked if of_source else number)
        self.asked += of_source
        return decoder_for(ROLES[sent.topic], sent.topic, CONFIG)(FakeMessage(at, sent.headers, sent.append_ms))
