"""The daemon from which Spark starts its Python workers: its own, of modules that are compiled already."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder


def without_archives(path: list[str]) -> list[str]:
    """Return a search path without Spark's zip files where it is installed as a package, too.

    From a zip file, each worker would compile anew what it imports.
    """
    folders = [place for place in path if not place.endswith(".zip")]
    return folders if PathFinder.find_spec("pyspark", folders) and PathFinder.find_spec("py4j", folders) else path


if __name__ == "__main__":
    sys.path[:] = without_archives(sys.path)
    from pyspark.daemon import manager

    manager()
