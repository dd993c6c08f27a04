"""The custom resource definitions of other projects whose kinds chart and pages use, from their Go modules."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml
from images.tools.go_builds import ProgramsMissingError


class _Source(NamedTuple):
    module: str
    files: tuple[str, ...]


_SOURCES: Final = (
    _Source(
        "github.com/prometheus-operator/prometheus-operator@v0.85.0",
        tuple(
            f"example/prometheus-operator-crd/monitoring.coreos.com_{kind}.yaml"
            for kind in ("podmonitors", "servicemonitors", "prometheusrules")
        ),
    ),
    _Source("github.com/kedacore/keda/v2@v2.21.0", ("config/crd/bases/keda.sh_scaledobjects.yaml",)),
)
_DOWNLOAD_SECONDS: Final = 300.0


def foreign_definitions(*, build: bool = True) -> list[dict[str, Any]]:
    """Load them; without `build` from Go's cache of modules alone.

    Raises ProgramsMissingError without Go or a module.
    """
    go = shutil.which("go")
    if go is None:
        raise ProgramsMissingError("there is no Go to fetch definitions with: install Go 1.24 or newer")
    return [definition for source in _SOURCES for definition in _definitions(go, source, build)]


def _definitions(go: str, source: _Source, build: bool) -> Iterator[dict[str, Any]]:
    environment = dict(os.environ) if build else {**os.environ, "GOPROXY": "off"}
    command = [go, "mod", "download", "-json", source.module]
    try:
        answer = subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS
        ).stdout
    except subprocess.SubprocessError as error:
        raise ProgramsMissingError(f"{source.module} cannot be fetched: {error}") from error
    for file in source.files:
        yield yaml.safe_load((Path(json.loads(answer)["Dir"]) / file).read_text(encoding="utf-8"))
