"""Tests of what a plan reads of a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from delaytopic_cli.kubectl.client import Kubectl
from delaytopic_cli.plan.cluster import read_cluster
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.offline.documents import Documents

SETTINGS = "apiVersion: delaytopic.dev/v1beta1\nkind: OperatorConfig\nnamespace: platform\n"


class ClusterWith(Kubectl):
    """A cluster that has nothing but so many operators' settings."""

    settings = 0

    def items(self, *arguments: str) -> list[dict[str, Any]]:
        there = self.settings if arguments[:2] == ("configmaps", "--all-namespaces") else 0
        return [{"data": {"operator.yaml": SETTINGS}}] * there


@pytest.mark.parametrize(
    ("settings", "namespace", "notes"),
    [
        (1, "platform", []),
        (
            0,
            OperatorConfig().namespace,
            ["the operator's settings are not to be seen: the defaults are taken, or name some: --operator-config"],
        ),
        (
            2,
            OperatorConfig().namespace,
            ["settings of several operators are to be seen: the defaults are taken, or name some: --operator-config"],
        ),
    ],
)
def test_the_settings_of_the_one_operator_are_taken(
    monkeypatch: pytest.MonkeyPatch, settings: int, namespace: str, notes: list[str]
) -> None:
    monkeypatch.setattr(ClusterWith, "settings", settings)

    state = read_cluster(ClusterWith(), Documents([], [], []), None)

    assert (state.config.namespace, [*state.notes]) == (namespace, notes)
