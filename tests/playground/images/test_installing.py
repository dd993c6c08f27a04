"""Tests that what is laid out for an image has the same names, times and permissions for each build."""

from __future__ import annotations

import os
import stat
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from images.install import (
    add_user,
    compile_standard_library,
    files_below,
    make_environment,
    prune,
    settle,
    try_speedups,
)


def test_a_layer_is_settled_for_everybody_to_read_and_nobody_to_write(tmp_path: Path) -> None:
    # Given files with permissions and times of their own
    (tmp_path / "bin").mkdir(mode=0o700)
    (tmp_path / "bin/program").touch(mode=0o700)
    (tmp_path / "bin/data").touch(mode=0o666)
    (tmp_path / "bin/link").symlink_to("/nowhere")

    # When they are settled
    settle(tmp_path)

    # Then only what can be run stays so
    found = {path.name: path.lstat() for path in tmp_path.rglob("*")}
    modes = {name: stat.S_IMODE(status.st_mode) for name, status in found.items() if name != "link"}
    assert modes == {"bin": 0o755, "program": 0o755, "data": 0o644}
    assert {status.st_mtime for status in found.values()} == {0.0}


def test_the_user_comes_after_those_of_the_base_and_only_once(tmp_path: Path) -> None:
    base, first, second = (tmp_path / name for name in ("base", "first", "second"))
    base.mkdir()
    (base / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n", encoding="utf-8")
    (base / "group").write_text("root:x:0:\n", encoding="utf-8")

    add_user(first, base)
    add_user(second, first)

    assert (second / "passwd").read_text(encoding="utf-8").splitlines() == [
        "root:x:0:0:root:/root:/bin/sh",
        "delaytopic:x:65532:65532:delaytopic:/tmp:/usr/sbin/nologin",
    ]
    assert (second / "group").read_text(encoding="utf-8").splitlines() == ["root:x:0:", "delaytopic:x:65532:"]


def test_what_no_image_needs_is_left_out(tmp_path: Path) -> None:
    packages = tmp_path / "lib/python3.11/site-packages"
    kept = ["kubernetes/client/api.py", "pyarrow/lib.so", "test.py", "tests.py"]
    left_out = ["kubernetes/aio/client.py", "pyarrow/include/arrow.h", "pyarrow/tests/test_array.py", "redis/a.pyi"]
    for name in [*kept, *left_out]:
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/activate.fish").touch()

    prune(tmp_path)

    assert sorted(path.relative_to(packages).as_posix() for path in files_below(tmp_path)) == kept
    assert os.listdir(tmp_path / "bin") == []


def test_an_extension_that_is_not_for_the_base_ends_the_build_and_none_does_not(tmp_path: Path) -> None:
    make_environment(tmp_path)
    [packages] = tmp_path.glob("lib/python*/site-packages")
    (packages / "delaytopic_relay").mkdir()
    (packages / "delaytopic_relay/__init__.py").touch()

    try_speedups(tmp_path)
    (packages / f"delaytopic_relay/_speedups{EXTENSION_SUFFIXES[0]}").write_bytes(b"of another machine")
    with pytest.raises(SystemExit, match=r"import delaytopic_relay\._speedups failed"):
        try_speedups(tmp_path)

    assert sorted(path.suffix for path in (packages / "delaytopic_relay").iterdir()) == [".py", ".so"]


def test_the_bytecode_of_the_standard_library_is_made_anew_but_of_what_nothing_imports(tmp_path: Path) -> None:
    old = tmp_path / "__pycache__" / f"string.{sys.implementation.cache_tag}.pyc"
    for name in ("string.py", "json/decoder.py", "test/test_json.py", "site-packages/pip/main.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("ANSWER = 42\n", encoding="utf-8")
    old.parent.mkdir()
    old.write_bytes(b"of before")

    compiled = compile_standard_library(tmp_path)

    names = [path.relative_to(tmp_path).as_posix().split(".")[0] for path in compiled]
    assert names == ["__pycache__/string", "json/__pycache__/decoder"]
    assert old.read_bytes() != b"of before"
