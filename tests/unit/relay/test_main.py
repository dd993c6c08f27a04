"""The name that a relay has in its group, as its command line takes it."""

from __future__ import annotations

import pytest

from delaytopic_relay.__main__ import member_name
from delaytopic_relay.errors import ConfigurationError


@pytest.mark.parametrize("name", ["shop-reminders-relay-7f9c6d-x2x4z", "shop.Reminders_1", "a" * 249])
def test_names_of_pods_and_topics_are_names(name: str) -> None:
    assert member_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 250, "shop/reminders", "a b", "a\n", "ä"])
def test_what_brokers_refuse_is_refused_at_the_start(name: str) -> None:
    with pytest.raises(ConfigurationError, match="--name may have 249 letters"):
        member_name(name)
