"""A part that was not prepared is never passed over in silence."""

from __future__ import annotations

from pathlib import Path

import pytest
from images.tools.binaries import kubernetes_programs
from tests.harness.fixtures import prepared


@pytest.mark.parametrize(
    ("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)], ids=["by hand", "in CI"]
)
def test_a_test_without_its_programs_is_skipped_with_the_reason_and_fails_in_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CI", ci)

    with pytest.raises(outcome, match=r"NOT TESTED: Kubernetes .* run make prepare"):
        prepared(kubernetes_programs)
