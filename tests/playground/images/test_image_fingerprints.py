"""Tests that what an image is made of decides whether it is made anew, and nothing else does."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from images.tools.catalogue import IMAGE_LIST
from images.tools.context import context_fingerprint
from images.tools.errors import SourceError, WheelsError
from images.tools.fingerprint import files_fingerprint, fingerprint, tree
from images.tools.project_wheel import Project, check_interpreter
from playground.images.cached import Recipe, delete_old, made
from playground.without_registry.roots import BASE


def make_files(folder: Path) -> Path:
    (folder / "package").mkdir(parents=True)
    (folder / "package/module.py").write_text("one = 1\n", encoding="utf-8")
    (folder / "README.md").write_text("read me\n", encoding="utf-8")
    return folder


def make_checkout(folder: Path) -> Project:
    (folder / "relay/delaytopic_relay").mkdir(parents=True)
    (folder / "relay/speedups").mkdir()
    (folder / "relay/delaytopic_relay/__init__.py").touch()
    (folder / "relay/speedups/entries.c").write_text("int one = 1;\n", encoding="utf-8")
    packages = '[tool.hatch.build.targets.wheel]\npackages = ["relay/delaytopic_relay"]\n'
    (folder / "pyproject.toml").write_text(f'[project]\nname = "delaytopic"\n{packages}', encoding="utf-8")
    for name in ("README.md", "LICENSE"):
        (folder / name).touch()
    return Project(folder)


def test_the_same_files_elsewhere_have_the_same_fingerprint(tmp_path: Path) -> None:
    first, second = make_files(tmp_path / "first"), make_files(tmp_path / "second")

    fingerprints = [files_fingerprint(folder, tree(folder)) for folder in (first, second)]

    assert fingerprints[0] == fingerprints[1]


def test_another_content_or_name_has_another_fingerprint_and_bytecode_has_none(tmp_path: Path) -> None:
    changed, renamed, compiled = (make_files(tmp_path / name) for name in ("changed", "renamed", "compiled"))
    (changed / "README.md").write_text("read it\n", encoding="utf-8")
    (renamed / "README.md").rename(renamed / "README.txt")
    (compiled / "package/__pycache__").mkdir()
    (compiled / "package/__pycache__/module.cpython-311.pyc").write_bytes(b"bytecode")

    found = {folder.name: files_fingerprint(folder, tree(folder)) for folder in (changed, renamed, compiled)}

    same = make_files(tmp_path / "same")
    assert found["compiled"] == files_fingerprint(same, tree(same))
    assert len(set(found.values())) == 3


def test_parts_do_not_run_into_each_other() -> None:
    assert fingerprint("ab", "c") != fingerprint("a", "bc")


def test_a_wheel_with_speedups_is_another_one_and_the_sources_of_that_are_in_no_other(tmp_path: Path) -> None:
    first, changed = make_checkout(tmp_path / "first"), make_checkout(tmp_path / "changed")
    (changed.root / "relay/speedups/entries.c").write_text("int one = 2;\n", encoding="utf-8")

    assert first.fingerprint == changed.fingerprint
    assert len({first.fingerprint, first.speedups_fingerprint, changed.speedups_fingerprint}) == 3


def test_what_is_compiled_in_place_is_in_no_wheel(tmp_path: Path) -> None:
    first, compiled = make_checkout(tmp_path / "first"), make_checkout(tmp_path / "compiled")
    (compiled.root / "relay/delaytopic_relay/_speedups.cpython-311-x86_64-linux-gnu.so").touch()

    assert compiled.fingerprint == first.fingerprint
    assert compiled.speedups_fingerprint == first.speedups_fingerprint


def test_the_relay_alone_takes_speedups() -> None:
    assert [image.name for image in IMAGE_LIST if image.takes_speedups] == ["relay"]


def test_speedups_are_compiled_by_the_python_of_the_images() -> None:
    check_interpreter((3, 11))
    with pytest.raises(WheelsError) as refused:
        check_interpreter((3, 12))

    assert str(refused.value) == (
        "the images have Python 3.11, and speedups compiled by Python 3.12 cannot be imported there: "
        "build them with Python 3.11, or with --pure"
    )


def test_a_checkout_without_speedups_is_not_built_with_them(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="has no relay/speedups: build its images with --pure"):
        Project(tmp_path).wheel(print, speedups=True)


def test_a_base_of_other_packages_is_another_one() -> None:
    other = replace(BASE, packages=(*BASE.packages, "gcc"))

    assert other.fingerprint() != BASE.fingerprint()


def test_an_image_is_made_anew_when_its_wheels_its_dockerfile_or_its_base_change(tmp_path: Path) -> None:
    dockerfile, pyproject = tmp_path / "Dockerfile", tmp_path / "pyproject.toml"
    dockerfile.write_text("FROM base\n", encoding="utf-8")
    pyproject.write_text("[project]\n", encoding="utf-8")
    wheels = {"dependencies": tmp_path / "relay-1"}

    before = context_fingerprint(dockerfile, pyproject, wheels, "python:3.11")
    other_wheels = context_fingerprint(dockerfile, pyproject, {"dependencies": tmp_path / "relay-2"}, "python:3.11")
    other_base = context_fingerprint(dockerfile, pyproject, wheels, "python:3.11-slim")
    dockerfile.write_text("FROM other\n", encoding="utf-8")
    other_dockerfile = context_fingerprint(dockerfile, pyproject, wheels, "python:3.11")

    assert len({before, other_wheels, other_base, other_dockerfile}) == 4


def test_only_the_newest_archive_of_an_image_is_kept(tmp_path: Path) -> None:
    recipes = [Recipe("relay", "relay:e2e", f"{number:016x}", lambda archive: None) for number in range(4)]
    other = Recipe("relay-previous", "relay:previous", f"{9:016x}", lambda archive: None)
    for number, recipe in enumerate([other, *recipes]):
        recipe.archive(tmp_path).touch()
        os.utime(recipe.archive(tmp_path), (number, number))

    delete_old(tmp_path, "relay")

    kept = [other.archive(tmp_path), recipes[-1].archive(tmp_path)]
    assert sorted(tmp_path.iterdir()) == sorted(kept)


def test_an_archive_is_written_once(tmp_path: Path) -> None:
    written: list[Path] = []

    def make(archive: Path) -> None:
        written.append(archive)
        archive.write_bytes(b"archive")

    recipe = Recipe("relay", "relay:e2e", f"{1:016x}", make)
    archives = [made(recipe, tmp_path), made(recipe, tmp_path)]

    assert archives == [tmp_path / "relay-0000000000000001.tar"] * 2
    assert archives[0].read_bytes() == b"archive"
    assert len(written) == 1
