"""Tests of partitions that stand still as their source is another one: what is said, and how they go on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml
from tests.support.operator.scenes import fleet
from tests.support.operator.topic_scenes import wanted
from tests.unit.operator.decide.test_planner import id_of, living, look, owned, said

from delaytopic_api.relay import ShardState
from delaytopic_operator.decide.plan import Apply
from delaytopic_operator.decide.planner import plan
from delaytopic_operator.model.record import Role, TopicRecord
from delaytopic_operator.observe.fleet import RelayPage
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.topics.desired import desired_topics
from delaytopic_operator.topics.ownership import accepted_source, own

ACCEPT = "delaytopic.dev/accept-topic-recreation"


def still(found: Observation, reason: str | None, state: ShardState = ShardState.FAILED) -> Observation:
    [page] = fleet(0).pages
    assert page.status is not None
    [shard] = page.status.shards
    changed = shard.model_copy(update={"state": state, "reason": reason, "message": "its offsets are of another topic"})
    status = page.status.model_copy(update={"shards": [changed]})
    return replace(found, fleet=replace(found.fleet, pages=[RelayPage("relay-1", status)]))


def message(found: Observation, type: str) -> str:
    return next(each.message for each in plan(found).conditions if each.type == type)


def test_partitions_that_stand_still_need_a_person_and_the_way_on_is_said() -> None:
    found = still(look(), "TopicChanged")

    assert {type: said(found)[type] for type in ("Ready", "TopicsReady", "Stalled")} == {
        "Ready": ("False", "TopicChanged"),
        "TopicsReady": ("False", "TopicChanged"),
        "Stalled": ("True", "TopicChanged"),
    }
    assert message(found, "TopicsReady") == (
        "1 source partitions (the first: 0) stand still: its offsets are of another topic. If it is the right topic, "
        f"set the annotation {ACCEPT}: {id_of('shop.a')}: relays begin at its first record, and what waited of the "
        "former one is lost; remove the annotation when they have"
    )


def test_partitions_that_wait_for_a_topic_are_said_and_need_nobody_to_decide() -> None:
    found = still(look(), "TargetUnavailable", ShardState.PAUSED)

    assert said(found)["TopicsReady"] == ("False", "TargetUnavailable")
    assert "Stalled" not in said(found)
    assert message(found, "TopicsReady") == "1 source partitions (the first: 0): its offsets are of another topic"


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("OffsetsLost", "OffsetsLost"),
        ("BatchUnreadable", "BatchUnreadable"),
        ("a word with spaces", "SourceChanged"),
    ],
)
def test_what_no_annotation_mends_is_said_in_the_relays_words(reason: str, word: str) -> None:
    found = still(look(), reason)

    assert said(found)["TopicsReady"] == ("False", word)
    assert message(found, "TopicsReady").endswith("stand still: its offsets are of another topic")


def test_a_partition_that_failed_for_something_else_is_no_matter_of_its_topic() -> None:
    assert said(still(look(), None))["TopicsReady"] == ("True", "AsSpecified")


def test_records_that_retention_has_taken_are_told_and_stop_nothing() -> None:
    found = still(look(), "RetentionPassed", ShardState.DELIVERING)

    assert said(found)["Ready"] == ("True", "Ready")
    assert said(found)["BackendReady"] == ("True", "RetentionPassed")


@pytest.mark.parametrize(
    ("annotation", "replaces", "told"),
    [
        (None, None, None),
        ("some-other", None, None),
        (id_of("shop.a"), None, id_of("shop.a")),
        (f"one, {id_of('shop.a')}", None, id_of("shop.a")),
        ("lost", "lost", id_of("shop.a")),
        (None, "lost", None),
    ],
)
def test_relays_are_told_that_their_source_is_accepted_while_the_annotation_says_so(
    annotation: str | None, replaces: str | None, told: str | None
) -> None:
    source = owned().source
    assert source is not None
    record = owned().with_role(Role.SOURCE, source.model_copy(update={"replaces": replaces}))
    found = look(living(annotations={ACCEPT: annotation} if annotation else {}), record=record, objects=[])

    assert _relay_config(found)["source"].get("acceptedTopicId") == told


def _relay_config(found: Observation) -> dict[str, Any]:
    [text] = [
        each.document["data"]["relay.yaml"]
        for each in plan(found).actions
        if isinstance(each, Apply) and "relay.yaml" in each.document.get("data", {})
    ]
    return dict(yaml.safe_load(text))


def test_a_topic_that_is_made_in_the_place_of_a_lost_one_is_remembered_as_such() -> None:
    route = wanted()
    desired = desired_topics(route.settings, route.spec, None, ())[-1]
    lost = TopicRecord(name=desired.name, ownership=owned().source.ownership, topic_id="lost")  # type: ignore[union-attr]

    made = own(desired, None, lost, {"lost"}, forbidden=False).record

    assert made is not None
    assert (made.topic_id, made.replaces) == (None, "lost")
    assert accepted_source(made.model_copy(update={"topic_id": "new"}), {"lost"}) == "new"
