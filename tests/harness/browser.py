"""A real Chromium, for tests that use the console as people do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from images.tools.go_builds import ProgramsMissingError
from playground.without_registry.debian import install_if_possible
from playwright.sync_api import Browser, sync_playwright
from tests.harness.fixtures import prepared

NAMES: Final = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
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

    Raises ProgramsMissingError where it is not there, and CommandFailed where it cannot be installed.
    """
    found = _installed()
    if found is None and build:
        install_if_possible("chromium")
        found = _installed()
    if found is None:
        raise ProgramsMissingError("there is no Chromium here: install it, on Debian with apt-get install chromium")
    return found


def _installed() -> Path | None:
    return next((Path(place) for name in NAMES if (place := shutil.which(name)) is not None), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser with a profile of its own; each test opens a window in it.

    It is closed with its module: until then its event loop runs in this thread, where no other may be started.
    """
    program = prepared(chromium_program)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=[*OPTIONS])
        yield started
        started.close()
