"""The hunt for histories that break a promise: its processes, and what the histories of each family contain."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.simulation.counting import EXPECTED
from tests.simulation.plans.families import PLANS
from tests.support.paths import ROOT
from tests.support.relay.process import wait_for

HUNT = """
import os, sys, time
from tests.simulation.hunting import workers

if __name__ == "__main__":
    pool = workers()
    print(pool.submit(os.getpid).result(), flush=True)
    pool.submit(time.sleep, 600).result()
"""


def test_workers_end_with_a_run_that_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "hunt.py"
    program.write_text(HUNT, encoding="utf-8")
    run = subprocess.Popen(
        [sys.executable, program], stdout=subprocess.PIPE, text=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}
    )
    assert run.stdout is not None
    worker = int(run.stdout.readline())

    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stdout.close()

    wait_for(lambda: not _runs(worker))


def _runs(pid: int) -> bool:
    """Tell whether a process runs; one that has ended may wait for whoever asks for its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_every_family_says_which_faults_and_paths_its_histories_have_to_contain() -> None:
    assert EXPECTED.keys() == PLANS.keys()
