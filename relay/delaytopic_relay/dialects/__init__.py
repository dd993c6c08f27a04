"""Dialects: how a record says when it is due, and what is written on the way out.

Pure: a dialect is made once, and reads every record by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from delaytopic_api.documents import CesiumSpec
from delaytopic_api.relay import RelayConfig
from delaytopic_api.values import Dialect as DialectName
from delaytopic_api.values import Ids, Provenance
from delaytopic_relay.core.commands import Dialect
from delaytopic_relay.dialects.black_box import BlackBoxDialect
from delaytopic_relay.dialects.cesium import CesiumDialect, CesiumRules
from delaytopic_relay.dialects.karafka import KarafkaDialect
from delaytopic_relay.dialects.kaspr import KasprDialect
from delaytopic_relay.dialects.native import NativeDialect, NativePolicy
from delaytopic_relay.dialects.reading import RoutePolicy, TopicGlobs
from delaytopic_relay.dialects.redelivery import RedeliveryDialect
from delaytopic_relay.dialects.scheduler import SchedulerDialect, SchedulerRules
from delaytopic_relay.dialects.scheduler_json import SchedulerJsonDialect
from delaytopic_relay.dialects.timebridge import TimebridgeDialect
from delaytopic_relay.dialects.writing import LetterWriter, ReadBy, Restater, Writer, WritingDialect, untouched

__all__ = ["NATIVE_FORMS", "Forms", "dialect_for", "forms_for"]


class Forms(NamedTuple):
    """The forms of what leaves a relay: a writer for each dialect but the native one, and that of dead letters."""

    writers: Mapping[int, Writer]
    """By `Schedule.control`. All dialects': what waits was read by the one that the DelayTopic had then."""
    letter: LetterWriter
    restaters: Mapping[int, Restater] = MappingProxyType({})
    """Of dialects that put off, likewise."""


NATIVE_FORMS: Final = Forms({}, untouched)


def dialect_for(config: RelayConfig, misspelt: Callable[[str], None] | None = None) -> Dialect:
    """The dialect that `schedule.dialect` names, with the rules of this DelayTopic.

    `misspelt` hears of header names that resemble a control header's, in the native one.
    """
    name = config.schedule.dialect
    return _native(config, misspelt) if name is DialectName.NATIVE else _FOREIGN[name](config)


def forms_for(config: RelayConfig) -> Forms:
    """The forms of all that leaves, with the rules of this DelayTopic."""
    foreign = {name: make(config) for name, make in _FOREIGN.items()}
    current = foreign.get(config.schedule.dialect)
    writers = {int(dialect.read_by): dialect.write for dialect in foreign.values()}
    restaters = {int(ReadBy.REDELIVERY): _redelivery(config).restate}
    return Forms(writers, current.letter if current is not None else untouched, restaters)


def _native(config: RelayConfig, misspelt: Callable[[str], None] | None) -> Dialect:
    schedule = config.schedule
    return NativeDialect(
        NativePolicy(
            *_policy(config),
            default_delay_ms=schedule.default_delay.ms if schedule.default_delay is not None else None,
            delay_ms=schedule.delay.ms if schedule.delay is not None else None,
            ids_enabled=schedule.ids is Ids.BY_HEADER,
        ),
        misspelt,
    )


def _policy(config: RelayConfig) -> RoutePolicy:
    return RoutePolicy(config.target.topic, TopicGlobs(config.target.allowed), config.schedule.max_delay.ms)


def _cesium(config: RelayConfig) -> CesiumDialect:
    rules = config.schedule.cesium or CesiumSpec()
    stamped = rules.provenance is Provenance.STAMPED
    return CesiumDialect(
        _policy(config), CesiumRules(rules.on_malformed, rules.on_beyond_max_delay, rules.numbers, stamped)
    )


def _scheduler(config: RelayConfig) -> SchedulerDialect:
    rules, history = config.schedule.scheduler, config.history
    grace = rules.grace_interval if rules is not None else None
    return SchedulerDialect(
        _policy(config),
        SchedulerRules(
            history=history.topic if history is not None else None,
            grace_ms=grace.ms if grace is not None else None,
            since_days=rules.since_days if rules is not None else None,
        ),
    )


def _redelivery(config: RelayConfig) -> RedeliveryDialect:
    rules = config.schedule.redelivery
    return RedeliveryDialect(_policy(config), rules.max_redeliveries if rules is not None else None)


_FOREIGN: Final[Mapping[DialectName, Callable[[RelayConfig], WritingDialect]]] = {
    DialectName.BLACK_BOX: lambda config: BlackBoxDialect(_policy(config)),
    DialectName.CESIUM: _cesium,
    DialectName.TIMEBRIDGE: lambda config: TimebridgeDialect(_policy(config)),
    DialectName.KASPR: lambda config: KasprDialect(_policy(config)),
    DialectName.KARAFKA: lambda config: KarafkaDialect(_policy(config)),
    DialectName.SCHEDULER: _scheduler,
    DialectName.SCHEDULER_JSON: lambda config: SchedulerJsonDialect(_policy(config)),
    DialectName.REDELIVERY: _redelivery,
}
