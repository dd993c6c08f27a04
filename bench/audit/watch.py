"""A command with its cost: seconds, processor time and memory, of it and of all its children, by their roles."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

import click

SAMPLE_SECONDS = 0.1
_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")


class Role(StrEnum):
    """The part that a process of an audit plays."""

    COMMAND = "command"
    DRIVER = "driver"
    EXECUTOR = "executor"
    PYTHON_WORKER = "pythonWorker"


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one run. `peak_mib` is the greatest sum of resident memory, sampled; `cpu_seconds` say on a busy
    machine, too, how much work it was. Both are of the command's own family, and by role of executors elsewhere, too.
    """

    seconds: float
    cpu_seconds: float
    peak_mib: int
    output: str
    cpu_by_role: dict[str, float]
    peak_mib_by_role: dict[str, int]


@dataclass
class _Samples:
    """The most that was seen at any time. Processor time is by process, which may have ended since."""

    ticks: int = 0
    peak_kib: int = 0
    own_ticks: dict[int, tuple[Role, int]] = field(default_factory=dict)
    peak_by_role: defaultdict[Role, int] = field(default_factory=lambda: defaultdict(int))

    def take(self, root: int, workers: Sequence[int]) -> None:
        """Look at the command's family, and at the executors below Spark's workers."""
        children = _children()
        family = _below(root, children)
        elsewhere = [pid for worker in workers for pid in _below(worker, children) if pid != worker]
        resident = {pid: _resident_kib(pid) for pid in (*family, *elsewhere)}
        self.ticks = max(self.ticks, sum(map(_ticks, family)))
        self.peak_kib = max(self.peak_kib, sum(resident[pid] for pid in family))
        by_role: Counter[Role] = Counter()
        for pid, kib in resident.items():
            known, ticks = self.own_ticks.get(pid, (Role.PYTHON_WORKER, 0))
            # A process that has just ended has no words any more.
            role = Role.COMMAND if pid == root else _role(pid) or known
            by_role[role] += kib
            self.own_ticks[pid] = (role, max(_own_ticks(pid), ticks))
        for role, kib in by_role.items():
            self.peak_by_role[role] = max(self.peak_by_role[role], kib)

    def cpu_by_role(self) -> dict[str, float]:
        """Return the seconds of each role."""
        sums: Counter[str] = Counter()
        for role, ticks in self.own_ticks.values():
            sums[str(role)] += ticks
        return {role: round(ticks / _TICKS_PER_SECOND, 1) for role, ticks in sorted(sums.items())}


def run_watched(command: Sequence[str], workers: Sequence[int] = ()) -> Cost:
    """Run a command to its end; raises ClickException when it fails. `workers` are Spark's, which run executors."""
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    samples, done = _Samples(), threading.Event()
    output: list[str] = []

    def read() -> None:
        assert process.stdout is not None
        with process.stdout:
            output.append(process.stdout.read())
        done.set()

    threading.Thread(target=read, daemon=True).start()
    while not done.wait(SAMPLE_SECONDS):
        samples.take(process.pid, workers)
    if process.wait() != 0:
        raise click.ClickException(f"{' '.join(command[:6])} ... ended with {process.returncode}")
    return Cost(
        seconds=time.monotonic() - started,
        cpu_seconds=samples.ticks / _TICKS_PER_SECOND,
        peak_mib=samples.peak_kib // 1024,
        output=output[0],
        cpu_by_role=samples.cpu_by_role(),
        peak_mib_by_role={str(role): kib // 1024 for role, kib in sorted(samples.peak_by_role.items())},
    )


def family_cpu_seconds(root: int) -> float:
    """Return the processor time of a process and of all that descend from it, those that have ended included."""
    return sum(map(_ticks, _below(root, _children()))) / _TICKS_PER_SECOND


def _children() -> dict[int, list[int]]:
    """Return the children of every process."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        if fields := _fields(int(stat.parent.name)):
            children[int(fields[1])].append(int(stat.parent.name))
    return children


def _below(root: int, children: dict[int, list[int]]) -> list[int]:
    """Return a process and all that descend from it."""
    found, left = list[int](), [root]
    while left:
        found.append(left.pop())
        left += children.get(found[-1], [])
    return found


def _role(pid: int) -> Role | None:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return None
    if not words:
        return None
    # A worker's child has the worker's words before it becomes an executor.
    if b"CoarseGrainedExecutorBackend" in words or b"deploy.worker.Worker" in words:
        return Role.EXECUTOR
    return Role.DRIVER if b"SparkSubmit" in words else Role.PYTHON_WORKER


def _fields(pid: int) -> list[str]:
    """Return what the kernel says of a process, after its name; nothing when it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _ticks(pid: int) -> int:
    """Return the processor time of a process and of its children that have ended."""
    return sum(map(int, _fields(pid)[11:15]))


def _own_ticks(pid: int) -> int:
    return sum(map(int, _fields(pid)[11:13]))


def _resident_kib(pid: int) -> int:
    """Proportional set size: what forked workers share is counted once."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
