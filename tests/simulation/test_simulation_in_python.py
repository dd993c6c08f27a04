"""Histories full of faults for relays without their speedups, some of them with a fixed delay."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.support.paths import ROOT
from tests.support.relay.compiling import IN_PYTHON

RUNS = 50
FIRST_SEED = 20_000
"""Beyond those of the tests with them."""


@pytest.mark.long
@pytest.mark.parametrize("family", ["RedisZset", "KafkaBuckets", "Members", "MembersBuckets"])
def test_no_history_of_relays_in_python_breaks_a_promise(family: str) -> None:
    arguments = ["--runs", f"{RUNS}", "--seed", f"{FIRST_SEED}", "--backend", family]
    environment = {**os.environ, **IN_PYTHON}

    # In a process of its own, as modules look for the speedups when they are imported.
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == f"{RUNS} histories, 0 failed"
