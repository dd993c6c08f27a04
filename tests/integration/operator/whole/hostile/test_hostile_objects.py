"""Whatever DelayTopics a team writes: the API server refuses them, or the operator says what it thinks of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import strategies as st
from playground.kube.awaiting import await_generation
from playground.kube.kube_client import RequestRefused
from tests.support.crd_cases import documents
from tests.support.fuzzing import changed, fuzz, nightly_for, peak_memory_bytes
from tests.support.operator.platform import Platform
from tests.support.paths import DATA

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

ACCEPTED = [each["spec"] for each in documents(DATA / "api/accepted_delay_topics.yaml")]
EVERY_FIELD = max(ACCEPTED, key=lambda spec: len(str(spec)))

numbers = st.integers() | st.integers(0, 100) | st.sampled_from([2**31, 2**63, -(2**63) - 1, 10**40])
words = st.sampled_from(
    [
        *("", "*", ".", "..", "__consumer_offsets", "shop.a", "{namespace}.*", "a" * 250, "a" * 70_000, "Zwölf"),
        *("0s", "99999h", "1ms", "-1h", "9" * 400, "1e309", "Create", "KafkaBuckets", "RedisZset", "ExactlyOnce"),
        *("redis://:\x07@[::1]:99999/0", "kafka:9092,kafka:9092", "$(id)", "{{ .Values }}", "*?*?*?*?*?*?*?*?*"),
    ]
)
texts = words | st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
anything = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)
specs = st.sampled_from([EVERY_FIELD, *ACCEPTED]).flatmap(lambda spec: changed(spec, numbers, texts | anything))


def test_a_delay_topic_with_a_character_that_json_writes_as_a_pair_is_judged(running: Platform) -> None:
    name, pod = f"with-{running.team}", {"spec": {"priorityClassName": "q\U000c2fed"}}
    spec = {
        "delayClassName": running.class_name,
        "source": {"topic": f"{running.team}.pair.delayed"},
        "target": {"topic": f"{running.team}.pair"},
        "relay": {"podTemplate": pod},
    }
    document = {"apiVersion": "delaytopic.dev/v1beta1", "kind": "DelayTopic", "metadata": {"name": name}}

    running.client.create(running.path("").removesuffix("/"), document | {"spec": spec})

    judged = await_generation(running.client, running.path(name), seconds=60.0)
    conditions = {each["type"]: each["message"] for each in judged["status"]["conditions"]}
    assert "q\U000c2fed is not allowed" in conditions["PolicyAccepted"]
    running.delete_topic(name)


@nightly_for(300)
@pytest.mark.takes_long("an API server and an operator judge some hundred objects")
def test_every_delay_topic_is_refused_or_judged_and_stops_nobody_elses(
    seconds: int, running: Platform, record_property: Callable[[str, object], None]
) -> None:
    counts = {"refused by the API server": 0, "judged by the operator": 0, "bytes": 0}
    numbered = count()

    def offer(spec: Any) -> None:
        counts["bytes"] += len(str(spec))
        name = f"hostile-{next(numbered)}"
        # Topics of the team's own: with those of others, nothing further would be looked at.
        own = json.loads(json.dumps(spec).replace('"shop.', f'"{running.team}.'))
        try:
            # Not by server-side apply, which answers 500 where a field has another type than its schema says.
            document = {"apiVersion": "delaytopic.dev/v1beta1", "kind": "DelayTopic", "metadata": {"name": name}}
            spec_of_class = own | {"delayClassName": running.class_name}
            running.client.create(running.path("").removesuffix("/"), document | {"spec": spec_of_class})
        except RequestRefused as error:
            if error.status >= 500:
                raise
            counts["refused by the API server"] += 1
            return
        await_generation(running.client, running.path(name), seconds=60.0)
        running.delete_topic(name)
        counts["judged by the operator"] += 1

    tried = fuzz(specs, offer, seconds)

    running.apply_topic("honest")
    running.await_condition("honest", "TopicsReady", seconds=60)
    unexpected = [line for line in running.operator.get("/metrics").splitlines() if 'result="Unexpected"' in line]
    memory = peak_memory_bytes(running.operator.child.pid)
    record_property("hostile", {"objects": tried, **counts, "peak_memory_bytes": memory})
    assert (unexpected, min(counts.values()) > 0) == ([], True)
