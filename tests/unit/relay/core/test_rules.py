from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.properties import QUICK
from tests.support.relay.schedules import schedule

from delaytopic_api.values import Dialect, Ids
from delaytopic_relay.core.commands import NOTHING_DELIVERED, DueKey
from delaytopic_relay.core.rules import (
    LONGEST_ALLOWED,
    MOST_GENERATIONS,
    MOST_TEXT,
    Declared,
    Generation,
    Generations,
    Rules,
    Succession,
    allowed_of,
    decode_generations,
    encode_generations,
    succeed,
    target_mark,
)

DAY_MS = 86_400_000
USUAL = Rules(Dialect.NATIVE, DAY_MS, target_mark("target"))
SHORTER = USUAL._replace(max_delay_ms=5_000)
START = DueKey(0, 0)
WAITS = DueKey(50_000, 7)
"""The last key that the usual rules gave."""
FIRST = Generation(0, 100, WAITS, USUAL)

whole = st.integers(0, 2**62)
rules = st.builds(
    Rules,
    st.sampled_from(Dialect),
    whole,
    st.sampled_from([target_mark("a"), target_mark("b")]),
    st.none() | whole,
    st.none() | whole,
    st.sampled_from(Ids),
    st.sampled_from(["", "Deliver+Clamp+Binary", "1000+"]),
    st.sampled_from([None, (), ("*",), ("shop.*", "audit-1_2")]),
    st.integers(1, 9),
    st.just(0) | st.integers(1, 2**62),
)
generations = st.lists(
    st.builds(Generation, whole, whole, st.builds(DueKey, st.integers(-1, 2**62), st.integers(-1, 2**62)), rules),
    max_size=4,
    unique_by=lambda each: each.since,
).map(lambda found: tuple(sorted(found)))


@QUICK
@given(generations)
def test_generations_come_back_from_their_text(kept: tuple[Generation, ...]) -> None:
    assert decode_generations(encode_generations(kept)) == kept


def test_the_text_of_rules_is_short_and_has_no_semicolon() -> None:
    kept = (
        FIRST,
        Generation(12, 200, NOTHING_DELIVERED, SHORTER._replace(default_delay_ms=3_000, allowed=("x", "y.*"))),
    )

    assert encode_generations(kept) == (
        "0:100:50000:7:6:Native:86400000:::ByHeader:34a04005:: "
        "12:200:-1:-1:6:Native:5000:3000::ByHeader:34a04005::x,y.*"
    )


def test_rules_that_differ_by_the_clock_alone_are_not_written_again() -> None:
    moved = [Generation(each, 0, NOTHING_DELIVERED, USUAL._replace(shift_ms=each * DAY_MS)) for each in range(3)]
    edited = Generation(3, 0, NOTHING_DELIVERED, SHORTER._replace(shift_ms=2 * DAY_MS))

    text = encode_generations((*moved, edited))

    assert text == (
        "0:0:-1:-1:6:Native:86400000:::ByHeader:34a04005:: 1:0:-1:-1:=+86400000 2:0:-1:-1:=+172800000 "
        "3:0:-1:-1:6+172800000:Native:5000:::ByHeader:34a04005::"
    )
    assert decode_generations(text) == (*moved, edited)


def test_a_relay_that_knows_of_no_move_goes_on_with_the_clock_of_the_one_before() -> None:
    kept = [FIRST._replace(rules=USUAL._replace(shift_ms=DAY_MS))]

    assert succeed(kept, 0, Declared(USUAL), 9, START, 12) == Succession(tuple(kept), 0)


def test_a_clock_that_was_moved_begins_where_the_source_ends() -> None:
    later = USUAL._replace(shift_ms=DAY_MS)

    found = succeed([FIRST], 0, Declared(later), 9, START, 12)

    assert found == Succession((FIRST, Generation(12, 100, NOTHING_DELIVERED, later)), 0)


def test_a_clock_is_moved_thirty_times_while_a_record_waits_and_records_are_produced_in_between() -> None:
    kept = [Generation(1_000, 0, WAITS, USUAL)]
    for move in range(1, 31):
        declared = Declared(USUAL._replace(shift_ms=move * DAY_MS))
        found = succeed(kept, 0, declared, 1_000 + move, START, 1_000 + move)
        assert found.waits is None
        kept = [*found.kept[:-1], found.kept[-1]._replace(last=DueKey(1_795_269_660_000, 1_000 + move))]

    assert len(kept) == 31


