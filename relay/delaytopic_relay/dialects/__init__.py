"""Dialects: how a record says when it is due, and what is written on the way out.

Pure: a dialect is made once from the rules by which it reads, and reads every record by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from delaytopic_api.documents import CesiumSpec, SchedulerOptions
from delaytopic_api.relay import RelayConfig, RelaySchedule
from delaytopic_api.values import CesiumNumbers, Ids, OnBeyondMaxDelay, OnMalformed, Provenance
from delaytopic_api.values import Dialect as DialectName
from delaytopic_relay.core.commands import Dialect
from delaytopic_relay.core.rules import READER, Rules, allowed_of, target_mark
from delaytopic_relay.dialects.black_box import BlackBoxDialect
from delaytopic_relay.dialects.cesium import CesiumDialect, CesiumRules
from delaytopic_relay.dialects.karafka import KarafkaDialect
from delaytopic_relay.dialects.kaspr import KasprDialect
from delaytopic_relay.dialects.moved import MovedDialect
from delaytopic_relay.dialects.native import NativeDialect, NativePolicy
from delaytopic_relay.dialects.reading import FormerTopics, RoutePolicy, TopicGlobs
from delaytopic_relay.dialects.recurring import RecurringWriter
from delaytopic_relay.dialects.redelivery import RedeliveryDialect
from delaytopic_relay.dialects.scheduler import SchedulerDialect, SchedulerRules
from delaytopic_relay.dialects.scheduler_json import SchedulerJsonDialect
from delaytopic_relay.dialects.timebridge import TimebridgeDialect
from delaytopic_relay.dialects.writing import LetterWriter, ReadBy, Rewriter, Writer, WritingDialect, untouched
from delaytopic_relay.errors import UnknownRules

__all__ = ["NATIVE_FORMS", "Forms", "dialect_by", "dialect_for", "forms_for", "rules_of"]

ANY_TOPIC: Final = ("*",)
FORMER_TARGET: Final = "\0 the former target"
"""Stands for the name of a target that is another one by now; no topic has this name."""


class Forms(NamedTuple):
    """The forms of what leaves a relay: a writer for each dialect but the native one, and that of dead letters."""

    writers: Mapping[int, Writer]
    """The writers of all dialects, by `Schedule.control`: what waits was read by the one that the DelayTopic had then.
    """
    letter: LetterWriter
    rewriters: Mapping[int, Rewriter] = MappingProxyType({})
    """The rewriters of dialects that put off, and of what recurs, likewise."""


NATIVE_FORMS: Final = Forms({}, untouched)


def rules_of(config: RelayConfig) -> Rules:
    """The rules by which this DelayTopic's records are read."""
    schedule, target = config.schedule, config.target
    return Rules(
        schedule.dialect,
        schedule.max_delay.ms,
        target_mark(target.topic),
        schedule.default_delay.ms if schedule.default_delay is not None else None,
        schedule.fixed_delay.ms if schedule.fixed_delay is not None else None,
        schedule.ids,
        _OPTIONS[schedule.dialect](schedule) if schedule.dialect in _OPTIONS else "",
        allowed_of(target.allowed_topics),
    )


def dialect_for(config: RelayConfig, misspelt: Callable[[str], None] | None = None) -> Dialect:
    """The dialect that reads by the rules of this DelayTopic."""
    return dialect_by(rules_of(config), config.target.topic, misspelt)


def dialect_by(rules: Rules, target: str, misspelt: Callable[[str], None] | None = None) -> Dialect:
    """The dialect that reads by some rules; `target` is the target topic. Raises `UnknownRules`.

    `misspelt` hears of header names that resemble a control header's, in the native one.
    """
    if rules.shift_ms:
        return MovedDialect(dialect_by(rules._replace(shift_ms=0), target, misspelt), rules.shift_ms)
    if rules.reader != READER:
        raise UnknownRules(
            f"records that wait were read by version {rules.reader} of the reader, and this relay has version {READER}:"
            " run the release that read them until they are delivered"
        )
    policy = _policy(rules, target)
    if rules.dialect is DialectName.NATIVE:
        ids_enabled = rules.ids is Ids.BY_HEADER
        return NativeDialect(NativePolicy(*policy, rules.default_delay_ms, rules.delay_ms, ids_enabled), misspelt)
    try:
        return _READERS[rules.dialect](policy, rules.options)
    except ValueError as error:
        raise UnknownRules(
            f"records that wait were read with options {rules.options!r} of dialect {rules.dialect}, which this relay"
            f" does not know ({error}): run the release that read them until they are delivered"
        ) from error


