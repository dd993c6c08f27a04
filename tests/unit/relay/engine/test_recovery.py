from __future__ import annotations

import pytest

from delaytopic_relay.engine.recovery import is_of_group, transactional_id

# -- whose names are fenced

OURS = "delaytopic.team.shop/shop-7c9f-x2v4b-1-0a1b2c3d"


def test_a_relay_knows_the_names_that_relays_of_its_group_have() -> None:
    assert transactional_id("delaytopic.team.shop", "shop-7c9f-x2v4b-1-0a1b2c3d") == OURS
    assert is_of_group(OURS, "delaytopic.team.shop")


@pytest.mark.parametrize(
    "owner",
    [
        "",
        "payments",
        "delaytopic.team.shop",
        "delaytopic.team.shop/",
        "delaytopic.team.shop/payments",
        "delaytopic.team.shop/shop-1-0a1b2c3",
        "delaytopic.team.shop/shop-1-0a1b2c3d ",
        "delaytopic.team.shop/shop-x-0a1b2c3d",
        "delaytopic.team.shop-too/shop-1-0a1b2c3d",
        "delaytopic.team.shop/too/shop-1-0a1b2c3d",
        "delaytopic.team.shop-shop-1-0a1b2c3d",
        "delaytopic.other.shop/shop-1-0a1b2c3d",
    ],
)
def test_every_other_name_belongs_to_somebody_else(owner: str) -> None:
    assert not is_of_group(owner, "delaytopic.team.shop")


@pytest.mark.parametrize("group", ["delaytopic.team", "delaytopic.team.shop-7c9f", "delaytopic.team.shop/shop"])
def test_no_other_group_has_the_same_names_however_it_is_called(group: str) -> None:
    assert not is_of_group(OURS, group)
