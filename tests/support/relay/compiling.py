"""The relay's optional extension where tests need it: compiled in place, and switched on for processes."""

from __future__ import annotations

import os
import shutil
from typing import Final

import pytest

from delaytopic_relay.core.packed import VARIABLE
from packed.build import IN_PLACE, compile_extension

IN_ENVIRONMENT: Final = {VARIABLE: "1"}
"""Has a process demand the extension, whatever this one does."""
CANNOT_COMPILE: Final = shutil.which("cc") is None and not os.environ.get("CI")
WHY: Final = "NOT TESTED: there is no C compiler here"


def compile_or_skip() -> None:
    """Compile the extension where relays import it from, unless it is there.

    Skips the test, or at the head of a module all its tests, where there is no compiler; in CI they fail.
    """
    if CANNOT_COMPILE:
        pytest.skip(WHY, allow_module_level=True)
    compile_extension(IN_PLACE)
