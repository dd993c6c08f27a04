"""Checks of topics before a relay starts. Pure: over what was found, in order, each with what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from delaytopic_api.records import LAST_INSTANT_MS, UNLIMITED
from delaytopic_api.relay import RelayConfig

UNLIMITED_BYTES = 1 << 62


class TopicFacts(NamedTuple):
    """One topic; settings are empty where the relay may not read them."""

    name: str
    partitions: int
    settings: Mapping[str, str]

    @property
    def largest_batch_bytes(self) -> int:
        """`max.message.bytes`."""
        return int(self.settings.get("max.message.bytes", UNLIMITED_BYTES))

    def keeps_until(self, timestamp_ms: int | None) -> str | None:
        """Return until when it keeps a record with this timestamp: an instant, or `UNLIMITED`; None if nobody knows.

        What is deleted by size or by key depends on what comes after it. Kafka deletes whole segments, and none before
        its youngest record is that old: it may keep the record longer.
        """
        if (self.settings.get("cleanup.policy"), self.settings.get("retention.bytes")) != ("delete", "-1"):
            return None
        retention_ms = int(self.settings["retention.ms"])
        if retention_ms < 0:
            return UNLIMITED
        if timestamp_ms is None:
            return None
        until_ms = timestamp_ms + retention_ms
        if until_ms > LAST_INSTANT_MS:
            return UNLIMITED
        return datetime.fromtimestamp(until_ms // 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Finding(NamedTuple):
    """Something that is not as it has to be; `waits` when it may come right by itself."""

    text: str
    waits: bool


class Topics(NamedTuple):
    """The topics as found; None for one that does not exist."""

    source: TopicFacts | None
    target: TopicFacts | None
    dead_letter: TopicFacts | None
    history: TopicFacts | None = None
    outcomes: TopicFacts | None = None


def check_topics(config: RelayConfig, topics: Topics) -> Finding | None:
    """The first thing that keeps the relay from starting; None if nothing does."""
    return next((finding for check in CHECKS for finding in check(config, topics)), None)


def _they_exist(config: RelayConfig, topics: Topics) -> Iterator[Finding]:
    named = {
        "source": (config.source.topic, topics.source),
        "target": (config.target.topic, topics.target),
        "deadLetter": (config.dead_letter.topic, topics.dead_letter),
    }
    if config.history is not None:
        named["history"] = config.history.topic, topics.history
    if config.outcomes is not None:
        named["outcomes"] = config.outcomes.topic, topics.outcomes
    for field, (name, facts) in named.items():
        if facts is None:
            yield Finding(f"{field}.topic: the topic {name} does not exist; create it, or correct the name", waits=True)


def _fixed_delay_needs_broker_time(config: RelayConfig, topics: Topics) -> Iterator[Finding]:
    if config.schedule.fixed_delay is None or topics.source is None or not topics.source.settings:
        return
    kind = topics.source.settings.get("message.timestamp.type", "CreateTime")
    if kind != "LogAppendTime":
        yield Finding(
            f"source.topic: {topics.source.name} has message.timestamp.type={kind}; schedule.fixed_delay needs "
            "LogAppendTime, so that source order is due order: alter the topic, or use schedule.defaultDelay",
            waits=False,
        )


def _same_partition_needs_as_many(config: RelayConfig, topics: Topics) -> Iterator[Finding]:
    if config.target.partitioning != "SamePartition" or topics.source is None or topics.target is None:
        return
    if topics.target.partitions < topics.source.partitions:
        yield Finding(
            f"target.partitioning: SamePartition needs as many partitions as the source has: {topics.target.name} has "
            f"{topics.target.partitions}, {topics.source.name} {topics.source.partitions}; grow it, or use ByKey",
            waits=False,
        )


def _outcomes_need_as_many(config: RelayConfig, topics: Topics) -> Iterator[Finding]:
    if topics.outcomes is None or topics.source is None:
        return
    if topics.outcomes.partitions < topics.source.partitions:
        yield Finding(
            f"outcomes.topic: {topics.outcomes.name} has {topics.outcomes.partitions} partitions, and needs as many as "
            f"the source {topics.source.name} has, which are {topics.source.partitions}: grow it",
            waits=True,
        )


CHECKS: tuple[Callable[[RelayConfig, Topics], Iterator[Finding]], ...] = (
    _they_exist,
    _fixed_delay_needs_broker_time,
    _same_partition_needs_as_many,
    _outcomes_need_as_many,
)
