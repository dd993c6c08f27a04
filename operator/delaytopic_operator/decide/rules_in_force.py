"""The rules by which relays read: when they were declared, and whether all that is read now is read by them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from delaytopic_api.documents import ConditionStatus, ConditionType, FormerRulesStatus
from delaytopic_api.values import Dialect, Duration, Ids, may_wait_together
from delaytopic_operator.model.conditions import FALSE, TRUE, UNKNOWN, Condition, instant
from delaytopic_operator.model.declared_rules import LONGEST_FIELD, DeclaredRules, declared, taken_over
from delaytopic_operator.model.record import RouteRecord
from delaytopic_operator.observe.former_rules import former_rules
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.resources.identity import CONFIG_HASH
from delaytopic_operator.rules.validate import Accepted

_TYPE: Final = str(ConditionType.RULES_IN_FORCE)
_ROLLING: Final = "what is produced before all relays have started anew is read by the rules of before"
_TOLD: Final = ("dialect", "maxDelay", "defaultDelay", "fixedDelay", "ids", "target.allowedTopics")
"""The rules that relays tell of."""
_ALL: Final = (*_TOLD, "options")


def rules_of(seen: Observation, accepted: Accepted) -> DeclaredRules:
    """Return the declared rules, as they are to be written down."""
    return declared(seen.route.record.rules if seen.route.record is not None else None, accepted.settings, seen.now_ms)


def rules_taken_over(record: RouteRecord, seen: Observation, wanted: Iterable[Mapping[str, Any]]) -> RouteRecord:
    """Return the record, its rules taken over if relays of the `wanted` Deployment read all partitions by them."""
    if record.rules is None or record.rules.taken_over or not _read_by_all(seen, wanted):
        return record
    return record.model_copy(update={"rules": taken_over(record.rules, seen.now_ms)})


def are_settled(record: RouteRecord, seen: Observation, wanted: Iterable[Mapping[str, Any]]) -> bool:
    """Tell if the rules stay as they are while the Deployment does: taken over, or unknown to its relays."""
    return record.rules is not None and (record.rules.taken_over or not _is_live(seen, wanted))


def _is_live(seen: Observation, wanted: Iterable[Mapping[str, Any]]) -> bool:
    """Tell if the Deployment names the configuration that is wanted."""
    deployment = next((each for each in wanted if each["kind"] == "Deployment"), None)
    live = seen.fleet.deployment
    return deployment is not None and live is not None and _pod_hash(deployment) == _pod_hash(live)


def _read_by_all(seen: Observation, wanted: Iterable[Mapping[str, Any]]) -> bool:
    if not _is_live(seen, wanted):
        return False
    current = seen.fleet.of_template
    return current.complete and all(shard.rules_wait is None for shard in current.shards.values())


def _pod_hash(deployment: Mapping[str, Any]) -> str | None:
    template: Mapping[str, Any] = deployment["spec"].get("template") or {}
    found: Mapping[str, str] = (template.get("metadata") or {}).get("annotations") or {}
    return found.get(CONFIG_HASH)


# -- what is said


def rules_conditions(seen: Observation, rules: DeclaredRules | None = None) -> list[Condition]:
    """Return RulesInForce of these rules, or of those that were written down; nothing before there are relays."""
    if rules is None and seen.route.record is not None:
        rules = seen.route.record.rules
    if seen.fleet.deployment is None or rules is None:
        return []
    status, reason, message = _found(seen, rules)
    return [Condition(ConditionType.RULES_IN_FORCE, status, reason, message)]


def _found(seen: Observation, rules: DeclaredRules) -> tuple[ConditionStatus, str, str]:
    waiting = {number: shard.rules_wait for number, shard in sorted(seen.fleet.shards.items()) if shard.rules_wait}
    if waiting:
        first = next(iter(waiting))
        many = f"{len(waiting)} source partitions (the first: {first}) are read by the rules of before the edit"
        return FALSE, "EditWaits", f"{many}: {waiting[first]}{_latest(rules)}"
    if not rules.taken_over:
        if seen.fleet.desired == 0:
            return UNKNOWN, "NoRelays", "there are no relays: the next ones read by the rules of now"
        if not rules.superseded:
            return UNKNOWN, "RollingOut", "no relays have read all partitions by these rules yet"
        # The status may be minutes old; it is what is left to go by while not all relays answer.
        counted = seen.fleet.pending
        pending = counted if counted is not None else (seen.route.status.get("backlog") or {}).get("pending")
        said = edit_sentence(rules.superseded, rules.fields, pending, rules.declared_ms)
        return FALSE, "RollingOut", f"{_ROLLING}: {said}" if said is not None else _ROLLING
    former = former_rules(seen.fleet)
    if former:
        kept = "; ".join(_kept_sentence(each, rules.fields) for each in former)
        of_now = _differing(rules.fields, _words(former))
        return TRUE, "FormerRulesWait", f"{kept}. What is produced from now on gets {of_now}"
    before = next((each for each in seen.route.status.get("conditions") or () if each.get("type") == _TYPE), None)
    if before is not None and not seen.fleet.complete:
        return ConditionStatus(before["status"]), str(before["reason"]), str(before.get("message", ""))
    return TRUE, "InForce", "all that waits was read by the rules of now"


def edit_sentence(former: Mapping[str, str], now: Mapping[str, str], pending: int | None, edited_ms: int) -> str | None:
    """Say what an edit does to what waits: the two sets of rules are in words. None if they say the same."""
    kept, new = _differing(former, [now], _ALL), _differing(now, [former], _ALL)
    if not former or kept == new:
        return None
    count = f"up to {pending:,} records" if pending is not None else "an unknown number of records"
    said = f"what waits keeps {kept} ({count}{_due_by(former, edited_ms)}); what is produced from now on gets {new}"
    if _go_together(former, now):
        return said
    return (
        f"{said}. The edit waits until nothing waits any more, as the ids of dialect {now['dialect']} are others than "
        f"those of {former['dialect']}: let producers pause until then, or make another DelayTopic"
    )


def _go_together(former: Mapping[str, str], now: Mapping[str, str]) -> bool:
    before = Dialect(former["dialect"]), Ids(former["ids"])
    return may_wait_together(*before, Dialect(now["dialect"]), Ids(now["ids"]))


def _due_by(former: Mapping[str, str], edited_ms: int) -> str:
    return f", the last due by {instant(edited_ms + Duration(former['maxDelay']).ms)}"


def _latest(rules: DeclaredRules) -> str:
    if not rules.superseded:
        return ""
    last = instant(rules.declared_ms + Duration(rules.superseded["maxDelay"]).ms)
    return f". What was produced before the edit is due by {last}"


def _kept_sentence(former: FormerRulesStatus, now: Mapping[str, str]) -> str:
    many = f"{former.records:,} records keep" if former.records != 1 else "1 record keeps"
    last = instant(round(former.last_due.timestamp() * 1_000))
    return f"{many} {_differing(_words([former])[0], [now])}, the last is due at {last}"


def _words(former: Sequence[FormerRulesStatus]) -> list[dict[str, str]]:
    found = []
    for each in former:
        words = {
            "dialect": each.dialect,
            "maxDelay": each.max_delay,
            "defaultDelay": each.default_delay,
            "fixedDelay": each.fixed_delay,
            "ids": each.ids,
            "target.allowedTopics": ", ".join(each.allowed_topics)[:LONGEST_FIELD],
        }
        found.append({name: value for name, value in words.items() if value})
    return found


def _differing(rules: Mapping[str, str], others: Sequence[Mapping[str, str]], names: Sequence[str] = _TOLD) -> str:
    """Name the rules that differ from some of the others."""
    differing = [name for name in names if any(rules.get(name) != other.get(name) for other in others)]
    return ", ".join(f"{name} {rules[name]}" if name in rules else f"no {name}" for name in differing) or "other rules"
