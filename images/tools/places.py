"""The folders of the images' descriptions, and of all that is slow to get."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

IMAGES: Final = Path(__file__).parents[1]
ROOT: Final = IMAGES.parent
INSTALLER: Final = IMAGES / "install.py"


def cache_folder(*names: str) -> Path:
    """A folder below `delaytopic/images` of the user's cache; made when it is not there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache.joinpath("delaytopic", "images", *names)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def link_or_copy(source: Path, destination: Path) -> None:
    """Have the same file at another place: wheels are large, and mostly on the same file system."""
    try:
        os.link(source, destination)
    except OSError:
        shutil.copy(source, destination)
