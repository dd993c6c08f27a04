"""What `python -m images.build` and `python -m images.lock` are made of."""

from __future__ import annotations
