"""Outcome, the JSON value of a record on the topic of outcomes: how a schedule ended, or that a cancel met nothing.

Exactly one is written for each schedule that ends, in the transaction that holds its end. The record's key is the id,
or without one the place of the schedule as `TOPIC:PARTITION:OFFSET`; its partition has the number of the source's.
Times are epoch milliseconds.
"""

from __future__ import annotations

from pydantic import ConfigDict

from delaytopic_api.documents.model import Model
from delaytopic_api.relay.status import EpochMs, Int64
from delaytopic_api.values.choices import Ending

__all__ = ["Ending", "Outcome", "RecordPlace"]


class RecordPlace(Model):
    """The place of a record in Kafka."""

    # A reader may be older than the relay.
    model_config = ConfigDict(extra="ignore")

    topic: str
    """Its topic."""
    partition: Int64
    """Its partition."""
    offset: Int64
    """Its offset."""


class Outcome(Model):
    """The end of one schedule, or the answer to a cancel that met nothing."""

    model_config = ConfigDict(extra="ignore")

    outcome: Ending
    """The way in which it ended."""
    reason: str | None = None
    """The reason of a dead letter, as its header `dead-letter-reason` says it."""
    id: str | None = None
    """The deliver-id, if there is one and it is text in UTF-8."""
    id_base64: str | None = None
    """The deliver-id, if it is no text in UTF-8."""
    due_ms: EpochMs | None = None
    """The due time of the schedule, if it has one: a record that could not be read has none, nor has `NotPending`."""
    ended_ms: EpochMs
    """The time at which the relay ended it, by the clock that it delivers by."""
    source: RecordPlace
    """The record of the schedule in the source; with `NotPending`, the record of the cancel."""
    target: RecordPlace | None = None
    """The delivered record, or the dead letter, if its place is known."""
    ended_by: RecordPlace | None = None
    """The record in the source that cancelled or replaced it, if one did."""
    requested_by: str | None = None
    """The header `deliver-requested-by` of the record that cancelled or replaced it; of the schedule itself where none
    did. Whoever writes to the source can write any name there."""
