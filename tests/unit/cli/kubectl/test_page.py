"""The verdict, the page and the table, from documents as the API server has them."""

from __future__ import annotations

from typing import Any

import pytest

from delaytopic_cli.kubectl.facts import NO_OPERATOR, Verdict, facts_of, verdict
from delaytopic_cli.kubectl.page import page_lines, table_lines

NOW_MS = 1_795_270_000_000
SINCE = "2026-11-21T14:00:40Z"
READY_SAYS = "records are taken in and delivered at their own time"


def condition(type: str, status: str = "True", reason: str = "Because", message: str = "") -> dict[str, Any]:
    return {"type": type, "status": status, "reason": reason, "message": message, "lastTransitionTime": SINCE}


READY = condition("Ready", reason="Ready", message=READY_SAYS)


def delay_topic(*conditions: dict[str, Any], generation: int = 1, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "shop", "name": "reminders", "uid": "1", "generation": generation},
        "spec": {"source": {"topic": "shop.reminders.delayed"}, "target": {"topic": "shop.reminders"}},
        "status": {"observedGeneration": 1, "conditions": list(conditions), **status},
    }


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (delay_topic(), Verdict("Unknown", NO_OPERATOR)),
        (delay_topic(READY), Verdict("Ready", READY_SAYS)),
        (
            delay_topic(READY, generation=2),
            Verdict("Outdated", "the operator has not looked at the last change yet (generation 2; this is about 1)"),
        ),
        (
            delay_topic(condition("Ready", "False", "TopicExists", "b"), condition("Stalled", message="a")),
            Verdict("Stalled", "a"),
        ),
        (delay_topic(READY, condition("Paused", message="it is")), Verdict("Paused", "it is")),
        (delay_topic(condition("Ready", "False", "Suspended", "so")), Verdict("Suspended", "so")),
        (delay_topic(condition("Ready", "Unknown", "KafkaUnreachable", "no")), Verdict("Unknown", "no")),
        (
            delay_topic(READY, condition("DeliveringOnTime", "False", "Overdue", "3 are late")),
            Verdict("Late", "3 are late"),
        ),
        (
            delay_topic(READY, condition("Reconciling", message="changing")),
            Verdict("Ready", f"{READY_SAYS}; being changed: changing"),
        ),
    ],
)
def test_the_gravest_condition_is_the_verdict(document: dict[str, Any], expected: Verdict) -> None:
    assert verdict(document) == expected


def test_a_page_tells_everything_that_is_known_the_verdict_first() -> None:
    document = delay_topic(
        READY,
        condition("DeliveringOnTime", message="nothing is overdue by more than 1000 ms"),
        condition("CapacitySufficient", "False", "CapacityInsufficient", "8 relays are needed, 4 may be had"),
        source={"partitions": 4, "ownership": "Created"},
        target={"partitions": 1, "ownership": "Observed"},
        backlog={"pending": 12345, "overdue": 0, "dueWithinLookAhead": 7, "nextDue": "2026-11-21T14:10:00Z",
                 "asOf": "2026-11-21T14:06:30Z"},
        backend={"type": "RedisZset"},
        relay={"replicas": 2, "readyReplicas": 1, "desiredReplicas": 2, "maxUsefulReplicas": 4, "version": "0.1.0"},
        scaling={"sentence": "2 relays, as before: nothing more is needed.", "reason": "Due"},
        slo={"attainmentPercent": "99.98%", "latenessP99": "120ms"},
        effective={"precision": "1s"},
    )  # fmt: skip
    event = {"eventTime": "2026-11-21T14:01:00.5Z", "type": "Normal", "reason": "RelayScaled", "note": "from 1 to 2"}

    lines = list(page_lines(document, facts_of(document, [event]), NOW_MS, 110))

    assert lines == [
        "shop/reminders: TooFewRelays",
        "  8 relays are needed, 4 may be had",
        "",
        "topics      source        shop.reminders.delayed       4 partitions   Created",
        "            target        shop.reminders               1 partition    Observed",
        "            dead letter   shop.reminders.delayed.dlq   not seen yet",
        "backlog     12,345 pending, 0 overdue, 7 due soon, next in 3m20s (in RedisZset, counted 10s ago)",
        "relays      1 of 2 relays ready, 2 wanted, more than 4 would not help (version 0.1.0)",
        "scaling     2 relays, as before: nothing more is needed.",
        "SLO         99.98% on time, 99 of 100 at most 120ms late",
        "lateness    nothing is overdue by more than 1000 ms (precision 1s)",
        "",
        "events",
        "  5m39s   Normal   RelayScaled   from 1 to 2",
    ]


def test_a_page_of_something_new_says_what_is_not_known() -> None:
    document = delay_topic()

    lines = list(page_lines(document, facts_of(document), NOW_MS, 110))

    assert lines[:2] == ["shop/reminders: Unknown", f"  {NO_OPERATOR}"]
    assert [line.split(maxsplit=1)[1] for line in lines if line.split()[:1] in (["backlog"], ["relays"], ["SLO"])] == [
        "not known: no relay has answered yet (schedules wait in the backend)",
        "none yet",
        "no audit has run yet",
    ]


def test_a_table_has_a_line_for_each() -> None:
    backlog = {"pending": 3, "overdue": 1, "nextDue": "2026-11-21T14:06:00Z"}
    facts = facts_of(delay_topic(READY, backlog=backlog, relay={"summary": "1/1"}))

    assert table_lines([facts], NOW_MS, namespaces=True) == [
        "NAMESPACE   NAME        VERDICT   PENDING   OVERDUE   NEXT DUE   RELAYS   P99   SOURCE",
        "shop        reminders   Ready     3         1         40s ago    1/1      -     shop.reminders.delayed",
    ]


def test_a_page_tells_of_former_rules_by_which_records_wait() -> None:
    former = {"dialect": "Native", "maxDelay": "24h", "ids": "ByHeader", "defaultDelay": "5s", "records": 1_200,
              "partitions": 4, "lastDue": "2026-11-21T15:06:40Z"}  # fmt: skip
    document = delay_topic(READY, formerRules=[former])

    lines = list(page_lines(document, facts_of(document), NOW_MS, 200))

    assert [line for line in lines if line.startswith("kept rules")] == [
        "kept rules  1,200 records with maxDelay 24h, defaultDelay 5s, ids ByHeader, dialect Native, the last due in 1h"
    ]
