"""The Kubernetes cluster that relays run in, as the names of members of their group tell it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

_MARK: Final = re.compile(r"[.]k-([0-9a-f]{8})")


def mark_of(uid: str) -> str:
    """Return the mark of the cluster whose namespace kube-system has this uid: it lives as long as the cluster."""
    return sha256(uid.encode()).hexdigest()[:8]


def member_name(pod: str, mark: str | None) -> str:
    """Return the name in its group of the relay in a pod; without a mark the cluster is not known."""
    return pod if mark is None else f"{pod}.k-{mark}"


def marks_in(names: Iterable[str]) -> frozenset[str]:
    """Return the marks of all clusters that members of these names run in; other members tell of none."""
    return frozenset(found[1] for name in names if (found := _MARK.search(name, max(0, len(name) - 11))) is not None)
