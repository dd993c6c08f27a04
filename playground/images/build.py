"""All images that the tests in a cluster run, by what is in them."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from images.tools.building import Order
from images.tools.catalogue import IMAGE_LIST
from images.tools.go_builds import Report, print_progress
from images.tools.places import ROOT
from images.tools.project_wheel import Project
from playground.cluster.engine import DockerEngine
from playground.images.cached import ensure
from playground.images.errors import TestImagesError
from playground.images.recipes import Base, Workshop
from playground.without_registry.roots import BASE, REDIS

TAG: Final = "e2e"
PREVIOUS_TAG: Final = "previous"
BASE_VARIABLE: Final = "DELAYTOPIC_E2E_BASE"
PURE_VARIABLE: Final = "E2E_PURE"
"""1: relays are in Python alone, without their speedups."""


def build_all(engine: DockerEngine, report: Report = print_progress) -> dict[str, str]:
    """References of relay, operator, audit, traffic, kafka and redis, all in the engine when this returns.

    Raises TestImagesError, ClusterError and ImagesError.
    """
    workshop, base = Workshop(engine, report), base_image(engine, report)
    order = Order(Project(ROOT), base.reference, TAG, speedups=os.environ.get(PURE_VARIABLE) != "1")
    recipes = {image.name: workshop.project(order, image, base) for image in IMAGE_LIST}
    recipes["traffic"] = workshop.traffic(recipes["relay"])
    recipes["kafka"] = workshop.kafka(base, recipes["relay"])
    recipes["redis"] = workshop.root(REDIS)
    return {name: ensure(engine, recipe, report) for name, recipe in recipes.items()}


def build_previous(engine: DockerEngine, commit: str, report: Report = print_progress) -> dict[str, str]:
    """References of relay and operator as they were at a commit. Raises as `build_all`."""
    workshop, base = Workshop(engine, report), base_image(engine, report)
    with checkout(commit) as folder:
        order = Order(Project(folder), base.reference, PREVIOUS_TAG, speedups=False)
        recipes = [workshop.project(order, image, base) for image in IMAGE_LIST if image.name != "audit"]
        return {recipe.name.partition("-")[0]: ensure(engine, recipe, report) for recipe in recipes}


def base_image(engine: DockerEngine, report: Report = print_progress) -> Base:
    """The one that DELAYTOPIC_E2E_BASE names, else one of Debian's packages. Raises TestImagesError."""
    given = os.environ.get(BASE_VARIABLE)
    if not given:
        recipe = Workshop(engine, report).root(BASE)
        return Base(ensure(engine, recipe, report), recipe.fingerprint)
    if not engine.has_image(given) and not engine.pull(given):
        raise TestImagesError(f"{BASE_VARIABLE}={given}: there is no such image in the engine, nor in its registry")
    return Base(given, given)


def has_commit(commit: str) -> bool:
    """Tell whether this checkout has it: one that was fetched without its history has only the newest."""
    found = ("git", "-C", str(ROOT), "cat-file", "-e", f"{commit}^{{commit}}")
    return shutil.which("git") is not None and subprocess.run(found, capture_output=True, check=False).returncode == 0


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """The files of a commit of this repository, in a folder that goes away at the end of the block."""
    done = subprocess.run(["git", "-C", str(ROOT), "archive", commit], capture_output=True, check=False)
    if done.returncode != 0:
        raise TestImagesError(f"there is no commit {commit} here: {done.stderr.decode(errors='replace').strip()}")
    with tempfile.TemporaryDirectory(prefix="delaytopic-commit-") as folder:
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as files:
            files.extractall(folder, filter="data")
        yield Path(folder)
