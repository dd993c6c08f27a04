"""`kubectl delaytopic drain`: remove a DelayTopic once everything pending has left at its own time."""

from __future__ import annotations

from typing import Any

import click

from delaytopic_cli.kubectl.client import Kubectl
from delaytopic_cli.kubectl.delay_topic import KIND, await_state, delay_topic, full_name, with_kubectl
from delaytopic_cli.kubectl.facts import conditions_of
from delaytopic_process.command_line import echo
from delaytopic_process.errors import ProgramError

FINALIZER = "delaytopic.dev/drain"
DRAIN_PATCH = '{"spec":{"deletionPolicy":"Drain"}}'
HOLD_SECONDS = 60.0


class NotHeld(ProgramError):
    """Nobody would drain it: deleted now, it would be gone at once."""


@click.command(short_help="Remove a DelayTopic once everything pending has left.")
@click.argument("name")
@click.option("--wait", is_flag=True, help="Show the progress until it is gone. Ctrl-C ends the watching only.")
@with_kubectl
def drain(name: str, wait: bool, kubectl: Kubectl) -> None:
    """Delete a DelayTopic with deletionPolicy Drain: nothing more is taken in, and what is pending leaves at its own
    time, for spec.drainTimeout at most. What is left then stays, and applying the same object again resumes it.

    \b
    Examples:
      kubectl delaytopic drain order-reminders -n shop
      kubectl delaytopic drain order-reminders -n shop --wait
    """
    document = delay_topic(kubectl, name)
    if "deletionTimestamp" in document["metadata"]:
        echo(f"{full_name(document)} is being deleted already")
    else:
        _begin(kubectl, document)
    if wait:
        _follow(kubectl, document)


def _begin(kubectl: Kubectl, document: dict[str, Any]) -> None:
    """Delete the object once it is held: else it would be gone, and nobody would drain it."""
    name = document["metadata"]["name"]
    if (document.get("spec") or {}).get("deletionPolicy", "Drain") != "Drain":
        kubectl.run("patch", KIND, name, "--type=merge", f"--patch={DRAIN_PATCH}")
    if not await_state(kubectl, name, _is_held, seconds=HOLD_SECONDS):
        raise NotHeld(
            f"{full_name(document)} was not deleted: no operator holds it to drain it (no finalizer {FINALIZER} within "
            f"{HOLD_SECONDS:g} s); is one running, and is it not paused?"
        )
    kubectl.run("delete", KIND, name, "--wait=false")
    echo(f"{full_name(document)} drains: nothing more is taken in, and what is pending leaves at its own time")


def _is_held(found: dict[str, Any] | None) -> bool:
    return found is None or FINALIZER in (found["metadata"].get("finalizers") or ())


def _follow(kubectl: Kubectl, document: dict[str, Any]) -> None:
    told: set[str] = set()
    uid = document["metadata"]["uid"]

    def tell(found: dict[str, Any]) -> None:
        message = str(conditions_of(found).get("Draining", {}).get("message") or "")
        if message and message not in told:
            told.add(message)
            echo(message)

    def is_gone(found: dict[str, Any] | None) -> bool:
        return found is None or found["metadata"]["uid"] != uid

    await_state(kubectl, document["metadata"]["name"], is_gone, seen=tell)
    echo(f"{full_name(document)} is gone")
