"""Dead letters of rejected records: each has its reason, and no value where that has no place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from delaytopic_api.records import DeadLetter, DeadLetterReason, Headers, dead_letter_headers
from delaytopic_relay.core.commands import Record, Reject
from delaytopic_relay.delivery.batch_size import TopicLimit, record_batch_bytes
from delaytopic_relay.delivery.refusals import Refusals
from delaytopic_relay.delivery.shrinking import shrunk_bytes
from delaytopic_relay.dialects.writing import LetterWriter, Sending, untouched

LARGEST_KEPT_KEY = 1_024
"""The length in bytes of the key that is kept in a dead letter that is too large for its topic."""


class DeadLetters:
    """Turns rejected records into records for the dead-letter topic."""

    def __init__(
        self, source: str, topic: str, limit: TopicLimit, refusals: Refusals, form: LetterWriter = untouched
    ) -> None:
        """`limit` is asked how large the topic's records may be; `form` is that of the DelayTopic's dialect."""
        self._source = source
        self._topic = topic
        self._limit = limit
        self.refusals = refusals
        self._form = form
        self.source_until: Callable[[int | None], str | None] = lambda timestamp_ms: None
        """Tells how long the source keeps a record with this timestamp, for a dead letter without its value."""

    def records(self, partition: int, rejects: Sequence[Reject], sent_ms: int) -> list[Record]:
        """The records for the dead-letter topic: untouched, with reason and source coordinates appended.

        A dialect may put its own words between, or the record into a document of its own.
        """
        sending = Sending(self._source, partition, sent_ms)
        records: list[Record] = []
        for reject in rejects:
            records += self._dead_letter_of(sending, reject)
        return records

    def _dead_letter_of(self, sending: Sending, reject: Reject) -> Sequence[Record]:
        source, partition, sent_ms = sending
        letter = DeadLetter(reject.reason.value, reject.detail, source, partition, reject.offset, sent_ms)
        own = self._form(reject, sending)
        headers = [*own.headers, *dead_letter_headers(letter)]
        refused = self.refusals.taken((partition, reject.offset))
        was_refused = refused is not None and refused.dead_letter
        if not was_refused and (
            self._fits(self._topic, own.key, own.value, headers) or self._may_fit(partition, reject)
        ):
            record = Record(self._topic, own.value, own.key, headers)
            # Where Kafka refused one of them, nobody knows which: the letter goes alone.
            return [record] if refused is not None or not own.along else [record, *self._along(own.along)]
        omitted = letter._replace(
            omitted_bytes=len(reject.value or b""), source_until=self.source_until(reject.timestamp_ms)
        )
        headers = [*own.headers, *dead_letter_headers(omitted)]
        if was_refused or not self._fits(self._topic, own.key, None, headers):
            key = own.key if own.key is not None and len(own.key) <= LARGEST_KEPT_KEY else None
            return [Record(self._topic, None, key, dead_letter_headers(omitted))]
        return [Record(self._topic, None, own.key, headers)]

    def _along(self, records: Sequence[Record]) -> list[Record]:
        return [record for record in records if self._fits(record.topic, record.key, record.value, record.headers)]

    def _may_fit(self, partition: int, reject: Reject) -> bool:
        """Return whether a dead letter may fit once it is compressed.

        Of what Kafka has refused already only what is likely to fit is tried again, as each refusal costs a tick.
        """
        limit, place, value = self._limit(self._topic), (partition, reject.offset), reject.value or b""
        if limit is None:
            return False
        refused = self.refusals.doubtful.get(place) if reject.reason is DeadLetterReason.TOO_LARGE else None
        if refused is not None and (limit <= refused or limit < shrunk_bytes(value)):
            return False
        return self.refusals.may_fit(place, value, limit)

    def _fits(self, topic: str, key: bytes | None, value: bytes | None, headers: Headers) -> bool:
        limit = self._limit(topic)
        return limit is None or record_batch_bytes(key, value, headers) <= limit
