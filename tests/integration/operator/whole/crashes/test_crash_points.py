"""An operator that is killed at any of its calls to Kubernetes or Kafka is followed by one that ends the same."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import pytest
from playground.kube.control_plane import ControlPlane
from tests.cluster.fixtures import MakeNamespace
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.operator.crashing import CrashPoint, Meddling, is_write
from tests.support.operator.lives import Life, World, dies
from tests.support.relay.process import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly]

RECORDS = 3
FEWEST_CALLS = 5
"""Fewer would mean that nothing was done."""


@pytest.fixture
def world(
    control_plane: ControlPlane, make_namespace: MakeNamespace, kafka: KafkaAddress, redis: RedisAddress
) -> Iterator[World]:
    platform, team = make_namespace("platform"), make_namespace("shop")
    made = World(control_plane, kafka.bootstrap_servers, redis.url, platform, team, f"crash-{secrets.token_hex(3)}")
    made.apply_class()
    yield made
    made.close()
    control_plane.kubectl("delete", "delayclass", made.class_name)
    for found in control_plane.client.get(f"/apis/delaytopic.dev/v1beta1/namespaces/{team}/delaytopics")["items"]:
        control_plane.client.merge(world_path(made, found), {"metadata": {"finalizers": None}})


def world_path(world: World, found: dict[str, Any]) -> str:
    return world.path(found["metadata"]["name"])


@dataclass(frozen=True)
class Story:
    """A story: steps without a crash, and what then happens to an object while the operator may die."""

    prepare: Callable[[World, str], None]
    step_ms: int = 0
    removes: bool = False

    def done(self, world: World, name: str) -> Callable[[], bool]:
        return lambda: (found := world.find(name)) is None or "deletionTimestamp" not in found["metadata"]


def nothing(world: World, name: str) -> None:
    world.pending = 0
    world.apply(name)


def edited(world: World, name: str) -> None:
    living(world, name)
    topic = f"{world.team}.{name}.delayed"
    source = {"topic": topic, "partitions": 5, "config": {"min.insync.replicas": "1"}}
    dead_letter = {"topic": f"{topic}.dlq", "retention": "48h"}
    world.apply(name, source=source, deadLetter=dead_letter, precision="2s", schedule={"maxDelay": "48h"})


def drained(world: World, name: str) -> None:
    living(world, name)
    world.pending = 0
    world.delete(name)


def timed_out(world: World, name: str) -> None:
    living(world, name, drainTimeout="90s")
    world.pending = RECORDS
    world.delete(name)


def retained(world: World, name: str) -> None:
    living(world, name, deletionPolicy="Retain")
    world.pending = RECORDS
    world.delete(name)


def deleted(world: World, name: str) -> None:
    confirmed = {"delaytopic.dev/confirm-delete": name}
    living(world, name, annotations=confirmed, deletionPolicy="Delete")
    world.pending = RECORDS
    world.delete(name)


def resumed(world: World, name: str) -> None:
    retained(world, name)
    end_of(Life(world), name)
    world.apply(name)


def discarded(world: World, name: str) -> None:
    retained(world, name)
    end_of(Life(world), name)
    world.apply(name, annotations={"delaytopic.dev/discard-retained": f"delaytopic.{world.team}.{name}"})


def living(world: World, name: str, annotations: dict[str, str] | None = None, **spec: Any) -> None:
    """One that is as it should be, with records in its source and keys in its backlog."""
    world.pending = RECORDS
    world.apply(name, annotations, **spec)
    end_of(Life(world), name)
    world.fill(name, RECORDS)


def end_of(life: Life, name: str) -> None:
    assert dies(life, name) is None


STORIES = {
    "created": Story(nothing),
    "edited": Story(edited),
    "drained": Story(drained, step_ms=20_000),
    "timed out": Story(timed_out, step_ms=40_000),
    "retained": Story(retained),
    "resumed": Story(resumed),
    "deleted": Story(deleted, removes=True),
    "discarded": Story(discarded),
}


@pytest.mark.parametrize("what", STORIES)
def test_an_operator_killed_at_any_call_is_followed_by_one_that_ends_the_same(
    what: str, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    story = STORIES[what]
    wanted = undisturbed(world, story)

    outcomes = list(deaths(world, story))

    writes = sum(outcome.after for outcome in outcomes)
    with capsys.disabled():
        print(f"\n{what}: killed before each of {len(outcomes) - writes} calls, and after {writes} writes")
    assert len(outcomes) > FEWEST_CALLS
    for outcome in outcomes:
        assert outcome.state == wanted, outcome.died
        assert story.removes or not [call for call in outcome.writes if "kafka delete" in call], outcome.died


def test_an_object_that_is_replaced_at_any_call_is_as_if_it_had_not_been(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = undisturbed(world, STORIES["created"])

    replaced = []
    for number in count(1):
        name = f"anew-{secrets.token_hex(3)}"
        nothing(world, name)
        life = Life(world, Meddling(number, partial(replace_object, world, name)))
        assert dies(life, name) is None
        if len(life.point.calls) < number:
            break
        assert dies(Life(world), name) is None
        replaced.append((number, life.point.calls[number - 1], world.end_of(name)))

    with capsys.disabled():
        print(f"\nreplaced before each of {len(replaced)} calls")
    assert len(replaced) > FEWEST_CALLS
    for number, call, state in replaced:
        assert state == wanted, (number, call)


def replace_object(world: World, name: str) -> None:
    """Delete it, whoever holds it, and apply it anew."""
    world.plane.client.merge(world.path(name), {"metadata": {"finalizers": None}})
    world.delete(name)
    world.apply(name)


def deaths(world: World, story: Story) -> Iterator[Outcome]:
    """A life that ends before call 1, 2, ... until one ends by itself; and after those that write."""
    for number in count(1):
        outcome = disturbed(world, story, number, after=False)
        if outcome.died is None:
            return
        yield outcome
        if is_write(outcome.died):
            yield disturbed(world, story, number, after=True)


@dataclass(frozen=True)
class Outcome:
    """The end of a story."""

    died: str | None
    """At which call."""
    after: bool
    """True if it was after the call."""
    state: dict[str, Any]
    writes: list[str]


def undisturbed(world: World, story: Story) -> dict[str, Any]:
    name = f"calm-{secrets.token_hex(3)}"
    story.prepare(world, name)
    life = Life(world)
    assert dies(life, name, until=story.done(world, name), step_ms=story.step_ms) is None
    return end_state(world, story, name)


def end_state(world: World, story: Story, name: str) -> dict[str, Any]:
    """Brokers tell of a topic for a moment after they were told to delete it."""
    if story.removes:
        wait_for(lambda: list(world.topics(name)) == [f"{world.team}.{name}"], lambda: str(world.topics(name)), 10)
    return world.end_of(name)


def disturbed(world: World, story: Story, number: int, *, after: bool) -> Outcome:
    name = f"dies-{secrets.token_hex(3)}"
    story.prepare(world, name)
    first = Life(world, CrashPoint(number, after=after))
    died = dies(first, name, until=story.done(world, name), step_ms=story.step_ms)
    second = Life(world)
    assert dies(second, name, until=story.done(world, name), step_ms=story.step_ms) is None
    return Outcome(died, after, end_state(world, story, name), [*first.point.writes, *second.point.writes])
