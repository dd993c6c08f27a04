"""The image of a node that is built here, once: of Debian packages and Go modules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from images.tools.go_builds import KUBERNETES_VERSION, Report, fingerprint
from images.tools.once import made_once
from playground.cluster import folders
from playground.cluster.go_programs import (
    KIND_VERSION,
    coredns_program,
    kind_node_files,
    node_program,
    program_inputs,
)
from playground.without_registry import archive, debian_root, node_root, preloading, system_images
from playground.without_registry.archive import PATH_VARIABLE, Image, write_archive

OWN_REPOSITORY: Final = "delaytopic-e2e/node"
_RECIPE = (archive, debian_root, node_root, preloading, system_images)
_SETTINGS = Path(__file__).with_name("settings")


def own_image() -> str:
    """Return the name of the image that is built here."""
    return f"{OWN_REPOSITORY}:v{KUBERNETES_VERSION}-{fingerprint(*_inputs())}"


def is_built() -> bool:
    """Return whether this machine has its archive."""
    return _folder().is_dir()


def node_image_archive(report: Report) -> Path:
    """Return its archive, for `docker load`; built when this machine has none of these inputs yet."""
    return made_once(_folder(), lambda into: _build(into, report)) / "image.tar"


def _folder() -> Path:
    """Return the folder with the archive of our own image."""
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
