"""The result of a program of this folder: one JSON line, and the same where Kubernetes keeps it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TERMINATION_LOG = Path("/dev/termination-log")
"""The kubelet puts its content into the status of the pod."""


def tell(result: dict[str, Any]) -> None:
    """Print the result on standard output and write it, in a pod, as its termination message."""
    line = json.dumps(result)
    print(line, flush=True)
    if TERMINATION_LOG.exists():
        TERMINATION_LOG.write_text(line, encoding="utf-8")
