"""A cluster with everything in it that pods are made of."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.e2e.cluster.engine import start_engine
from tests.e2e.cluster.kind_cluster import KindCluster
from tests.e2e.images.build import build_all
from tests.e2e.support.installation import Images


def begin(cluster: KindCluster) -> Images:
    """Start the cluster, and meanwhile make the images; its node has them when this returns."""
    engine = start_engine()
    with ThreadPoolExecutor(max_workers=1) as other:
        making = other.submit(build_all, engine)
        cluster.start()
        images = making.result()
    cluster.load_images(*images.values())
    return images
