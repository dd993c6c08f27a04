"""Tests of the names that relays of the benchmark have."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.bed import Bed
from bench.conductor import Conductor
from bench.selection import SHAKE_OUT, WAYS, Way


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_relay_of_each_way_has_a_name_that_the_api_takes(way: Way) -> None:
    bed = Bed("127.0.0.1:9092", "redis://127.0.0.1:6379/0", Path(), "on disk")
    name = Conductor(bed, {}, SHAKE_OUT, print)._name("redis", way)

    assert bed.backend(name).id == f"delaytopic.bench.{name}"
