"""Edge: sdist and wheel, and the wheel tried in an environment that has nothing else.

`python -m release.package [FOLDER]` makes both in a folder, `dist` unless it is given.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from release.versions import ReleaseError

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("client", "crds", "process", "relay", "operator", "cli", "spark")
"""Folders whose packages are in the wheel."""
TRIED: Final[Mapping[str, Sequence[Sequence[str]]]] = {
    "": (["delaytopic", "--version"], ["delaytopic", "--help"]),
    "relay": (["delaytopic-relay", "--help"],),
    "operator": (["delaytopic-operator", "--help"],),
    "gateway": (["delaytopic", "gateway", "--help"],),
}
"""By extra, the commands that have to work with the base and that extra alone."""


def run(command: Sequence[str | Path], folder: Path = ROOT) -> str:
    """Run a command and return what it prints. Raises `ReleaseError`."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        words = " ".join(map(str, command))
        raise ReleaseError(f"{words} failed with exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def built(source: Path, folder: Path) -> Path:
    """Make sdist and wheel of a checkout; return the wheel."""
    folder.mkdir(parents=True, exist_ok=True)
    run([sys.executable, "-m", "build", "--outdir", folder, source], source)
    wheel = max(folder.glob("*.whl"), key=lambda path: path.stat().st_mtime)
    _demand_whole(wheel, source)
    return wheel


def _demand_whole(wheel: Path, source: Path) -> None:
    """Raise `ReleaseError` unless the wheel has the files of the packages, and no others."""
    wanted = {
        path.relative_to(source / folder).as_posix()
        for folder in PACKAGES
        for path in (source / folder).glob("delaytopic*/**/*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    if found != wanted:
        differs = [f"missing: {name}" for name in sorted(wanted - found)]
        differs += [f"too much: {name}" for name in sorted(found - wanted)]
        raise ReleaseError(f"{wheel.name} is not what the packages have:\n" + "\n".join(differs[:20]))


def tried(wheel: Path) -> None:
    """Install a wheel into environments of its own, and run its commands there. Raises `ReleaseError`."""
    for extra, commands in TRIED.items():
        with TemporaryDirectory(prefix="delaytopic-wheel-") as folder:
            place = Path(folder)
            venv.create(place, with_pip=True)
            name = f"{wheel}[{extra}]" if extra else f"{wheel}"
            run([place / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", name], place)
            for command, *arguments in commands:
                run([place / "bin" / command, *arguments], place)
            click.echo(f"  {wheel.name}{f'[{extra}]' if extra else ''}: {_megabytes(place):.0f} MB, works", err=True)


def _megabytes(place: Path) -> float:
    listed = json.loads(run([place / "bin/python", "-c", _SIZES], place))
    return float(sum(listed.values())) / 1_000_000


_SIZES: Final = """
import json, pathlib
from importlib.metadata import distributions
sizes = {}
for each in distributions():
    if each.name not in ("pip", "setuptools"):
        files = (pathlib.Path(each.locate_file(file)) for file in each.files or ())
        sizes[each.name] = sum(file.stat().st_size for file in files if file.is_file())
print(json.dumps(sizes))
"""


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.argument("folder", default="dist", type=click.Path(path_type=Path))
def main(folder: Path) -> None:
    """Make sdist and wheel of this checkout in FOLDER, and try the wheel in clean environments."""
    try:
        tried(built(ROOT, folder.resolve()))
    except ReleaseError as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
