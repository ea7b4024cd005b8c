"""What a project file asks for, in the words of each tool."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from compatcheck.environment import Environment, Location
from compatcheck.errors import InputError
from compatcheck.project.requirements._constraint import specifier_of
from compatcheck.project.requirements.formats import pyproject

PEP_621 = """\
[project]
name = "finetune"
version = "0.1.0"
requires-python = ">=3.10,<3.13"
dependencies = [
    "torch==2.5.0",
    "transformers>=4.40,<4.50",
    "finetune[quant]",
    "tomli>=2; python_version < '3.9'",
    "trl @ git+https://github.com/huggingface/trl",
]

[project.optional-dependencies]
quant = ["bitsandbytes==0.43.1"]
serve = ["vllm==0.6.0"]

[dependency-groups]
dev = ["pytest>=8", {include-group = "lint"}]
lint = ["ruff==0.8.0"]
docs = ["sphinx==8.0"]

[tool.uv]
constraint-dependencies = ["peft==0.11.1"]
override-dependencies = ["transformers==4.48.0"]

[tool.uv.sources]
torch = { index = "pytorch-cu118" }

[[tool.uv.index]]
name = "pytorch-cu118"
url = "https://download.pytorch.org/whl/cu118"
explicit = true
"""

POETRY = """\
[tool.poetry]
name = "finetune"

[tool.poetry.dependencies]
python = "^3.10"
torch = {version = "^2.5", source = "pytorch"}
transformers = ">=4.40,<4.50"
peft = "~0.11.1"
deepspeed = {version = "0.14.4", optional = true}
accelerate = "1.2.1"
flash-attn = {url = "https://example.org/flash_attn-2.7.4.post1-cp310-cp310-linux_x86_64.whl"}
datasets = {git = "https://github.com/huggingface/datasets"}
numpy = [{version = "^1.26", python = "<3.9"}, {version = "^2.0", python = ">=3.9"}]
colorama = {version = "*", markers = "sys_platform == 'nowhere'"}
scipy = "^1.10 || ^2.0"
"""


def read(tmp_path: Path, text: str, python: str | None = None) -> Environment:
    path = tmp_path / "pyproject.toml"
    path.write_text(text, encoding="utf-8")
    return pyproject.read(str(path), python)


def test_dependencies_own_extras_default_groups_and_what_uv_adds(tmp_path: Path) -> None:
    facts = read(tmp_path, PEP_621)
    assert facts.without("requirements").facts == {
        "distributions": {
            "torch": "2.5.0+cu118",
            "transformers": "4.48.0",
            "bitsandbytes": "0.43.1",
            "ruff": "0.8.0",
        },
        "distributions_complete": False,
        "distribution_ranges": {"trl": "", "pytest": ">=8"},
    }
    path = str(tmp_path / "pyproject.toml")
    assert facts.locations["distributions.torch"] == Location(path, 6)
    assert facts.locations["distributions.bitsandbytes"] == Location(path, 14)
    assert facts.locations["distributions.transformers"] == Location(path, 24)


def test_poetry_in_its_own_words(tmp_path: Path) -> None:
    facts = read(tmp_path, POETRY)
    assert facts.without("requirements").facts == {
        "distributions": {"accelerate": "1.2.1", "flash-attn": "2.7.4.post1"},
        "distributions_complete": False,
        "distribution_ranges": {
            "torch": ">=2.5,<3",
            "transformers": ">=4.40,<4.50",
            "peft": ">=0.11.1,<0.12",
            "datasets": "",
            "numpy": ">=2.0,<3",
            "scipy": "",
        },
    }
    assert facts.locations["distributions.peft"] == Location(str(tmp_path / "pyproject.toml"), 8)
    assert facts.reasons["distributions.datasets"] == "pyproject.toml installs the package from its git"


@pytest.mark.parametrize(
    ("constraint", "specifier"),
    [
        ("^1.2.3", ">=1.2.3,<2"),
        ("^1.2", ">=1.2,<2"),
        ("^1", ">=1,<2"),
        ("^0.2.3", ">=0.2.3,<0.3"),
        ("^0.0.3", ">=0.0.3,<0.0.4"),
        ("^0.0", ">=0.0,<0.1"),
        ("^0", ">=0,<1"),
        ("~1.2.3", ">=1.2.3,<1.3"),
        ("~1.2", ">=1.2,<1.3"),
        ("~1", ">=1,<2"),
        ("1.2.*", "==1.2.*"),
        ("*", ""),
        (">=1.2, !=1.3", ">=1.2,!=1.3"),
        (">=1.2 <2", ">=1.2,<2"),
        ("2.5.0+cu118", "==2.5.0+cu118"),
        ("~=1.2.3", "~=1.2.3"),
        ("^1.0 || ^2.0", None),
        ("latest", None),
    ],
)
def test_poetry_constraints(constraint: str, specifier: str | None) -> None:
    assert specifier_of(constraint) == specifier


numbers = st.lists(st.integers(0, 9), min_size=1, max_size=3).map(lambda parts: ".".join(map(str, parts)))


@given(st.sampled_from(["^", "~", ">=", "<", "==", "!=", ""]), numbers)
def test_every_constraint_becomes_a_specifier_that_its_own_version_fits(operator: str, version: str) -> None:
    specifier = specifier_of(operator + version)
    assert specifier is not None
    assert SpecifierSet(specifier).contains(version) == (operator not in ("<", "!="))


def test_a_pixi_project_is_read_with_its_own_tables(tmp_path: Path) -> None:
    text = (
        '[project]\nname = "x"\ndependencies = ["peft==0.11.1"]\n[tool.pixi.workspace]\nchannels = []\n'
        '[tool.pixi.dependencies]\npytorch = "2.5.0.*"\n'
    )
    known = read(tmp_path, text).facts
    assert known["distributions"] == {"peft": "0.11.1"}
    assert known["distribution_ranges"] == {"torch": "==2.5.0.*"}


@pytest.mark.parametrize("text", ["", "[build-system]\nrequires = []\n", "[tool.ruff]\nline-length = 120\n"])
def test_a_file_without_dependencies_says_nothing_and_is_not_recognised(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text).facts == {"distributions": {}, "distributions_complete": False}
    assert not pyproject.recognises(str(tmp_path / "pyproject.toml"))


@pytest.mark.parametrize("text", [PEP_621, POETRY, "[dependency-groups]\ndev = []\n"])
def test_a_file_with_dependencies_is_recognised(tmp_path: Path, text: str) -> None:
    read(tmp_path, text)
    assert pyproject.recognises(str(tmp_path / "pyproject.toml"))


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ('[project]\ndependencies = ["torch=2.5"]\n', "line 2"),
        ('[project]\ndependencies = ["torch==2.5"\n', "line 2.*truncated"),
        ("[project\n", "line 1"),
        ("a = " + "[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, seen: str) -> None:
    with pytest.raises(InputError, match=seen) as caught:
        read(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_values_of_a_wrong_type_never_break_the_reader(tmp_path: Path) -> None:
    text = (
        "[project]\nname = 1\nrequires-python = []\ndependencies = [1]\noptional-dependencies = 3\n"
        "[dependency-groups]\ndev = 1\n[tool.poetry]\ndependencies = {a = 1, b = [1, {}], c = {markers = 3}}\n"
        "[tool.uv]\nindex = 3\nsources = []\ndefault-groups = {}\noverride-dependencies = 1\n[tool.pixi]\ntarget = 1\n"
    )
    assert read(tmp_path, text).facts["distributions"] == {}
