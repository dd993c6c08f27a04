from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.properties import QUICK

from delaytopic_api.values import Dialect
from delaytopic_relay.core.admission_limits import AdmissionLimits
from delaytopic_relay.core.bucket_state import BucketsState, BucketState
from delaytopic_relay.core.commands import NOTHING_DELIVERED, DueKey
from delaytopic_relay.core.done import Ahead
from delaytopic_relay.core.progress import Identity, Progress, decode_progress, encode_metadata, fresh_progress
from delaytopic_relay.core.rules import (
    LONGEST_ALLOWED,
    MOST_GENERATIONS,
    MOST_TEXT,
    Generation,
    Rules,
    encode_generations,
)
from delaytopic_relay.errors import ProgressError

WHOLE = st.integers(0, 2**63 - 1)


KEY = st.builds(DueKey, st.integers(-1, 10**14), st.integers(-1, 2**53))


@QUICK
@given(WHOLE, WHOLE, KEY, st.text(max_size=30), st.none() | st.builds(Ahead, WHOLE, KEY))
def test_progress_comes_back_from_an_offset_and_its_metadata(
    offset: int, position: int, cursor: DueKey, owner: str, ahead: Ahead | None
) -> None:
    progress = Progress(offset, position, cursor, owner, ahead=ahead)

    assert decode_progress(offset, encode_metadata(progress)) == progress


def test_the_metadata_is_a_short_readable_text() -> None:
    progress = Progress(7, 12, DueKey(1_795_269_686_270, 9), "delaytopic.shop.reminders-1")

    assert encode_metadata(progress) == "5;12;1795269686270;9;0;;;;;;delaytopic.shop.reminders-1"


def test_takeovers_are_told_behind_the_position_and_cost_nothing_where_there_were_none() -> None:
    progress = Progress(7, 12, DueKey(5, 9), "relay", takeovers=2)

    text = encode_metadata(progress)

    assert text == "5;12+2;5;9;0;;;;;;relay"
    assert decode_progress(7, text) == progress


def test_what_follows_the_last_record_is_told_behind_its_epoch() -> None:
    progress = Progress(7, 12, DueKey(5, 9), identity=Identity("Mk3OEYBS", "4L6g3nSh", 4, 3))

    text = encode_metadata(progress)

    assert text == "5;12;5;9;0;;Mk3OEYBS:4L6g3nSh:4+3;;;;"
    assert decode_progress(7, text) == progress


@pytest.mark.parametrize("position", ["12+", "12+0", "+2", "12+-1", "12+2+2"])
def test_takeovers_that_nobody_counts_are_damage(position: str) -> None:
    with pytest.raises(ProgressError, match="is damaged"):
        decode_progress(42, f"5;{position};5;9;0;;;;;;")


@pytest.mark.parametrize("metadata", [None, ""])
def test_an_offset_without_metadata_starts_there_with_nothing_delivered(metadata: str | None) -> None:
    assert decode_progress(42, metadata) == fresh_progress(42) == Progress(42, 42, NOTHING_DELIVERED, "")


@pytest.mark.parametrize("metadata", ["1;12;5;9;owner", "6;12;5;9;0;;;;;;owner", "hello", "5;12;5;9", "NO_METADATA"])
def test_a_foreign_or_another_versions_text_says_what_to_do(metadata: str) -> None:
    with pytest.raises(ProgressError) as caught:
        decode_progress(42, metadata)

    message = str(caught.value)
    assert f"the metadata {metadata!r} of committed offset 42" in message
    assert "run the version that wrote it" in message


def test_a_damaged_text_is_named_with_what_is_wrong_about_it() -> None:
    with pytest.raises(
        ProgressError, match=r"^the metadata '5;12;x;9;0;;;;;;' of committed offset 42 is damaged: .*'x'"
    ):
        decode_progress(42, "5;12;x;9;0;;;;;;")


@QUICK
@given(
    st.text(max_size=20)
    | st.from_regex(r"5(;-?[0-9]{1,5}){4};([0-9]:[0-9]:[0-9])?;([a-z]:[a-z]:[0-9])?;;;;.*", fullmatch=True)
)
def test_no_text_does_more_than_raise_a_progress_error(metadata: str) -> None:
    try:
        progress = decode_progress(42, metadata)
    except ProgressError:
        return

    assert decode_progress(42, encode_metadata(progress)) == progress


@pytest.mark.parametrize("field", range(4))
def test_a_number_that_no_float_holds_is_damage(field: int) -> None:
    fields = ["12", "5", "9", "0"]
    fields[field] = "9" * 400

    with pytest.raises(ProgressError, match="is larger than an offset or a time can be"):
        decode_progress(42, f"5;{';'.join(fields)};;;;;;")


def test_the_metadata_fits_into_what_a_broker_takes_with_all_that_a_shard_may_have_to_say() -> None:
    number = 10**12
    bucket = BucketState(
        number, 10**9, 10**9 + 99, 10**9 + 9_999, number, number + 10**8, 10**7, number, number + 10**9
    )
    longest = Rules(Dialect.SCHEDULER, 10**12, "0123abcd", options="604800000+3650", allowed=("a" * LONGEST_ALLOWED,))
    generations: list[Generation] = []
    while len(generations) < MOST_GENERATIONS:
        more = [*generations, Generation(number + len(generations), number, DueKey(number, number), longest)]
        if len(encode_generations(more)) > MOST_TEXT:
            break
        generations = more
    owner = f"delaytopic.{'n' * 63}.{'d' * 40}/{'h' * 63}-1234567-0123abcd"

    text = encode_metadata(
        Progress(
            number,
            number,
            DueKey(number, number),
            owner,
            BucketsState(number, number, (bucket,) * 20, "~0123abcd"),
            tuple(AdmissionLimits(number + each, number, True, 1 << 20) for each in range(20)),
            tuple(generations),
            number,
            Identity("Mk3OEYBS", "4L6g3nSh", 10**6, number),
            Ahead(number, DueKey(number, number)),
            3,
        )
    )

    assert len(text) <= 4_096, len(text)
