from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_api import Duration
from delaytopic_api.records import UNLIMITED, DeadLetter, DeadLetterReason, Headers, dead_letter_headers
from delaytopic_gateway.client.dead_letters import (
    Choice,
    Place,
    Progress,
    SecondSending,
    StoredRecord,
    missing_part,
    second_sending,
)
from delaytopic_gateway.client.new_records import Timing
from delaytopic_process.errors import InputError
from delaytopic_relay.core.commands import Reject
from delaytopic_relay.delivery.dead_letters import DeadLetters
from delaytopic_relay.delivery.refusals import Refusals
from delaytopic_relay.dialects import NATIVE_FORMS
from delaytopic_relay.dialects.cesium import CesiumDialect
from delaytopic_relay.dialects.kaspr import KasprDialect
from delaytopic_relay.dialects.reading import too_many_headers, unreadable_headers
from delaytopic_relay.dialects.timebridge import TimebridgeDialect
from delaytopic_relay.dialects.writing import LetterWriter

NOW_MS = 1_795_269_600_000
SOURCE = "shop.delayed"
TOPIC = "shop.delayed.dlq"
LETTER = DeadLetter("malformed-header", "header deliver-at is no instant", SOURCE, 3, 1234, NOW_MS)
OWN: Headers = [("a", b"1"), ("deliver-at", b"soon"), ("a", None), ("deliver-id", b"\xff")]
AS_IT_WAS = SecondSending(3, b"k", b"v", OWN)
PARTITIONS = 4
HERE = Place(0, 17)
NOTHING_OF_THE_DIALECT: Any = None
LETTERS: dict[str, LetterWriter] = {
    "native": NATIVE_FORMS.letter,
    "cesium": partial(CesiumDialect.letter, NOTHING_OF_THE_DIALECT),
    "timebridge": partial(TimebridgeDialect.letter, NOTHING_OF_THE_DIALECT),
    "kaspr": partial(KasprDialect.letter, NOTHING_OF_THE_DIALECT),
}


def stored(*headers: tuple[str, bytes | None], letter: DeadLetter = LETTER, **parts: Any) -> StoredRecord:
    """Return a dead letter with these headers of its own."""
    whole: dict[str, Any] = {"place": HERE, "timestamp_ms": NOW_MS, "key": b"k", "value": b"v", **parts}
    return StoredRecord(headers=[*headers, *dead_letter_headers(letter)], **whole)


def written_by_a_relay(reject: Reject, dialect: str = "native", limit: int = 1 << 20) -> StoredRecord:
    """Return what a relay makes of a record that it refuses."""
    dead_letters = DeadLetters(SOURCE, TOPIC, lambda topic: limit, Refusals(), LETTERS[dialect])
    (written,) = dead_letters.records(3, [reject], NOW_MS)
    return StoredRecord(HERE, NOW_MS, written.key, written.value, written.headers)


def refused(headers: Headers | None = OWN, **parts: Any) -> Reject:
    reason = DeadLetterReason.MALFORMED_HEADER
    whole: dict[str, Any] = {"key": b"k", "value": b"v", "detail": LETTER.detail, "timestamp_ms": NOW_MS, **parts}
    return Reject(offset=1234, headers=headers, reason=reason, **whole)


@pytest.mark.parametrize("timestamp_ms", [NOW_MS, None])
@pytest.mark.parametrize("dialect", ["native", "cesium", "timebridge"])
def test_what_a_relay_wrote_becomes_the_record_that_it_was(dialect: str, timestamp_ms: int | None) -> None:
    record = written_by_a_relay(refused(timestamp_ms=timestamp_ms), dialect)

    assert (missing_part(record), second_sending(record, Choice(SOURCE), PARTITIONS)) == (None, AS_IT_WAS)


def test_headers_that_only_resemble_a_dialects_words_are_the_records_own() -> None:
    own: Headers = [("cesium-error-reason", b"x"), ("X-Timebridge-Error", b"another")]

    assert second_sending(stored(*own), Choice(SOURCE), PARTITIONS).headers == own


def test_of_two_sets_of_a_dead_letter_the_last_is_taken_off() -> None:
    earlier = dead_letter_headers(LETTER._replace(topic="before"))

    sent = second_sending(stored(*earlier, ("b", b"2")), Choice(SOURCE), PARTITIONS)

    assert sent.headers == [*earlier, ("b", b"2")]


def test_a_header_that_somebody_put_behind_a_dead_letters_stays() -> None:
    record = stored(*OWN)

    mirrored = record._replace(headers=[*(record.headers or ()), ("mirrored-by", b"m")])

    assert second_sending(mirrored, Choice(SOURCE), PARTITIONS).headers == [*OWN, ("mirrored-by", b"m")]


@pytest.mark.parametrize(
    ("timing", "header"),
    [
        (Timing(after=Duration("5m")), ("deliver-after", b"5m")),
        (Timing(at_ms=NOW_MS), ("deliver-at", b"%d" % NOW_MS)),
    ],
)
def test_a_new_time_takes_the_place_of_all_others(timing: Timing, header: tuple[str, bytes]) -> None:
    record = stored(*OWN, ("deliver-after", b"-1"), ("deliver-expires-at", b"1"))

    sent = second_sending(record, Choice(SOURCE, timing=timing), PARTITIONS)

    assert sent.headers == [("a", b"1"), ("a", None), ("deliver-id", b"\xff"), header]


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (written_by_a_relay(refused(value=b"v" * 600), limit=500), "its value of 600 bytes was left out"),
        (written_by_a_relay(unreadable_headers(1234, b"k", b"v")), "its headers were left out"),
        (written_by_a_relay(too_many_headers(1234, b"k", b"v"), "cesium"), "its headers were left out"),
        (written_by_a_relay(refused(), "kaspr"), "it is a rejection as Kaspr writes it"),
        (written_by_a_relay(refused(detail="a; b"), "kaspr"), "it is a rejection as Kaspr writes it"),
    ],
)
def test_a_dead_letter_that_lacks_a_part_says_which_and_where_it_is(record: StoredRecord, text: str) -> None:
    missing = missing_part(record) or ""

    assert missing.startswith(text)
    assert missing.endswith("the source topic has the record, at shop.delayed:3:1234")


