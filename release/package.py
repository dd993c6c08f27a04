"""Edge: sdist and wheel, and the wheel tried in an environment that has nothing else.

`python -m release.package [FOLDER]` makes both in a folder, `dist` unless it is given.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from release.versions import ReleaseError

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("client", "crds", "process", "relay", "operator", "gateway", "local", "cli", "spark")
"""Folders whose packages are in the wheel."""
TRIED: Final[Mapping[str, Sequence[Sequence[str]]]] = {
    "": (["delaytopic", "--version"], ["delaytopic", "--help"]),
    "relay": (["delaytopic-relay", "--help"],),
    "operator": (["delaytopic-operator", "--help"],),
    "gateway": (["delaytopic-gateway", "--help"],),
}
"""The commands that have to work with the base and one extra alone, by extra."""
PURE: Final = "py3-none-any"
"""The tag of the wheel for every machine."""
SPEEDUPS: Final = f"delaytopic_relay/_speedups{sysconfig.get_config_var('EXT_SUFFIX')}"
"""The file that wheels for one kind of machine have."""


def run(command: Sequence[str | Path], folder: Path = ROOT, variables: Mapping[str, str] | None = None) -> str:
    """Run a command and return what it prints; `variables` are added to its environment. Raises `ReleaseError`."""
    environment = {**os.environ, **(variables or {})}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        words = " ".join(map(str, command))
        raise ReleaseError(f"{words} failed with exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def built(source: Path, folder: Path, *, speedups: bool = False) -> Path:
    """Make sdist and wheel of a checkout; return the wheel. `speedups`: it has the relay's."""
    folder.mkdir(parents=True, exist_ok=True)
    # Set either way, so that the caller's own DELAYTOPIC_SPEEDUPS has no effect.
    variables = {"DELAYTOPIC_SPEEDUPS": "1" if speedups else "0"}
    run([sys.executable, "-m", "build", "--outdir", folder, source], source, variables)
    wheel = max(folder.glob("*.whl"), key=lambda path: path.stat().st_mtime)
    if wheel.stem.endswith(PURE) == speedups:
        raise ReleaseError(f"{wheel.name} is for {'every machine' if speedups else 'this kind of machine alone'}")
    _demand_whole(wheel, source, [SPEEDUPS] if speedups else [])
    return wheel


def _demand_whole(wheel: Path, source: Path, compiled: Sequence[str]) -> None:
    """Raise `ReleaseError` unless the wheel has the files of the packages, what is compiled, and no others."""
    # What `make install` compiles in place is in no wheel.
    wanted = set(compiled) | {
        path.relative_to(source / folder).as_posix()
        for folder in PACKAGES
        for path in (source / folder).glob("delaytopic*/**/*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
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
            venv.create(place)
            name = f"{wheel}[{extra}]" if extra else f"{wheel}"
            pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", f"--python={place / 'bin/python'}")
            run([*pip, "install", "--quiet", name], place)
            for command, *arguments in commands:
                run([place / "bin" / command, *arguments], place)
            click.echo(f"  {wheel.name}{f'[{extra}]' if extra else ''}: {_megabytes(place):.0f} MB, works", err=True)


def tried_with_speedups(source: Path) -> None:
    """Make a wheel with the relay's speedups and import these; nothing of it is kept. Raises `ReleaseError`."""
    if shutil.which("cc") is None:
        click.echo("  NOT TRIED, as there is no C compiler: a wheel with the relay's speedups", err=True)
        return
    with TemporaryDirectory(prefix="delaytopic-wheel-") as folder:
        place = Path(folder)
        wheel = built(source, place / "dist", speedups=True)
        # Without its dependencies, which this environment has: the other wheel was tried with them.
        install = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
        run([*install, "--target", place / "installed", wheel], place)
        found = run([sys.executable, "-c", _WHERE], place / "installed").strip()
        if not Path(found).samefile(place / "installed" / SPEEDUPS):
            raise ReleaseError(f"{wheel.name} was installed, and the speedups come from {found}")
        click.echo(f"  {wheel.name}: works", err=True)


def _megabytes(place: Path) -> float:
    listed = json.loads(run([place / "bin/python", "-c", _SIZES], place))
    return float(sum(listed.values())) / 1_000_000


_WHERE: Final = "from delaytopic_relay.core import entries; print(entries.plugin)"
_SIZES: Final = """
import json, pathlib
from importlib.metadata import distributions
sizes = {}
for each in distributions():
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
        tried_with_speedups(ROOT)
    except ReleaseError as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
