"""Preparations before the first test, which take minutes: seen as they are made, and one line where they can't be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from images.tools.errors import ImagesError
from images.tools.go_builds import ProgramsMissingError, ProgramsNotBuiltError
from playground.cluster.errors import ClusterError
from playground.images.errors import TestImagesError
from tests.e2e.support.vacancy import Occupied

REASONS: Final = (ClusterError, Occupied, ImagesError, TestImagesError, ProgramsMissingError, ProgramsNotBuiltError)
"""The reason why no test can run at all."""


@contextmanager
def preparing(config: pytest.Config) -> Iterator[None]:
    """In the block, progress goes to the terminal and not into what pytest captures; what fails ends the session."""
    capture = config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():
            yield
    except REASONS as reason:
        pytest.exit(f"no test of the cluster can run: {reason}", returncode=1)
