"""The plugin of every test run: shares servers, ends with its parent, reports where the time went.

`tests/conftest.py` registers it. With pytest-xdist one process controls the run and the others are workers; without,
one process is both.
"""

from __future__ import annotations

import ast
import ctypes
import gc
import json
import os
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Final

import pytest
from tests.harness.report import EXCUSE, RunReport, count_managed_processes, ended_early
from tests.harness.shared_servers import SharedServers
from xdist.scheduler import LoadFileScheduling

from delaytopic_local.servers.process import ManagedProcess

BOUND_S: Final = 10.0
"""The longest time of a test's own part. A test that needs longer has the mark `takes_long` with the reason."""
NOISE: Final = 6.0
"""The factor by which a test without that mark may exceed it before it fails the run: no busy machine explains more."""
NOT_EVERY_DAY: Final = ("nightly", "e2e", "backlog")
SPARK: Final = "tests/integration/audit/"
ONE_BY_ONE: Final = "tests/simulation/"
"""The folder whose tests share nothing, and compute for seconds: each goes to a worker by itself."""
ALONE: Final = tuple(f"tests/integration/{room}/" for room in ("gateway", "operator/whole", "promises"))
"""The folders of all tests with the mark `alone`: the Makefile looks for them nowhere else."""
SNAPSHOT: Final = "DELAYTOPIC_TEST_DURATIONS"
"""The environment variable with the file of durations that all workers of a run read."""
_DURATIONS: Final = "delaytopic"
"""The folder for durations, in the user's cache."""
_PR_SET_PDEATHSIG: Final = 1
_SPARK_SCOPE: Final = "spark"
_MAY_BE_LONG: Final = ("integration", "long", EXCUSE)
_UNKNOWN_S: Final = 1.0
LONGEST_S: Final = 3_600.0


def register(config: pytest.Config) -> None:
    """Register the plugins of this process' role."""
    started = count_managed_processes()
    if hasattr(config, "workerinput"):
        _end_with_the_parent()
    else:
        config.pluginmanager.register(Controller(config, started), "delaytopic-controller")
    config.pluginmanager.register(Worker(), "delaytopic-worker")
    ast.parse = parsing_without_collection(ast.parse)


def parsing_without_collection(parse: Callable[..., Any]) -> Callable[..., Any]:
    """Return `ast.parse` with the garbage collector off meanwhile.

    CPython 3.11 counts the depth of trees in one place for all. A finalizer of which a traceback is written parses,
    too, and the parsing in which it is collected fails: "AST constructor recursion depth mismatch".
    """

    @wraps(parse)
    def parsed(*arguments: Any, **options: Any) -> Any:
        collects = gc.isenabled()
        gc.disable()
        try:
            return parse(*arguments, **options)
        finally:
            if collects:
                gc.enable()

    return parsed


def workers(config: pytest.Config) -> int:
    """Return how many processes run tests: those of every day wait for servers half of their time and more.

    A night computes more, and has as many as there are processors.
    """
    processors = os.cpu_count() or 1
    return processors if _is_of_night(config) else 2 * processors


def _end_with_the_parent() -> None:
    """Have the kernel kill this worker when the run is killed; its servers and relays die with it in the same way."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


class Worker:
    """A process that runs tests."""

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Send the reason why a test may take long along with its report."""
        if mark := item.get_closest_marker(EXCUSE):
            item.user_properties.append((EXCUSE, mark.args[0]))
        elif any(item.get_closest_marker(name) for name in NOT_EVERY_DAY):
            item.user_properties.append((EXCUSE, "not a test of every day"))
        elif item.get_closest_marker("long"):
            item.user_properties.append((EXCUSE, "takes a minute or more"))

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Collect without the garbage collector: what is collected stays for the whole run.

        Afterwards each of its full rounds would go through a million of these objects.
        """
        gc.disable()
        try:
            return (yield)
        finally:
            gc.enable()
            gc.freeze()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Begin with the files that took longest in the last run on this machine: all workers end at one time then."""
        if astray := [each.nodeid for each in items if _is_alone(each) and not each.nodeid.startswith(ALONE)]:
            raise pytest.UsageError(f"a test with the mark alone has to be in {ALONE}: {', '.join(astray)}")
        if not hasattr(config, "workerinput"):
            return  # one process alone keeps the order, in which quick tests say first what is wrong
        known = read_durations(Path(os.environ[SNAPSHOT]))
        items.sort(key=lambda item: -known.get(scope_of(item.nodeid), _default_s(item)))


