from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Target, Unknown
from compatcheck.installed import declared
from compatcheck.installed.collect import collect
from compatcheck.installed.target import find_target
from compatcheck.project.overlay import over
from compatcheck.project.reading import read_paths
from tests.installed.conftest import Install


def unmet(target: Target) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = declared.collect(target).facts["unmet_requirements"]
    return found


@pytest.mark.parametrize(
    ("requirement", "installed"),
    [
        ("torch>=2.6", "2.5.0"),
        ("torch==2.4.0", "2.5.0"),
        ("torch<2.5.0", "2.5.0"),
        ("torch~=2.4.0", "2.5.0"),
        ("absent", None),
        ("absent>=1; python_version >= '3.8'", None),
        ("absent; (python_version >= '3.8')", None),
    ],
)
def test_an_unmet_requirement(target: Target, install: Install, requirement: str, installed: str | None) -> None:
    install("torch-2.5.0")
    install("peft-0.11.1", requirement)
    stated = requirement.partition(";")[0]
    assert unmet(target) == [
        {"distribution": "peft", "version": "0.11.1", "requirement": stated, "installed": installed}
    ]


@pytest.mark.parametrize(
    "requirement",
    [
        "torch>=2.0",
        "Torch[opt]>=2.0,<3",
        "torch>=2.5.0rc1",
        "absent; python_version < '3'",
        "absent; extra == 'dev'",
        "torch (>=2.0)",
    ],
)
def test_a_met_requirement(target: Target, install: Install, requirement: str) -> None:
    install("torch-2.5.0")
    install("peft-0.11.1", requirement)
    assert unmet(target) == []


def test_the_targets_python_counts_not_ours(target: Target, install: Install) -> None:
    install("peft-0.11.1", "tomli; python_version < '3.9'")
    assert unmet(target) == []
    assert len(unmet(target._replace(version="3.8.10"))) == 1


def test_a_pre_release_of_python_is_below_its_release(target: Target, install: Install) -> None:
    install("peft-0.11.1", "tomli; python_full_version >= '3.13'")
    assert unmet(target._replace(version="3.13.0rc1")) == []
    assert len(unmet(target._replace(version="3.13.0"))) == 1


def test_an_eggs_requirements(site: Path, target: Target, install: Install) -> None:
    folder = install("old-1.0", suffix=".egg-info")
    (folder / "requires.txt").write_text(
        "six>=1\n\n[dev]\npytest\n\n[:python_version < '3']\nenum34\n\n[:python_version > '3']\nattrs\n"
    )
    assert [each["requirement"] for each in unmet(target)] == ["attrs", "six>=1"]


@pytest.mark.parametrize(
    "invalid",
    [
        "torch>=nonsense",
        "torch 2.6",
        "torch>=2,2.6",
        f"torch>={'9' * 5000}",
        f"torch=={'9' * 5000}.*",
        f"torch>={'rc' * 500}",
        f"torch>=3;{'(' * 5000}",
    ],
)
def test_an_invalid_requirement_is_a_problem(target: Target, install: Install, invalid: str) -> None:
    install("torch-2.5.0")
    install("odd-1.0", invalid, "torch>=2.6")
    facts = declared.collect(target)
    assert [each["requirement"] for each in facts.facts["unmet_requirements"]] == ["torch>=2.6"]
    (problem,) = facts.facts["distribution_problems"]
    assert problem["path"] == "odd-1.0.dist-info"
    assert problem["problem"].startswith(f"requirement {invalid[:40]!r}"[:-1])


def test_a_requirement_in_latin_1_does_no_harm(target: Target, install: Install) -> None:
    folder = install("odd-1.0")
    (folder / "METADATA").write_bytes(b"Name: odd\nVersion: 1.0\nRequires-Dist: f\xf6o\nRequires-Dist: bar\n")
    assert [each["requirement"] for each in unmet(target)] == ["bar"]


def test_a_dist_info_without_metadata_is_a_problem(site: Path, target: Target) -> None:
    (site / "torch-2.5.0.dist-info").mkdir()
    assert declared.collect(target).facts["distribution_problems"] == [
        {"path": "torch-2.5.0.dist-info", "problem": "has no metadata"}
    ]


