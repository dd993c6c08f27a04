"""The kinds that are watched and listed, and their places: pure."""

from __future__ import annotations

from typing import Final

from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.kube.indexers import MANAGED
from delaytopic_operator.model import kinds
from delaytopic_operator.model.kinds import Kind

OWN: Final = (kinds.DELAY_CLASS, kinds.DELAY_TOPIC)
"""The kinds that people write; all of them are of interest."""
MADE: Final = (
    kinds.DEPLOYMENT, kinds.CONFIG_MAP, kinds.SERVICE_ACCOUNT, kinds.POD_DISRUPTION_BUDGET, kinds.NETWORK_POLICY,
    kinds.CRON_JOB, kinds.POD,
)  # fmt: skip
"""The kinds that the operator makes, and the pods that follow from them: those with its label."""
ALL: Final = OWN + MADE


def labels_of(kind: Kind) -> dict[str, str] | None:
    """The labels that objects of the kind must have to be of interest; None: all are."""
    return MANAGED if kind in MADE else None


def namespaces_for(kind: Kind, config: OperatorConfig) -> list[str | None]:
    """Return where to look for objects of the kind; None: everywhere at once.

    What the operator makes is looked for only where relays may run: elsewhere it would be somebody else's.
    """
    if kind in MADE:
        named = config.relay_namespaces
        return [None] if named is None else [*sorted({config.namespace, *named})]
    return [*sorted(config.watch_namespaces)] if kind.namespaced and config.watch_namespaces else [None]
