"""The rules of a DelayTopic as the operator remembers them: when they were declared, and what former ones still ask of
the source topic. Pure.

What was produced before an edit is read by the rules of then, and waits by them. So the source must keep such records
for as long as those rules wanted, counted from when the last of them may have been produced: when relays with the
edited rules have all partitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from pydantic import ConfigDict, Field

from delaytopic_api import Settings
from delaytopic_api.documents import Model
from delaytopic_api.policy import RETENTION_MARGIN, mark_of

LONGEST_FIELD: Final = 200


class _Part(Model):
    # What an operator of the same version adds is kept when this one writes.
    model_config = ConfigDict(extra="allow")


class FormerNeed(_Part):
    """The demands of rules of before an edit on the source topic."""

    retention_ms: int
    """The time for which it has to keep each record."""
    by_offset: bool = True
    """False if it may be compacted: of each key the latest record is all that matters."""
    ended_ms: int | None = None
    """The time from which on nothing is read by them that is produced later; None while it may be."""

    @property
    def until_ms(self) -> int | None:
        """The time at which nothing is left that they ask for; None while that is not known."""
        return None if self.ended_ms is None else self.ended_ms + self.retention_ms


class DeclaredRules(_Part):
    """The rules that are declared, and what the former ones ask for."""

    mark: str
    """`rules_mark`: another one means other rules."""
    declared_ms: int
    """The time at which the operator saw them first in this form; each later form has a later one."""
    fields: dict[str, str] = Field(default_factory=dict)
    """The rules in words, by the field where each is written."""
    superseded: dict[str, str] = Field(default_factory=dict)
    """The digests of the rules that relays read by until they take these over."""
    retention_ms: int
    """The time for which they ask the source to keep each record."""
    by_offset: bool = True
    """The same as in `FormerNeed`."""
    taken_over: bool = False
    """True once relays that know them had all partitions."""
    former: tuple[FormerNeed, ...] = ()
    """The needs of former rules that ask for more, the oldest first."""


class SourceNeeds(NamedTuple):
    """The demands of all former rules together on the source topic."""

    retention_ms: int = 0
    """The time for which it has to keep each record."""
    by_offset: bool = False
    """True if it must not be compacted."""
    until_ms: int | None = None
    """The time at which nothing is left that they ask for; None while that is not known."""


NO_NEEDS: Final = SourceNeeds()


def needs_of_former(rules: DeclaredRules | None) -> SourceNeeds:
    """Return what all former rules ask for, as of when these were remembered."""
    if rules is None or not rules.former:
        return NO_NEEDS
    ends = [need.until_ms for need in rules.former]
    known = [end_ms for end_ms in ends if end_ms is not None]
    return SourceNeeds(
        max(need.retention_ms for need in rules.former),
        any(need.by_offset for need in rules.former),
        max(known) if len(known) == len(ends) else None,
    )


def declared(before: DeclaredRules | None, settings: Settings, now_ms: int) -> DeclaredRules:
    """Return what to remember of the rules in these settings, seen now; the same as before while they are the same."""
    rules = DeclaredRules(
        mark=mark_of(settings),
        declared_ms=now_ms,
        fields=fields_of(settings),
        retention_ms=_retention_ms(settings),
        by_offset=not settings.schedule.capabilities.tombstones,
    )
    if before is None:
        return rules
    if before.mark == rules.mark:
        of_now = {"retention_ms": rules.retention_ms, "by_offset": rules.by_offset}
        rules, former = before.model_copy(update=of_now), before.former
    else:
        in_force = before.fields if before.taken_over or not before.superseded else before.superseded
        later = {"declared_ms": max(now_ms, before.declared_ms + 1), "superseded": in_force}
        rules = rules.model_copy(update=later)
        former = (*before.former, FormerNeed(retention_ms=before.retention_ms, by_offset=before.by_offset))
    return rules.model_copy(update={"former": _still_needed(former, rules, now_ms)})


def fields_of(settings: Settings) -> dict[str, str]:
    """Return the rules in words, by the field where each is written; without those that are not set."""
    schedule = settings.schedule
    options = (schedule.cesium, schedule.scheduler, schedule.redelivery)
    words = {
        "dialect": schedule.dialect,
        "maxDelay": schedule.max_delay,
        "defaultDelay": schedule.default_delay,
        "fixedDelay": schedule.fixed_delay,
        "ids": schedule.ids,
        "target.allowedTopics": ", ".join(settings.allowed_topics),
        "options": ", ".join(
            f"{name} {value}" for each in options if each is not None for name, value in each.to_document().items()
        ),
    }
    return {name: str(value)[:LONGEST_FIELD] for name, value in words.items() if value}


def taken_over(rules: DeclaredRules, now_ms: int) -> DeclaredRules:
    """Return the same once relays that know these rules have all partitions."""
    if rules.taken_over:
        return rules
    ended = (
        need if need.ended_ms is not None else need.model_copy(update={"ended_ms": now_ms}) for need in rules.former
    )
    return rules.model_copy(update={"taken_over": True, "superseded": {}, "former": tuple(ended)})


def _still_needed(former: Iterable[FormerNeed], rules: DeclaredRules, now_ms: int) -> tuple[FormerNeed, ...]:
    """Leave out what has passed, asks for no more than the rules of now, or is asked for by a later need, too."""
    kept: list[FormerNeed] = []
    for need in reversed([*former]):
        passed = need.until_ms is not None and need.until_ms <= now_ms
        asks_more = need.retention_ms > rules.retention_ms or (need.by_offset and not rules.by_offset)
        covered = any(later.retention_ms >= need.retention_ms and later.by_offset >= need.by_offset for later in kept)
        if asks_more and not passed and not covered:
            kept.append(need)
    return tuple(reversed(kept))


def _retention_ms(settings: Settings) -> int:
    """Return how long a record may matter: as long as it waits and a margin, or less if less is written or allowed."""
    longest_ms = settings.schedule.max_delay.ms + RETENTION_MARGIN.ms
    source = settings.source
    written = str(source.retention.ms) if source.retention is not None else source.config.get("retention.ms", "")
    return min(int(written), longest_ms) if written.isdecimal() else longest_ms
