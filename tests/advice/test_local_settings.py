"""Settings of uv that came with a folder: those that are unknown build and install nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from compatcheck.advice.model import Wanted
from compatcheck.advice.resolver import require_known_settings
from compatcheck.advice.resolver._local import EVERYTHING, local_names
from compatcheck.errors import InputError

STEERING = (
    'extra-build-variables = { numpy = { PYTHONPATH = "here" } }',
    'build-constraint-dependencies = ["setuptools @ file:///tmp/here"]',
    'a-setting-of-a-later-uv = "here"',
    '[tool.uv.pip]\ntarget = "here"',
)


@pytest.mark.parametrize("setting", STEERING)
def test_unknown_setting_builds_and_installs_nothing(
    setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(f"[tool.uv]\n{setting}\n", encoding="utf-8")
    assert local_names(Wanted((), {})) == {EVERYTHING}
    with pytest.raises(InputError, match="remove the setting"):
        require_known_settings()


def test_usual_settings_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = 'index-url = "https://a.b/simple"\nprerelease = "allow"\n[pip]\nno-deps = true\n'
    (tmp_path / "uv.toml").write_text(text, encoding="utf-8")
    assert local_names(Wanted((), {})) == set()
    require_known_settings()
