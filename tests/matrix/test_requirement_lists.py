"""What lists of requirements give through the command: refused by every installer, open, or nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from compatcheck.cli import cli

EXCLUDED = "CC-2026-3460"


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """The findings of a folder with these files, by id, with what is assumed."""
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.chdir(tmp_path)

    def run(files: dict[str, str], *assumed: str) -> dict[str, Any]:
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        options = [word for each in assumed for word in ("--assume", each)]
        done = CliRunner().invoke(cli, ["check", ".", "--no-probe", "--format", "json", *options])
        assert done.exit_code in (0, 1), done.output
        return {each["id"]: each for each in json.loads(done.stdout)["findings"]}

    return run


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("vllm==0.6.3\ntorch==2.1.0\n", "affected"),
        ("torch==2.1.0+cu121\nvllm==0.6.3\n", "affected"),
        ("vllm==0.6.3\ntorch>=2.5\n", "affected"),
        ("vllm==0.6.3\ntorch==2.5.*\n", "affected"),
        ("trl==0.20.0\ntransformers==4.52.4\n", "affected"),
        ("trl>=0.20,<0.22\ntransformers==4.40.0\n", "affected"),
        ("trl>=1.0\ntransformers==4.40.0\n", "possible"),
        ("vllm==0.6.3\ntorch==2.4.0\n", None),
        ("vllm==0.6.3\ntorch==2.4.0+cu121\n", None),
        ("vllm==0.6.3\ntorch>=2.1\n", None),
        ("vllm==0.6.3\ntorch==2.4.0a0+07cecf4168.nv24.05\n", None),
        ("vllm==0.6.3\ntorch==2.1.0; sys_platform == 'plan9'\n", None),
        ("vllm>=0.6\ntorch>=2.1,<2.2\n", None),
        ("trl>=0.11\ntransformers==4.40.0\n", None),
        ("# pip install --no-deps -r requirements.txt\nvllm==0.6.3\ntorch==2.1.0\n", None),
        ("vllm @ git+https://github.com/vllm-project/vllm\ntorch==2.1.0\n", None),
    ],
)
def test_pairs_of_one_list(check: Callable[..., dict[str, Any]], text: str, status: str | None) -> None:
    found = check({"requirements.txt": text}).get(EXCLUDED)
    assert (found and found["status"]) == status


def test_both_lines_and_both_ways_out_are_named(check: Callable[..., dict[str, Any]]) -> None:
    found = check({"requirements.txt": "peft\n\ntrl==0.20.0\ntransformers==4.52.4\n"})[EXCLUDED]
    assert found["summary"] == (
        "trl 0.20.0 requires transformers>=4.53.2; requirements.txt:4 asks for transformers 4.52.4"
    )
    assert found["location"] == {"file": "requirements.txt", "line": 4}
    assert [each["pins"] for each in found["remedies"][:2]] == [
        {"transformers": ">=4.53.2"},
        {"trl": ">=0.19.0,<=0.19.1"},
    ]


def test_one_cause_is_one_finding(check: Callable[..., dict[str, Any]]) -> None:
    found = check({"requirements.txt": "vllm==0.6.3\ntorch==2.1.0\n"})
    assert EXCLUDED in found and not {"CC-2026-0700", "CC-2026-0702"} & found.keys()


def test_a_constraint_excludes_and_requires_nothing(check: Callable[..., dict[str, Any]]) -> None:
    limited = {"requirements.txt": "-c limits.txt\nvllm==0.6.3\n", "limits.txt": "torch==2.1.0\n"}
    assert check(limited)[EXCLUDED]["location"]["file"].endswith("limits.txt")
    assert EXCLUDED not in check({"requirements.txt": "-c limits.txt\ntorch==2.1.0\n", "limits.txt": "vllm==0.6.3\n"})


@pytest.mark.parametrize(
    ("steps", "refused"),
    [
        ("RUN pip install vllm==0.6.3 torch==2.1.0\n", True),
        ("RUN pip install vllm==0.6.3\nRUN pip install torch==2.1.0\n", False),
        ("RUN pip install vllm==0.6.3 && pip install torch==2.1.0\n", False),
        ("RUN pip install --no-deps vllm==0.6.3 torch==2.1.0\n", False),
        ("COPY requirements.txt .\nRUN pip install -r requirements.txt\n", True),
        ("COPY requirements.txt .\nRUN pip install --no-deps -r requirements.txt\n", False),
    ],
)
def test_only_one_command_is_refused(check: Callable[..., dict[str, Any]], steps: str, refused: bool) -> None:
    files = {"Dockerfile": f"FROM ubuntu:22.04\n{steps}"}
    if "requirements.txt" in steps:
        files["requirements.txt"] = "vllm==0.6.3\ntorch==2.1.0\n"
    assert (EXCLUDED in check(files)) == refused


@pytest.mark.parametrize(
    ("settings", "refused"),
    [("", True), ('[tool.uv]\noverride-dependencies = ["torch==2.1.0"]\n', False)],
)
def test_overrides_lift_what_packages_require(
    check: Callable[..., dict[str, Any]], settings: str, refused: bool
) -> None:
    project = '[project]\nname = "p"\nversion = "1"\ndependencies = ["vllm==0.6.3", "torch==2.1.0"]\n'
    assert (EXCLUDED in check({"pyproject.toml": project + settings})) == refused
