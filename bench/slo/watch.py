"""A command with its cost: seconds, and the most memory that it and all its children held at once."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

SAMPLE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one run. `peak_mib` is the greatest sum of resident memory, sampled; `cpu_seconds` say on a busy machine, too,
    how much work it was.
    """

    seconds: float
    cpu_seconds: float
    peak_mib: int
    output: str


def run_watched(command: Sequence[str]) -> Cost:
    """Run a command to its end; raises ClickException when it fails."""
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak, ticks, done = 0, 0, threading.Event()
    output: list[str] = []

    def read() -> None:
        assert process.stdout is not None
        output.append(process.stdout.read())
        done.set()

    threading.Thread(target=read, daemon=True).start()
    while not done.wait(SAMPLE_SECONDS):
        family = _family(process.pid)
        peak = max(peak, sum(map(_resident_kib, family)))
        ticks = max(ticks, sum(map(_ticks, family)))
    if process.wait() != 0:
        raise click.ClickException(f"{' '.join(command[:6])} ... ended with {process.returncode}")
    return Cost(time.monotonic() - started, ticks / os.sysconf("SC_CLK_TCK"), peak // 1024, output[0])


def _family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, left = [], [pid]
    while left:
        found.append(left.pop())
        left += children.get(found[-1], [])
    return found


def _ticks(pid: int) -> int:
    """Processor time of a process and of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15]))


def _resident_kib(pid: int) -> int:
    """Proportional set size: what forked workers share is counted once."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
