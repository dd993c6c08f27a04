"""The closing report of a test run: the longest tests, time by folder, servers started."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from shutil import disk_usage
from typing import Final

from delaytopic_local.servers.process import ManagedProcess

LONGEST: Final = 30
EXCUSE: Final = "takes_long"
"""The user property that carries the reason of a test with the mark of that name."""
STARTED: Final = "DELAYTOPIC_TEST_STARTS"
"""The environment variable with the file to which every process of the run adds the servers it starts."""


class RunReport:
    """Adds up what each test took; durations are seconds of wall time."""

    def __init__(self, directory: Path) -> None:
        """Count servers in a file of this directory."""
        self._starts = directory / "starts"
        os.environ[STARTED] = str(self._starts)
        self._phases: dict[str, dict[str, float]] = {}
        self._reasons: dict[str, str] = {}
        self._figures: dict[str, dict[str, object]] = {}

    def add(self, test: str, phase: str, seconds: float, properties: dict[str, object]) -> None:
        """Add a phase (setup, call, teardown) of a test."""
        self._phases.setdefault(test, {})[phase] = seconds
        if EXCUSE in properties:
            self._reasons[test] = str(properties[EXCUSE])
        if figures := {name: value for name, value in properties.items() if name != EXCUSE}:
            self._figures[test] = figures

    def seconds_by(self, group: Callable[[str], str]) -> dict[str, float]:
        """Sum all phases of all tests, by group."""
        sums: dict[str, float] = {}
        for test, phases in self._phases.items():
            sums[group(test)] = sums.get(group(test), 0.0) + sum(phases.values())
        return sums

    def over(self, seconds: float) -> list[str]:
        """Return the tests whose own part took longer, without a reason for it."""
        return [
            test
            for test, phases in self._phases.items()
            if phases.get("call", 0) > seconds and test not in self._reasons
        ]

    def sections(self, bound_s: float, limit_s: float) -> Iterator[tuple[str, list[str]]]:
        """Yield titles and lines."""
        total = {test: sum(phases.values()) for test, phases in self._phases.items()}
        longest = sorted(total, key=lambda test: -total[test])[:LONGEST]
        yield f"the {LONGEST} longest tests", [self._line(test, total[test]) for test in longest if total[test] > 1]
        folders = self.seconds_by(lambda test: "/".join(test.partition("::")[0].split("/")[:-1]))
        largest = sorted(folders.items(), key=lambda item: -item[1])
        yield "time by folder", [f"{seconds:8.1f} s  {folder}" for folder, seconds in largest if seconds > 1]
        if self._figures:
            lines = [f"{name}={value}  {test}" for test, each in self._figures.items() for name, value in each.items()]
            yield "what tests measured", lines
        yield "servers started", [f"{number:6}  {name}" for name, number in self.started().most_common()]
        if unexcused := self.over(bound_s):
            lines = [self._line(test, self._phases[test]["call"]) for test in unexcused]
            yield (
                f"longer than {bound_s:.0f} s without the mark {EXCUSE} (from {limit_s:.0f} s on the run fails)",
                lines,
            )

    def started(self) -> Counter[str]:
        """Count the servers started so far, by name."""
        if not self._starts.exists():
            return Counter()
        return Counter(self._starts.read_text(encoding="utf-8").splitlines())

    def _line(self, test: str, seconds: float) -> str:
        reason = self._reasons.get(test)
        return f"{seconds:8.1f} s  {test}" + (f" ({reason})" if reason else "")


def count_start(name: str) -> None:
    """Note that a server was started, in whichever process of the run."""
    if file := os.environ.get(STARTED):
        with Path(file).open("a", encoding="utf-8") as starts:
            starts.write(f"{name}\n")


def count_managed_processes() -> list[ManagedProcess]:
    """Have every managed process of this process counted; return the list to which each is added as it starts."""
    start = ManagedProcess.start
    started: list[ManagedProcess] = []

    def counting(process: ManagedProcess) -> None:
        # A pod's container is named after its program: the local node's are one kind.
        count_start("pod" if "/" in process.name else process.name)
        started.append(process)
        start(process)

    setattr(ManagedProcess, "start", counting)  # noqa: B010  # a method is not assigned to, says mypy
    return started


def ended_early(started: Sequence[ManagedProcess], directory: Path) -> list[str]:
    """Return, of the servers with a log in this directory, those that have ended: each with its code and last lines."""
    free_mib = disk_usage(directory).free >> 20
    return [
        f"{process.name} ended with {process.exit_code} (negative: a signal), {free_mib} MiB of its disk are free; "
        f"the end of its log:\n{process.log_tail()}"
        for process in started
        if process.log_file.is_relative_to(directory) and process.exit_code is not None
    ]
