"""The relay's speedups where tests need them: compiled in place, and demanded of processes or kept from them."""

from __future__ import annotations

import os
import shutil
from typing import Final

import pytest

from delaytopic_relay.core.entries import VARIABLE
from speedups.build import IN_PLACE, compile_extension

IN_C: Final = {VARIABLE: "1"}
"""Has a process demand the speedups, whatever this one does."""
IN_PYTHON: Final = {VARIABLE: "0"}
"""Keeps them from a process."""
CANNOT_COMPILE: Final = shutil.which("cc") is None and not os.environ.get("CI")
WHY: Final = "NOT TESTED: there is no C compiler here"


def compile_or_skip() -> None:
    """Compile the speedups where relays import them from, unless they are there.

    Skips the test, or at the head of a module all its tests, where there is no compiler; in CI they fail.
    """
    if CANNOT_COMPILE:
        pytest.skip(WHY, allow_module_level=True)
    compile_extension(IN_PLACE)
