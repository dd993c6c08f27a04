"""kubectl as a function: arguments in, text out."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

ANSWER_SECONDS = 120.0


class KubectlError(Exception):
    """kubectl exited with an error; the text is what it printed."""


class Kubectl:
    """Runs kubectl as the user of one kubeconfig."""

    def __init__(self, program: Path, kubeconfig: Path, cache: Path) -> None:
        """`cache` is a folder for what kubectl remembers about the server's resources."""
        self._program = program
        self._kubeconfig = kubeconfig
        self._cache = cache

    def __call__(self, *arguments: str, given: str = "") -> str:
        """Return what it printed on standard output; `given` is its standard input. Raises KubectlError."""
        result = self.run(*arguments, given=given)
        if result.returncode != 0:
            raise KubectlError(f"kubectl {' '.join(arguments)}: {result.stderr.strip() or result.stdout.strip()}")
        return result.stdout

    def run(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run kubectl, and return its exit code with what it printed, whatever it is."""
        command = [str(self._program), f"--kubeconfig={self._kubeconfig}", f"--cache-dir={self._cache}", *arguments]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KUBE")}
        return subprocess.run(
            command,
            input=given,
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
            env=environment,
            check=False,
        )

    def json(self, *arguments: str) -> Any:
        """`kubectl get ...` as data."""
        return json.loads(self(*arguments, "-o", "json"))

    def apply(self, objects: Iterable[Any], *options: str) -> str:
        """Apply plain objects on the server's side."""
        text = yaml.safe_dump_all(objects)
        return self("apply", "--server-side", "--force-conflicts", "-f", "-", *options, given=text)
