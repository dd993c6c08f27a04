"""The relay's optional extension is compiled by whatever C compiler is here, whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.relay.compiling import CANNOT_COMPILE, WHY

from packed.build import HERE, NAME, ExtensionError, compile_extension

needs_compiler = pytest.mark.skipif(CANNOT_COMPILE, reason=WHY)
COMMAND = [sys.executable, str(HERE / "build.py")]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_extension(tmp_path_factory.mktemp("compiled"))


@needs_compiler
def test_the_compiled_file_is_a_module_for_everybody_and_nothing_else_is_left(compiled: Path) -> None:
    listing = "import _packed; print(_packed.__file__, *sorted(name for name in dir(_packed) if name[0] != '_'))"

    # In a process of its own, as this one may have the module already, from another file.
    environment = {**os.environ, "PYTHONPATH": str(compiled.parent)}
    run = subprocess.run([sys.executable, "-c", listing], env=environment, capture_output=True, text=True, check=True)

    file, *names = run.stdout.split()
    assert file == str(compiled)
    assert names == ["Packed", "Sender", "by_span", "ordered", "pack", "read", "summary", "unpack"]
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
def test_the_sources_compile_without_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Here, not wherever it is installed: a compiler that is newer than these sources may warn of more.
    monkeypatch.setenv("CC", "cc -Wall -Wextra -Werror -Wno-missing-field-initializers")

    assert compile_extension(tmp_path).is_file()


@needs_compiler
def test_a_compiler_that_refuses_is_quoted_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "cc -include no-such-header.h")

    with pytest.raises(ExtensionError, match=r"(?s)cc -include .* failed with exit code 1:\n.*no-such-header\.h"):
        compile_extension(tmp_path)

    assert os.listdir(tmp_path) == []


def test_a_compiler_that_is_not_there_is_named(tmp_path: Path) -> None:
    environment = {**os.environ, "CC": "/nonexistent"}

    run = subprocess.run([*COMMAND, str(tmp_path)], env=environment, capture_output=True, text=True, check=False)

    assert (run.returncode, run.stdout, run.stderr) == (
        1,
        "",
        "packed: there is no /nonexistent, which CC names: name a C compiler that is installed\n",
    )
    assert os.listdir(tmp_path) == []
