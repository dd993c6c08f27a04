"""The union of dialects: at most one member says how records state their due time, and holds its options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Self

from pydantic import Field, model_validator

from delaytopic_api.documents.model import Model, require
from delaytopic_api.values.choices import CesiumNumbers, Dialect, OnBeyondMaxDelay, OnMalformed, Provenance
from delaytopic_api.values.duration import Duration, between

LONGEST_DELAY: Final = "87600h"

Delay = Annotated[Duration, between("0s", LONGEST_DELAY)]
FixedDelay = Annotated[Duration, between("1ms", LONGEST_DELAY)]
Precision = Annotated[Duration, between("10ms", "1h")]


class PlainDialect(Model):
    """A dialect without options: an empty object chooses it."""


class CesiumSpec(Model):
    """Options of the dialect Cesium; the defaults are those of cesium-kafka."""

    on_malformed: OnMalformed = OnMalformed.DEAD_LETTER
    """The answer to a control header that cannot be read. DeadLetter: the record goes to the dead-letter topic.
    Deliver: it is delivered at once."""
    on_beyond_max_delay: OnBeyondMaxDelay = OnBeyondMaxDelay.DEAD_LETTER
    """The answer to a delay longer than maxDelay. DeadLetter: the record goes to the dead-letter topic. Clamp: it is
    due maxDelay after its timestamp, and delivered with cesium-clamped."""
    numbers: CesiumNumbers = CesiumNumbers.DECIMAL
    """Decimal: ASCII digits. Binary: longs of 8 bytes, big-endian."""
    provenance: Provenance = Provenance.STAMPED
    """Stamped: deliveries have the headers cesium-relayed-at, cesium-source-* and cesium-scheduled-for. Absent: they
    have not."""


class SchedulerOptions(Model):
    """Rules of the dialect Scheduler for schedules that come late."""

    grace_interval: Delay | None = None
    """The time after its epoch, such as 1h, beyond which a schedule that is produced goes to the dead-letter topic.
    Absent: it is delivered, however late."""
    since_days: Annotated[int, Field(strict=True, ge=0, le=3650)] | None = None
    """Schedules that were missed are delivered until the end of this many days after their own, in UTC: 0 for their
    own day. Later they go to the dead-letter topic. Absent: they are delivered, however late."""


class RedeliverySpec(Model):
    """Options of the dialect Redelivery."""

    max_redeliveries: Annotated[int, Field(strict=True, ge=0, le=10_000)] | None = None
    """A message that was redelivered so often goes to the dead-letter topic instead. Consumers have to copy the header
    redelivery-count of a message into its start marker. Absent: no bound."""


class DialectChoice(Model):
    """The dialects beside the native headers, of which one at most is set."""

    black_box: PlainDialect | None = None
    """Read JSON values with topic, message and countdown, as services over a Redis sorted set do; `{}` chooses it."""
    cesium: CesiumSpec | None = None
    """Read the headers of cesium-kafka; `{}` chooses it with its defaults."""
    timebridge: PlainDialect | None = None
    """Read the headers of kafka-timebridge; `{}` chooses it."""
    kaspr: PlainDialect | None = None
    """Read the headers of Kaspr's scheduler; `{}` chooses it."""
    karafka: PlainDialect | None = None
    """Read the headers of Karafka Pro's scheduled messages; `{}` chooses it."""
    scheduler: SchedulerOptions | None = None
    """Read the headers of etf1's kafka-message-scheduler; `{}` chooses it with its defaults."""
    scheduler_json: PlainDialect | None = None
    """Read the JSON records of sky-uk's kafka-message-scheduler; `{}` chooses it."""
    redelivery: RedeliverySpec | None = None
    """Read the markers of Splunk's kafka-mq-go; `{}` chooses it with its defaults."""

    @property
    def dialect(self) -> Dialect:
        """The dialect that is chosen; Native where none is."""
        chosen = (dialect for dialect, name in MEMBERS.items() if getattr(self, name) is not None)
        return next(chosen, Dialect.NATIVE)

    @model_validator(mode="after")
    def _one_at_most(self) -> Self:
        first, *others = [_alias(name) for name in MEMBERS.values() if getattr(self, name) is not None] or [""]
        require(*((False, other, f"is one dialect too many beside {first}; keep one of them") for other in others))
        return self


MEMBERS: Final[Mapping[Dialect, str]] = {
    dialect: dialect.name.lower() for dialect in Dialect if dialect is not Dialect.NATIVE
}
"""The attribute of `DialectChoice` that chooses each dialect; none chooses the native headers."""


def member(dialect: Dialect, options: Model | None = None) -> dict[str, Any]:
    """Return the attribute that chooses a dialect, with these options or its defaults; nothing for Native."""
    name = MEMBERS.get(dialect)
    return {name: options.to_document() if options is not None else {}} if name is not None else {}


def _alias(name: str) -> str:
    return str(DialectChoice.model_fields[name].alias)
