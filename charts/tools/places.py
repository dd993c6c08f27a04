"""Places in the repository."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "charts/delaytopic"
CRDS: Final = ROOT / "crds"
GITOPS: Final = ROOT / "gitops"
DOCS: Final = ROOT / "docs"


def text_of(path: Path) -> str:
    """The file's text."""
    return path.read_text(encoding="utf-8")
