"""Edge: the object that a command means: options shared with kubectl, finding it, awaiting its state."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from delaytopic_api import ApiError, RecurringRecord
from delaytopic_api.loading import validate
from delaytopic_cli.kubectl.client import Kubectl
from delaytopic_process.errors import ProgramError

KIND = "delaytopics.delaytopic.dev"
RECURRING = "recurringrecords.delaytopic.dev"
LOOK_EVERY_S = 1.0
Document = dict[str, Any]


class NoSuchDelayTopic(ProgramError):
    """There is none of that name in the namespace."""


def with_kubectl(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options `-n`, `--context` and `--kubeconfig`, handed over as one argument `kubectl`."""

    @click.option("-n", "--namespace", help="Look in this namespace. Default: that of the context.")
    @click.option("--context", help="Use this context of your kubeconfig. Default: the current one.")
    @click.option("--kubeconfig", metavar="FILE", help="Use this kubeconfig, as kubectl does.")
    @wraps(command)
    def called(
        *arguments: Any, namespace: str | None, context: str | None, kubeconfig: str | None, **options: Any
    ) -> Any:
        return command(*arguments, kubectl=Kubectl.of(context, kubeconfig, namespace), **options)

    return called


def delay_topic(kubectl: Kubectl, name: str) -> dict[str, Any]:
    """Return the DelayTopic; raises `NoSuchDelayTopic` and `KubectlFailed`."""
    found = kubectl.find(KIND, name)
    if found is None:
        place = kubectl.default_namespace()
        raise NoSuchDelayTopic(f"there is no DelayTopic {name} in the namespace {place}; kubectl delaytopic status -A")
    return found


def recurring_record(kubectl: Kubectl, name: str) -> RecurringRecord:
    """Return the RecurringRecord; raises `ProgramError`, and `KubectlFailed`."""
    found = kubectl.find(RECURRING, name)
    if found is None:
        place = kubectl.default_namespace()
        raise ProgramError(f"there is no RecurringRecord {name} in the namespace {place}; kubectl get recurring -A")
    try:
        return validate(RecurringRecord, {**found, "status": None}, f"RecurringRecord {name}")
    except ApiError as error:
        raise ProgramError(f"the record cannot be read, and nobody writes it: {error}") from error


def full_name(document: dict[str, Any]) -> str:
    """Return `namespace/name`."""
    return f"{document['metadata'].get('namespace')}/{document['metadata']['name']}"


def await_state(
    kubectl: Kubectl,
    name: str,
    holds: Callable[[Document | None], bool],
    *,
    seconds: float | None = None,
    seen: Callable[[Document], None] | None = None,
) -> bool:
    """Wait until it holds; return False after the time, if any. `seen` gets the document of each look in vain."""
    until = time.monotonic() + seconds if seconds is not None else None
    while True:
        found = kubectl.find(KIND, name)
        if holds(found):
            return True
        if seen is not None and found is not None:
            seen(found)
        if until is not None and time.monotonic() > until:
            return False
        time.sleep(LOOK_EVERY_S)
