from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("folder", ["operator", "relay", "spark", "crds", "cli"])
def test_the_top_folders_are_no_packages_because_one_named_operator_breaks_the_interpreters_own_imports(
    folder: str,
) -> None:
    assert not (ROOT / folder / "__init__.py").exists()
