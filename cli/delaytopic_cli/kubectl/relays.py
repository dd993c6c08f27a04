"""Edge: the relays of a DelayTopic of the cluster, asked at the ports of their pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from delaytopic_cli.kubectl.client import Kubectl, KubectlFailed
from delaytopic_cli.kubectl.delay_topic import full_name
from delaytopic_cli.kubectl.port_forward import PortForwards
from delaytopic_gateway.client.relay_listing import MOST_AT_A_TIME, RelayAnswer, ask_relay
from delaytopic_gateway.reach.direct import DirectTopic
from delaytopic_process.errors import ProgramError

PORT = 8080
OPERATOR_NAMESPACE = "delaytopic-system"


def relays_of(kubectl: Kubectl, document: dict[str, Any]) -> DirectTopic:
    """Return a DelayTopic whose relays are asked at forwarded ports. Raises `ProgramError`s."""
    pods = running_pods(kubectl, document)
    return DirectTopic(
        full_name(document), ["/".join(pod) for pod in pods], ask=lambda _, asked: ask_pods(kubectl, pods, asked)
    )


def running_pods(kubectl: Kubectl, document: dict[str, Any]) -> list[tuple[str, str]]:
    """Return namespace and name of its relays' pods; raises `ProgramError` when there are none, or none may be seen."""
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
            raise ProgramError(
                f"no relay of {full_name(document)} runs now: kubectl delaytopic status {metadata['name']}"
            )
        return sorted(pods)
    raise ProgramError(
        f"you may not list the pods of the relays of {full_name(document)}: they run in a namespace of the platform "
        "team; ask it for get and list on pods and create on pods/portforward there"
    )


def ask_pods(
    kubectl: Kubectl, pods: Sequence[tuple[str, str]], parameters: Mapping[str, int | str]
) -> list[RelayAnswer]:
    """Ask all of them at the same time; the answers come in the order of the pods, each with `namespace/pod`."""
    # Left in the other order: what threads wait for ends before they are waited for.
    with ThreadPoolExecutor(MOST_AT_A_TIME) as threads, PortForwards(kubectl) as forwards:
        return list(threads.map(lambda pod: _ask(forwards, pod, parameters), pods))


def _ask(forwards: PortForwards, pod: tuple[str, str], parameters: Mapping[str, int | str]) -> RelayAnswer:
    place = "/".join(pod)
    try:
        with forwards.to(pod[0], f"pod/{pod[1]}", PORT) as forward:
            answer = ask_relay(forward.url, parameters)
    except KubectlFailed as error:
        return RelayAnswer(place, problem=str(error))
    known = [each for each in (answer.problem, forward.complaint) if each is not None]
    return RelayAnswer(place, answer.document, None if answer.document is not None else "; ".join(known))


def _places(kubectl: Kubectl, document: dict[str, Any]) -> list[str | None]:
    """Return the namespaces where relays may run, None for all: with rights for few, the class has to name it."""
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
