"""Which kinds are watched and listed, and where: pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from delaytopic_operator import kinds
from delaytopic_operator.kinds import Kind
from delaytopic_operator.store_terms import MANAGED

OWN: Final = (kinds.DELAY_CLASS, kinds.DELAY_TOPIC)
"""What people write; all of them are of interest."""
CHILDREN: Final = (
    kinds.DEPLOYMENT, kinds.CONFIG_MAP, kinds.SERVICE_ACCOUNT, kinds.POD_DISRUPTION_BUDGET, kinds.NETWORK_POLICY,
    kinds.CRON_JOB, kinds.POD,
)  # fmt: skip
"""What the operator makes, and the pods that follow from it: those with its label."""
ALL: Final = OWN + CHILDREN


def labels_of(kind: Kind) -> dict[str, str] | None:
    """The labels that objects of the kind must have to be of interest; None: all are."""
    return MANAGED if kind in CHILDREN else None


def namespaces_for(
    kind: Kind, watch_namespaces: Iterable[str], operator_namespace: str, relay_namespaces: Iterable[str] = ()
) -> list[str | None]:
    """Where to look for objects of the kind; None: everywhere at once.

    `relay_namespaces`: where classes have their relays run.
    """
    watched = set(watch_namespaces)
    if not watched or not kind.namespaced:
        return [None]
    others = set() if kind == kinds.DELAY_TOPIC else {operator_namespace, *relay_namespaces}
    return [*sorted(watched | others)]
