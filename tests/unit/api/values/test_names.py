from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_api.values import covers, topic_matcher

globs = st.text("ab.*", min_size=1, max_size=8)
names = st.text("ab.", min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("allowed", "topic", "matches"),
    [
        (["shop.*"], "shop.orders", True),
        (["shop.*"], "shop.orders.delayed", True),
        (["shop.*"], "shop.", True),
        (["shop.*"], "shop", False),
        (["shop.*"], "shopXorders", False),
        (["shop.*", "shared"], "shared", True),
        (["shop"], "shop.orders", False),
        (["*"], "anything", True),
        ([], "anything", False),
        (["a|b"], "a", False),
        (["*", "__*"], "__consumer_offsets", False),
        (["*", "delaytopic.*"], "delaytopic.shop.reminders.delay.0", False),
        (["delaytopic.shop.reminders.delay.ids"], "delaytopic.shop.reminders.delay.ids", False),
        (["*", "delaytopic.gateway.*"], "delaytopic.gateway.jobs", False),
        (["*"], "delaytopic.gateway", True),
        (["*"], "_schemas", True),
        (["*"], "shop.delay.0", True),
    ],
)
def test_a_star_stands_for_any_characters_and_everything_else_for_itself(
    allowed: list[str], topic: str, matches: bool
) -> None:
    assert topic_matcher(allowed)(topic) is matches


@given(st.lists(globs, max_size=3), names)
def test_globs_match_as_in_a_shell(allowed: list[str], topic: str) -> None:
    assert topic_matcher(allowed)(topic) == any(fnmatchcase(topic, glob) for glob in allowed)


@given(st.lists(globs, min_size=1, max_size=3), globs, st.lists(st.text("ab.", max_size=3), min_size=8, max_size=8))
def test_no_topic_slips_through_a_glob_that_is_covered(outer: list[str], inner: str, fillings: list[str]) -> None:
    topic = "".join(fillings.pop() if character == "*" else character for character in inner)

    assert not covers(outer, inner) or topic_matcher(outer)(topic)


@pytest.mark.parametrize(
    ("outer", "inner", "covered"),
    [
        (["shop.*"], "shop.*", True),
        (["shop.*"], "shop.eu.*", True),
        (["shop.*"], "shop.orders", True),
        (["shop.*"], "*", False),
        (["shop.*"], "sh*", False),
        (["shop.*", "shared.*"], "shared.*", True),
        ([], "shop", False),
    ],
)
def test_a_glob_is_covered_when_it_reaches_no_further(outer: list[str], inner: str, covered: bool) -> None:
    assert covers(outer, inner) is covered
