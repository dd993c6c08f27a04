"""Programs are built once, whole or not at all, and never by a test."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cluster.binaries import PROGRAMS, helm_program, kubernetes_programs
from tests.cluster.go_builds import ProgramsMissingError, ProgramsNotBuiltError
from tests.harness.fixtures import prepared

# Writes what it is asked to write, and remembers that it was asked.
COMPILER = """#!/bin/sh
echo "$@" >> {calls}
for word; do [ "$last" = -o ] && echo program > "$word"; last="$word"; done
[ -n "$GOBIN" ] && echo program > "$GOBIN/helm"
exit {exit_code}
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a PATH without Go."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "/bin")
    monkeypatch.delenv("CI", raising=False)
    return tmp_path / "cache" / "delaytopic" / "kubernetes"


def install_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exit_code: int = 0) -> Path:
    """A go that writes programs of one word; the file that it writes its calls to."""
    program, calls = tmp_path / "bin" / "go", tmp_path / "calls"
    program.parent.mkdir()
    program.write_text(COMPILER.format(calls=calls, exit_code=exit_code))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/bin")
    return calls


def quiet(line: str) -> None:
    """Report nothing."""


def test_all_programs_are_links_to_one_that_is_built_once(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = install_go(tmp_path, monkeypatch)

    first, second = kubernetes_programs(quiet), kubernetes_programs(quiet)

    assert first == second
    assert {first.path(name).read_text() for name in PROGRAMS} == {"program\n"}
    assert len(calls.read_text().splitlines()) == 1


@pytest.mark.parametrize("version", ["4.0.4", "3.19.5"])
def test_helm_has_a_folder_for_each_version(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    install_go(tmp_path, monkeypatch)

    program = helm_program(quiet, version)

    assert program.read_text() == "program\n"
    assert program.parent.name.startswith(f"helm-{version}-")


def test_what_was_built_needs_no_go(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_go(tmp_path, monkeypatch)
    before = kubernetes_programs(quiet)
    monkeypatch.setenv("PATH", "/bin")

    assert kubernetes_programs(quiet) == before


def test_a_failed_build_leaves_nothing_and_shows_what_go_said(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_go(tmp_path, monkeypatch, exit_code=1)

    with pytest.raises(ProgramsNotBuiltError, match=r"go build of Kubernetes .* failed"):
        kubernetes_programs(quiet)

    assert {path.suffix for path in cache.iterdir()} == {".lock"}


def test_a_machine_without_go_is_told_what_to_install(cache: Path) -> None:
    with pytest.raises(ProgramsMissingError, match=r"install Go 1\.24 or newer .*, or bring that folder"):
        kubernetes_programs(quiet)


def test_what_may_not_be_built_is_missing_and_names_the_command_that_builds_it(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = install_go(tmp_path, monkeypatch)

    with pytest.raises(ProgramsMissingError, match=r"Kubernetes .* run make prepare"):
        kubernetes_programs(quiet, build=False)
    with pytest.raises(ProgramsMissingError, match=r"Helm .* run make prepare"):
        helm_program(quiet, build=False)

    assert not calls.exists()


def test_without_the_programs_tests_are_skipped_loudly(cache: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match=r"NOT TESTED: Kubernetes .* run make prepare"):
        prepared(kubernetes_programs)


def test_without_the_programs_tests_fail_in_ci(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")

    with pytest.raises(pytest.fail.Exception, match=r"NOT TESTED: Kubernetes .* run make prepare"):
        prepared(kubernetes_programs)


def test_what_was_built_is_found_by_tests(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_go(tmp_path, monkeypatch)
    built = kubernetes_programs(quiet)

    assert prepared(kubernetes_programs) == built
