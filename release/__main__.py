"""`python -m release VERSION`: make all that a release publishes, in a copy of the checkout."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
from images.tools.bill import bill_of_materials
from images.tools.catalogue import IMAGE_LIST

from release.package import ROOT, built, run, tried
from release.versions import (
    PLACES,
    ReleaseError,
    checked,
    project_version,
    release_notes,
    released_changelog,
    with_changes,
)

CHANGELOG: Final = "CHANGELOG.md"
NO_ENGINE: Final = "no container engine answers (docker info): images are left out"
PUBLISHED: Final = ("*.whl", "*.tar.gz", "*.tgz", "images/*.tar", "sbom/*.json")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("version")
@click.option("--write", is_flag=True, help="Put the version into this checkout, too; commit and tag it yourself.")
@click.option("--no-images", is_flag=True, help="Leave the images out, which need a container engine.")
@click.option("--base", default="", help="The images' base, as of images.build.")
@click.option("--push", default="", metavar="REGISTRY", help="Push the images there, which publishes them.")
def main(version: str, write: bool, no_images: bool, base: str, push: str) -> None:
    """Make wheels, images, bills of materials, the chart's package and checksums in build/release/VERSION.

    Without --push nothing is published, and without --write nothing in this checkout changes: the last lines say what
    to do then.
    """
    options = [part for option, value in (("--base", base), ("--push", push)) if value for part in (option, value)]
    place = ROOT / "build/release" / version
    try:
        source = _copied(place, version)
        for line in _made(place, source, version, options if not no_images else None):
            click.echo(line, err=True)
        if write:
            for name in _changed(source):
                shutil.copy(source / name, ROOT / name)
    except ReleaseError as error:
        raise click.ClickException(str(error)) from error
    click.echo(_next_steps(place, version, written=write))


def _copied(place: Path, version: str) -> Path:
    """Return a copy of what is committed, with the version in it."""
    if run(["git", "status", "--porcelain"]).strip():
        raise ReleaseError("this checkout has changes that are not committed: commit or stash them")
    if run(["git", "tag", "--list", f"v{version}"]).strip():
        raise ReleaseError(f"there is a tag v{version} already")
    checked(version, project_version((ROOT / "pyproject.toml").read_text(encoding="utf-8")))
    shutil.rmtree(place, ignore_errors=True)
    source = place / "source"
    # A clone, so that what differs from the commit can be told.
    run(["git", "clone", "--quiet", ROOT, source])
    for name, change in PLACES.items():
        _rewrite(source / name, change((source / name).read_text(encoding="utf-8"), version))
    today = datetime.now(UTC).date().isoformat()
    changelog = released_changelog((source / CHANGELOG).read_text(encoding="utf-8"), version, today)
    _rewrite(source / CHANGELOG, changelog)
    chart = source / "charts/delaytopic/Chart.yaml"
    _rewrite(chart, with_changes(chart.read_text(encoding="utf-8"), release_notes(changelog, version)))
    # What follows from the version: the Kustomize base, pages, values.
    run([sys.executable, "-m", "charts.tools"], source)
    return source


def _rewrite(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")


def _made(place: Path, source: Path, version: str, images: list[str] | None) -> Iterator[str]:
    """Make everything; yield a line for each part. `images` are options of their build; None: there are to be none."""
    yield "sdist and wheel, and the wheel in clean environments"
    tried(built(source, place))
    yield "the chart's package"
    # Here, since nothing else of a release needs the tests' programs.
    from images.tools.binaries import helm_program  # noqa: PLC0415

    run([helm_program(), "package", source / "charts/delaytopic", "--destination", place], source)
    yield "bills of materials of the images"
    (place / "sbom").mkdir()
    for image in IMAGE_LIST:
        bill = bill_of_materials(image, version, source)
        (place / "sbom" / f"{image.name}.cdx.json").write_text(bill, encoding="utf-8")
    if images is not None and _has_engine():
        yield "images"
        run([sys.executable, "-m", "images.build", "--tag", version, "--archive", place / "images", *images], source)
    elif images is not None:
        yield NO_ENGINE
    notes = release_notes((source / CHANGELOG).read_text(encoding="utf-8"), version)
    (place / "NOTES.md").write_text(notes, encoding="utf-8")
    (place / "SHA256SUMS").write_text(_checksums(place), encoding="utf-8")


def _has_engine() -> bool:
    try:
        return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def _checksums(place: Path) -> str:
    lines = []
    for file in sorted(found for pattern in PUBLISHED for found in place.glob(pattern)):
        with file.open("rb") as content:
            lines.append(f"{hashlib.file_digest(content, 'sha256').hexdigest()}  {file.relative_to(place)}\n")
    return "".join(lines)


def _changed(source: Path) -> list[str]:
    return run(["git", "diff", "--name-only"], source).split()


def _next_steps(place: Path, version: str, *, written: bool) -> str:
    where = place.relative_to(ROOT)
    commit = f'git commit --all --message "Release {version}" && git tag v{version}'
    steps = [
        f"{where} has everything; NOTES.md is the text for the release. To publish it:",
        f"  {commit}" if written else f"  make release VERSION={version} WRITE=1   # then: {commit}",
        f"  twine upload {where}/*.whl {where}/*.tar.gz",
        f"  helm push {where}/*.tgz oci://REGISTRY/charts",
        "  docs/how-to/sign-and-verify-images.md   # pushes the images and signs them",
    ]
    return "\n".join(steps)


if __name__ == "__main__":
    main()