def test_an_environment_in_order_never_imports_packaging_requirements(site: Path, install: Install) -> None:
    install("torch-2.5.0+cu124", "numpy>=1.17", "triton==3.1.0; platform_system == 'Windows'")
    install("numpy-1.26.4", "pytest; extra == 'test'")
    code = (
        "import sys; from compatcheck.installed import declared; from compatcheck.environment import Target;"
        f"print(declared.collect(Target('', '3.11.7', '', ({str(site)!r},), '')).facts);"
        "sys.exit('packaging.requirements' in sys.modules or 'packaging.specifiers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def from_pip_check(python: Path) -> set[tuple[str, str, str | None]]:
    """``(distribution, requirement's name, installed version or None)`` for each line of ``pip check``."""
    command = [sys.executable, "-m", "pip", "--python", str(python), "check", "--disable-pip-version-check"]
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    found: set[tuple[str, str, str | None]] = set()
    for line in lines:
        missing = re.match(r"(\S+) \S+ requires ([^,]+), which is not installed\.", line)
        wrong = re.match(r"(\S+) \S+ has requirement ([A-Za-z0-9._-]+).*, but you have \S+ (\S+)\.\Z", line)
        match = missing or wrong
        if match:
            found.add((match[1], match[2].lower(), wrong[3] if wrong else None))
    return found


def test_it_agrees_with_pip_check_on_a_broken_venv(tmp_path: Path, install: Install) -> None:
    pytest.importorskip("pip")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    target = find_target(str(tmp_path / "venv"), {})
    folder = Path(target.search_path[0])
    lay = {
        "torch-2.5.0+cu118": ["sympy==1.13.1", "triton==3.1.0; sys_platform == 'win32'", "jinja2"],
        "sympy-1.12": ["mpmath<1.4,>=1.1.0"],
        "mpmath-1.3.0": ["pytest>=4.6; extra == 'develop'"],
        "peft-0.11.1": ["torch>=1.13.0", "torch<2.5", "transformers", "accelerate>=0.21.0"],
        "accelerate-1.0.0rc1": ["torch>=1.10.0,<3", "numpy<3.0.0,>=1.17"],
        "numpy-2.0.0.post1": [],
        "vllm-0.6.3": ["accelerate>=1.0.0", "numpy<2.0.0", "numpy>2.0.0", "numpy!=2.0.0", "torch==2.5.0"],
        "odd-1.0": [
            "torch~=2.4",
            "torch==2.4.*",
            "torch (<2.6)",
            "accelerate<=1.0.0",
            "accelerate<2.0,>=0.9",
            "tomli; python_version >= '3'",
        ],
        "pinned-1.0": ["torch===2.5.0", "mpmath @ https://example.org/mpmath.zip ; os_name == 'posix'"],
    }
    for stem, requires in lay.items():
        install(stem, *requires, into=folder)
    ours = {
        (each["distribution"], re.split(r"[^A-Za-z0-9._-]", each["requirement"])[0], each["installed"])
        for each in unmet(target)
    }
    assert len(ours) >= 8
    assert ours == from_pip_check(Path(target.executable))


def test_what_a_distribution_holds_in_a_window_moves_along_with_it(target: Target, install: Install) -> None:
    bounded = ("tokenizers<0.24,>=0.22", "triton==3.2.0", "huggingface-hub~=1.3", "absent<1; python_version < '3'")
    install("transformers-5.20.0", *bounded, "numpy>=1.17", "torch>=2.6; extra == 'torch'")
    install("peft-0.19.0", "psutil<8")
    install("tokenizers-0.23.0")
    assert declared.movable(target, {"transformers"}) == {"tokenizers", "triton", "huggingface-hub"}


def test_what_is_there_for_compatcheck_alone_is_nobodys_choice(target: Target, install: Install) -> None:
    install("compatcheck-0.1.0", "huggingface_hub>=0.30", "rich>=13", "uv")
    install("huggingface_hub-1.4.0", "filelock", "pyyaml>=5.1")
    install("rich-14.0.0")
    install("filelock-3.20.0")
    install("pyyaml-6.0.2")
    install("datasets-4.0.0", "filelock")
    install("mine-1.0", "rich")
    assert declared.movable(target, {"transformers"}) == {"compatcheck", "huggingface-hub", "pyyaml"}


def test_pins_say_nothing_of_what_an_installer_moves_for_them(target: Target, install: Install, tmp_path: Path) -> None:
    install("transformers-5.20.0", "tokenizers<0.24,>=0.22")
    install("tokenizers-0.23.0")
    install("numpy-2.1.0")
    asked = tmp_path / "requirements.txt"
    for pin, known in (("transformers==4.48.0", None), ("transformers==5.20.0", "0.23.0"), ("numpy==1.26.4", "0.23.0")):
        asked.write_text(f"{pin}\n", encoding="utf-8")
        reading = read_paths([str(asked)])
        environment = over(collect(target), reading, "over", lambda names: declared.movable(target, names))
        assert environment.facts["distributions"].get("tokenizers") == known
        seen = environment.get("distributions.tokenizers")
        assert isinstance(seen, Unknown) if known is None else seen == known
        assert environment.get("distributions.absent") is None


def requested(target: Target) -> list[str]:
    found: list[str] = declared.collect(target).facts["distributions_requested"]
    return found


def test_requested_is_what_no_other_distribution_requires(target: Target, install: Install) -> None:
    install("torch-2.5.0")
    install("accelerate-1.0.0", "torch>=2", "peft; python_version < '3'")
    install("peft-0.11.1", "accelerate", "trl; extra == 'test'")
    install("trl-0.9.0", "trl[peft]")
    assert requested(target) == ["peft", "trl"]


def test_requested_holds_what_an_installer_marked(target: Target, install: Install) -> None:
    folders = [install(name) for name in ("torch-2.5.0", "numpy-2.0.0", "sympy-1.13.1")]
    folders.append(install("peft-0.11.1", "torch", "numpy", "sympy"))
    (folders[0] / "REQUESTED").touch()
    assert requested(target) == ["peft", "torch"]
    for folder in folders:
        (folder / "REQUESTED").touch()
    assert requested(target) == ["peft"]
