"""The places that name the version, and the changelog's head. Pure: text in, text out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final

VERSION: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)((?:a|b|rc)\d+)?")
"""A release of PEP 440 that is one of Semantic Versioning, too, but for the mark of a candidate."""
CHANGES: Final = "  artifacthub.io/changes: |\n"
"""The last annotation of Chart.yaml."""
UNRELEASED: Final = "## [Unreleased]\n"


class ReleaseError(Exception):
    """A release cannot be made; the message says what to do."""


def checked(version: str, former: str) -> str:
    """Return a version that may follow another one, or be that one: the first release has the version of the checkout.

    Raises `ReleaseError`. The changelog refuses what was released.
    """
    found, before = VERSION.fullmatch(version), VERSION.fullmatch(former)
    if found is None:
        raise ReleaseError(f"{version} is no version: write it as 1.2.3, or 1.2.3rc1 for a candidate")
    if before is not None and _order(found) < _order(before):
        raise ReleaseError(f"{version} comes before {former}, which pyproject.toml has")
    return version


def _order(version: re.Match[str]) -> tuple[int, int, int, bool, str]:
    # A candidate comes before its release.
    mark = version[4]
    return int(version[1]), int(version[2]), int(version[3]), mark is None, mark or ""


def chart_version(version: str) -> str:
    """Return the version as Helm wants it, which takes Semantic Versioning alone: 1.2.3-rc1."""
    found = VERSION.fullmatch(version)
    assert found is not None
    return version if found[4] is None else f"{version.removesuffix(found[4])}-{found[4]}"


def project_version(pyproject: str) -> str:
    """Return the version in `pyproject.toml`."""
    found = re.search(r'^version = "([^"]+)"$', pyproject, re.MULTILINE)
    if found is None:
        raise ReleaseError('pyproject.toml has no line version = "..."')
    return found[1]


def _once(text: str, pattern: str, replacement: str, where: str) -> str:
    changed, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
    if count != 1:
        raise ReleaseError(f"{where} names the version {count} times where it should once: {pattern}")
    return changed


def _pyproject(text: str, version: str) -> str:
    return _once(text, r'^version = ".*"$', f'version = "{version}"', "pyproject.toml")


def _chart(text: str, version: str) -> str:
    of_chart = chart_version(version)
    text = _once(text, r"^version: .*$", f"version: {of_chart}", "Chart.yaml")
    text = _once(text, r"^appVersion: .*$", f'appVersion: "{version}"', "Chart.yaml")
    candidate = "true" if of_chart != version else "false"
    text = _once(text, r"/prerelease: .*$", f'/prerelease: "{candidate}"', "Chart.yaml")
    return re.sub(r'image: "(.+):[^:]*"', rf'image: "\1:{version}"', text)


def _images(text: str, version: str) -> str:
    for image in ("relay", "audit"):
        text = _once(text, rf'"delaytopic/{image}:[^"]*"', f'"delaytopic/{image}:{version}"', "config.py")
    return text


PLACES: Final[Mapping[str, Callable[[str, str], str]]] = {
    "pyproject.toml": _pyproject,
    "charts/delaytopic/Chart.yaml": _chart,
    "operator/delaytopic_operator/config.py": _images,
}
"""The function that puts a version into a text, by the path of its file. What follows from these is generated."""


def released_changelog(text: str, version: str, day: str) -> str:
    """Return the changelog with what was unreleased under a version, and nothing unreleased."""
    before, head, rest = text.partition(UNRELEASED)
    unreleased = re.split(r"^## \[", rest, maxsplit=1, flags=re.MULTILINE)[0]
    if not head or not unreleased.strip():
        raise ReleaseError("CHANGELOG.md has nothing under [Unreleased]: there is nothing to release")
    if f"## [{version}]" in text:
        raise ReleaseError(f"CHANGELOG.md has {version} already")
    return f"{before}{head}\n## [{version}] - {day}\n{rest}"


def with_changes(chart: str, notes: str) -> str:
    """Return Chart.yaml with the entries of release notes, as Artifact Hub shows them."""
    before, head, _ = chart.partition(CHANGES)
    if not head:
        raise ReleaseError(f"Chart.yaml has no {CHANGES.strip()}")
    lines = []
    for section in re.split(r"^### ", notes, flags=re.MULTILINE)[1:]:
        kind = section.split(maxsplit=1)[0].lower()
        for entry in re.split(r"^- ", section, flags=re.MULTILINE)[1:]:
            lines.append(f"    - {json.dumps({'kind': kind, 'description': ' '.join(entry.split())})}\n")
    return "".join([before, head, *lines])


def release_notes(changelog: str, version: str) -> str:
    """Return what the changelog says of a version."""
    found = re.search(rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## \[|\Z)", changelog, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ReleaseError(f"CHANGELOG.md has no {version}")
    return found[1].strip() + "\n"
