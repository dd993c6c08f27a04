from __future__ import annotations

import pytest

from delaytopic_relay.dialects.reading import TopicGlobs


@pytest.mark.parametrize(
    ("globs", "topic", "allowed"),
    [
        ([], "", False),
        ([], "shop", False),
        (["shop.*"], "shop.mails", True),
        (["shop.*"], "shop.mails.delayed", True),
        (["shop.*"], "shopXmails", False),
        (["shop.*"], "a.shop.mails", False),
        (["a", "b"], "b", True),
        (["a", "b"], "ab", False),
        (["SHOP.*"], "shop.mails", False),
    ],
)
def test_a_glob_covers_the_whole_name(globs: list[str], topic: str, allowed: bool) -> None:
    assert TopicGlobs(globs)(topic) is allowed
