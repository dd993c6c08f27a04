"""The custom resource definitions of the Prometheus operator, from its Go module."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import yaml
from tests.cluster.go_builds import ProgramsMissingError

VERSION: Final = "v0.85.0"
_MODULE: Final = "github.com/prometheus-operator/prometheus-operator"
_KINDS: Final = ("podmonitors", "servicemonitors", "prometheusrules")
_DOWNLOAD_SECONDS: Final = 300.0


def monitoring_definitions(*, build: bool = True) -> list[dict[str, Any]]:
    """Load those of the kinds that the chart makes; without `build` from Go's cache of modules alone.

    Raises ProgramsMissingError without Go or the module.
    """
    go = shutil.which("go")
    if go is None:
        raise ProgramsMissingError(f"there is no Go to fetch {_MODULE} with: install Go 1.24 or newer")
    command = [go, "mod", "download", "-json", f"{_MODULE}@{VERSION}"]
    environment = dict(os.environ) if build else {**os.environ, "GOPROXY": "off"}
    try:
        answer = subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS
        ).stdout
    except subprocess.SubprocessError as error:
        raise ProgramsMissingError(f"{_MODULE} cannot be fetched: {error}") from error
    folder = Path(json.loads(answer)["Dir"]) / "example/prometheus-operator-crd"
    return [yaml.safe_load((folder / f"monitoring.coreos.com_{kind}.yaml").read_text()) for kind in _KINDS]
