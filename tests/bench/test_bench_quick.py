from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.nightly]

ROOT = Path(__file__).parents[2]


def test_every_case_of_the_benchmark_runs_through_and_breaks_no_promise(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench", "--quick", "--into", str(tmp_path)]

    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    written = json.loads((tmp_path / "performance.json").read_text(encoding="utf-8"))
    assert written["notMeasured"] == {}
    assert (tmp_path / "performance.md").is_file()
