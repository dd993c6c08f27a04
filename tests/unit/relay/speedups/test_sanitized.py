"""The tests of entries and senders once more, with a build that ends the process where memory or integers go wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.paths import ROOT
from tests.support.relay.compiling import CANNOT_COMPILE, WHY

from speedups.build import compile_extension

SANITIZED = "cc -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
TESTED = ("tests/unit/relay/core/test_entries.py", "tests/unit/relay/speedups/test_sender.py")
PLUGIN = """
import sys
from importlib.util import module_from_spec, spec_from_file_location

import delaytopic_relay

spec = spec_from_file_location("delaytopic_relay._speedups", {file!r})
module = sys.modules[spec.name] = delaytopic_relay._speedups = module_from_spec(spec)
spec.loader.exec_module(module)
"""


def library(name: str) -> str:
    """The file of a library of the compiler."""
    found = subprocess.run(["cc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return found.stdout.strip()


@pytest.mark.nightly
@pytest.mark.takes_long("fuzzes for a minute or more")
@pytest.mark.skipif(CANNOT_COMPILE, reason=WHY)
def test_nothing_goes_wrong_in_memory_while_entries_are_fuzzed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", SANITIZED)
    file = compile_extension(tmp_path / "sanitized")
    monkeypatch.delenv("CC")
    (tmp_path / "sanitized_speedups.py").write_text(PLUGIN.format(file=str(file)), encoding="utf-8")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment = {
        **inherited,
        "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT))),
        # Python itself is no sanitized program: the library has to come first, and what Python keeps is no leak.
        "LD_PRELOAD": f"{library('libasan.so')} {library('libubsan.so')}",
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        # Each object in a block of its own, whose bounds are seen.
        "PYTHONMALLOC": "malloc",
    }
    options = ["-q", "-n0", "-p", "no:cacheprovider", "-p", "sanitized_speedups", "-k", "not left_behind"]

    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *TESTED],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-10_000:]
