"""helm as functions: a chart and values in, objects out."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from playground.kube.kube_client import Object

ANSWER_SECONDS = 300.0


class HelmError(Exception):
    """helm exited with an error; the text is what it printed."""


class Helm:
    """Runs helm with a home of its own, so that nothing of this machine's user gets in."""

    def __init__(self, program: Path, home: Path, kubeconfig: Path | None = None) -> None:
        """Take the program; without a kubeconfig it can render and lint, but not install."""
        self._program = program
        self._kubeconfig = kubeconfig
        self._environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "HELM_DEBUG": "false"}

    def __call__(self, *arguments: str, values: Mapping[str, Any] | None = None) -> str:
        """Run it and return its standard output; raises HelmError. `values` become a values file."""
        result = self.run(*arguments, values=values)
        if result.returncode != 0:
            raise HelmError(f"helm {' '.join(arguments)}: {result.stderr.strip()}\n{result.stdout.strip()}".strip())
        return result.stdout

    def run(self, *arguments: str, values: Mapping[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
        """Run Helm, and return its exit code with what it printed, whatever it is."""
        connection = [f"--kubeconfig={self._kubeconfig}"] if self._kubeconfig else []
        given = ["--values=-"] if values is not None else []
        return subprocess.run(
            [str(self._program), *arguments, *given, *connection],
            input=yaml.safe_dump(dict(values)) if values is not None else "",
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
            env=self._environment,
            check=False,
        )

    def template(
        self,
        chart: Path,
        values: Mapping[str, Any] | None = None,
        *options: str,
        release: str = "delaytopic",
        namespace: str = "delaytopic-system",
    ) -> list[Object]:
        """The objects that a chart renders to, those under crds/ included; raises HelmError."""
        arguments = ("template", release, str(chart), f"--namespace={namespace}", "--include-crds", *options)
        rendered = self(*arguments, values=values or {})
        return [document for document in yaml.load_all(rendered, Loader=yaml.CSafeLoader) if document]

    def lint(self, chart: Path, values: Mapping[str, Any] | None = None) -> str:
        """Lint a chart, warnings counting as errors, and return the report; raises HelmError."""
        return self("lint", str(chart), "--strict", values=values or {})

    def install(
        self, release: str, chart: Path, namespace: str, values: Mapping[str, Any] | None = None, *options: str
    ) -> None:
        """Install a chart or upgrade what is installed; raises HelmError."""
        arguments = ("upgrade", "--install", release, str(chart), f"--namespace={namespace}", *options)
        self(*arguments, values=values or {})

    def uninstall(self, release: str, namespace: str, *options: str) -> None:
        """Take a release away; raises HelmError."""
        self("uninstall", release, f"--namespace={namespace}", *options)
