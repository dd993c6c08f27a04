"""A command with its cost: seconds, processor time, memory and bytes read, of it and of all its children."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

SAMPLE_SECONDS = 0.5
_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one run, of a command and its family.

    `peak_mib` is the greatest sum of resident memory, sampled; `cpu_seconds` say on a busy machine, too, how much work
    it was. `bytes_read` are those of files, and those that Java reads from its Python workers; what the Kafka client
    receives is not among them.
    """

    seconds: float
    cpu_seconds: float
    peak_mib: int
    bytes_read: int
    output: str

    def to_document(self) -> dict[str, object]:
        """Return it for JSON, without the output."""
        times = {"seconds": round(self.seconds, 1), "cpuSeconds": round(self.cpu_seconds, 1)}
        return {**times, "peakMemoryMiB": self.peak_mib, "bytesRead": self.bytes_read}


@dataclass
class _Samples:
    """The most that was seen at any time."""

    ticks: int = 0
    peak_kib: int = 0
    bytes_read: int = 0

    def take(self, root: int) -> None:
        """Look at the command's family."""
        family = _below(root, _children())
        self.ticks = max(self.ticks, sum(map(_ticks, family)))
        self.bytes_read = max(self.bytes_read, sum(map(_bytes_read, family)))
        self.peak_kib = max(self.peak_kib, sum(map(_resident_kib, family)))


def run_watched(command: Sequence[str]) -> Cost:
    """Run a command to its end; raises ClickException when it fails."""
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
        samples.take(process.pid)
    if process.wait() != 0:
        raise click.ClickException(f"{' '.join(command[:6])} ... ended with {process.returncode}")
    return Cost(
        seconds=time.monotonic() - started,
        cpu_seconds=samples.ticks / _TICKS_PER_SECOND,
        peak_mib=samples.peak_kib // 1024,
        bytes_read=samples.bytes_read,
        output=output[0],
    )


def family_cpu_seconds(root: int) -> float:
    """Return the processor time of a process and of all that descend from it, those that have ended included."""
    return sum(map(_ticks, _below(root, _children()))) / _TICKS_PER_SECOND


def family_bytes_read(root: int) -> int:
    """Return the bytes that a process and all that descend from it have read, as `Cost` counts them."""
    return sum(map(_bytes_read, _below(root, _children())))


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


def _fields(pid: int) -> list[str]:
    """Return what the kernel says of a process, after its name; nothing when it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _ticks(pid: int) -> int:
    """Return the processor time of a process and of its children that have ended."""
    return sum(map(int, _fields(pid)[11:15]))


def _bytes_read(pid: int) -> int:
    """Return the bytes that a process has read, and its children that have ended."""
    return _number(pid, "io", "rchar:")


def _resident_kib(pid: int) -> int:
    """Return the proportional set size: what forked workers share is counted once."""
    return _number(pid, "smaps_rollup", "Pss:")


def _number(pid: int, file: str, name: str) -> int:
    """Return a number that the kernel tells of a process by name; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0)
