"""`kubectl delaytopic why-scale`: why there are as many relays as there are."""

from __future__ import annotations

import click

from delaytopic_cli.errors import CliError
from delaytopic_cli.kubectl.client import Kubectl
from delaytopic_cli.kubectl.options import delay_topic, full_name, with_kubectl
from delaytopic_cli.kubectl.verdict import verdict
from delaytopic_cli.terminal import echo_json, echo_lines


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
    from delaytopic_operator.scaling.explanation import as_text  # noqa: PLC0415

    document = delay_topic(kubectl, name)
    scaling = (document.get("status") or {}).get("scaling")
    if not scaling:
        why = verdict(document).sentence
        raise CliError(f"nothing was decided about the relays of {full_name(document)} yet: {why}")
    if output == "json":
        echo_json(scaling, indent=2)
        return
    try:
        echo_lines(as_text(scaling))
    except (KeyError, TypeError) as error:
        raise CliError("the decision was written by an operator of another version; read it with -o json") from error
