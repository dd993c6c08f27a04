"""A cluster with everything in it that pods are made of, and the programs by which people use it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from images.tools.binaries import helm_program, kubernetes_programs
from playground.cluster.engine import start_engine
from playground.cluster.kind_cluster import KindCluster
from playground.images.build import build_all
from playground.platform.installation import Images


def begin(cluster: KindCluster) -> Images:
    """Start the cluster, and meanwhile make the images and build the programs; its node has the images then."""
    engine = start_engine()
    with ThreadPoolExecutor(max_workers=1) as other:
        making = other.submit(build_all, engine)
        building = [other.submit(build) for build in (kubernetes_programs, helm_program)]
        cluster.start()
        images = making.result()
        cluster.load_images(*images.values())
        for each in building:
            each.result()
    return images
