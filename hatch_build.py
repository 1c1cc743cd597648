"""What building a wheel does beside packing files: it prepares the kernels, as ``lake/prepared.py`` tells."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PrepareKernels(BuildHookInterface):
    """Puts the prepared kernels into the wheel: half a minute; without them a first start takes that much longer."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Makes the file away from the source, which stays as it is. An editable installation is the source itself."""
        if version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name) / "prepared.zip"
        command = [sys.executable, "-B", "-m", "lake.exec.kernels.preparing", str(file)]
        if subprocess.run(command, cwd=self.root, check=False).returncode == 0:
            build_data["force_include"][str(file)] = "lake/prepared.zip"
        else:
            self.app.display_warning("no kernels were prepared: a first start will compile all of them")

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Takes the file away."""
        if version != "editable":
            self._folder.cleanup()
