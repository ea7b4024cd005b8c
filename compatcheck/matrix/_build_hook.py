"""Hatchling build hook: compile the matrix and the catalogues, and put them into the wheel. Run at build time only."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileMatrix(BuildHookInterface[Any]):
    """An editable install reads the checkout's own sources instead and gets no compiled copy."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from compatcheck.matrix.compile import write_compiled

        self._folder = TemporaryDirectory(prefix="compatcheck-")
        compiled = Path(self._folder.name, "matrix")
        write_compiled(Path(self.root) / "matrix", compiled)
        build_data["force_include"][str(compiled)] = "compatcheck/matrix/data"
        self._compile_catalogues(build_data)

    def finalize(self, version: str, build_data: dict[str, object], artifact_path: str) -> None:
        if version != "editable":
            self._folder.cleanup()

    def _compile_catalogues(self, build_data: dict[str, Any]) -> None:
        from compatcheck.language import po_files

        for source in Path(self.root).glob("compatcheck/language/*/LC_MESSAGES/*.po"):
            compiled = Path(self._folder.name, source.parts[-3]).with_suffix(".mo")
            compiled.write_bytes(po_files.compiled(source))
            target = source.relative_to(self.root).with_suffix(".mo").as_posix()
            build_data["force_include"][str(compiled)] = target
