"""The options that all commands share with kubectl, and finding the DelayTopic that is meant."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from delaytopic_cli.errors import CliError
from delaytopic_cli.kubectl.client import Kubectl

KIND = "delaytopics.delaytopic.dev"


class NoSuchDelayTopic(CliError):
    """There is none of that name in the namespace."""


def with_kubectl(command: Callable[..., Any]) -> Callable[..., Any]:
    """`-n`, `--context` and `--kubeconfig`, handed over as one argument `kubectl`."""

    @click.option("-n", "--namespace", help="Default: that of the context.")
    @click.option("--context", help="The context of your kubeconfig. Default: the current one.")
    @click.option("--kubeconfig", metavar="FILE", help="As of kubectl.")
    @wraps(command)
    def called(
        *arguments: Any, namespace: str | None, context: str | None, kubeconfig: str | None, **options: Any
    ) -> Any:
        return command(*arguments, kubectl=Kubectl.of(context, kubeconfig, namespace), **options)

    return called


def delay_topic(kubectl: Kubectl, name: str) -> dict[str, Any]:
    """The DelayTopic; raises `NoSuchDelayTopic` and `KubectlFailed`."""
    found = kubectl.find(KIND, name)
    if found is None:
        place = kubectl.default_namespace()
        raise NoSuchDelayTopic(f"there is no DelayTopic {name} in the namespace {place}; kubectl delaytopic status -A")
    return found


def full_name(document: dict[str, Any]) -> str:
    """`namespace/name`."""
    return f"{document['metadata'].get('namespace')}/{document['metadata']['name']}"
