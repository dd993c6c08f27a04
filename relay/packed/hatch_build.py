"""The hook of hatch that puts the relay's optional extension into a wheel, where DELAYTOPIC_PACKED=1 asks for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PackedBuildHook(BuildHookInterface):  # type: ignore[misc]  # the checks run without hatchling
    """One build of a wheel. Editable ones are left alone: they have what `make packed` compiles in place."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the extension, for this interpreter and this kind of machine alone."""
        if os.environ.get("DELAYTOPIC_PACKED") != "1" or version == "editable":
            return
        # Outside of the source, which stays as it is. Hatch reads the file after this returns.
        self._folder = TemporaryDirectory(prefix="delaytopic-packed-")
        command = [sys.executable, str(Path(__file__).with_name("build.py")), self._folder.name]
        if subprocess.run(command, check=False).returncode:
            self.app.abort("DELAYTOPIC_PACKED=1 asks for the relay's extension, which was not compiled: no wheel")
        [compiled] = Path(self._folder.name).iterdir()
        build_data["force_include"][str(compiled)] = f"delaytopic_relay/{compiled.name}"
        build_data.update(pure_python=False, infer_tag=True)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete what was compiled, which the wheel has."""
        if build_data["infer_tag"]:
            self._folder.cleanup()