def _is_alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("alone") is not None


def _default_s(item: pytest.Item) -> float:
    """A guess for a file that was never run here: what may be long comes first, lest a worker ends alone with it."""
    if scope_of(item.nodeid) == _SPARK_SCOPE:
        return 2 * LONGEST_S
    return LONGEST_S if any(item.get_closest_marker(name) for name in _MAY_BE_LONG) else _UNKNOWN_S


class ByFile(LoadFileScheduling):  # type: ignore[misc]  # the plugin has no types
    """Gives whole files to workers, but for tests that share nothing.

    Files that start Spark all go to the same worker, so that one Spark serves them.
    """

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


def scope_of(nodeid: str) -> str:
    """Return the name of what a test goes to a worker with."""
    if nodeid.startswith(ONE_BY_ONE):
        return nodeid
    return _SPARK_SCOPE if nodeid.startswith(SPARK) else nodeid.partition("::")[0]


class Controller:
    """The controlling process: owns the shared servers, and sums up at the end."""

    def __init__(self, config: pytest.Config, started: Sequence[ManagedProcess]) -> None:
        """`started` is what this process has started, which is added to."""
        self._config = config
        self._started = started
        self._durations = _durations_file(config)
        self._servers = SharedServers().__enter__()
        self._report = RunReport(self._servers.directory)
        # All workers must collect in the same order, while other runs of this machine may end and write theirs.
        snapshot = self._servers.directory / "durations.json"
        write_durations(snapshot, read_durations(self._durations))
        os.environ[SNAPSHOT] = str(snapshot)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        self._servers.__exit__()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> LoadFileScheduling:
        return ByFile(config, log)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._report.add(report.nodeid, report.when, report.duration, dict(report.user_properties))
        # Hundreds of tests would wait for it, each for a minute, and what it was that ended it would be out of sight.
        if report.failed and self._ended_early() and (run := self._config.pluginmanager.getplugin("dsession")):
            run.shouldstop = "a server that all tests share has ended"

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.config.getoption("numprocesses", None) and not session.config.getoption("keyword"):
            write_durations(self._durations, read_durations(self._durations) | self._report.seconds_by(scope_of))
        if self._report.over(BOUND_S * NOISE) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for title, lines in self._report.sections(BOUND_S, BOUND_S * NOISE):
            terminalreporter.section(title)
            for line in lines:
                terminalreporter.write_line(line)
        for ended in self._ended_early():
            terminalreporter.section("a server that all tests share has ended")
            terminalreporter.write_line(ended)

    def _ended_early(self) -> list[str]:
        return ended_early(self._started, self._servers.directory)


def read_durations(file: Path) -> dict[str, float]:
    """Read how long each file took in the last run that had it, in seconds; empty on a machine that never ran any."""
    try:
        found: dict[str, float] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found


def write_durations(file: Path, seconds: dict[str, float]) -> None:
    """Write how long files took, whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(f".{os.getpid()}")
    unfinished.write_text(json.dumps(seconds, indent=1), encoding="utf-8")
    unfinished.replace(file)


def _durations_file(config: pytest.Config) -> Path:
    """Return the file for this selection of tests: of one file, a night runs other tests than a day."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / _DURATIONS / ("durations-nightly.json" if _is_of_night(config) else "durations.json")


def _is_of_night(config: pytest.Config) -> bool:
    selection = str(config.getoption("markexpr"))
    return "nightly" in selection and "not nightly" not in selection