@pytest.mark.parametrize(
    "text", ["0", "0:1:2:3:4", "0:1:2:3:1:Nativ:1:::ByHeader:a::", "5:1:2:3:1:Native:1:::ByHeader:a:: " * 2]
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the caller says where it was found
        decode_generations(text.strip())


def test_a_long_list_of_allowed_topics_is_asked_when_a_record_is_due_alone() -> None:
    short, long = ["a" * LONGEST_ALLOWED], ["a" * LONGEST_ALLOWED, "b"]

    assert (allowed_of(short), allowed_of(long), allowed_of(["x", "x"])) == (tuple(short), None, ("x",))


# -- where edited rules begin


def after(declared: Declared, *kept: Generation, position: int = 10, cursor: DueKey = START) -> Succession:
    """The succession in a source that ends at offset 20."""
    return succeed(kept, 3, declared, position, cursor, 20)


def test_edited_rules_begin_at_the_end_of_the_source() -> None:
    assert after(Declared(SHORTER, 200), FIRST) == Succession(
        (FIRST, Generation(20, 200, NOTHING_DELIVERED, SHORTER)), 3
    )


def test_rules_of_a_relay_without_an_operator_begin_whenever_they_differ() -> None:
    assert after(Declared(SHORTER), FIRST).kept[1] == Generation(20, 100, NOTHING_DELIVERED, SHORTER)


def test_a_relay_with_former_rules_goes_on_by_the_later_ones() -> None:
    later = Generation(12, 200, NOTHING_DELIVERED, SHORTER)

    assert after(Declared(USUAL, 100), FIRST, later) == Succession((FIRST, later), 3)


def test_equal_rules_that_were_declared_again_begin_nothing() -> None:
    assert after(Declared(USUAL, 300), FIRST) == Succession((FIRST._replace(declared_ms=300),), 3)


def test_rules_by_which_nothing_was_read_make_room_for_others() -> None:
    unread = Generation(20, 150, NOTHING_DELIVERED, USUAL._replace(default_delay_ms=1))

    assert after(Declared(SHORTER, 200), FIRST, unread).kept == (
        FIRST,
        Generation(20, 200, NOTHING_DELIVERED, SHORTER),
    )


def test_an_edit_beyond_as_many_as_are_kept_waits_and_says_until_when() -> None:
    kept = [FIRST._replace(since=n, rules=USUAL._replace(default_delay_ms=n)) for n in range(MOST_GENERATIONS)]

    found = after(Declared(SHORTER, 200), *kept)

    assert (found.kept, found.floor) == (tuple(kept), 3)
    assert found.waits is not None
    assert "all that is due up to 1970-01-01T00:00:50Z is delivered" in found.waits


def test_an_edit_waits_whose_text_would_not_fit_into_the_metadata() -> None:
    long = USUAL._replace(allowed=("a" * LONGEST_ALLOWED,))
    kept = [FIRST._replace(since=n, rules=long._replace(default_delay_ms=n)) for n in range(7)]
    longer = (*kept, FIRST._replace(since=20, rules=long))

    assert len(encode_generations(kept)) < MOST_TEXT < len(encode_generations(longer))
    assert after(Declared(long, 200), *kept).waits is not None


KASPR = USUAL._replace(dialect=Dialect.KASPR)


def test_rules_with_another_id_space_wait_while_records_wait_that_have_ids() -> None:
    found = after(Declared(KASPR, 200), FIRST, position=20)

    assert found.kept == (FIRST,)
    assert found.waits is not None
    assert found.waits.startswith("the ids of dialect Kaspr are others than those of Native")


def test_rules_with_another_id_space_begin_when_nothing_waits_and_the_floor_with_them() -> None:
    found = after(Declared(KASPR, 200), FIRST, position=20, cursor=WAITS)

    assert found == Succession((Generation(20, 200, NOTHING_DELIVERED, KASPR),), 20)


def test_rules_with_another_id_space_wait_while_records_are_not_read() -> None:
    assert after(Declared(KASPR, 200), FIRST, position=19, cursor=WAITS).waits is not None


def test_rules_without_ids_go_with_any() -> None:
    without = USUAL._replace(ids=Ids.DISABLED)

    assert after(Declared(without, 200), FIRST).waits is None


def test_nothing_may_be_on_its_way_through_the_source_when_its_dialect_changes() -> None:
    putting_off = FIRST._replace(rules=USUAL._replace(dialect=Dialect.REDELIVERY))

    assert after(Declared(USUAL._replace(ids=Ids.DISABLED), 200), putting_off).waits is not None


# -- for how long rules are kept


def test_rules_are_kept_until_the_cursor_has_passed_all_that_they_gave() -> None:
    shard = Generations([FIRST, Generation(20, 200, NOTHING_DELIVERED, SHORTER)], 3)

    shard.end_done(20, DueKey(50_000, 6))
    waiting = (shard.kept, shard.floor)
    shard.end_done(20, WAITS)

    assert waiting == ((FIRST, Generation(20, 200, NOTHING_DELIVERED, SHORTER)), 3)
    assert (shard.kept, shard.floor) == ((Generation(20, 200, NOTHING_DELIVERED, SHORTER),), 20)


def test_rules_are_kept_until_all_was_read_that_they_are_for() -> None:
    shard = Generations([FIRST, Generation(20, 200, NOTHING_DELIVERED, SHORTER)], 3)

    shard.end_done(19, WAITS)

    assert (len(shard.kept), shard.floor) == (2, 3)


def test_the_greatest_key_is_noted_for_the_rules_that_a_record_was_read_by() -> None:
    shard = Generations([FIRST, Generation(20, 200, NOTHING_DELIVERED, SHORTER)], 3)

    shard.gave([schedule(60_000, 18), schedule(60_000, 19), schedule(9_000, 20), schedule(8_000, 21)])
    shard.gave([schedule(59_000, 22)])

    assert [each.last for each in shard.kept] == [DueKey(60_000, 19), DueKey(59_000, 22)]


def test_a_cursor_passes_rules_whose_last_record_was_refused() -> None:
    shard = Generations([FIRST, Generation(20, 200, NOTHING_DELIVERED, SHORTER)], 3)

    assert (shard.passed(49_999, 20), shard.passed(50_000, 19), shard.passed(50_000, 20)) == (
        NOTHING_DELIVERED,
        NOTHING_DELIVERED,
        WAITS,
    )


def test_the_longest_delay_is_that_of_all_rules_by_which_a_record_may_still_be_read() -> None:
    shard = Generations([FIRST, Generation(20, 200, NOTHING_DELIVERED, SHORTER)], 3)

    assert (shard.max_delay_ms(19), shard.max_delay_ms(20)) == (DAY_MS, 5_000)
