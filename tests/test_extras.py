"""What needs an extra says how to install it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from compatcheck.advice import _uv
from compatcheck.errors import InputError
from compatcheck.project.model_files._hub import find_folder


def test_without_uv_its_installation_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InputError, match=f"looking for uv: .*; install it with {sys.executable} -m pip install uv"):
        _uv.run(["cache", "dir"])


def test_the_hub_is_asked_with_its_extra_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(InputError, match=r"fetching the model org/tiny: .*; run pip install 'compatcheck\[hub\]'"):
        find_folder("org/tiny", online=True)


@pytest.mark.parametrize(
    ("variable", "below"),
    [("HF_HUB_CACHE", "."), ("HUGGINGFACE_HUB_CACHE", "."), ("HF_HOME", "hub"), ("XDG_CACHE_HOME", "huggingface/hub")],
)
@pytest.mark.parametrize("revision", ["", "@v1", "@5a5a5a5"])
def test_a_cached_model_is_found_without_the_hub(
    variable: str, below: str, revision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "httpx", None)
    monkeypatch.setenv(variable, str(tmp_path))
    model = tmp_path / below / "models--org--tiny"
    for commit in ("5a" * 20, "6b" * 20):
        (model / "snapshots" / commit).mkdir(parents=True)
        (model / "snapshots" / commit / "config.json").write_text("{}", encoding="utf-8")
    (model / "refs").mkdir()
    for name in ("main", "v1"):
        (model / "refs" / name).write_text("5a" * 20, encoding="utf-8")
    assert Path(find_folder(f"org/tiny{revision}")).name == "5a" * 20