def forms_for(config: RelayConfig) -> Forms:
    """The forms of all that leaves, with the rules of this DelayTopic."""
    foreign = {name: make(config) for name, make in _WRITERS.items()}
    current = foreign.get(config.schedule.dialect)
    recurring = RecurringWriter(_policy_of(config))
    writers: dict[int, Writer] = {int(dialect.read_by): dialect.write for dialect in foreign.values()}
    writers[int(ReadBy.OCCURRENCE)] = recurring.write
    rewriters: dict[int, Rewriter] = {
        int(ReadBy.REDELIVERY): _redelivery_writer(config).rewrite,
        int(ReadBy.TO_BE_RESOLVED): recurring.rewrite,
        int(ReadBy.OCCURRENCE): recurring.rewrite,
    }
    return Forms(writers, current.letter if current is not None else recurring.letter, rewriters)


def _policy(rules: Rules, target: str) -> RoutePolicy:
    globs = ANY_TOPIC if rules.allowed is None else rules.allowed
    if target_mark(target) == rules.target:
        return RoutePolicy(target, TopicGlobs(globs), rules.max_delay_ms)
    return RoutePolicy(FORMER_TARGET, FormerTopics(globs, rules.target), rules.max_delay_ms)


def _policy_of(config: RelayConfig) -> RoutePolicy:
    return RoutePolicy(config.target.topic, TopicGlobs(config.target.allowed_topics), config.schedule.max_delay.ms)


# Options as rules have them: what decides about a record when it is read. What is decided when it leaves is none.


def _cesium_options(schedule: RelaySchedule) -> str:
    spec = schedule.cesium or CesiumSpec()
    return f"{spec.on_malformed}+{spec.on_beyond_max_delay}+{spec.numbers}"


def _cesium_reader(policy: RoutePolicy, options: str) -> CesiumDialect:
    on_malformed, on_beyond_max_delay, numbers = options.split("+")
    rules = CesiumRules(OnMalformed(on_malformed), OnBeyondMaxDelay(on_beyond_max_delay), CesiumNumbers(numbers))
    return CesiumDialect(policy, rules)


def _cesium_writer(config: RelayConfig) -> CesiumDialect:
    spec = config.schedule.cesium or CesiumSpec()
    stamped = spec.provenance is Provenance.STAMPED
    rules = CesiumRules(spec.on_malformed, spec.on_beyond_max_delay, spec.numbers, stamped)
    return CesiumDialect(_policy_of(config), rules)


def _scheduler_options(schedule: RelaySchedule) -> str:
    spec = schedule.scheduler or SchedulerOptions()
    grace = "" if spec.grace_interval is None else spec.grace_interval.ms
    return f"{grace}+{'' if spec.since_days is None else spec.since_days}"


def _scheduler_reader(policy: RoutePolicy, options: str) -> SchedulerDialect:
    grace_ms, since_days = (int(text) if text else None for text in options.split("+"))
    return SchedulerDialect(policy, SchedulerRules(grace_ms=grace_ms, since_days=since_days))


def _scheduler_writer(config: RelayConfig) -> SchedulerDialect:
    history = config.history.topic if config.history is not None else None
    return SchedulerDialect(_policy_of(config), SchedulerRules(history=history))


def _redelivery_writer(config: RelayConfig) -> RedeliveryDialect:
    spec = config.schedule.redelivery
    return RedeliveryDialect(_policy_of(config), spec.max_redeliveries if spec is not None else None)


_OPTIONS: Final[Mapping[DialectName, Callable[[RelaySchedule], str]]] = {
    DialectName.CESIUM: _cesium_options,
    DialectName.SCHEDULER: _scheduler_options,
}
_READERS: Final[Mapping[DialectName, Callable[[RoutePolicy, str], Dialect]]] = {
    DialectName.BLACK_BOX: lambda policy, _: BlackBoxDialect(policy),
    DialectName.CESIUM: _cesium_reader,
    DialectName.TIMEBRIDGE: lambda policy, _: TimebridgeDialect(policy),
    DialectName.KASPR: lambda policy, _: KasprDialect(policy),
    DialectName.KARAFKA: lambda policy, _: KarafkaDialect(policy),
    DialectName.SCHEDULER: _scheduler_reader,
    DialectName.SCHEDULER_JSON: lambda policy, _: SchedulerJsonDialect(policy),
    DialectName.REDELIVERY: lambda policy, _: RedeliveryDialect(policy),
}
_WRITERS: Final[Mapping[DialectName, Callable[[RelayConfig], WritingDialect]]] = {
    DialectName.BLACK_BOX: lambda config: BlackBoxDialect(_policy_of(config)),
    DialectName.CESIUM: _cesium_writer,
    DialectName.TIMEBRIDGE: lambda config: TimebridgeDialect(_policy_of(config)),
    DialectName.KASPR: lambda config: KasprDialect(_policy_of(config)),
    DialectName.KARAFKA: lambda config: KarafkaDialect(_policy_of(config)),
    DialectName.SCHEDULER: _scheduler_writer,
    DialectName.SCHEDULER_JSON: lambda config: SchedulerJsonDialect(_policy_of(config)),
    DialectName.REDELIVERY: _redelivery_writer,
}
