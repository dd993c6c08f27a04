"""Builds the images of a checkout."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from images.tools.catalogue import DEFAULT_BASE, Image
from images.tools.context import context_fingerprint, stage_context
from images.tools.docker import Docker
from images.tools.errors import DockerError
from images.tools.jars import jar_folder
from images.tools.locking import TOOLS_LOCK, lock_file
from images.tools.places import ROOT
from images.tools.project_wheel import Project
from images.tools.sizes import ImageSize
from images.tools.wheelhouse import Report, wheelhouse


@dataclass(frozen=True, slots=True)
class Order:
    """One build: of which checkout, on which base, under which tag (default: the project's version).

    `speedups`: the relay has its own, which are compiled here.
    """

    project: Project
    base: str = DEFAULT_BASE
    tag: str = ""
    speedups: bool = True

    def reference(self, image: Image) -> str:
        """The name of the built image."""
        return f"{image.repository}:{self.tag or self.project.version}"


def build_images(order: Order, images: tuple[Image, ...], docker: Docker, report: Report) -> Iterator[ImageSize]:
    """Build them one after the other, and say how large each became. Raises ImagesError."""
    docker.pull(order.base)
    for image in images:
        report(f"building {order.reference(image)} ...")
        build_image(order, image, wheel_folders(order, image, report), docker)
        yield measured(order, image, docker)


def wheel_folders(order: Order, image: Image, report: Report) -> dict[str, Path]:
    """Return the folders of wheels by what they are for. A checkout that has locks is built with its own."""
    project = order.project
    root = project.root if lock_file(image.name, root=project.root).is_file() else ROOT
    return {
        "tools": wheelhouse(TOOLS_LOCK, report),
        "dependencies": wheelhouse(image.name, report, root=root),
        "project": project.wheel(report, speedups=order.speedups and image.takes_speedups),
        **({"jars": jar_folder(report, root=root)} if image.has_jars else {}),
    }


def build_image(
    order: Order, image: Image, wheels: Mapping[str, Path], docker: Docker, labels: Mapping[str, str] | None = None
) -> None:
    """Build one; `labels` are added to those of its Dockerfile."""
    arguments = {"BASE": order.base, "VERSION": order.project.version, "REVISION": order.project.revision}
    with tempfile.TemporaryDirectory(prefix="delaytopic-image-", dir=wheels["project"].parent) as folder:
        context = Path(folder)
        stage_context(context, image.dockerfile, order.project.root / "pyproject.toml", wheels)
        options = {"build-arg": arguments, "label": {**_base_labels(order.base, docker), **(labels or {})}}
        docker.build(context, context / "Dockerfile", order.reference(image), options)


def _base_labels(base: str, docker: Docker) -> dict[str, str]:
    """Record what is below: a tag may be another image tomorrow."""
    digest = docker.digest(base)
    known = {"org.opencontainers.image.base.digest": digest} if digest is not None else {}
    return {"org.opencontainers.image.base.name": base, **known}


def image_fingerprint(order: Order, image: Image, wheels: Mapping[str, Path]) -> str:
    """Return a text that stays the same as long as a build gives the same, but for the base behind its name and the
    revision label.
    """
    return context_fingerprint(image.dockerfile, order.project.root / "pyproject.toml", wheels, order.base)


def measured(order: Order, image: Image, docker: Docker) -> ImageSize:
    """Measure an image. Raises DockerError when it, or its base, is not here."""
    reference = order.reference(image)
    size, base = docker.size(reference), docker.size(order.base)
    if size is None or base is None:
        raise DockerError(f"{reference if size is None else order.base} is not in this engine")
    return ImageSize(image.name, reference, size, size - base)
