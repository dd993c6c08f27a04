"""Places in the repository, whatever folder a test is in."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DATA: Final = ROOT / "tests/data"
