"""Tests of when a crashed broker counts as declared dead, by what its controller logged."""

from __future__ import annotations

from delaytopic_local.servers.kafka_server import LOOKS_IN_VAIN, has_fenced

LOOKED = "Deferred event successfully completing maybeFenceStaleBroker(2147483647)\n"
FENCED = "Fencing broker 1 because its session has timed out.\n"


def test_the_decision_has_to_be_committed() -> None:
    assert not has_fenced(LOOKED + FENCED)
    assert has_fenced(LOOKED + FENCED + LOOKED)


def test_a_broker_that_was_fenced_before_it_was_killed_needs_no_decision() -> None:
    assert not has_fenced(LOOKED * (LOOKS_IN_VAIN - 1))
    assert has_fenced(LOOKED * LOOKS_IN_VAIN)


def test_a_decision_that_comes_late_has_to_be_committed_too() -> None:
    assert not has_fenced(LOOKED * LOOKS_IN_VAIN + FENCED)
