"""`kubectl delaytopic status` and `why-scale`: the state of DelayTopics, and the last decision about relays."""

from __future__ import annotations

import shutil
import time
from typing import Any

import click

from delaytopic_cli.kubectl.client import Kubectl, KubectlFailed
from delaytopic_cli.kubectl.delay_topic import KIND, delay_topic, full_name, with_kubectl
from delaytopic_cli.kubectl.facts import facts_of, verdict
from delaytopic_cli.kubectl.page import page_lines, table_lines
from delaytopic_process.command_line import echo, echo_json, echo_lines
from delaytopic_process.errors import InputError, ProgramError

WIDTH = 110


@click.command(short_help="How one DelayTopic does, as a page; or all, as a table.")
@click.argument("name", required=False)
@click.option("-A", "--all-namespaces", is_flag=True, help="Those of all namespaces.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@with_kubectl
def status(name: str | None, all_namespaces: bool, output: str, kubectl: Kubectl) -> None:
    """Show the state of a DelayTopic: verdict, problems, topics, backlog, relays, lateness, scaling, SLO, events.

    Without NAME a table of all.

    \b
    Examples:
      kubectl delaytopic status -A
      kubectl delaytopic status order-reminders -n shop
      kubectl delaytopic status order-reminders -n shop -o json
    """
    if name is not None and all_namespaces:
        raise InputError("a NAME is in one namespace: name it with -n, and leave -A out")
    now_ms = time.time_ns() // 1_000_000
    if name is None:
        _show_all(kubectl, now_ms, output, all_namespaces=all_namespaces)
        return
    document = delay_topic(kubectl, name)
    facts = facts_of(document, _events(kubectl, document))
    if output == "json":
        echo_json(facts, indent=2)
        return
    width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
    for line in page_lines(document, facts, now_ms, width):
        echo(line)


def _show_all(kubectl: Kubectl, now_ms: int, output: str, *, all_namespaces: bool) -> None:
    found = [facts_of(each) for each in kubectl.items(KIND, *(["--all-namespaces"] if all_namespaces else []))]
    if output == "json":
        echo_json(found, indent=2)
    elif found:
        for line in table_lines(found, now_ms, namespaces=all_namespaces):
            echo(line)
    else:
        place = "" if all_namespaces else f" in the namespace {kubectl.default_namespace()}"
        echo(f"there are no DelayTopics{place}", err=True)


def _events(kubectl: Kubectl, document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of the object; none where they may not be read."""
    namespace, uid = document["metadata"]["namespace"], document["metadata"]["uid"]
    try:
        return kubectl.within(namespace).items("events", f"--field-selector=involvedObject.uid={uid}")
    except KubectlFailed as error:
        if error.reason != "Forbidden":
            raise
        return []


@click.command("why-scale", short_help="Why there are as many relays as there are.")
@click.argument("name")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@with_kubectl
def why_scale(name: str, output: str, kubectl: Kubectl) -> None:
    """Every number behind the last decision about the relays of a DelayTopic, as the operator wrote it down.

    \b
    Examples:
      kubectl delaytopic why-scale order-reminders -n shop
      kubectl delaytopic why-scale order-reminders -o json | jq .needs
    """
    # The operator's package is needed for this command only; the words are its own.
    from delaytopic_operator.scaling import as_text  # noqa: PLC0415

    document = delay_topic(kubectl, name)
    scaling = (document.get("status") or {}).get("scaling")
    if not scaling:
        why = verdict(document).sentence
        raise ProgramError(f"nothing was decided about the relays of {full_name(document)} yet: {why}")
    if output == "json":
        echo_json(scaling, indent=2)
        return
    try:
        echo_lines(as_text(scaling))
    except (KeyError, TypeError) as error:
        raise ProgramError(
            "the decision was written by an operator of another version; read it with -o json"
        ) from error
