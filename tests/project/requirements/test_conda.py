"""Environments of conda and pixi."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from compatcheck.environment import Location
from compatcheck.errors import InputError
from compatcheck.project.requirements.formats import conda_environment, conda_lock, pixi_lock, pixi_toml

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture(autouse=True)
def on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")


def test_an_environment_file_gives_python_cuda_and_what_conda_and_pip_install() -> None:
    path = str(SAMPLES / "environment.yml")
    facts = conda_environment.read(path)
    assert facts.without("requirements").facts == {
        "python": "3.10",
        "cuda": {"runtime": "11.8", "cudnn": "9.1.0", "toolkit": "12.1"},
        "distributions": {
            "torch": "2.5.0",
            "accelerate": "1.2.1",
            "deepspeed": "0.14.4",
            "tomli": "2.0",
            "trl": "0.9.6",
        },
        "distributions_complete": False,
        "distribution_ranges": {
            "numpy": "==1.26.*",
            "scipy": ">=1.10,<2",
            "transformers": ">=4.40",
            "sentencepiece": "",
            "peft": ">=0.10",
        },
    }
    assert facts.locations["distributions.torch"] == Location(path, 8)
    assert facts.locations["distributions.deepspeed"] == Location(path, 20)
    assert facts.locations["distributions.trl"] == Location(str(SAMPLES / "more.txt"), 1)
    assert facts.locations["cuda.toolkit"] == Location(path, 10)


def test_conda_lock_gives_the_main_packages_of_this_platform() -> None:
    path = str(SAMPLES / "conda-lock.yml")
    facts = conda_lock.read(path)
    assert facts.facts == {
        "python": "3.10.15",
        "cuda": {"runtime": "11.8", "cudnn": "9.1.0"},
        "distributions": {"torch": "2.10", "deepspeed": "0.14.4"},
        "distributions_complete": False,
    }
    assert facts.locations["distributions.torch"] == Location(path, 50)


def test_pixi_gives_the_default_environment_of_this_platform() -> None:
    path = str(SAMPLES / "pixi.lock")
    facts = pixi_lock.read(path)
    assert facts.facts == {
        "python": "3.11.11",
        "cuda": {"runtime": "12.6"},
        "distributions": {"torch": "2.5.1", "peft": "0.14.0"},
        "distributions_complete": False,
    }
    assert facts.locations["distributions.peft"] == Location(path, 13)


def test_pixi_version_5_describes_its_packages_by_kind(tmp_path: Path) -> None:
    text = (SAMPLES / "pixi.lock").read_text(encoding="utf-8").replace("version: 6", "version: 5")
    head, packages = text.split("\npackages:\n")
    packages = packages.replace("- conda: ", "- kind: conda\n  url: ").replace("- pypi: ", "- kind: pypi\n  url: ")
    (tmp_path / "pixi.lock").write_text(f"{head}\npackages:\n{packages}")
    assert pixi_lock.read(str(tmp_path / "pixi.lock")).facts == pixi_lock.read(str(SAMPLES / "pixi.lock")).facts


def test_a_pixi_manifest_gives_what_it_asks_of_conda_and_of_pypi() -> None:
    path = str(SAMPLES / "pixi.toml")
    facts = pixi_toml.read(path)
    assert facts.facts == {
        "python": "3.11",
        "cuda": {"runtime": "12.6"},
        "distributions": {"transformers": "4.48.0", "flash-attn": "2.7.4.post1"},
        "distributions_complete": False,
        "distribution_ranges": {"torch": ">=2.4,<2.6", "peft": ">=0.12", "trl": "", "deepspeed": ""},
    }
    assert facts.locations["distributions.torch"] == Location(path, 8)
    assert facts.reasons["distributions.deepspeed"] == "pixi.toml installs the package from its git"


@pytest.mark.parametrize(
    ("spec", "known", "asked"),
    [
        ("pytorch", {}, {"torch": ""}),
        ("pytorch=2.5", {}, {"torch": "==2.5.*"}),
        ("pytorch==2.5", {"torch": "2.5"}, {}),
        ("conda-forge::pytorch-gpu 2.5.1", {"torch": "2.5.1"}, {}),
        ("PyTorch>=2.4, <2.6", {}, {"torch": ">=2.4,<2.6"}),
        ("huggingface_hub=0.24.*", {}, {"huggingface-hub": "==0.24.*"}),
        ("numpy~=1.26", {}, {"numpy": "~=1.26"}),
        ("numpy!=2.0.*", {}, {"numpy": "!=2.0.*"}),
        ("numpy=1.26.4=py310hb13e2d6_0", {"numpy": "1.26.4"}, {}),
        ("numpy 1.26.4 py310hb13e2d6_0", {"numpy": "1.26.4"}, {}),
    ],
)
def test_match_specifications(tmp_path: Path, spec: str, known: dict[str, str], asked: dict[str, str]) -> None:
    path = tmp_path / "environment.yml"
    path.write_text(f"dependencies:\n  - {spec}\n")
    facts = conda_environment.read(str(path)).facts
    assert facts["distributions"] == known
    assert facts.get("distribution_ranges", {}) == asked


@pytest.mark.parametrize(
    ("lines", "cuda"),
    [
        (["pytorch-cuda=12.1"], {"runtime": "12.1"}),
        (["pytorch=1.13.1", "cudatoolkit=11.7.0"], {"runtime": "11.7"}),
        (["cudatoolkit=11.8.0", "pip:\n    - torch==2.5.0"], None),
        (["cudatoolkit=11.8.0"], None),
        (["pytorch-cuda=11.8", "pip:\n    - torch==2.5.0"], None),
        (["cpuonly"], {"runtime": None}),
        (["pytorch=2.1.0=py3.10_cpu_0"], {"runtime": None}),
        (["pytorch=2.5.1=gpu_cuda124_py312h73f5b00_302"], {"runtime": "12.4"}),
        (["cuda-version>=12"], None),
        (["pytorch", "nccl=2.21.5.1"], {"nccl": "2.21.5.1"}),
        (["pytorch"], None),
    ],
)
def test_cuda_is_told_by_packages_and_builds(
    tmp_path: Path, lines: list[str], cuda: dict[str, str | None] | None
) -> None:
    path = tmp_path / "environment.yml"
    path.write_text("dependencies:\n" + "".join(f"  - {line}\n" for line in lines))
    assert conda_environment.read(str(path)).facts.get("cuda") == cuda


def test_recognition_is_by_name_and_content(tmp_path: Path) -> None:
    (tmp_path / "environment.yml").write_text("dependencies:\n  - python\n")
    (tmp_path / "env_gpu.yaml").write_text("dependencies:\n  - python\n")
    (tmp_path / "environment.yaml").write_text("services:\n  web: 1\n")
    (tmp_path / "train.yml").write_text("dependencies:\n  - python\n")
    found = [path.name for path in sorted(tmp_path.iterdir()) if conda_environment.recognises(str(path))]
    assert found == ["env_gpu.yaml", "environment.yml"]
    assert conda_lock.recognises("a/conda-lock.yml") and not conda_environment.recognises("a/conda-lock.yml")


UNITS = {"environment.yml": conda_environment, "conda-lock.yml": conda_lock, "pixi.lock": pixi_lock}
BOMB = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(24)
)
HOSTILE = {
    "aliases that explode": BOMB,
    "deep brackets": "dependencies: " + "[" * 100_000,
    "deep lists": "dependencies:\n" + "".join(f"{'  ' * n}-\n" for n in range(300)),
    "a list": "- a\n- b\n",
    "an empty file": "",
    "not YAML": "dependencies: [a\nb: {\n",
    "wrong types": "metadata: 1\npackage: {}\nenvironments: [1]\ndependencies: x\n",
    "a tag": "dependencies: !!python/object/apply:os.system ['true']\nmetadata: {}\npackage: [1]\n",
}


@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_yaml_is_told_in_one_line(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    try:
        found = UNITS[name].read(str(path))
    except InputError as error:
        assert str(path) in str(error) and "\n" not in str(error)
    else:
        assert found.facts["distributions"] == {}


@pytest.mark.parametrize("name", ["conda-lock.yml", "pixi.lock"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 0.97])
def test_a_lock_cut_short_adds_nothing_and_is_mostly_told(tmp_path: Path, name: str, share: float) -> None:
    raw = (SAMPLES / name).read_bytes()
    path = tmp_path / name
    path.write_bytes(raw[: int(len(raw) * share)])
    try:
        found = UNITS[name].read(str(path)).facts["distributions"]
    except InputError as error:
        assert str(path) in str(error) and "\n" not in str(error)
    else:
        assert set(found.items()) <= set(UNITS[name].read(str(SAMPLES / name)).facts["distributions"].items())
