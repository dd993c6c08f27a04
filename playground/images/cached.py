"""Images that are made once a machine: their archives outlive engines, which are deleted with all that they know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from images.tools.go_builds import Report
from images.tools.once import one_at_a_time
from playground.cluster import folders
from playground.cluster.commands import succeeds
from playground.cluster.engine import DockerEngine

LABEL: Final = "dev.delaytopic.e2e.fingerprint"
SAVE_SECONDS: Final = 900.0


@dataclass(frozen=True, slots=True)
class Recipe:
    """A way to an image: `make` writes its archive, with `LABEL` in the image."""

    name: str
    reference: str
    fingerprint: str
    make: Callable[[Path], None]

    def archive(self, folder: Path) -> Path:
        """Return where its archive is kept."""
        return folder / f"{self.name}-{self.fingerprint}.tar"


def ensure(engine: DockerEngine, recipe: Recipe, report: Report, folder: Path | None = None) -> str:
    """Have the image in the engine, made anew only when what it is made of has changed; returns its reference."""
    archives = folder or folders.cache() / "images"
    with one_at_a_time(archives, recipe.name):
        if not is_current(engine, recipe):
            archive = made(recipe, archives)
            # What was built here just now is here. An engine that is not ours has to know that it came for the tests.
            if not (engine.is_private and is_current(engine, recipe)):
                report(f"loading {recipe.reference} ...")
                engine.load_archive(archive)
    return recipe.reference


def made(recipe: Recipe, folder: Path) -> Path:
    """The archive of an image, written unless it is there; whole or not at all."""
    archive = recipe.archive(folder)
    if not archive.exists():
        unfinished = archive.with_suffix(".unfinished")
        recipe.make(unfinished)
        unfinished.rename(archive)
        delete_old(folder, recipe.name)
    return archive


def is_current(engine: DockerEngine, recipe: Recipe) -> bool:
    """Tell whether the engine has it, made of the same things."""
    label = f'{{{{index .Config.Labels "{LABEL}"}}}}'
    inspected = ("docker", "image", "inspect", f"--format={label}", recipe.reference)
    if not succeeds(*inspected, environment=engine.environment):
        return False
    return engine("image", "inspect", f"--format={label}", recipe.reference).strip() == recipe.fingerprint


def save(engine: DockerEngine, reference: str, archive: Path) -> None:
    """Write the archive of an image of the engine."""
    engine("save", f"--output={archive}", reference, seconds=SAVE_SECONDS)


def delete_old(folder: Path, name: str) -> None:
    """All archives of an image but the newest: each has all of its layers, near a gigabyte for the audit."""
    length = len(f"{name}-") + 16 + len(".tar")
    archives = [path for path in folder.glob(f"{name}-*.tar") if len(path.name) == length]
    for archive in sorted(archives, key=lambda path: path.stat().st_mtime, reverse=True)[1:]:
        archive.unlink()
