"""The wheel of the project, built once for each state of its source."""

from __future__ import annotations

import subprocess
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from images.tools.errors import SourceError
from images.tools.fingerprint import files_fingerprint, tree
from images.tools.once import made_once
from images.tools.places import cache_folder
from images.tools.wheelhouse import Report, build_wheel

_BESIDE_PACKAGES = ("pyproject.toml", "README.md", "LICENSE")


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
        """Of the wheel, and by default the tag of the images."""
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
        """Of everything that the wheel is made of, when it was asked for first: all images are of one state."""
        packages = self.metadata["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
        parts = [self.root / name for name in (*packages, *_BESIDE_PACKAGES)]
        return files_fingerprint(self.root, (file for part in parts for file in tree(part)))

    def wheel(self, report: Report) -> Path:
        """The folder with the wheel and nothing else. Raises WheelsError."""

        def build(into: Path) -> None:
            report("building the project's wheel ...")
            build_wheel(self.root, into, report)

        return made_once(cache_folder("project") / self.fingerprint, build)
