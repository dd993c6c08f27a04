"""Edge: the kubectl of the PATH, so that contexts, plugins and logins are those that its user has."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from delaytopic_process.errors import ProgramError

PROGRAM = "kubectl"
REQUEST_TIMEOUT = "30s"
_SERVER_SAID = re.compile(r"Error from server(?: \((?P<reason>\w+)\))?: (?P<text>.*)", re.DOTALL)
_LOG_LINE = re.compile(r"[EWI]\d{4} ")
IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_NO_CONTEXT = "current-context must exist"
_NO_KIND = "the server doesn't have a resource type"
_UNREACHABLE = ("connection to the server", "unable to connect to the server", "connection refused", "i/o timeout")


class KubectlFailed(ProgramError):
    """kubectl did not do what it was asked; `reason` is a word such as NotFound or Forbidden."""

    def __init__(self, text: str, reason: str = "") -> None:
        """The text is a sentence."""
        super().__init__(text)
        self.reason = reason


@dataclass(frozen=True)
class Kubectl:
    """Runs kubectl with the options that its user gave."""

    options: Sequence[str] = field(default_factory=tuple)
    namespace: str | None = None
    """None: that of the context."""
    context: str | None = None
    kubeconfig: str | None = None

    @classmethod
    def of(cls, context: str | None = None, kubeconfig: str | None = None, namespace: str | None = None) -> Self:
        """Return a kubectl with its own options of these names."""
        given: Mapping[str, str | None] = {"--context": context, "--kubeconfig": kubeconfig}
        options = tuple(f"{name}={value}" for name, value in given.items() if value is not None)
        return cls(options, namespace, context, kubeconfig)

    def within(self, namespace: str | None) -> Kubectl:
        """Return the same in another namespace."""
        return replace(self, namespace=namespace)

    def run(self, *arguments: str, given: str | None = None) -> str:
        """Return its output; `given` is its standard input. Raises `KubectlFailed`."""
        command = self.command(f"--request-timeout={REQUEST_TIMEOUT}", *arguments)
        standard_input = None if given is not None else subprocess.DEVNULL
        result = subprocess.run(command, input=given, stdin=standard_input, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise failure(result.stderr or result.stdout)
        return result.stdout

    def command(self, *arguments: str) -> list[str]:
        """Return the command line with its user's options. Raises `KubectlFailed` without a kubectl on the PATH."""
        program = shutil.which(PROGRAM)
        if program is None:
            raise KubectlFailed("there is no kubectl on the PATH; install it first", "NoKubectl")
        place = [f"--namespace={self.namespace}"] if self.namespace is not None else []
        return [program, *self.options, *place, *arguments]

    def json(self, *arguments: str) -> Any:
        """Return the output of `kubectl get ...` as data. Raises `KubectlFailed`."""
        text = self.run(*arguments, "--output=json")
        try:
            return json.loads(text)
        except ValueError as error:
            raise KubectlFailed(f"kubectl {' '.join(arguments)} answered with something else than JSON") from error

    def items(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the objects of a list. Raises `KubectlFailed`."""
        return list(self.json("get", *arguments)["items"])

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        """Return one object, or None. Raises `KubectlFailed`."""
        try:
            found: dict[str, Any] = self.json("get", kind, name)
        except KubectlFailed as error:
            if error.reason == "NotFound":
                return None
            raise
        return found

    def default_namespace(self) -> str:
        """Return the one that is meant where none is named. Raises `KubectlFailed`."""
        if self.namespace is not None:
            return self.namespace
        try:
            return self.run("config", "view", "--minify", "--output=jsonpath={..namespace}").strip() or "default"
        except KubectlFailed as error:
            if _NO_CONTEXT not in str(error):
                raise
        # Without a kubeconfig, kubectl uses the cluster that it runs in.
        return IN_CLUSTER.read_text(encoding="utf-8").strip() if IN_CLUSTER.exists() else "default"


def failure(said: str) -> KubectlFailed:
    """Turn kubectl's output into one sentence and a word. Pure."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    # Lines of its log are for its developers, unless they are all that there is.
    text = " ".join([line for line in lines if not _LOG_LINE.match(line)] or lines) or "nothing, and failed"
    if _NO_KIND in text and "delay" in text:
        return KubectlFailed(
            "this cluster knows no DelayTopics: delaytopic is not installed there, or the context is another cluster's",
            "NotInstalled",
        )
    match = _SERVER_SAID.search(text)
    if match is not None:
        return KubectlFailed(f"the cluster says: {match['text']}", match["reason"] or "")
    if any(sign in text.lower() for sign in _UNREACHABLE):
        return KubectlFailed(f"the cluster does not answer: {text.removeprefix('error: ')}", "Unreachable")
    return KubectlFailed(f"kubectl says: {text.removeprefix('error: ')}")