@pytest.mark.parametrize(
    ("until", "text"), [("2026-12-21T14:01:26Z", ", until 2026-12-21T14:01:26Z"), (UNLIMITED, ", for ever"), (None, "")]
)
def test_a_dead_letter_that_lacks_its_value_says_until_when_the_source_has_it(until: str | None, text: str) -> None:
    letter = LETTER._replace(omitted_bytes=600, source_until=until)

    missing = missing_part(stored(letter=letter, value=None))

    where = "the source topic has the record, at shop.delayed:3:1234"
    assert missing == f"its value of 600 bytes was left out; {where}{text}"


def test_a_record_that_is_sent_again_has_no_header_of_its_dead_letter() -> None:
    letter = LETTER._replace(omitted_bytes=1, source_until=UNLIMITED)

    assert second_sending(stored(*OWN, letter=letter), Choice(SOURCE), PARTITIONS).headers == OWN


def test_a_partition_that_is_gone_is_left_to_the_key() -> None:
    assert second_sending(stored(*OWN), Choice(SOURCE), 3) == AS_IT_WAS._replace(partition=None)


@pytest.mark.parametrize("value", [None, b"", b"{", b"[" * 100_000, b'{"errors": 1}', b'{"a":' * 100_000])
def test_a_record_that_had_no_headers_lacks_none(value: bytes | None) -> None:
    assert missing_part(stored(value=value)) is None


def test_headers_that_cannot_be_read_are_missing() -> None:
    assert "not UTF-8" in (missing_part(stored()._replace(headers=None)) or "")


def test_a_place_is_written_as_it_is_shown() -> None:
    assert str(Place.parse("3:1234")) == "3:1234"


@pytest.mark.parametrize("text", ["", "3", "3:", ":4", "-1:4", "3:4:5", "3:٤", "1:" + "9" * 30])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not PARTITION:OFFSET, such as 0:17"):
        Place.parse(text)


REASONS = ("expired", "too-large", "unsupported")
SOURCES = (SOURCE, "bank.delayed")
LETTERS_OF_ANY = st.lists(st.tuples(st.sampled_from(REASONS), st.sampled_from(SOURCES)), max_size=12)
CHOICES = st.builds(Choice, st.sampled_from(SOURCES), st.frozensets(st.sampled_from(REASONS)))
RUNS = st.lists(st.tuples(CHOICES, st.integers(0, 12)), max_size=6)


@given(kinds=LETTERS_OF_ANY, single=st.sets(st.integers(0, 11)), runs=RUNS)
def test_whatever_was_asked_for_before_each_dead_letter_is_sent_once(
    kinds: list[tuple[str, str]], single: set[int], runs: list[tuple[Choice, int]]
) -> None:
    """Each run is of a source and some reasons (none: all), and ends at an offset: it was killed there, or at the end.

    Between the first two, single ones are sent.
    """
    letters = [LETTER._replace(reason=reason, topic=topic) for reason, topic in kinds]
    progress, sent = Progress(), Counter[int]()
    for number, (choice, end) in enumerate([*runs, *((Choice(source), len(letters)) for source in SOURCES)]):
        behind, chosen = progress, []
        for offset in range(progress.start(choice), min(end, len(letters))):
            letter = letters[offset]
            if choice.takes(letter):
                chosen.append(offset)
                if not progress.covers(offset, letter):
                    sent[offset] += 1
            behind = progress.advanced(offset + 1, choice, chosen)
        progress = Progress.parse(behind.metadata)
        if number == 0:
            named = {at for at in single if at < len(letters) and not progress.covers(at, letters[at])}
            sent.update(named)
            behind = progress.with_places(named)
            progress = Progress.parse(behind.metadata)

    assert sent == Counter(range(len(letters)))
    assert progress.places == frozenset()
    assert [*progress.ends.values()] == [len(letters)] * (2 if letters else 0)


def test_of_many_single_places_each_takes_little_room() -> None:
    metadata = Progress().with_places(range(1_000_000_000, 1_000_002_000, 2)).metadata

    assert len(metadata) < 2_100
    assert Progress.parse(metadata).places == frozenset(range(1_000_000_000, 1_000_002_000, 2))


def test_progress_of_a_source_takes_the_place_of_that_of_its_reasons_and_places() -> None:
    progress = Progress().advanced(9, Choice(SOURCE, frozenset({"expired"}))).with_places([3, 12])

    found = progress.advanced(15, Choice(SOURCE), [3, 12])

    assert (len(found.ends), found.places, found.end) == (1, frozenset(), 15)
    assert [found.covers(14, LETTER._replace(topic=topic)) for topic in SOURCES] == [True, False]


@pytest.mark.parametrize(
    "metadata", ["[1]", "{", '{"expired": "9"}', "7", '{"expired": 1e9}', '{"#": 7}', '{"#": ["7"]}']
)
def test_progress_that_somebody_else_committed_is_refused(metadata: str) -> None:
    with pytest.raises(InputError, match="are not its own"):
        Progress.parse(metadata)
