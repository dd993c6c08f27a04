"""The image that a cluster's node is a container of: kind's published one, or one that is built here, once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from images.tools.once import made_once
from tests.cluster.go_builds import KUBERNETES_VERSION, Report, fingerprint
from tests.e2e.cluster import archive, debian_root, folders, node_root, preloading, system_images
from tests.e2e.cluster.archive import PATH_VARIABLE, Image, write_archive
from tests.e2e.cluster.engine import DockerEngine
from tests.e2e.cluster.errors import MachineLacks
from tests.e2e.cluster.go_programs import (
    KIND_VERSION,
    coredns_program,
    kind_node_files,
    node_program,
    program_inputs,
)
from tests.e2e.cluster.machine import NODE_IMAGE_VARIABLE, lacks_for_node_image, this_machine

# The newest first. Not every version of Kubernetes is published.
PUBLISHED_IMAGES: Final = (f"kindest/node:v{KUBERNETES_VERSION}", "kindest/node:v1.34.3")
OWN_REPOSITORY: Final = "delaytopic-e2e/node"
_RECIPE = (archive, debian_root, node_root, preloading, system_images)
_SETTINGS = Path(__file__).with_name("settings")


def ensure_node_image(engine: DockerEngine, report: Report) -> str:
    """The name of an image that is on the engine by then: named, published, or our own, in this order.

    Raises MachineLacks, CommandFailed, ProgramsMissingError and ProgramsNotBuiltError.
    """
    named = os.environ.get(NODE_IMAGE_VARIABLE)
    published: tuple[str, ...] = (named,) if named else PUBLISHED_IMAGES
    usable = published if named else (*published, own_image())
    present = next((name for name in usable if engine.has_image(name)), None)
    if present:
        return present
    if named or not _folder().is_dir():
        report(f"pulling {' or '.join(published)} ...")
        pulled = next((name for name in published if engine.pull(name)), None)
        if pulled:
            return pulled
    if named:
        raise MachineLacks(f"{NODE_IMAGE_VARIABLE}={named} is not on the Docker engine and can't be pulled")
    return _own_image_on(engine, report)


def own_image() -> str:
    """What the image that is built here is called."""
    return f"{OWN_REPOSITORY}:v{KUBERNETES_VERSION}-{fingerprint(*_inputs())}"


def node_image_archive(report: Report) -> Path:
    """The archive of our own image, for `docker load`; built when this machine has none of these inputs yet."""
    folder = _folder()
    if not folder.is_dir():
        lacking = lacks_for_node_image(this_machine(), PUBLISHED_IMAGES[0])
        if lacking:
            raise MachineLacks(lacking)
    return made_once(folder, lambda into: _build(into, report)) / "image.tar"


def _own_image_on(engine: DockerEngine, report: Report) -> str:
    """Our own image, from its archive."""
    path = node_image_archive(report)
    report(f"loading {own_image()} into the Docker engine ...")
    engine.load_archive(path)
    return own_image()


def _folder() -> Path:
    """Of the archive of our own image."""
    return folders.node_images() / own_image().rpartition("/")[2].replace(":", "-")


def _build(into: Path, report: Report) -> None:
    node, coredns, kind_files = node_program(report), coredns_program(report), kind_node_files(report)
    work = into.parent / "work"
    work.mkdir()
    root, system_archive, layer = work / "node", work / "system.tar", work / "node.layer"
    report("making a node from Debian packages (once, a minute or two) ...")
    node_root.make_node_root(root, kind_files, node, report)
    report("making the images of its own pods ...")
    system_images.write_system_images(system_archive, node_root.image_names(root), node, coredns, report)
    preloading.preload(root, system_archive)
    report("writing the image's archive ...")
    debian_root.write_layer(root, layer)
    write_archive(into / "image.tar", layer, [_node_image()])


def _node_image() -> Image:
    """Settings as in the Dockerfile of kind's base image; systemd ends by another signal than the usual one."""
    return Image(
        names=(own_image(),),
        entrypoint=("/usr/local/bin/entrypoint", "/sbin/init"),
        environment=(PATH_VARIABLE, "container=docker"),
        stop_signal="SIGRTMIN+3",
    )


def _inputs() -> Iterator[str]:
    """Everything of ours that the image depends on; Debian's packages are those of the day."""
    yield KIND_VERSION
    yield from program_inputs("node")
    yield from program_inputs("coredns")
    for path in [*(Path(str(module.__file__)) for module in _RECIPE), *sorted(_SETTINGS.glob("default-*.yaml"))]:
        yield path.read_text(encoding="utf-8")
