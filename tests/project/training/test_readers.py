"""What every reader of a training configuration promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from compatcheck.project.training import readers, role_of
from compatcheck.project.training.document import Document


@pytest.mark.parametrize("reader", readers().values(), ids=lambda reader: reader.__name__.rpartition(".")[2])
def test_a_reader_keeps_its_contract(reader: ModuleType) -> None:
    assert reader.__doc__
    assert reader.TITLE.partition(" ")[0] in ("a", "an", "the")
    assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in reader.SUFFIXES)
    assert all(isinstance(mark, str) and mark for mark in getattr(reader, "MARKS", ()))
    for value in ({}, None, {"a": 1}, {"training": {"dtype": "bfloat16"}}):
        assert not reader.recognises(Document("x" + "".join(reader.SUFFIXES[:1]), "", value))


def test_the_general_readers_come_last() -> None:
    general = [getattr(reader, "GENERAL", False) for reader in readers().values()]
    assert general == sorted(general)
    assert {role_of(name) for name in readers()} == {
        "config",
        "script",
        "program",
        "accelerate",
        "deepspeed",
        "adapter",
    }


def test_yaml_is_loaded_only_for_a_yaml_file(tmp_path: Path) -> None:
    path = tmp_path / "ds.json"
    path.write_text('{"zero_optimization": {"stage": 2}}')
    (tmp_path / "other.yaml").write_text("name: x\n")
    code = f"import sys; from compatcheck.project import reading; reading.read_paths([{str(tmp_path)!r}]);"
    code += "print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"yaml", "pydantic", "rich"} & set(loaded)
