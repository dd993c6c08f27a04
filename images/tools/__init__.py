"""The parts of `python -m images.build` and `python -m images.lock`."""

from __future__ import annotations
