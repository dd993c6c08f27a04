from __future__ import annotations

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from tests.support.relay.statuses import AS_OF_MS, relay_status, shard

from delaytopic_api.records import DeadLetterReason
from delaytopic_api.relay import OpenTransaction, ShardState
from delaytopic_relay.telemetry.metrics import LABELS, RECOVERY_CAUSES, RelayMetrics

REFERENCE = Path(__file__).parents[4] / "docs" / "reference" / "metrics.md"
ROW = re.compile(r"^\| `(?P<name>\w+)` \| (?P<type>\w+) \|(?P<labels>[^|]*)\|", re.MULTILINE)

Shape = tuple[str, frozenset[str]]
"""A metric's type and its labels, but for those that all of ours have."""


def documented() -> dict[str, Shape]:
    rows = ROW.finditer(REFERENCE.read_text())
    return {row["name"]: (row["type"], frozenset(re.findall(r"\w+", row["labels"]))) for row in rows}


def served() -> dict[str, Shape]:
    metrics = RelayMetrics("shop", "reminders")
    held_back = OpenTransaction(offset=0, since_ms=AS_OF_MS, held_back=1)
    held = shard(0, ShardState.DELIVERING).model_copy(update={"open_transaction": held_back})
    metrics.set_backlog(relay_status(next_due_ms=AS_OF_MS, busy_rate=1.0, shards=[held]))
    shapes: dict[str, Shape] = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels} - {"le", *LABELS}
        shapes[name] = (family.type, frozenset(labels))
    return shapes


def test_every_metric_is_in_the_reference_and_everything_in_the_reference_is_a_metric() -> None:
    assert documented() == served(), f"left: the rows of {REFERENCE.name}; right: those of telemetry/metrics.py"


def test_every_cause_and_state_is_named_in_the_reference() -> None:
    text = REFERENCE.read_text()

    missing = [word for word in (*RECOVERY_CAUSES, *ShardState) if f"`{word}`" not in text]

    assert missing == []


def test_every_reason_is_named_in_the_record_contract_that_the_reference_points_to() -> None:
    text = REFERENCE.with_name("record-contract.md").read_text()

    missing = [reason.value for reason in DeadLetterReason if f"`{reason.value}`" not in text]

    assert missing == []
