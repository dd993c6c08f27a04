"""Pages of a forged relay: read, or refused by a named fault, and what is decided by them is decided."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from tests.support.fuzzing import changed, fuzz, nightly_for, peak_memory_bytes
from tests.support.operator.scenes import NOW_MS
from tests.unit.operator.scaling.scenes import POLICY, SLEEPY, shard, source, status

from delaytopic_api import RelayStatus
from delaytopic_api.relay import PendingList
from delaytopic_gateway.client.pending import report
from delaytopic_gateway.client.relay_listing import RelayAnswer
from delaytopic_gateway.documents import record_page
from delaytopic_gateway.reach.text import pending_lines
from delaytopic_operator.observe.fleet import FleetFacts, RelayPage, availability, backlog
from delaytopic_operator.scaling.decision import decide
from delaytopic_operator.scaling.signals import gather
from delaytopic_operator.scaling.state import ScalingMemory
from delaytopic_process.errors import ProgramError

numbers = st.one_of(
    st.integers(),
    st.integers(0, 100),
    st.sampled_from([NOW_MS, NOW_MS + 1_000, -1, 2**63 - 1, 2**63, -(2**63), 10**30, 10**400]),
    st.floats(),
)
texts = st.text(max_size=20) | st.sampled_from(["Running", "Delivering", "Replaying", "", "\x1b[2J"])
scalars = st.none() | st.booleans() | numbers | texts
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=10
)


@st.composite
def pages(draw: st.DrawFn, page: Any) -> bytes:
    """Draw a genuine page that was changed, cut, or is no page at all."""
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.binary(max_size=200))
    if kind == 1:
        return json.dumps(draw(anything)).encode()
    if kind == 2:
        opening = draw(st.sampled_from(["[", '{"shards":', "-", "9", " "]))
        return (opening * draw(st.sampled_from([1, 500, 50_000]))).encode()
    data = json.dumps(draw(changed(page, numbers, anything))).encode()
    return data[: draw(st.integers(0, len(data)))] if kind == 3 else data


STATUS = json.loads(status({0: shard(0, overdue=3), 1: shard(1)}).to_json())
PENDING: dict[str, Any] = {
    "relay": "relay-0",
    "delayTopic": "shop/reminders",
    "source": "shop.a",
    "sourcePartitions": 2,
    "asOfMs": NOW_MS,
    "pending": 1,
    "overdue": 0,
    "nextDueMs": NOW_MS + 1_000,
    "ingestLag": 0,
    "dueHistogram": [{"upToMs": NOW_MS + 1_000, "records": 1}],
    "dueBeforeMs": None,
    "limit": 10,
    "complete": True,
    "limited": False,
    "listedUntilMs": None,
    "message": None,
    "shards": [{"partition": 0, "listed": True, "pending": 1, "message": None}],
    "records": [
        {"dueMs": NOW_MS + 1_000, "partition": 0, "offset": 4, "target": "shop.b", "id": "a", "idBase64": None}
        | {"key": "k", "keyBase64": None, "keyBytes": 1, "valueBytes": 3}
    ],
}


@nightly_for(150)
def test_every_status_page_is_refused_or_decided_by(
    seconds: int, record_property: Callable[[str, object], None]
) -> None:
    counts = {"read": 0, "refused": 0, "bytes": 0}

    def read(found: list[bytes]) -> None:
        statuses = []
        for page in found:
            counts["bytes"] += len(page)
            try:
                statuses.append(RelayStatus.model_validate_json(page, by_alias=True, by_name=False))
                counts["read"] += 1
            except ValueError:
                counts["refused"] += 1
        fleet = FleetFacts(None, [], [RelayPage(each.relay, each, None) for each in statuses], 2)
        (backlog(fleet, 600_000), availability(fleet), fleet.complete, fleet.pending, fleet.to_move)
        for policy in (POLICY, SLEEPY):
            memory = ScalingMemory()
            for now_ms in (NOW_MS, NOW_MS + 15_000):
                signals = gather(statuses, source(now_ms, 2), now_ms, pods={"relay-0": NOW_MS - 60_000})
                decision = decide(policy, 1, signals, memory, now_ms)
                memory = decision.memory
                assert 0 <= decision.replicas <= 2

    tried = fuzz(st.lists(pages(STATUS), min_size=1, max_size=3), read, seconds)

    record_property("hostile", {"fleets": tried, **counts, "peak_memory_bytes": peak_memory_bytes()})
    assert (counts["read"] > 0, counts["refused"] > 0) == (True, True)


@nightly_for(150)
def test_every_list_of_what_is_pending_is_refused_or_shown(
    seconds: int, record_property: Callable[[str, object], None]
) -> None:
    counts = {"shown": 0, "refused": 0, "bytes": 0}

    def read(found: list[bytes]) -> None:
        answers = []
        for page in found:
            counts["bytes"] += len(page)
            try:
                answers.append(RelayAnswer("http://relay", PendingList.model_validate_json(page)))
            except ValueError:
                answers.append(RelayAnswer("http://relay", problem="no list"))
        try:
            shown = record_page(report("shop/reminders", answers, 10))
        except ProgramError:
            counts["refused"] += 1
            return
        counts["shown"] += 1
        shown.model_dump_json(by_alias=True)
        list(pending_lines(shown, of_all=True, now_ms=NOW_MS, width=120))

    tried = fuzz(st.lists(pages(PENDING), min_size=1, max_size=3), read, seconds)

    record_property("hostile", {"lists": tried, **counts, "peak_memory_bytes": peak_memory_bytes()})
    assert (counts["shown"] > 0, counts["refused"] > 0) == (True, True)
