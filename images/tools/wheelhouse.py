"""The wheels of a lock, downloaded once a machine; what comes without a wheel is built here, not in an image."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from images.tools.errors import LockError
from images.tools.fingerprint import files_fingerprint, fingerprint
from images.tools.locking import BACKEND_LOCK, lock_file, platform_options
from images.tools.once import made_once
from images.tools.pip import run_pip
from images.tools.places import ROOT, cache_folder, link_or_copy

Report = Callable[[str], None]


def wheelhouse(lock: str, report: Report, *, root: Path = ROOT) -> Path:
    """The folder with the wheels of a lock of the checkout `root`. Raises LockError and WheelsError."""
    file = existing_lock(lock, root)

    def download(into: Path) -> None:
        report(f"downloading the wheels of {file.name} (once) ...")
        sources = into / "sources"
        exactly = ["--no-deps", "--require-hashes", "--requirement", str(file)]
        options = [*exactly, "--no-build-isolation", "--dest", str(sources), *platform_options(platform.machine())]
        run_pip(["download", *options], f"downloading {file.name}", environment=build_environment(report))
        for archive in sorted(sources.iterdir()):
            if archive.suffix == ".whl":
                archive.rename(into / archive.name)
            else:
                (built,) = built_wheel(archive, report).iterdir()
                link_or_copy(built, into / built.name)
        shutil.rmtree(sources)

    return made_once(cache_folder("wheels") / f"{lock}-{fingerprint(platform.machine(), file.read_bytes())}", download)


def built_wheel(archive: Path, report: Report) -> Path:
    """The folder with the wheel of a source distribution, which another lock may have, too."""

    def build(into: Path) -> None:
        report(f"building a wheel of {archive.name} (once) ...")
        build_wheel(archive, into, report)

    return made_once(cache_folder("built") / f"{archive.name}-{files_fingerprint(archive.parent, [archive])}", build)


def build_wheel(source: Path, into: Path, report: Report, variables: Mapping[str, str] | None = None) -> None:
    """The wheel of a folder or an archive, by the locked backends and without its dependencies.

    `variables` are added to the environment in which it is built.
    """
    options = ["--no-deps", "--no-build-isolation", "--no-cache-dir", "--wheel-dir", str(into)]
    environment = {**build_environment(report), "SOURCE_DATE_EPOCH": "1577836800", **(variables or {})}
    run_pip(["wheel", *options, str(source)], f"building a wheel of {source.name}", environment=environment)


def build_environment(report: Report) -> dict[str, str]:
    """The environment in which pip finds the locked build backends, and fetches none by itself."""
    file = existing_lock(BACKEND_LOCK, ROOT)

    def install(into: Path) -> None:
        report("installing what builds wheels (once) ...")
        run_pip(["install", "--target", str(into), "--require-hashes", "-r", str(file)], "installing build backends")

    return {"PYTHONPATH": str(made_once(cache_folder("backends") / fingerprint(file.read_bytes()), install))}


def existing_lock(name: str, root: Path) -> Path:
    """Raises LockError when there is none."""
    file = lock_file(name, root=root)
    if not file.is_file():
        raise LockError(f"{file} is not there: write it with `python -m images.lock {name}`")
    return file
