"""What follows when Kafka refuses a record for good: that record becomes a dead letter, the others are sent again."""

from __future__ import annotations

from collections.abc import Sequence

from delaytopic_api.dead_letter import DeadLetterReason
from delaytopic_relay.addressing import Addressing, Refused
from delaytopic_relay.errors import TransactionAborted
from delaytopic_relay.ports import Refusal


def note_refusals(addressing: Addressing, refusals: Sequence[Refusal]) -> None:
    """Remember which records were refused, and give the tick up; raises `TransactionAborted` if there was any.

    Where the record is not known yet, the target sends the next ones with a receipt each, and finds it then.
    """
    if not refusals:
        return
    for refusal in refusals:
        if refusal.shard is not None and refusal.offset is not None:
            reason = DeadLetterReason.TOO_LARGE if refusal.too_large else DeadLetterReason.REFUSED_BY_KAFKA
            addressing.refused[refusal.shard, refusal.offset] = Refused(reason, refusal.error, refusal.dead_letter)
    raise TransactionAborted(f"Kafka refused {len(refusals)} records: {refusals[0].error}")
