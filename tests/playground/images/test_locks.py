"""The locks fit pyproject.toml, and pin every distribution by its content."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
from images.tools.catalogue import IMAGE_LIST
from images.tools.locking import lock_file, lock_text, platform_options, requirements
from images.tools.places import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCKS = list(requirements())


def locked(name: str) -> dict[str, str]:
    """Versions by canonical name."""
    lines = lock_file(name).read_text(encoding="utf-8").splitlines()
    pins = [line.removesuffix(" \\").split("==") for line in lines if "==" in line]
    return {canonicalize_name(pin[0]): pin[1] for pin in pins}


def wanted(document: dict[str, Any], extra: str) -> list[Requirement]:
    """Of the project and an extra, through extras that it refers to."""
    found = [Requirement(line) for line in document["project"]["dependencies"]]
    for line in document["project"]["optional-dependencies"][extra]:
        requirement = Requirement(line)
        if requirement.name == "delaytopic":
            found += [each for inner in requirement.extras for each in wanted(document, inner)]
        else:
            found.append(requirement)
    return found


@pytest.mark.parametrize("image", IMAGE_LIST, ids=lambda image: image.name)
def test_a_lock_has_all_that_the_extra_of_its_image_asks_for(image: Any) -> None:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    versions = locked(image.name)

    unmet = [
        str(requirement)
        for requirement in wanted(document, image.extra)
        if not requirement.specifier.contains(versions.get(canonicalize_name(requirement.name), "0"))
    ]

    assert unmet == [], f"write the locks anew: python -m images.lock {image.name}"


@pytest.mark.parametrize("name", LOCKS)
def test_each_distribution_of_a_lock_is_known_by_its_content(name: str) -> None:
    text = lock_file(name).read_text(encoding="utf-8")

    entries = re.split(r"\n(?=\S)", text.strip())[1:]

    assert [
        entry for entry in entries if not re.fullmatch(r"\S+==\S+( \\\n    --hash=sha256:[0-9a-f]{64})+", entry)
    ] == []
    assert "://" not in text


def test_a_lock_is_written_in_the_order_of_names() -> None:
    text = lock_text("the extra `relay`", {"redis==8.1.0": ["bb"], "click==8.5.1": ["aa", "ab"]})

    assert text == (
        "# Written by `python -m images.lock`: the extra `relay`.\n"
        "click==8.5.1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:ab\n"
        "redis==8.1.0 \\\n    --hash=sha256:bb\n"
    )


def test_wheels_are_chosen_for_the_bases_python_and_libc() -> None:
    options = platform_options("aarch64")

    assert options[-4:] == ["--python-version", "3.11", "--implementation", "cp"]
    assert options[:2] == ["--platform", "manylinux_2_36_aarch64"]
    assert "manylinux2014_aarch64" in options
