"""The folders of this machine for what is built once, and for what runs now."""

from __future__ import annotations

import os
from pathlib import Path


def cache() -> Path:
    """Everything of these clusters: it survives checkouts, and nothing else is in it."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "delaytopic" / "e2e"


def engine() -> Path:
    """The private Docker engine, while it runs: its data, socket and log."""
    return cache() / "engine"


def node_images() -> Path:
    """Archives of node images, one folder for each fingerprint."""
    return cache() / "node-images"


def clusters() -> Path:
    """State of all clusters that are up."""
    return cache() / "clusters"


def run_state(cluster: str) -> Path:
    """Return the folder of one cluster, while it is up, with its kubeconfig."""
    return clusters() / cluster
