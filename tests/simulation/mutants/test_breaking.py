"""A mutant has to break a promise: neither a patch that does not fit nor an error of its own counts as caught."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest import mock

import pytest
from tests.simulation.hunting import first_caught
from tests.simulation.mutants import table
from tests.simulation.mutants.breaking import Mutant, Patch, check_fit

from delaytopic_relay.engine.loop import Loop


class Patched:
    """A class with one of each kind."""

    @property
    def size(self) -> int:
        return 0

    def move(self, shard: int, *, fast: bool = False) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("attribute", "replacement"),
    [
        ("size", property(lambda self: 1)),
        ("move", lambda self, shard, *, fast=True: None),
        ("move", lambda self, shard, fast=True: None),
        ("move", lambda self, *arguments, **keywords: None),
        ("move", lambda this, shard, **keywords: None),
    ],
)
def test_what_takes_every_call_of_the_original_fits(attribute: str, replacement: Any) -> None:
    check_fit(Patched, attribute, replacement)


@pytest.mark.parametrize(
    ("replacement", "call", "error"),
    [
        (lambda self, shard: None, "self, shard=..., fast=...", "got an unexpected keyword argument 'fast'"),
        (lambda self, *arguments: None, "self, shard=..., fast=...", "got an unexpected keyword argument 'shard'"),
        (lambda self, number, *, fast=True: None, "self, shard=..., fast=...", "missing a required argument: 'number'"),
        (lambda self, shard, *, fast: None, "self, shard=...", "missing a required argument: 'fast'"),
    ],
)
def test_what_does_not_take_a_call_of_the_original_is_refused(replacement: Any, call: str, error: str) -> None:
    with pytest.raises(TypeError) as refused:
        check_fit(Patched, "move", replacement)

    assert str(refused.value) == f"Patched.move may be called with ({call}), and its replacement may not: {error}"


def test_a_value_in_the_place_of_a_property_is_refused() -> None:
    with pytest.raises(TypeError, match="size is a property, and its replacement 1 is not"):
        check_fit(Patched, "size", 1)


def test_an_error_of_a_mutant_is_raised_and_does_not_count_as_caught() -> None:
    def patches() -> Sequence[Patch]:
        def step(self: Loop) -> None:
            raise ValueError("the mutant's own")

        return [(Loop, "step", step)]

    with (
        mock.patch.dict(table.MUTANTS, {"raises": Mutant("raises", "raises", patches)}),
        pytest.raises(ValueError, match="the mutant's own"),
    ):
        first_caught("raises", 1)
