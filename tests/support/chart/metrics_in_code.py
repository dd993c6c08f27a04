"""The series that relays, operator and audit serve, and those that texts in PromQL name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from prometheus_client.parser import text_string_to_metric_families
from tests.support.relay.statuses import AS_OF_MS, relay_status, shard

from delaytopic_api.relay import OpenTransaction, ShardState
from delaytopic_audit.report.prometheus import HELP
from delaytopic_operator.report import metric_names
from delaytopic_relay.telemetry.metrics import RelayMetrics

AUDIT_METRICS = HELP
"""Of the audit: the text of each, without the beginning that all names have."""

_SERIES = re.compile(r"\b(?:delaytopic|process)_[a-z0-9_]+\b")
_LABELS = {"delaytopic_namespace", "delaytopic_name"}
_PARTS = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}


def served_series() -> set[str]:
    """The names of all series, as Prometheus has them."""
    operator = {each.name + part for each in metric_names.ALL for part in _PARTS[each.type]}
    audit = {f"delaytopic_slo_{name}" for name in AUDIT_METRICS}
    return {*_of_relays(), *operator, *audit}


def named_series(text: str) -> set[str]:
    """The names of the project's series in a text."""
    return set(_SERIES.findall(text)) - _LABELS


def _of_relays() -> Iterator[str]:
    metrics = RelayMetrics("shop", "reminders")
    held_back = OpenTransaction(offset=0, since_ms=AS_OF_MS, held_back=1)
    of_redis = shard(0, ShardState.DELIVERING).model_copy(update={"redis_bytes": 0, "open_transaction": held_back})
    metrics.set_backlog(relay_status(next_due_ms=AS_OF_MS, busy_rate=1.0, shards=[of_redis]))
    for family in text_string_to_metric_families(metrics.render().decode()):
        yield from (sample.name for sample in family.samples)
