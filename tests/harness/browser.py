"""A real Chromium, for tests that use the console as people do."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, sync_playwright
from tests.cluster.go_builds import ProgramsMissingError
from tests.harness.fixtures import prepared

NAMES: Final = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
INSTALL: Final = (
    ("apt-get", "-o", "DPkg::Lock::Timeout=300", "update"),
    ("apt-get", "-o", "DPkg::Lock::Timeout=300", "install", "-y", "--no-install-recommends", "chromium"),
)
OPTIONS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium_program(*, build: bool = True) -> Path:
    """Return the browser of this machine; install Debian's where there is none, unless told not to.

    Raises ProgramsMissingError where it is not there, and OSError where it cannot be installed.
    """
    found = _installed()
    if found is None and build and os.geteuid() == 0 and shutil.which("apt-get") is not None:
        for command in INSTALL:
            done = subprocess.run(
                command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, capture_output=True, check=False
            )
            if done.returncode:
                raise OSError(f"{' '.join(command)} failed: {done.stderr.decode(errors='replace').strip()[-500:]}")
        found = _installed()
    if found is None:
        raise ProgramsMissingError("there is no Chromium here: install it, on Debian with apt-get install chromium")
    return found


def _installed() -> Path | None:
    return next((Path(place) for name in NAMES if (place := shutil.which(name)) is not None), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A browser with a profile of its own; each test opens a window in it."""
    program = prepared(chromium_program)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=[*OPTIONS])
        yield started
        started.close()
