from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.simulation.world.source_log import SourceRecord
from tests.support.properties import QUICK
from tests.support.relay.in_world import native_policy
from tests.support.relay.schedules import reject

from delaytopic_api.records import Headers
from delaytopic_api.values import Partitioning
from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.delivery.batches import source_of
from delaytopic_relay.delivery.dead_letters import DeadLetters
from delaytopic_relay.delivery.further_targets import FurtherTargets
from delaytopic_relay.delivery.record_writer import RecordWriter
from delaytopic_relay.delivery.refusals import Refusals
from delaytopic_relay.dialects.native import NativeDialect

SENT_MS = 1_000_000
FURTHER = FurtherTargets([], "delaytopic.team.shop")


OLD_RECEIPT = ("delay-receipt", b"5:0:7:9:elsewhere")
OLD_DEAD_LETTER: Headers = [("dead-letter-reason", b"expired"), ("dead-letter-source", b"elsewhere:0:7")]
HEADERS = st.lists(
    st.sampled_from(
        [("a", b"1"), ("a", None), OLD_RECEIPT, ("delay-receipt", None), *OLD_DEAD_LETTER, ("deliver-after", b"0")]
    ),
    max_size=5,
)


def delivered(headers: Headers) -> Headers:
    """The headers with which a record of shard 3 and offset 12 is delivered."""
    record = SourceRecord(3, 12, SENT_MS, b"k", b"v", headers)
    command = NativeDialect(native_policy()).read(record)
    assert isinstance(command, Schedule)
    writer = RecordWriter("source", "target", Partitioning.BY_KEY, 4, lambda topic: 1 << 30, FURTHER, Refusals())
    records, _ = writer.records(3, [command], SENT_MS)
    return records[0].headers


def test_a_delivered_record_is_that_of_its_receipt() -> None:
    assert source_of([("a", b"1"), ("delay-receipt", b"5:3:12:9:shop.delayed"), ("b", None)]) == (3, 12, False)


def test_a_dead_letter_is_that_of_its_source() -> None:
    headers: Headers = [("dead-letter-source", b"shop.delayed:3:12"), ("dead-letter-at", b"9")]

    assert source_of(headers) == (3, 12, True)


def test_a_record_of_nobody_has_neither() -> None:
    assert source_of([("a", b"1"), ("delay-receipt", None)]) == (None, None, False)


def test_the_dead_letter_of_a_record_with_the_provenance_of_another_relay_is_its_own() -> None:
    refused = reject(12)
    refused.headers = [OLD_RECEIPT, *OLD_DEAD_LETTER]
    (letter,) = DeadLetters("shop:delayed", "dead", lambda topic: None, Refusals()).records(3, [refused], SENT_MS)

    assert source_of(letter.headers) == (3, 12, True)


@QUICK
@given(HEADERS)
def test_a_record_that_was_delivered_or_dead_lettered_before_is_delivered_as_its_own(headers: Headers) -> None:
    assert source_of(delivered(headers)) == (3, 12, False)
