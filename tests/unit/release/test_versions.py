"""The version of a release: which may follow, where it is written, and what the changelog becomes."""

from __future__ import annotations

import pytest
import yaml
from release.versions import (
    CHANGES,
    PLACES,
    ReleaseError,
    chart_version,
    checked,
    project_version,
    release_notes,
    released_changelog,
    with_changes,
)
from tests.support.paths import ROOT

CHANGELOG = """# Changelog

## [Unreleased]

### Added

- Something new.

## [0.1.0] - 2026-01-01

- The first.
"""


@pytest.mark.parametrize(
    ("former", "version"),
    [("0.1.0", "0.1.0"), ("0.1.0", "0.1.1"), ("0.9.0", "0.10.0"), ("0.1.0", "0.2.0rc1"), ("0.2.0rc1", "0.2.0")],
)
def test_a_later_version_may_follow_and_the_first_release_is_that_of_the_checkout(former: str, version: str) -> None:
    assert checked(version, former) == version


@pytest.mark.parametrize(("former", "version"), [("0.10.0", "0.9.0"), ("0.2.0", "0.2.0rc1")])
def test_an_earlier_version_is_refused(former: str, version: str) -> None:
    with pytest.raises(ReleaseError, match=f"{version} comes before {former}, which pyproject.toml has"):
        checked(version, former)


@pytest.mark.parametrize("version", ["1", "v1.0.0", "1.0.0-rc1", "1.0.0+local", "1.0.0\n"])
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(ReleaseError, match="is no version: write it as"):
        checked(version, "0.1.0")


def test_a_candidate_has_the_form_that_helm_takes() -> None:
    assert [chart_version(each) for each in ("0.2.0", "0.2.0rc1")] == ["0.2.0", "0.2.0-rc1"]


@pytest.mark.parametrize("name", PLACES)
def test_each_place_of_the_version_in_this_checkout_takes_another_one(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")

    changed = PLACES[name](text, "7.8.9")

    differs = [line for line, before in zip(changed.splitlines(), text.splitlines(), strict=True) if line != before]
    assert len(differs) == {"pyproject.toml": 1, "charts/delaytopic/Chart.yaml": 6}.get(name, 2)
    assert all("7.8.9" in line for line in differs)


def test_a_candidate_is_one_for_the_catalogue_too() -> None:
    text = (ROOT / "charts/delaytopic/Chart.yaml").read_text(encoding="utf-8")

    assert PLACES["charts/delaytopic/Chart.yaml"](text, "7.8.9rc1").count('/prerelease: "true"') == 1


def test_the_catalogue_gets_each_entry_of_the_notes_with_its_kind_in_place_of_those_before() -> None:
    notes = "### Changed (breaking)\n\n- One: `a`\n  goes on.\n- Two.\n\n### Fixed\n\n- Three.\n"

    chart = f"annotations:\n{CHANGES}    - {{kind: added}}\n"

    (text,) = yaml.safe_load(with_changes(chart, notes))["annotations"].values()

    assert yaml.safe_load(text) == [
        {"kind": "changed", "description": "One: `a` goes on."},
        {"kind": "changed", "description": "Two."},
        {"kind": "fixed", "description": "Three."},
    ]


def test_a_place_that_no_longer_names_the_version_is_told() -> None:
    with pytest.raises(ReleaseError, match=r"pyproject\.toml names the version 0 times where it should once"):
        PLACES["pyproject.toml"]("[project]\n", "7.8.9")


def test_the_version_is_read_from_this_checkout() -> None:
    assert checked("999.0.0", project_version((ROOT / "pyproject.toml").read_text(encoding="utf-8")))


def test_what_was_unreleased_comes_under_the_version_and_is_its_notes() -> None:
    changed = released_changelog(CHANGELOG, "0.2.0", "2026-11-24")

    assert changed == CHANGELOG.replace("## [Unreleased]\n", "## [Unreleased]\n\n## [0.2.0] - 2026-11-24\n")
    assert release_notes(changed, "0.2.0") == "### Added\n\n- Something new.\n"
    assert release_notes(changed, "0.1.0") == "- The first.\n"


def test_a_release_without_anything_new_is_refused() -> None:
    nothing = CHANGELOG.replace("### Added\n\n- Something new.\n", "")

    with pytest.raises(ReleaseError, match="there is nothing to release"):
        released_changelog(nothing, "0.2.0", "2026-11-24")


def test_a_version_is_released_once() -> None:
    with pytest.raises(ReleaseError, match=r"CHANGELOG\.md has 0\.1\.0 already"):
        released_changelog(CHANGELOG, "0.1.0", "2026-11-24")
