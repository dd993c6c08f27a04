"""Edge: looks at a DelayTopic again and again until it is as wanted."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from delaytopic_cli.kubectl.client import Kubectl
from delaytopic_cli.kubectl.options import KIND

LOOK_EVERY_S = 1.0
Document = dict[str, Any]


def await_state(
    kubectl: Kubectl,
    name: str,
    holds: Callable[[Document | None], bool],
    *,
    seconds: float | None = None,
    seen: Callable[[Document], None] | None = None,
) -> bool:
    """Whether it came so within the time (None: however long that takes); `seen` is told of each look that was none."""
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
