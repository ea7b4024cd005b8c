"""Settings of uv that came with a folder: those that are unknown build and install nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from compatcheck.advice.model import Wanted
from compatcheck.advice.resolver import require_known_settings
from compatcheck.advice.resolver._local import EVERYTHING, local_names
from compatcheck.advice.wanted import read
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
    text = 'index-url = "https://pypi.org/simple"\nprerelease = "allow"\n[pip]\nno-deps = true\n'
    (tmp_path / "uv.toml").write_text(text, encoding="utf-8")
    assert local_names(Wanted((), {})) == set()
    require_known_settings()


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("requirements.txt", "--index-url https://a.b/simple\n", {EVERYTHING}),
        ("requirements.txt", "--find-links=http://a.b/links.html\n", {EVERYTHING}),
        ("requirements.txt", "--extra-index-url https://pypi.org.a.b/simple\n", {EVERYTHING}),
        ("requirements.txt", "--extra-index-url http://pypi.org/simple\n", {EVERYTHING}),
        ("requirements.txt", "--extra-index-url https://download.pytorch.org/whl/cu126\n", set()),
        ("requirements.txt", "x @ https://a.b/x-1.0-py3-none-any.whl\n", {EVERYTHING}),
        ("requirements.txt", "https://a.b/x-1.0-py3-none-any%2Ewhl?a=.zip#egg=x\n", {EVERYTHING}),
        ("requirements.txt", "x @ https://a.b/x-1.0.tar.gz\ny @ git+https://a.b/y\n", set()),
        ("pyproject.toml", '[[tool.uv.index]]\nname = "a"\nurl = "https://a.b/simple"\n', {EVERYTHING}),
        ("pyproject.toml", '[tool.uv.sources]\nx = { url = "https://a.b/x-1.0-py3-none-any.whl" }\n', {EVERYTHING}),
        ("pyproject.toml", '[tool.uv.sources]\nx = { git = "https://a.b/x" }\n', set()),
        ("pyproject.toml", '[project]\ndependencies = ["x @ https://a.b/x-1-py3-none-any.whl"]\n', {EVERYTHING}),
    ],
)
def test_unknown_index_and_remote_wheel_build_nothing(
    file: str, text: str, expected: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / file).write_text(text, encoding="utf-8")
    asked = read([str(tmp_path / file)], None) if file == "requirements.txt" else Wanted((), {})
    assert local_names(asked) == expected
