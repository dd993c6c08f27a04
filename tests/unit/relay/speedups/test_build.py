"""The relay's speedups are compiled by whatever C compiler is here, whole or not at all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tests.support.relay.compiling import CANNOT_COMPILE, WHY

from speedups.build import HERE, NAME, ExtensionError, compile_extension

needs_compiler = pytest.mark.skipif(CANNOT_COMPILE, reason=WHY)
COMMAND = [sys.executable, str(HERE / "build.py")]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The speedups, compiled without a warning."""
    with pytest.MonkeyPatch.context() as patched:
        # Here, not wherever it is installed: a compiler that is newer than these sources may warn of more.
        patched.setenv("CC", "cc -Wall -Wextra -Werror")
        return compile_extension(tmp_path_factory.mktemp("compiled"))


@needs_compiler
def test_the_sources_compile_without_a_warning_to_a_module_for_everybody_and_nothing_else(compiled: Path) -> None:
    listing = "import _speedups; print(_speedups.__file__, *sorted(name for name in dir(_speedups) if name[0] != '_'))"

    # In a process of its own, as this one may have the module already, from another file.
    environment = {**os.environ, "PYTHONPATH": str(compiled.parent)}
    run = subprocess.run([sys.executable, "-c", listing], env=environment, capture_output=True, text=True, check=True)

    file, *names = run.stdout.split()
    assert file == str(compiled)
    assert names == [
        *[
            "Schedule",
            "Sender",
            "all_plain",
            "by_span",
            "due_at",
            "grouped",
            "ordered",
            "pack",
            "read",
            "size",
            "sizes",
        ],
        *["summary", "unnamed", "unpack"],
    ]
    assert os.listdir(compiled.parent) == [NAME]
    assert compiled.stat().st_mode & 0o777 == 0o755


@needs_compiler
def test_the_command_leaves_a_file_that_is_newer_than_its_sources(compiled: Path) -> None:
    before = compiled.stat()

    # A compiler that is not there is not missed.
    environment = {**os.environ, "CC": "/nonexistent"}
    command = [*COMMAND, str(compiled.parent)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    assert run.stdout == f"{compiled}\n"
    assert (compiled.stat().st_ino, compiled.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@needs_compiler
def test_a_file_that_is_older_than_a_source_is_made_anew_with_the_same_bytes(compiled: Path, tmp_path: Path) -> None:
    old = tmp_path / NAME
    old.write_bytes(b"of older sources")
    os.utime(old, (0, 0))

    assert compile_extension(tmp_path) == old
    assert old.read_bytes() == compiled.read_bytes()


@needs_compiler
def test_a_compiler_that_refuses_is_quoted_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "cc -include no-such-header.h")

    with pytest.raises(ExtensionError, match=r"(?s)cc -include .* failed with exit code 1:\n.*no-such-header\.h"):
        compile_extension(tmp_path)

    assert os.listdir(tmp_path) == []


def test_a_free_threaded_python_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sysconfig.get_config_vars(), "Py_GIL_DISABLED", 1)

    with pytest.raises(ExtensionError, match=r"Python 3\.\d+ is free-threaded, which the speedups do not support"):
        compile_extension(tmp_path)

    assert os.listdir(tmp_path) == []


@needs_compiler
def test_what_is_compiled_is_hardened(compiled: Path) -> None:
    if shutil.which("readelf") is None:
        pytest.skip("NOT TESTED: there is no readelf here")
    dump = subprocess.run(["readelf", "-Wdls", compiled], capture_output=True, text=True, check=True).stdout

    assert [name for name in ("GNU_RELRO", "BIND_NOW", "__stack_chk_fail") if name not in dump] == []
    assert [line.split()[-2] for line in dump.splitlines() if line.split()[:1] == ["GNU_STACK"]] == ["RW"]


def test_a_compiler_that_is_not_there_is_named(tmp_path: Path) -> None:
    environment = {**os.environ, "CC": "/nonexistent"}

    run = subprocess.run([*COMMAND, str(tmp_path)], env=environment, capture_output=True, text=True, check=False)

    assert (run.returncode, run.stdout, run.stderr) == (
        1,
        "",
        "speedups: there is no /nonexistent, which CC names: name a C compiler that is installed\n",
    )
    assert os.listdir(tmp_path) == []
