"""Whatever the tests of the relay say of it holds with the extension, too."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.support.paths import ROOT
from tests.support.relay.compiling import IN_ENVIRONMENT, compile_or_skip

compile_or_skip()

UNIT_TESTS = "tests/unit/relay"
OPTIONS = ("-q", "-n0", "-p", "no:cacheprovider", "-m", "not nightly")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the extension, and without what this run of pytest has in its environment."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment = {**inherited, **IN_ENVIRONMENT}
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def test_a_process_that_demands_the_extension_has_it() -> None:
    done = run("-c", "from delaytopic_relay.core.packed import check_extension; print(check_extension())")

    assert (done.returncode, done.stdout) == (0, "True\n")


@pytest.mark.long
@pytest.mark.takes_long("runs all unit tests of the relay once more")
def test_every_unit_test_of_the_relay_passes_with_the_extension() -> None:
    done = run("-m", "pytest", *OPTIONS, UNIT_TESTS)

    assert done.returncode == 0, done.stdout[-5_000:]
