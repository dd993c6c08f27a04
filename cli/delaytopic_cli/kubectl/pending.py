"""`kubectl delaytopic pending`: what waits for its time, asked of the relays themselves."""

from __future__ import annotations

import shutil
import sys
import time

import click

from delaytopic_api.relay import DEFAULT_LIMIT, MOST_LISTED, PendingList
from delaytopic_cli.client.pending_report import report
from delaytopic_cli.client.pending_text import table_lines
from delaytopic_cli.client.relay_listing import RelayAnswer
from delaytopic_cli.commands.pending import before_ms
from delaytopic_cli.kubectl.client import Kubectl
from delaytopic_cli.kubectl.options import delay_topic, full_name, with_kubectl
from delaytopic_cli.kubectl.relay_pods import PodAnswer, ask_pods, running_pods
from delaytopic_cli.terminal import echo, echo_json


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
    """The pod's answer as that of a relay."""
    if answer.text is None:
        return RelayAnswer(answer.place, problem=answer.problem)
    try:
        return RelayAnswer(answer.place, PendingList.model_validate_json(answer.text))
    except ValueError:
        problem = "answered with something else than a list of what is pending: an older relay?"
        return RelayAnswer(answer.place, problem=problem)
