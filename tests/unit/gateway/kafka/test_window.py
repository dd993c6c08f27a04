"""Pages of the newest dead letters: each once, newest first, from as many partitions as there are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.gateway.dead_letters import AT_MS, stored

from delaytopic_gateway.access.bounds.pages import PAGE_BYTES
from delaytopic_gateway.client.dead_letters import Place, Progress
from delaytopic_gateway.kafka.window import Letter, Window, cursor_text, page_of, parse_cursor
from delaytopic_process.errors import InputError

SOURCE = "shop.delayed"


def letters(*places: str, reason: str = "expired") -> list[Letter]:
    found = [Letter.of(stored(place, SOURCE, reason), Progress()) for place in places]
    return [letter for letter in found if letter is not None]


def whole(*found: Letter) -> Window:
    return Window(found, len(found), {0: 0, 1: 0}, {0: 0, 1: 0})


def test_the_newest_of_all_partitions_come_first() -> None:
    page = page_of(whole(*letters("0:1", "0:4", "1:2", "1:3")), set(), 3)

    assert [str(letter.place) for letter in page.letters] == ["0:4", "1:3", "1:2"]
    assert (page.older, page.is_whole) == ({0: 2, 1: 0}, True)


def test_a_page_is_of_some_reasons_and_its_counts_are_of_all() -> None:
    page = page_of(whole(*letters("0:1", "0:2"), *letters("1:1", reason="too-large")), {"too-large"}, 10)

    assert [str(letter.place) for letter in page.letters] == ["1:1"]
    assert (dict(page.counts), page.older) == ({"expired": 2, "too-large": 1}, None)


def test_what_was_not_looked_at_is_older_also_where_nothing_was_found() -> None:
    page = page_of(Window([], 100, {0: 900, 1: 0}, {0: 5, 1: 0}), set(), 10)

    assert (page.letters, page.older, page.is_whole) == ([], {0: 900, 1: 0}, False)


def test_of_long_texts_the_beginning_is_kept() -> None:
    letter = Letter.of(stored("0:1", SOURCE, "r" * 100_000, detail="d" * 100_000, key=bytes(100_000)), None)

    assert letter is not None
    assert (letter.said.reason, letter.said.detail) == ("r" * 64, "d" * 2_000)
    assert letter.bytes < 5_000


def test_a_page_has_as_many_letters_as_have_room() -> None:
    (one,) = letters("0:1")
    large = one._replace(key=bytes(PAGE_BYTES // 4))
    found = [large._replace(place=Place(0, offset)) for offset in range(1, 6)]

    page = page_of(whole(*found), set(), 10)

    assert [str(letter.place) for letter in page.letters] == ["0:5", "0:4", "0:3"]
    assert page.older == {0: 3, 1: 0}


@given(
    ends=st.lists(st.integers(0, 12), min_size=1, max_size=3),
    ours=st.sets(st.tuples(st.integers(0, 2), st.integers(0, 11))),
    late=st.integers(-5, 5),
    share=st.integers(1, 5),
    limit=st.integers(1, 4),
)
def test_page_by_page_each_letter_is_shown_once(
    ends: list[int], ours: set[tuple[int, int]], late: int, share: int, limit: int
) -> None:
    """Whatever clocks of the partitions' relays say, and however little of the topic is looked at in one go."""
    there = [(partition, offset) for partition, offset in ours if partition < len(ends) and offset < ends[partition]]
    shown: list[tuple[int, int]] = []
    before: dict[int, int] | None = dict(enumerate(ends))
    for _ in range(200):
        assert before is not None
        reached = {partition: max(0, top - share) for partition, top in before.items()}
        window = Window(
            [
                letter
                for partition, offset in there
                if reached[partition] <= offset < before[partition]
                for letter in [Letter.of(stored(f"{partition}:{offset}", SOURCE, at_ms=AT_MS + late * partition), None)]
                if letter is not None
            ],
            0,
            reached,
            dict.fromkeys(reached, 0),
        )
        page = page_of(window, set(), limit)
        shown += [letter.place for letter in page.letters]
        text = cursor_text(page.older)
        if text is None:
            break
        before = dict(parse_cursor(text))

    assert sorted(shown) == sorted(there)
    assert len(shown) == len(set(shown))


@pytest.mark.parametrize("text", ["", "a", "1.-2", "1..2", "9" * 20, "٣", ".".join(["1"] * 3_000)])
def test_what_is_no_place_in_the_list_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="after: it is the `next` of a page"):
        parse_cursor(text)


def test_a_letter_of_a_list_holds_little_of_a_large_record() -> None:
    letter = Letter.of(stored("0:1", SOURCE, key=b"k" * 5_000, value=b"v" * 1_000_000), Progress().with_places([1]))

    assert letter is not None
    assert (len(letter.key or b""), letter.key_bytes, letter.value_bytes) == (1_024, 5_000, 1_000_000)
    assert letter.sent_again
