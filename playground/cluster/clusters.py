"""The face of a cluster to tests, whoever made it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from playground.cluster.engine import DockerEngine


class Cluster(Protocol):
    """A Kubernetes cluster that pods really run in."""

    @property
    def kubeconfig(self) -> Path:
        """A file to connect by, as an administrator."""

    @property
    def docker(self) -> DockerEngine:
        """Return where images for it are built."""

    def load_images(self, *references: str) -> None:
        """Make images of the engine known to its nodes."""

    def exec_on_node(self, *command: str) -> str:
        """Run a program on the node of the control plane; raises NotPossible where nobody may."""

    def without_api_server(self) -> AbstractContextManager[None]:
        """The API server is away inside this block; raises NotPossible where nobody may stop it."""
