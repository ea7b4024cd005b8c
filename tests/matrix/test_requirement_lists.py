"""What lists of requirements give through the command: refused by every installer, open, or nothing."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from uv import find_uv_bin

from compatcheck.cli import cli

EXCLUDED = "CC-2026-3460"
MISSING = "CC-2026-3461"
WITHDRAWN = "CC-2026-3462"
NO_FILES = "CC-2026-3463"
MISSPELLED = "CC-2026-3464"
UNSOLVABLE = "CC-2026-3465"
NO_INDEX = {"UV_OFFLINE": "1", "UV_NO_INDEX": "1"}


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
        ("transformers>=4.47,<4.49\ntokenizers==0.19.1\n", "affected"),
        ("transformers>=4.40,<4.49\ntokenizers==0.19.1\n", None),
        ("bitsandbytes==0.49.2\ntorch==1.13.1\n", "affected"),
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
        "trl 0.20.0 requires transformers>=4.53.2; requirements.txt:4 requires transformers 4.52.4"
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


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("torch==9.9.9\n", "affected", "torch 9.9.9 does not exist; the nearest releases are"),
        ("transformers==4.46.9\n", "affected", "the nearest releases are 4.46.3 and 4.47.0"),
        ("transformers==5.999.0\n", "possible", "newer than every release up to"),
        ("torch==2.5.1\n", None, ""),
        ("torch==2.5.1+cu118\n", None, ""),
        ("torch==2.6.0.dev20241112\n", None, ""),
        ("torch==2.4.0a0+07cecf4168.nv24.05\n", None, ""),
        ("quite-another-name==9.9.9\n", None, ""),
        ("--extra-index-url https://packages.example/simple\ntorch==9.9.9\n", None, ""),
        ("torch @ https://packages.example/torch-9.9.9-py3-none-any.whl\n", None, ""),
        ("transformers==4.46.0\n", None, ""),
    ],
)
def test_a_version_that_does_not_exist(
    check: Callable[..., dict[str, Any]], text: str, status: str | None, said: str
) -> None:
    found = check({"requirements.txt": text}).get(MISSING)
    assert (found and found["status"]) == status
    assert found is None or said in found["summary"]


def test_a_withdrawn_release_is_possible_with_its_reason(check: Callable[..., dict[str, Any]]) -> None:
    found = check({"requirements.txt": "transformers==4.46.0\n"})[WITHDRAWN]
    assert found["status"] == "possible" and "does not work with 3.8" in found["summary"]
    assert found["remedies"][0]["pins"] == {"transformers": "==4.46.1"}
    assert WITHDRAWN not in check({"requirements.txt": "transformers==4.46.1\n"})
    assert check({"requirements.txt": "transformers>4.45.2,<4.46.1\n"})[WITHDRAWN]["status"] == "affected"


@pytest.mark.parametrize(
    ("text", "assumed", "refused"),
    [
        ("torch==1.13.1\n", ["python=3.12"], True),
        ("torch==1.13.1\n", ["python=3.11"], False),
        ("torch==1.13.1\n", [], False),
        ("transformers==4.50.0\n", ["python=3.8.10"], True),
        ("transformers==4.46.3\n", ["python=3.8.10"], False),
        ("torch>=2.6\n", ["python=3.8"], True),
        ("torch>=2.4\n", ["python=3.8"], False),
        ("torch==2.4.0\n", ["python=3.10", "platform.system=Darwin", "platform.machine=x86_64"], True),
        ("torch==2.2.2\n", ["python=3.10", "platform.system=Darwin", "platform.machine=x86_64"], False),
        ("torch==2.4.0\n", ["python=3.10", "platform.system=Darwin", "platform.machine=arm64"], False),
    ],
)
def test_files_for_the_stated_python_and_platform(
    check: Callable[..., dict[str, Any]], text: str, assumed: list[str], refused: bool
) -> None:
    assert (NO_FILES in check({"requirements.txt": text}, *assumed)) == refused


@pytest.mark.parametrize(
    ("name", "meant"),
    [("transfomers", "transformers"), ("acclerate", "accelerate"), ("dataset", None), ("my-own-package", None)],
)
def test_a_misspelled_name_is_possible(check: Callable[..., dict[str, Any]], name: str, meant: str | None) -> None:
    found = check({"requirements.txt": f"{name}\n"}).get(MISSPELLED)
    assert (found is None) == (meant is None)
    assert found is None or (found["status"], found["missing"]) == ("possible", [])
    assert found is None or found["summary"].endswith(f"did you mean {meant}? (--resolve checks this with uv)")


def test_a_python_bounds_what_is_not_pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "requirements.txt").write_text("torchaudio\nsentence-transformers>=2.2\n")
    command = ["check", str(tmp_path), "--no-probe", "--format", "json", "--assume", "python=3.8"]
    inferred = json.loads(CliRunner().invoke(cli, command).stdout)["inferred"]
    assert inferred["distribution_ranges.torchaudio"]["value"] == "<=2.4.1"
    assert inferred["distribution_ranges.sentence-transformers"]["value"].startswith(">=2.2,<=3.")


def test_a_resolver_gives_its_own_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in NO_INDEX.items():
        monkeypatch.setenv(name, value)
    Path("requirements.txt").write_text("quite-another-name==1.0\n")
    done = CliRunner().invoke(cli, ["check", "requirements.txt", "--no-probe", "--resolve", "--format", "json"])
    (found,) = [each for each in json.loads(done.stdout)["findings"] if each["id"] == UNSOLVABLE]
    assert done.exit_code == 1 and found["status"] == "affected"
    assert "quite-another-name was not found" in found["summary"]


def test_resolving_needs_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}}')
    done = CliRunner().invoke(cli, ["check", str(tmp_path / "ds.json"), "--no-probe", "--resolve"])
    assert "no file there lists requirements" in str(done.exception)


@pytest.mark.network
@pytest.mark.parametrize(
    ("text", "solvable"),
    [
        ("trl==0.20.0\ntransformers==4.52.4\n", False),
        ("trl==0.20.0\ntransformers==4.53.3\n", True),
        ("accelerate==0.32.0\nnumpy==2.0.2\n", False),
    ],
)
def test_uv_agrees_about_pairs(check: Callable[..., dict[str, Any]], tmp_path: Path, text: str, solvable: bool) -> None:
    assert (EXCLUDED not in check({"requirements.txt": text})) == solvable
    command = [find_uv_bin(), "pip", "compile", "-q", "--python-version", "3.11", str(tmp_path / "requirements.txt")]
    assert (subprocess.run(command, capture_output=True, check=False).returncode == 0) == solvable
