"""`kubectl delaytopic pause`, `resume` and `reconcile`: annotations that the operator obeys."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import click

from delaytopic_cli.kubectl.client import Kubectl
from delaytopic_cli.kubectl.delay_topic import KIND, await_state, delay_topic, full_name, with_kubectl
from delaytopic_cli.kubectl.facts import verdict
from delaytopic_process.command_line import echo
from delaytopic_process.errors import ProgramError

PAUSE = "delaytopic.dev/pause-reconciliation"
REQUESTED = "delaytopic.dev/reconcile-requested-at"
ANSWER_SECONDS = 120.0


@click.command(short_help="Let the operator change nothing; relays run on.")
@click.argument("name")
@with_kubectl
def pause(name: str, kubectl: Kubectl) -> None:
    """Let the operator change nothing of a DelayTopic; its relays run on, and deliver.

    To hold delivery itself, set spec.suspend.

    \b
    Example:
      kubectl delaytopic pause order-reminders -n shop
    """
    document = delay_topic(kubectl, name)
    if _is_paused(document):
        echo(f"{full_name(document)} is paused already")
        return
    _annotate(kubectl, name, f"{PAUSE}=true")
    echo(f"{full_name(document)} is paused: the operator changes nothing; relays run on, and deliver")


@click.command(short_help="Undo pause.")
@click.argument("name")
@with_kubectl
def resume(name: str, kubectl: Kubectl) -> None:
    """Let the operator look after a paused DelayTopic again.

    \b
    Example:
      kubectl delaytopic resume order-reminders -n shop
    """
    document = delay_topic(kubectl, name)
    if not _is_paused(document):
        echo(f"{full_name(document)} is not paused")
        return
    _annotate(kubectl, name, f"{PAUSE}-")
    echo(f"{full_name(document)} goes on: the operator looks after it again")


@click.command(short_help="Ask the operator to look now.")
@click.argument("name")
@click.option("--wait", is_flag=True, help=f"Until it has looked, at most {ANSWER_SECONDS:g} s; then say the verdict.")
@with_kubectl
def reconcile(name: str, wait: bool, kubectl: Kubectl) -> None:
    """Ask the operator to look at a DelayTopic now, and not at its next turn.

    \b
    Example:
      kubectl delaytopic reconcile order-reminders -n shop --wait
    """
    document = delay_topic(kubectl, name)
    asked = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")
    _annotate(kubectl, name, f"{REQUESTED}={asked}")
    if not wait:
        echo(f"{full_name(document)}: asked to be looked at")
        return

    def looked(found: dict[str, Any] | None) -> bool:
        return found is None or (found.get("status") or {}).get("lastHandledReconcileAt") == asked

    if not await_state(kubectl, name, looked, seconds=ANSWER_SECONDS):
        why = "it is paused" if _is_paused(document) else "is an operator running, and does it watch this namespace?"
        raise ProgramError(f"nobody looked at {full_name(document)} within {ANSWER_SECONDS:g} s: {why}")
    said = verdict(delay_topic(kubectl, name))
    echo(f"{full_name(document)}: {said.word}; {said.sentence}")


def _is_paused(document: dict[str, Any]) -> bool:
    return (document["metadata"].get("annotations") or {}).get(PAUSE) == "true"


def _annotate(kubectl: Kubectl, name: str, change: str) -> None:
    kubectl.run("annotate", KIND, name, change, "--overwrite")
