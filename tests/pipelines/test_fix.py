"""A file that changes while it is judged is not overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from compatcheck.errors import InputError
from compatcheck.pipelines import fix


def test_file_that_changed_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path in paths:
        path.write_text("old\n", encoding="utf-8")
    made = fix.Fixes({str(path): "new\n" for path in paths}, {str(path): "old\n" for path in paths}, ())
    paths[1].write_text("own\n", encoding="utf-8")
    with pytest.raises(InputError, match="run this command again"):
        fix.write(made)
    assert [path.read_text(encoding="utf-8") for path in paths] == ["old\n", "own\n"]
