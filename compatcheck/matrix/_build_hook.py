"""Hatchling build hook: compile the matrix and put it into the wheel. Run at build time only."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileMatrix(BuildHookInterface[Any]):
    """An editable install reads the checkout's own ``matrix/`` instead and gets no compiled copy."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from compatcheck.matrix._compile import write_compiled

        compiled = mkdtemp(prefix="compatcheck-matrix-")
        write_compiled(Path(self.root) / "matrix", Path(compiled))
        build_data["force_include"][compiled] = "compatcheck/matrix/data"
