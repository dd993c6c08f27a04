"""Partitions that go on and partitions that do not, by their commit and their source: the cases of `judge`."""

from __future__ import annotations

import pytest

from delaytopic_api.relay import ShardReason
from delaytopic_relay.core.commands import DueKey
from delaytopic_relay.core.progress import Identity, Progress, mark_of, usual_id
from delaytopic_relay.core.recovery import (
    LONGEST_ACCEPTANCE_MS,
    NOTHING_ACCEPTED,
    Acceptance,
    Begin,
    FormerLife,
    Found,
    SourceTopic,
    judge,
)
from delaytopic_relay.errors import StandsStill

CLUSTER, TOPIC, OTHER = "sZljw3oJR0G1xNB-HQEqoQ", "np2KQqUZSSu1Iw8KltuoMg", "CL_6lpNDTRuXnSPw4rmzIQ"
SOURCE = SourceTopic("orders", CLUSTER, TOPIC)
NOW_MS = 1_000_000
HOUR_MS = 3_600_000
SAME = Identity.of(CLUSTER, TOPIC)._replace(epoch=4)
IT_SHOWS = FormerLife("it shows")
ANOTHER = FormerLife("it shows another", other_topic=True)
UNTIL = Acceptance(repeats_until_ms=NOW_MS + HOUR_MS)


def found(
    identity: Identity | None = SAME,
    *,
    end: int = 500,
    truncated: bool = False,
    former_life: FormerLife | None = None,
    reset: bool = False,
) -> Found:
    """A partition that was taken in up to offset 120; without an identity nothing is committed."""
    progress = Progress(100, 120, DueKey(5_000, 42), identity=identity) if identity is not None else None
    return Found(0, "group", progress, reset, end, truncated, former_life)


def verdict(facts: Found, accepted: Acceptance = NOTHING_ACCEPTED, source: SourceTopic = SOURCE) -> Begin | ShardReason:
    try:
        return judge(facts, source, accepted, NOW_MS)
    except StandsStill as error:
        return error.reason


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(found(None), Begin.AS_COMMITTED, id="nothing is committed"),
        pytest.param(found(), Begin.AS_COMMITTED, id="the same topic"),
        pytest.param(found(end=120), Begin.AS_COMMITTED, id="the log ends at the position"),
        pytest.param(found(Identity()), Begin.AS_COMMITTED, id="the identity was never written"),
        pytest.param(found(Identity("", SAME.topic)), Begin.AS_COMMITTED, id="the cluster is not known"),
        pytest.param(found(Identity(SAME.cluster, "")), Begin.AS_COMMITTED, id="the topic is not known"),
        pytest.param(found(Identity.of(CLUSTER, OTHER)), ShardReason.TOPIC_CHANGED, id="another topic"),
        pytest.param(
            found(Identity("", mark_of(OTHER))), ShardReason.TOPIC_CHANGED, id="another topic of some cluster"
        ),
        pytest.param(
            found(Identity.of(OTHER, OTHER)), ShardReason.CLUSTER_CHANGED, id="another cluster, another topic"
        ),
        pytest.param(found(Identity.of(OTHER, TOPIC)), ShardReason.CLUSTER_CHANGED, id="a copy of the cluster"),
        pytest.param(found(end=119), ShardReason.LOG_TRUNCATED, id="the log ends below the position"),
        pytest.param(
            found(Identity(), end=119), ShardReason.LOG_TRUNCATED, id="an unknown log ends below the position"
        ),
        pytest.param(found(truncated=True), ShardReason.LOG_TRUNCATED, id="the log was cut and has grown again"),
        pytest.param(found(Identity(), reset=True), Begin.AS_COMMITTED, id="an offset set by hand"),
        pytest.param(
            found(Identity(), reset=True, end=119), ShardReason.LOG_TRUNCATED, id="set by hand, above the log's end"
        ),
        pytest.param(found(None, former_life=IT_SHOWS), ShardReason.OFFSETS_LOST, id="nothing but a backlog"),
        pytest.param(found(None, former_life=ANOTHER), ShardReason.TOPIC_CHANGED, id="a backlog of another topic"),
        pytest.param(
            found(reset=True, former_life=IT_SHOWS), ShardReason.OFFSETS_LOST, id="set by hand, and a backlog"
        ),
    ],
)
def test_a_partition_goes_on_if_what_is_committed_is_of_its_source(facts: Found, expected: Begin | ShardReason) -> None:
    assert verdict(facts) is expected


