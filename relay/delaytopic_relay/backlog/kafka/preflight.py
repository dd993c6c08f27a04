"""Checks of bucket topics before a relay starts. Pure: each finding says what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from delaytopic_api.relay import RelayConfig
from delaytopic_api.values import bucket_names, ids_name
from delaytopic_relay.kafka.preflight import Finding, TopicFacts

DAY_MS = 86_400_000


def check_bucket_topics(
    config: RelayConfig, source: TopicFacts | None, found: Mapping[str, TopicFacts | None]
) -> Finding | None:
    """The first thing that keeps the relay from using them; None if nothing does."""
    return next(_findings(config, source.partitions if source is not None else 0, found), None)


def _findings(config: RelayConfig, partitions: int, found: Mapping[str, TopicFacts | None]) -> Iterator[Finding]:
    horizon_ms = config.limits.horizon.ms
    for number, name in enumerate(bucket_names(config.backend.id, horizon_ms, config.schedule.max_delay.ms)):
        yield from _every(name, partitions, found[name])
        facts = found[name]
        if facts is not None:
            yield from _kept_long_enough(facts, horizon_ms << number)
    name = ids_name(config.backend.id)
    yield from _every(name, partitions, found[name])
    facts = found[name]
    if facts is not None and facts.settings.get("cleanup.policy", "compact") != "compact":
        yield Finding(
            f"backend: the topic {name} has cleanup.policy={facts.settings['cleanup.policy']}, and would forget what "
            "is known of ids; set cleanup.policy=compact",
            waits=False,
        )


def _every(name: str, partitions: int, facts: TopicFacts | None) -> Iterator[Finding]:
    if facts is None:
        yield Finding(f"backend: the topic {name} does not exist; create it with {partitions} partitions", waits=True)
    elif facts.partitions < partitions:
        yield Finding(
            f"backend: the topic {name} has {facts.partitions} partitions, the source {partitions}; it needs as many: "
            "add the others",
            waits=True,
        )


def _kept_long_enough(facts: TopicFacts, waits_ms: int) -> Iterator[Finding]:
    """A segment has to be there when its time comes, with a day for a relay that stands still."""
    policy = facts.settings.get("cleanup.policy", "delete")
    if policy != "delete":
        yield Finding(f"backend: the topic {facts.name} has cleanup.policy={policy}; it has to be delete", waits=False)
    retention_ms = int(facts.settings.get("retention.ms", "-1"))
    if 0 <= retention_ms < waits_ms + DAY_MS:
        yield Finding(
            f"backend: the topic {facts.name} has retention.ms={retention_ms}, and what waits there may wait for "
            f"{waits_ms} ms; set at least {waits_ms + DAY_MS}, or -1",
            waits=False,
        )
    if int(facts.settings.get("retention.bytes", "-1")) >= 0:
        yield Finding(
            f"backend: the topic {facts.name} has retention.bytes, which deletes what still waits; set it to -1",
            waits=False,
        )
