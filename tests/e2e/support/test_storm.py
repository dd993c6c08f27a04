"""A storm follows from its seed, and strikes as often as it was told to."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tests.e2e.support.storm import storm

KILLS = st.dictionaries(st.sampled_from(["relay", "operator", "redis", "kafka"]), st.integers(0, 9))


@given(st.integers(), st.integers(1, 300_000), KILLS)
def test_each_victim_is_struck_as_often_as_asked_within_the_time(
    seed: int, duration_ms: int, kills: dict[str, int]
) -> None:
    strikes = storm(seed, duration_ms, kills)

    assert strikes == sorted(storm(seed, duration_ms, kills))
    assert Counter(strike.victim for strike in strikes) == Counter(kills)
    assert all(0 <= strike.at_ms < duration_ms for strike in strikes)


def test_other_seeds_are_other_storms() -> None:
    assert storm(1, 60_000, {"relay": 5}) != storm(2, 60_000, {"relay": 5})
