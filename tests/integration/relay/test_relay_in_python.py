"""Whatever the tests of the relay say of it holds without its speedups, too."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.support.paths import ROOT
from tests.support.relay.compiling import IN_PYTHON

UNIT_TESTS = "tests/unit/relay"
OPTIONS = ("-q", "-n0", "-p", "no:cacheprovider", "-m", "not nightly")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run Python without the speedups, and without what this run of pytest has in its environment."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment = {**inherited, **IN_PYTHON}
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@pytest.mark.nightly
@pytest.mark.takes_long("runs all unit tests of the relay once more")
def test_every_unit_test_of_the_relay_passes_in_python() -> None:
    done = run("-m", "pytest", *OPTIONS, UNIT_TESTS)

    assert done.returncode == 0, done.stdout[-5_000:]
