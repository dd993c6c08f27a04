"""Builds programs with Go from their modules, once a machine, into a cache outside the checkout."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from images.tools.once import one_at_a_time

KUBERNETES_VERSION: Final = "1.34.4"
# Without debug information a build is a sixth quicker, and its result a third smaller.
BUILD_FLAGS: Final = ("-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false")
_SECONDS_BETWEEN_REPORTS = 20.0
_SETTINGS = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off"}

Report = Callable[[str], None]


class ProgramsMissingError(Exception):
    """Neither built programs nor Go to build them are on this machine."""


class ProgramsNotBuiltError(Exception):
    """Go is here and the build failed; the text carries the end of its output."""


def print_progress(line: str) -> None:
    """One line on standard error, where it does not disturb output that is piped on."""
    print(line, file=sys.stderr, flush=True)


def run_go(
    arguments: Sequence[str],
    what: str,
    report: Report,
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run the go command, with a report now and then: its output is one line for each package compiled.

    One at a time: what a later one has in common with it is in Go's cache by then. Raises ProgramsMissingError and
    ProgramsNotBuiltError.
    """
    go = shutil.which("go")
    if go is None:
        raise ProgramsMissingError(
            f"{what} is not in {program_folder('')} yet, and there is no Go to build it with: install Go 1.24 or newer "
            "(https://go.dev/dl), or bring that folder from a machine that has built it"
        )
    with one_at_a_time(program_folder(""), "go"):
        _run_go([go, *arguments], what, report, folder, {**os.environ, **_SETTINGS, **(environment or {})})


def _run_go(
    command: Sequence[str], what: str, report: Report, folder: Path | None, environment: Mapping[str, str]
) -> None:
    report(f"building {what} from its Go modules (once, up to ten minutes on two cores, 6 GB for Go's caches) ...")
    started = last = time.monotonic()
    lines: list[str] = []
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as build:
        for line in build.stdout or ():
            lines.append(line)
            if (now := time.monotonic()) - last > _SECONDS_BETWEEN_REPORTS:
                report(f"  {what}: {now - started:.0f} s, {len(lines)} packages")
                last = now
    if build.returncode != 0:
        raise ProgramsNotBuiltError(f"go {command[1]} of {what} failed:\n{''.join(lines[-20:])}")
    report(f"{what} is built, after {time.monotonic() - started:.0f} s")


def linked_version() -> str:
    """Linker flags: without debug tables, and with the version that the programs say they are."""
    major, minor, _ = KUBERNETES_VERSION.split(".")
    facts = {"gitVersion": f"v{KUBERNETES_VERSION}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    stamps = [f"-X {package}.{name}={value}" for package in packages for name, value in facts.items()]
    return " ".join(["-s", "-w", *stamps])


def fingerprint(*inputs: str) -> str:
    """Return what a build depends on, this machine's kind included, as a short name."""
    parts = [platform.system(), platform.machine(), *BUILD_FLAGS, *inputs]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]


def program_folder(name: str) -> Path:
    """Return where built programs are kept; of all, or of one."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "delaytopic" / "kubernetes" / name
