"""The hook of hatch that puts the relay's speedups into a wheel, where they can be compiled.

With DELAYTOPIC_SPEEDUPS=1 in the environment there is no wheel without them, and with 0 none that has them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SpeedupsBuildHook(BuildHookInterface):  # type: ignore[misc]  # the checks run without hatchling
    """One build of a wheel. Editable ones are left alone: they have what `make install` compiles in place."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the speedups, for this interpreter and this kind of machine alone."""
        asked_for = os.environ.get("DELAYTOPIC_SPEEDUPS", "")
        if asked_for == "0" or version == "editable":
            return
        # Outside of the source, which stays as it is. Hatch reads the file after this returns.
        self._folder = TemporaryDirectory(prefix="delaytopic-speedups-")
        command = [sys.executable, str(Path(__file__).with_name("build.py")), self._folder.name]
        if subprocess.run(command, check=False).returncode:
            if asked_for == "1":
                self.app.abort("DELAYTOPIC_SPEEDUPS=1 asks for the relay's speedups, which were not compiled: no wheel")
            self.app.display_warning("The relay's speedups were not compiled: this wheel has a relay in Python alone.")
            return
        [compiled] = Path(self._folder.name).iterdir()
        build_data["force_include"][str(compiled)] = f"delaytopic_relay/{compiled.name}"
        build_data.update(pure_python=False, infer_tag=True)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete what was compiled, which the wheel has."""
        if build_data["infer_tag"]:
            self._folder.cleanup()
