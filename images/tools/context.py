"""The build context of an image: wheels and what installs them, and nothing else of the checkout."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from images.tools.fingerprint import files_fingerprint, fingerprint, tree
from images.tools.places import INSTALLER, link_or_copy


def stage_context(folder: Path, dockerfile: Path, pyproject: Path, wheels: Mapping[str, Path]) -> None:
    """Fill an empty folder; `wheels` are folders by what they are for: tools, dependencies, project."""
    shutil.copy(dockerfile, folder / "Dockerfile")
    shutil.copy(INSTALLER, folder / INSTALLER.name)
    shutil.copy(pyproject, folder / pyproject.name)
    for kind, source in wheels.items():
        destination = folder / "wheels" / kind
        destination.mkdir(parents=True)
        for wheel in source.iterdir():
            link_or_copy(wheel, destination / wheel.name)


def context_fingerprint(dockerfile: Path, pyproject: Path, wheels: Mapping[str, Path], *settings: str) -> str:
    """Return a text that stays the same as long as `stage_context` gives the same; wheels are known by the names of
    their folders.
    """
    own = files_fingerprint(INSTALLER.parent, tree(INSTALLER))
    folders = [f"{kind}={folder.name}" for kind, folder in sorted(wheels.items())]
    return fingerprint(own, dockerfile.read_bytes(), pyproject.read_bytes(), *folders, *settings)
