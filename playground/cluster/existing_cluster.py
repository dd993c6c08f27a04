"""A cluster that somebody else made, by its kubeconfig."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, NoReturn, Self

from playground.cluster.commands import run
from playground.cluster.engine import DockerEngine, start_engine
from playground.cluster.errors import MachineLacks, NotPossible

LOADER_VARIABLE: Final = "E2E_LOAD_IMAGE"
LOAD_SECONDS = 900.0


class ExistingCluster:
    """Only its API is used; an image gets to its nodes by a command of its owner, or is there already."""

    def __init__(self, kubeconfig: Path, loader: str = "") -> None:
        """`loader` is a command with `{image}` in it, such as `k3d image import {image}`; empty: nothing to do."""
        self.kubeconfig = kubeconfig
        self._loader = loader

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Return what KUBECONFIG and E2E_LOAD_IMAGE name; raises MachineLacks when the first names no file."""
        named = environment.get("KUBECONFIG", "")
        kubeconfig = Path(named).expanduser()
        if not named or not kubeconfig.is_file():
            raise MachineLacks(f"KUBECONFIG={named} has to name one file, the kubeconfig of the cluster to use")
        return cls(kubeconfig, environment.get(LOADER_VARIABLE, ""))

    @property
    def docker(self) -> DockerEngine:
        """The engine of this machine; a private one is started when there is none."""
        return start_engine()

    def load_images(self, *references: str) -> None:
        """Run the owner's command for each; raises CommandFailed."""
        for reference in references:
            if command := loader_command(self._loader, reference):
                run(*command, environment=self.docker.environment, seconds=LOAD_SECONDS)

    def exec_on_node(self, *command: str) -> NoReturn:
        """Raises NotPossible."""
        raise NotPossible(
            f"{' '.join(command)} can't run on a node of a cluster that is only known by {self.kubeconfig}"
        )

    def without_api_server(self) -> AbstractContextManager[None]:
        """Raises NotPossible."""
        raise NotPossible(f"the API server of a cluster that is only known by {self.kubeconfig} can't be stopped")


def loader_command(loader: str, reference: str) -> list[str]:
    """The words of the owner's command for one image; empty when there is no command."""
    return [word.replace("{image}", reference) for word in shlex.split(loader)]
