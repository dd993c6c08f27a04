"""Rules of before an edit by which records wait, as all relays of a DelayTopic know them together. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

from delaytopic_api.documents import MOST_FORMER, FormerRulesStatus
from delaytopic_api.relay import FormerRules
from delaytopic_api.values import Dialect, Duration, Ids
from delaytopic_operator.model.conditions import instant
from delaytopic_operator.observe.fleet import FleetFacts

_MOST_ALLOWED: Final = 16
_LONGEST_GLOB: Final = 255
_MOST_RECORDS: Final = 2**53
_LONGEST_MS: Final = 100_000 * 3_600_000


class _Rules(NamedTuple):
    declared_ms: int
    dialect: Dialect
    max_delay_ms: int
    default_delay_ms: int | None
    fixed_delay_ms: int | None
    ids: Ids
    allowed_topics: tuple[str, ...]


def former_rules(fleet: FleetFacts) -> list[FormerRulesStatus]:
    """Return each of them once, of all partitions that relays speak of, the oldest first."""
    of_partitions: dict[_Rules, list[FormerRules]] = defaultdict(list)
    for shard in fleet.shards.values():
        for each in shard.former_rules[:MOST_FORMER]:
            of_partitions[_key(each)].append(each)
    found = sorted(of_partitions.items(), key=lambda item: item[0].declared_ms)
    return [_status(rules, waiting) for rules, waiting in found[:MOST_FORMER]]


def _key(rules: FormerRules) -> _Rules:
    return _Rules(
        rules.declared_ms,
        rules.dialect,
        rules.max_delay_ms,
        rules.default_delay_ms,
        rules.fixed_delay_ms,
        rules.ids,
        tuple(glob[:_LONGEST_GLOB] for glob in rules.allowed_topics[:_MOST_ALLOWED]),
    )


def _status(rules: _Rules, waiting: Sequence[FormerRules]) -> FormerRulesStatus:
    return FormerRulesStatus.model_validate(
        {
            "dialect": str(rules.dialect),
            "maxDelay": _duration(rules.max_delay_ms),
            "defaultDelay": _duration(rules.default_delay_ms) if rules.default_delay_ms is not None else None,
            "fixedDelay": _duration(rules.fixed_delay_ms) if rules.fixed_delay_ms is not None else None,
            "ids": str(rules.ids),
            "allowedTopics": list(rules.allowed_topics),
            "declaredAt": instant(rules.declared_ms) if rules.declared_ms else None,
            "records": min(_MOST_RECORDS, sum(max(0, each.records) for each in waiting)),
            "partitions": len(waiting),
            "lastDue": instant(max(each.last_due_ms for each in waiting)),
        }
    )


def _duration(ms: int) -> str:
    return str(Duration.of_ms(ms)) if 0 <= ms < _LONGEST_MS else f"{ms} ms"
