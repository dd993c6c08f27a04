"""For all tests: how long an example takes says nothing on a busy machine; and what takes long is not begun last."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")

TAKES_LONG = ("long", "integration")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With several processes, files with servers in them come first: at the end no process works on while others rest.

    One process alone keeps the order, in which it is the quick tests that say first what is wrong.
    """
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not any(item.get_closest_marker(name) for name in TAKES_LONG))
