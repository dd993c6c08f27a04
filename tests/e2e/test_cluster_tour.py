"""The tour of the documentation, on a real cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.e2e.support.installed_platform import InstalledPlatform
from tests.e2e.tour.page import recorded
from tests.e2e.tour.stage import PAGE, clear, leave, shell

pytestmark = pytest.mark.e2e


def test_the_commands_of_the_tour_print_what_its_page_says(
    platform: InstalledPlatform, kubeconfig: Path, kubectl_program: Path, tmp_path: Path
) -> None:
    page = PAGE.read_text(encoding="utf-8")
    clear(platform.kubectl)

    printed = recorded(page, shell(kubeconfig, [Path(sys.executable).parent, kubectl_program.parent], tmp_path))
    leave(platform.kubectl)

    assert printed == page, "run make tour, and look at what it changes"
