"""The kinds that are watched and listed, and their places: pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.kube.client import page_size
from delaytopic_operator.kube.indexers import MANAGED
from delaytopic_operator.model import kinds
from delaytopic_operator.model.kinds import Kind, Place


class Together(NamedTuple):
    """Kinds that are watched in the same namespaces, and listed by pages of the same size."""

    name: str
    kinds: tuple[Kind, ...]

    @property
    def page_size(self) -> int:
        """The number of objects of a page."""
        return min(map(page_size, self.kinds))


OWN: Final = (kinds.DELAY_CLASS, kinds.RECURRING_RECORD, kinds.DELAY_TOPIC)
"""The kinds that people write; all of them are of interest."""
SMALL: Final = (
    kinds.DEPLOYMENT, kinds.SERVICE_ACCOUNT, kinds.POD_DISRUPTION_BUDGET, kinds.NETWORK_POLICY, kinds.CRON_JOB,
    kinds.POD,
)  # fmt: skip
MADE: Final = (*SMALL, kinds.CONFIG_MAP)
"""The kinds that the operator makes, and the pods that follow from them: those with its label."""
ALL: Final = OWN + MADE

GROUPS: Final = (Together("declared", OWN), Together("made", SMALL), Together("config maps", (kinds.CONFIG_MAP,)))


def places(config: OperatorConfig) -> list[Place]:
    """List all watches."""
    return [Place(kind.plural, namespace) for kind in ALL for namespace in namespaces_for(kind, config)]


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
