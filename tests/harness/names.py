"""Names that no other test of a run uses: servers are shared by all worker processes."""

from __future__ import annotations

import os
from itertools import count

_numbers = count(1)


def unique(stem: str) -> str:
    """Return the stem with the worker's name and a number behind it, such as `orders-gw0-17`."""
    return f"{stem}-{os.environ.get('PYTEST_XDIST_WORKER', 'main')}-{next(_numbers)}"
