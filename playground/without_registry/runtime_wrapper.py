#!/usr/bin/python3 -I
"""An OCI runtime that takes from a container what its root may not give, and then is runc.

Docker runs privileged containers, such as a node of kind, with every capability of the kernel. Where root itself lacks
CAP_SYS_RESOURCE, runc refuses that, and it can neither lower oom scores nor raise limits. Standard library only: a copy
of this file is the program that dockerd calls.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RUNC_PATHS = ("/usr/sbin/runc", "/usr/bin/runc", "/usr/local/sbin/runc", "/usr/local/bin/runc")
_REFUSED = "CAP_SYS_RESOURCE"


def permitted(process: dict[str, Any]) -> dict[str, Any]:
    """The `process` of a bundle without the capability, without limits, and without a negative oom score."""
    kept = {name: value for name, value in process.items() if name != "rlimits"}
    capabilities = process.get("capabilities")
    if capabilities:
        kept["capabilities"] = {name: [one for one in held if one != _REFUSED] for name, held in capabilities.items()}
    if (process.get("oomScoreAdj") or 0) < 0:
        kept["oomScoreAdj"] = 0
    return kept


def permitted_document(document: dict[str, Any]) -> dict[str, Any]:
    """Return the permitted form of a bundle's whole config.json, or of the bare process of `runc exec --process`."""
    if "process" in document:
        return {**document, "process": permitted(document["process"])}
    return permitted(document)


def changed_file(arguments: Sequence[str]) -> str | None:
    """Return which file says what is about to run, by runc's command line; None when it runs nothing new."""
    if "create" in arguments or "run" in arguments:
        return os.path.join(_option(arguments, "--bundle", "-b") or ".", "config.json")
    if "exec" in arguments:
        return _option(arguments, "--process", "-p")
    return None


def _option(arguments: Sequence[str], long: str, short: str) -> str | None:
    for word, following in zip(arguments, [*arguments[1:], None], strict=True):
        if word in (long, short):
            return following
        if word.startswith(f"{long}="):
            return word.partition("=")[2]
    return None


def main() -> None:
    """Change the file, and become runc."""
    arguments = sys.argv[1:]
    name = changed_file(arguments)
    if name is not None:
        path = Path(name)
        path.write_text(json.dumps(permitted_document(json.loads(path.read_text()))))
    runc = next(path for path in RUNC_PATHS if os.access(path, os.X_OK))
    os.execv(runc, ["runc", *arguments])


if __name__ == "__main__":
    main()
