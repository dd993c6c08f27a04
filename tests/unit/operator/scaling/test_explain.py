from __future__ import annotations

import json

from tests.unit.operator.scaling.scenes import NOW_MS, burst, decided, shard, signals, source, status

from delaytopic_operator.scaling.explain import as_text, explain
from delaytopic_operator.scaling.signals import gather
from delaytopic_operator.scaling.state import ScalingMemory


def test_a_decision_is_explained_with_every_number_behind_it() -> None:
    seen = signals(burst(60, 300_000, per_second=300), overdue=120)

    document = explain(decided(1, seen), seen)

    assert json.loads(json.dumps(document)) == document
    assert (document["current"], document["decided"], document["reason"]) == (1, 12, "DueSoon")
    assert document["sizes"] == {"partitions": 12, "maxUseful": 12, "allowed": [1, 2, 3, 4, 6, 12]}
    assert document["capacity"] == {
        "perRelay": 2_500,
        "measured": True,
        "leadTimeMs": 45_000,
        "measuredStarts": 20,
    }
    assert document["needs"][0] == {
        "kind": "Due",
        "relays": 33.5,
        "size": 12,
        "records": 301_500,
        "fromMs": NOW_MS + 50_000,
        "toMs": NOW_MS + 100_000,
        "actFromMs": NOW_MS - 10_000,
        "binding": True,
    }
    assert document["forecastLatenessMs"] == {"current": 120_000, "decided": 10_000, "most": 10_000}
    assert document["signals"]["overdue"] == {"value": 120, "ageMs": 0}


def test_the_text_for_a_terminal_tells_the_same() -> None:
    seen = signals(burst(60, 300_000, per_second=300))

    text = as_text(explain(decided(1, seen), seen))

    assert text.splitlines()[0].startswith("From 1 to 12 relays: 301,500 records due between")
    assert "A relay delivers 2,500 a second (measured), 45 s (p95 of 20 starts) after it was asked for." in text
    assert "*  33.50  Due      301,500 records between 08:00:50 and 08:01:40 UTC" in text
    assert "Forecast lateness: 2 min with the present relays, 10 s with those decided, 10 s with the most" in text


def test_what_is_not_known_is_said() -> None:
    seen = gather(
        [status({n: shard(n) for n in range(11)}), status(relay="hanging", as_of_ms=NOW_MS - 60_000)], source(), NOW_MS
    )

    text = as_text(explain(decided(12, seen), seen))

    assert "No relay reports partition 11." in text
    assert "Too old to count: hanging." in text


def test_a_topic_that_nobody_knows_can_be_explained_too() -> None:
    seen = gather([], None, NOW_MS)

    document = explain(decided(1, seen, remembered=ScalingMemory()), seen)

    assert (document["sizes"], document["capacity"], document["forecastLatenessMs"]) == (None, None, None)
    assert as_text(document).startswith("Stays at 1 relay: the source's partitions are not known yet.")


def test_a_later_need_is_shown_with_when_it_will_be_acted_on() -> None:
    seen = signals(burst(400, 300_000, per_second=300))

    text = as_text(explain(decided(1, seen), seen))

    assert "   33.50  Due      301,500 records between 08:03:20 and 08:08:20 UTC, to act on from 08:02:20 UTC" in text
