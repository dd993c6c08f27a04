"""Edge: asks the relays of a DelayTopic for their pages, through the API server's proxy to pods."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from delaytopic_cli.errors import CliError
from delaytopic_cli.kubectl.client import Kubectl, KubectlFailed
from delaytopic_cli.kubectl.options import full_name

PORT = 8080
MOST_AT_A_TIME = 8
OPERATOR_NAMESPACE = "delaytopic-system"


@dataclass(frozen=True, slots=True)
class PodAnswer:
    """What a relay said, or why nothing came."""

    place: str
    """`namespace/pod`."""
    text: str | None = None
    problem: str | None = None


def running_pods(kubectl: Kubectl, document: dict[str, Any]) -> list[tuple[str, str]]:
    """Namespace and name of the pods of its relays; raises `CliError` when there are none, or none may be seen."""
    metadata = document["metadata"]
    selector = (
        f"app.kubernetes.io/name=delaytopic-relay,delaytopic.dev/namespace={metadata['namespace']},"
        f"delaytopic.dev/name={metadata['name']}"
    )
    for place in _places(kubectl, document):
        everywhere = ["--all-namespaces"] if place is None else []
        try:
            found = kubectl.within(place).items("pods", f"--selector={selector}", *everywhere)
        except KubectlFailed as error:
            if error.reason != "Forbidden":
                raise
            continue
        running = [each for each in found if (each.get("status") or {}).get("phase") == "Running"]
        pods = [(str(each["metadata"]["namespace"]), str(each["metadata"]["name"])) for each in running]
        if not pods:
            raise CliError(f"no relay of {full_name(document)} runs now: kubectl delaytopic status {metadata['name']}")
        return sorted(pods)
    raise CliError(
        f"you may not list the pods of the relays of {full_name(document)}: they run in a namespace of the platform "
        "team; ask it for list on pods and get on pods/proxy there"
    )


def ask_pods(
    kubectl: Kubectl, pods: Sequence[tuple[str, str]], page: str, parameters: dict[str, int]
) -> list[PodAnswer]:
    """A page of all of them, asked at the same time; the answers come in the order of the pods."""
    with ThreadPoolExecutor(MOST_AT_A_TIME) as threads:
        return list(threads.map(lambda pod: _ask(kubectl, pod, page, parameters), pods))


def _ask(kubectl: Kubectl, pod: tuple[str, str], page: str, parameters: dict[str, int]) -> PodAnswer:
    namespace, name = pod
    path = f"/api/v1/namespaces/{namespace}/pods/{name}:{PORT}/proxy/{page}"
    if parameters:
        path = f"{path}?{urlencode(parameters)}"
    try:
        return PodAnswer(f"{namespace}/{name}", kubectl.run("get", "--raw", path))
    except KubectlFailed as error:
        return PodAnswer(f"{namespace}/{name}", problem=str(error))


def _places(kubectl: Kubectl, document: dict[str, Any]) -> list[str | None]:
    """Where the relays may run, None for everywhere: with rights for few namespaces the class has to say it."""
    spec = document.get("spec") or {}
    if spec.get("connection"):
        return [document["metadata"]["namespace"]]
    name = spec.get("delayClassName") or ((document.get("status") or {}).get("effective") or {}).get("delayClass")
    try:
        of_class = kubectl.find("delayclasses.delaytopic.dev", name) if name else None
    except KubectlFailed as error:
        if error.reason != "Forbidden":
            raise
        of_class = None
    place = ((of_class or {}).get("spec") or {}).get("relayNamespace")
    return [place] if place else [None, OPERATOR_NAMESPACE]
