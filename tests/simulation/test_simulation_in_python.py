"""Histories full of faults for relays without their speedups, some of them with a fixed delay."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.support.paths import ROOT
from tests.support.relay.compiling import IN_PYTHON

RUNS = 10
FIRST_SEED = 20_000
"""Beyond those of the tests with them."""
PROGRAM = """
import sys
from tests.simulation.hunting import try_seeds

first, end, *families = sys.argv[1:]
for family in families:
    print(family, try_seeds(int(first), int(end), None, family).failures)
"""


@pytest.mark.long
@pytest.mark.takes_long("runs twenty histories without the speedups")
@pytest.mark.parametrize(
    "families",
    [
        ["RedisZset", "KafkaBuckets"],
        # Names in a group are nothing that has speedups.
        pytest.param(["Members", "MembersBuckets"], marks=pytest.mark.nightly),
    ],
    ids="-".join,
)
def test_no_history_of_relays_in_python_breaks_a_promise(families: list[str]) -> None:
    arguments = [str(FIRST_SEED), str(FIRST_SEED + RUNS), *families]

    # In a process of its own, as modules look for the speedups when they are imported.
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=ROOT,
        env={**os.environ, **IN_PYTHON},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"{family} []" for family in families]
