"""The wheel of the project, built once for each state of its source."""

from __future__ import annotations

import platform
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from images.tools.catalogue import PYTHON
from images.tools.errors import SourceError, WheelsError
from images.tools.fingerprint import files_fingerprint, fingerprint, tree
from images.tools.once import made_once
from images.tools.places import cache_folder
from images.tools.wheelhouse import Report, build_wheel

_BESIDE_PACKAGES = ("pyproject.toml", "README.md", "LICENSE")
SPEEDUPS: Final = "relay/speedups"
"""The sources of the relay's speedups, and the hook that compiles them into a wheel."""


@dataclass(frozen=True)
class Project:
    """A checkout of the project: this one or another."""

    root: Path

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """Its pyproject.toml; raises SourceError when it is not this project's."""
        file = self.root / "pyproject.toml"
        if not file.is_file():
            raise SourceError(f"{self.root} has no pyproject.toml: --source takes the root of a checkout")
        document = tomllib.loads(file.read_text(encoding="utf-8"))
        if document.get("project", {}).get("name") != "delaytopic":
            raise SourceError(f"{self.root} is a checkout of something else")
        return document

    @property
    def version(self) -> str:
        """The version of the wheel, and by default the tag of the images."""
        return str(self.metadata["project"]["version"])

    @property
    def revision(self) -> str:
        """The commit, `-dirty` when files were changed since; empty outside of git."""
        command = ["git", "-C", str(self.root), "describe", "--always", "--abbrev=40", "--match=", "--dirty"]
        try:
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            return ""

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of everything that the wheel is made of, when it was asked for first: all images are of one
        state.

        What `make install` compiles in place is in no wheel.
        """
        packages = self.metadata["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
        parts = [self.root / name for name in (*packages, *_BESIDE_PACKAGES)]
        files = (file for part in parts for file in tree(part) if file.suffix != ".so")
        return files_fingerprint(self.root, files)

    @cached_property
    def speedups_fingerprint(self) -> str:
        """The fingerprint of the wheel with the relay's speedups, which is for one kind of machine."""
        speedups = files_fingerprint(self.root, tree(self.root / SPEEDUPS))
        return fingerprint(self.fingerprint, speedups, platform.machine())

    def wheel(self, report: Report, *, speedups: bool = False) -> Path:
        """The folder with the wheel and nothing else; `speedups`: with the relay's, compiled here.

        Raises WheelsError, and SourceError for a checkout that has none.
        """
        if speedups:
            if not (self.root / SPEEDUPS).is_dir():
                raise SourceError(f"{self.root} has no {SPEEDUPS}: build its images with --pure")
            check_interpreter()

        def build(into: Path) -> None:
            report(f"building the project's wheel{' with the speedups' if speedups else ''} ...")
            # Set either way, so that the caller's own DELAYTOPIC_SPEEDUPS has no effect.
            build_wheel(self.root, into, report, {"DELAYTOPIC_SPEEDUPS": "1" if speedups else "0"})

        return made_once(cache_folder("project") / (self.speedups_fingerprint if speedups else self.fingerprint), build)


def check_interpreter(version: tuple[int, int] = sys.version_info[:2]) -> None:
    """Raise WheelsError unless the images' Python can import what this version of it compiles."""
    found = ".".join(map(str, version))
    if found != PYTHON:
        raise WheelsError(
            f"the images have Python {PYTHON}, and speedups compiled by Python {found} cannot be imported there: "
            f"build them with Python {PYTHON}, or with --pure"
        )
