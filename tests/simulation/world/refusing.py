"""Records that the simulated Kafka refuses for good, by their value, and what the client can tell of it."""

from __future__ import annotations

from delaytopic_relay.core.commands import Record
from delaytopic_relay.delivery.batches import source_of
from delaytopic_relay.delivery.refusals import Refusal

REFUSED = b"refused"
TOO_LARGE = b"too large"
HOPELESS = b"too large for the dead-letter topic, too"
BAD_VALUES = (REFUSED, TOO_LARGE, HOPELESS)
TARGET_LIMIT, DEAD_LIMIT = 1_000, 2_000
"""The largest batch of targets, and of the dead-letter topic."""
SHRINKS = b"fits if it is compressed, and only then " * 30
STAYS = b"seems to fit if it is compressed, but not " * 30
"""A relay cannot tell one from the other."""
LARGE_VALUES = (SHRINKS, STAYS)


def is_refused_again(record: Record) -> bool:
    """Tell whether Kafka refuses a record that goes into the source once more: its payload is one that is refused."""
    return record.topic == "source" and (record.value or b"").endswith(REFUSED)


def refusal_of(record: Record, *, careful: bool, compresses: bool) -> Refusal | None:
    """None for a record that Kafka takes; whose record it was is only known of those that go alone.

    So do large ones always.
    """
    partition, offset, dead = source_of(record.headers)
    large = record.value in LARGE_VALUES
    refused = record.value == HOPELESS if dead else record.value in BAD_VALUES
    refused = refused or (large and not dead and (record.value == STAYS or not compresses))
    again = is_refused_again(record)
    if not refused and not again:
        return None
    too_large = record.value != REFUSED and not again
    if not careful and not large:
        return Refusal("refused", too_large)
    return Refusal("refused", too_large, partition, offset, dead)