FOREIGN = [
    found(None, former_life=ANOTHER),
    found(Identity.of(CLUSTER, OTHER)),
    found(Identity.of(OTHER, OTHER)),
    found(end=119),
    found(truncated=True),
]


@pytest.mark.parametrize("facts", FOREIGN)
def test_a_partition_begins_anew_where_the_topic_that_is_there_was_accepted(facts: Found) -> None:
    assert verdict(facts, Acceptance(TOPIC)) is Begin.ANEW


@pytest.mark.parametrize("facts", FOREIGN)
@pytest.mark.parametrize(
    "accepted", [Acceptance(OTHER), Acceptance(TOPIC[:8]), UNTIL], ids=["other", "part", "repeats"]
)
def test_nothing_else_that_was_accepted_lets_it_begin(facts: Found, accepted: Acceptance) -> None:
    assert isinstance(verdict(facts, accepted), ShardReason)


def test_a_topic_without_an_id_cannot_be_accepted() -> None:
    source = SourceTopic("orders", CLUSTER, "")

    assert verdict(found(end=119), NOTHING_ACCEPTED, source) is ShardReason.LOG_TRUNCATED


def test_what_was_accepted_counts_for_nothing_where_the_topic_is_the_committed_one() -> None:
    assert verdict(found(), Acceptance(TOPIC, NOW_MS + HOUR_MS)) is Begin.AS_COMMITTED


@pytest.mark.parametrize(
    ("until_ms", "expected"),
    [
        (NOW_MS, ShardReason.OFFSETS_LOST),
        (NOW_MS + 1, Begin.WITH_REPEATS),
        (NOW_MS + LONGEST_ACCEPTANCE_MS, Begin.WITH_REPEATS),
        (NOW_MS + LONGEST_ACCEPTANCE_MS + 1, ShardReason.OFFSETS_LOST),
    ],
)
def test_repeats_are_accepted_until_a_time_within_a_day(until_ms: int, expected: Begin | ShardReason) -> None:
    accepted = Acceptance(TOPIC, until_ms)

    assert verdict(found(None, former_life=IT_SHOWS), accepted) is expected


def test_a_partition_that_stands_still_says_what_was_seen_and_what_to_do() -> None:
    with pytest.raises(StandsStill) as caught:
        judge(found(Identity.of(CLUSTER, OTHER)), SOURCE, NOTHING_ACCEPTED, NOW_MS)

    assert str(caught.value) == (
        "the offset 100 that group group has for partition 0 is of a topic whose id begins with CL_6lpND, and orders "
        f"has the id {TOPIC} now; nothing of the partition is delivered. If it is the right topic, start relays with "
        f"--accept-source {TOPIC} (source.acceptedTopicId): they begin at its first record, and what waited of the "
        "former one is discarded. If not, give back the former topic, or the group's offsets"
    )


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("", ""),
        (usual_id("A" * 22), ""),
        (TOPIC, "np2KQqUZ"),
        (usual_id("CL/6lpND+RuXnSPw4rmzIQ"), "CL_6lpND"),
        ("redpanda.5a9d3e2c-0d4c-4a1b-8f5e-2d1f4b6c7a80", "f456232b"),
        ("redpanda.11111111-0d4c-4a1b-8f5e-2d1f4b6c7a80", "0898a065"),
    ],
)
def test_ids_are_told_apart_by_short_marks(text: str, mark: str) -> None:
    assert mark_of(text) == mark
