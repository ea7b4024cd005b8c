from __future__ import annotations

from pathlib import Path

import pytest

from compatcheck.installed.toolkit import from_environment, toolkit_version


@pytest.mark.parametrize(
    ("name", "content", "version"),
    [
        ("version.json", '{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}, "x": {"version": "9.9"}}', "12.4"),
        ("version.txt", "CUDA Version 10.2.89\n", "10.2"),
        ("include/cuda.h", "#define CUDA_VERSION 11080\n", "11.8"),
        ("targets/x86_64-linux/include/cuda.h", "#define CUDA_VERSION 13000\n", "13.0"),
        ("version.json", "{", None),
        ("version.json", '{"cuda": []}', None),
    ],
)
def test_the_version_of_a_toolkit(tmp_path: Path, name: str, content: str, version: str | None) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(content)
    assert toolkit_version(str(tmp_path)) == version


def lay(folder: Path, version: str) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "version.txt").write_text(f"CUDA Version {version}\n")
    (folder / "bin" / "nvcc").write_text("#!/bin/sh\nexit 77\n")
    (folder / "bin" / "nvcc").chmod(0o755)
    return folder


def test_the_variable_counts_before_the_path(tmp_path: Path) -> None:
    named, on_path = lay(tmp_path / "a", "12.1"), lay(tmp_path / "b", "11.8")
    path = str(on_path / "bin")
    assert from_environment({"CUDA_HOME": str(named), "PATH": path}).facts == {"cuda": {"toolkit": "12.1"}}
    assert from_environment({"CUDA_PATH": str(named), "PATH": path}).facts == {"cuda": {"toolkit": "12.1"}}
    assert from_environment({"PATH": path}).facts == {"cuda": {"toolkit": "11.8"}}


def test_a_folder_that_states_nothing_is_unknown_and_none_is_absent(tmp_path: Path) -> None:
    facts = from_environment({"CUDA_HOME": str(tmp_path)})
    assert facts.facts == {}
    assert "does not state the version" in facts.reasons["cuda.toolkit"]
    assert from_environment({"CUDA_HOME": str(tmp_path / "gone")}).facts == {"cuda": {"toolkit": None}}
