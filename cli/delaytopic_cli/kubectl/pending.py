"""`kubectl delaytopic pending`: the records that wait, asked of the relays' pods themselves."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import click

from delaytopic_api.relay import DEFAULT_LIMIT, MOST_LISTED, PendingList
from delaytopic_cli.client.pending import report, table_lines
from delaytopic_cli.client.relay_listing import RelayAnswer
from delaytopic_cli.command_line import echo, echo_json
from delaytopic_cli.commands.pending import before_ms
from delaytopic_cli.errors import CliError
from delaytopic_cli.kubectl.client import Kubectl, KubectlFailed
from delaytopic_cli.kubectl.delay_topic import delay_topic, full_name, with_kubectl

PORT = 8080
MOST_AT_A_TIME = 8
OPERATOR_NAMESPACE = "delaytopic-system"


@click.command(short_help="List records that wait for their time.")
@click.argument("name")
@click.option(
    "--due-before", metavar="TIME", help="Only what is due before: epoch ms, RFC 3339, or from now: 90s, 1h30m."
)
@click.option(
    "--limit", default=DEFAULT_LIMIT, show_default=True, type=click.IntRange(0, MOST_LISTED), help="The first so many."
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json"]),
    help="For people or JSON. Default: a table on a terminal, JSON elsewhere.",
)
@with_kubectl
def pending(name: str, due_before: str | None, limit: int, output: str | None, kubectl: Kubectl) -> None:
    """List what waits in a DelayTopic, in the order of delivery. Values and headers are never shown.

    The relays answer, through the API server: you need list on pods and get on pods/proxy where they run.

    \b
    Examples:
      kubectl delaytopic pending order-reminders -n shop
      kubectl delaytopic pending order-reminders --due-before 10m --limit 20 -o json
    """
    now_ms = time.time_ns() // 1_000_000
    parameters = {"limit": limit}
    if due_before is not None:
        parameters["dueBefore"] = before_ms(due_before, now_ms=now_ms)
    document = delay_topic(kubectl, name)
    answers = ask_pods(kubectl, running_pods(kubectl, document), "pending", parameters)
    found = report(full_name(document), [relay_answer(each) for each in answers], limit)
    if (output or ("table" if sys.stdout.isatty() else "json")) == "json":
        echo_json(found.to_json())
        return
    for line in table_lines(found, now_ms=now_ms, width=shutil.get_terminal_size((140, 24)).columns):
        echo(line)


def relay_answer(answer: PodAnswer) -> RelayAnswer:
    """Return the pod's answer as that of a relay."""
    if answer.text is None:
        return RelayAnswer(answer.place, problem=answer.problem)
    try:
        return RelayAnswer(answer.place, PendingList.model_validate_json(answer.text))
    except ValueError:
        problem = "answered with something else than a list of what is pending: an older relay?"
        return RelayAnswer(answer.place, problem=problem)


@dataclass(frozen=True, slots=True)
class PodAnswer:
    """The answer of a relay, or the reason why there is none."""

    place: str
    """`namespace/pod`."""
    text: str | None = None
    problem: str | None = None


def running_pods(kubectl: Kubectl, document: dict[str, Any]) -> list[tuple[str, str]]:
    """Return namespace and name of its relays' pods; raises `CliError` when there are none, or none may be seen."""
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
    """Return a page of all of them, asked at the same time; the answers come in the order of the pods."""
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
