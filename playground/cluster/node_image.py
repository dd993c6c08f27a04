"""The image that a cluster's node is a container of: the first of those named, published, or built here."""

from __future__ import annotations

import os
from typing import Final

from images.tools.go_builds import KUBERNETES_VERSION, Report
from playground.cluster.engine import DockerEngine
from playground.cluster.errors import MachineLacks
from playground.cluster.machine import NODE_IMAGE_VARIABLE, lacks_for_node_image, this_machine
from playground.without_registry.node_image import is_built, node_image_archive, own_image

# The newest first. Not every version of Kubernetes is published.
PUBLISHED_IMAGES: Final = (f"kindest/node:v{KUBERNETES_VERSION}", "kindest/node:v1.34.3")


def ensure_node_image(engine: DockerEngine, report: Report) -> str:
    """Return the name of an image that is on the engine by then: named, published, or our own, in this order.

    Raises MachineLacks, CommandFailed, ProgramsMissingError and ProgramsNotBuiltError.
    """
    named = os.environ.get(NODE_IMAGE_VARIABLE)
    published: tuple[str, ...] = (named,) if named else PUBLISHED_IMAGES
    usable = published if named else (*published, own_image())
    present = next((name for name in usable if engine.has_image(name)), None)
    if present:
        return present
    if named or not is_built():
        report(f"pulling {' or '.join(published)} ...")
        pulled = next((name for name in published if engine.pull(name)), None)
        if pulled:
            return pulled
    if named:
        raise MachineLacks(f"{NODE_IMAGE_VARIABLE}={named} is not on the Docker engine and can't be pulled")
    return _own_image_on(engine, report)


def _own_image_on(engine: DockerEngine, report: Report) -> str:
    """Load our own image from its archive; build that when this machine has none of these inputs yet."""
    lacking = None if is_built() else lacks_for_node_image(this_machine(), PUBLISHED_IMAGES[0])
    if lacking:
        raise MachineLacks(lacking)
    path = node_image_archive(report)
    report(f"loading {own_image()} into the Docker engine ...")
    engine.load_archive(path)
    return own_image()
