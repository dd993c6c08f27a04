"""Locks: the exact distributions of an image with their digests, for both kinds of machine."""

from __future__ import annotations

import json
import platform
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from images.tools.catalogue import IMAGE_LIST, PYTHON
from images.tools.errors import LockError
from images.tools.pip import run_pip
from images.tools.places import IMAGES, ROOT

MACHINES: Final = ("x86_64", "aarch64")
GLIBC_MINORS: Final = range(36, 16, -1)
"""The versions of glibc from Debian 12's down to that of manylinux2014."""
TOOLS_LOCK: Final = "tools"
BACKEND_LOCK: Final = "backend"

OLDEST_PATCH: Final = ("async-timeout>=4.0.3,<6",)
"""A package asked for before Python 3.11.3, which Debian 12 has, and pip does not see when it is newer itself."""

Hashes = dict[str, list[str]]
"""The SHA-256 digests of the files of each `name==version`."""


def lock_file(name: str, *, root: Path = ROOT) -> Path:
    """The lock of an image, `tools` (what builds need inside an image) or `backend` (what makes wheels)."""
    return root / IMAGES.name / "locks" / f"{name}.txt"


def platform_options(machine: str) -> list[str]:
    """Options that make pip choose files for the base's Python on such a machine, whatever it runs on itself."""
    tags = [f"manylinux_2_{minor}_{machine}" for minor in GLIBC_MINORS]
    tags += [f"manylinux2014_{machine}"] + ([f"manylinux1_{machine}"] if machine == "x86_64" else [])
    platforms = [option for tag in tags for option in ("--platform", tag)]
    return [*platforms, "--python-version", PYTHON, "--implementation", "cp"]


def requirements() -> dict[str, tuple[str, list[str]]]:
    """Return by the name of each lock where its requirements come from, in words, and what pip is asked for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = {
        image.name: (f"the extra `{image.extra}` of pyproject.toml", [f"{ROOT}[{image.extra}]", *OLDEST_PATCH])
        for image in IMAGE_LIST
    }
    wanted[TOOLS_LOCK] = ("what builds use inside an image and leave behind", ["pip", "cyclonedx-bom"])
    backend = [*project["build-system"]["requires"], "setuptools"]
    return wanted | {BACKEND_LOCK: ("what makes wheels", backend)}


def resolve(wanted: Sequence[str]) -> Hashes:
    """The newest distributions that fit together, with digests for every kind of machine.

    Raises LockError on an interpreter whose choice would not fit the base.
    """
    if sys.platform != "linux" or platform.machine() not in MACHINES or f"3.{sys.version_info.minor}" != PYTHON:
        raise LockError(f"locks are resolved with Python {PYTHON} on Linux, on {' or '.join(MACHINES)}")
    found = _report(["--only-binary", ":none:", *wanted])
    for machine in MACHINES:
        if machine != platform.machine():
            others = _report(["--no-deps", *platform_options(machine), *found])
            found = {pin: sorted({*hashes, *others[pin]}) for pin, hashes in found.items()}
    return found


def lock_text(origin: str, pins: Mapping[str, Iterable[str]]) -> str:
    """A requirements file in pip's hash-checking mode."""
    lines = [f"# Written by `python -m images.lock`: {origin}."]
    for pin, hashes in sorted(pins.items()):
        lines.append(" \\\n".join([pin, *(f"    --hash=sha256:{digest}" for digest in hashes)]))
    return "\n".join(lines) + "\n"


def _report(arguments: Sequence[str]) -> Hashes:
    with tempfile.TemporaryDirectory(prefix="delaytopic-lock-") as folder:
        report = Path(folder) / "report.json"
        # pip allows other platforms for a --target only, which a dry run leaves empty.
        options = ["--dry-run", "--ignore-installed", "--target", f"{folder}/none", "--report", str(report)]
        run_pip(["install", *options, *arguments], "resolving requirements")
        installed = json.loads(report.read_text(encoding="utf-8"))["install"]
    return dict(_pin(entry) for entry in installed if "dir_info" not in entry["download_info"])


def _pin(entry: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the pin of one distribution of pip's report; the project itself, which is a folder, has none."""
    metadata = entry["metadata"]
    name = metadata["name"].lower().replace("_", "-").replace(".", "-")
    return f"{name}=={metadata['version']}", [entry["download_info"]["archive_info"]["hashes"]["sha256"]]
