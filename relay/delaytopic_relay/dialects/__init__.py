"""Dialects: how a record says when it is due. Pure: a dialect is made once, and reads every record by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from delaytopic_api.relay import RelayConfig
from delaytopic_api.values import Dialect as DialectName
from delaytopic_api.values import Ids
from delaytopic_relay.core.commands import Dialect
from delaytopic_relay.dialects.native import NativeDialect
from delaytopic_relay.dialects.strict import NativePolicy, TopicGlobs

__all__ = ["dialect_for"]


def dialect_for(config: RelayConfig) -> Dialect:
    """The dialect that `schedule.dialect` names, with the rules of this DelayTopic."""
    return _DIALECTS[config.schedule.dialect](config)


def _native(config: RelayConfig) -> Dialect:
    schedule = config.schedule
    return NativeDialect(
        NativePolicy(
            target_topic=config.target.topic,
            target_allowed=TopicGlobs(config.target.allowed),
            max_delay_ms=schedule.max_delay.ms,
            default_delay_ms=schedule.default_delay.ms if schedule.default_delay is not None else None,
            delay_ms=schedule.delay.ms if schedule.delay is not None else None,
            ids_enabled=schedule.ids is Ids.BY_HEADER,
        )
    )


_DIALECTS: Final[dict[DialectName, Callable[[RelayConfig], Dialect]]] = {DialectName.NATIVE: _native}
