"""How the files that list packages meet one another, and what is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Environment
from compatcheck.environment.snapshot import load_snapshot
from compatcheck.project.overlay import with_paths

INSTALLED = {
    "python": "3.11.7",
    "distributions": {"torch": "2.6.0", "peft": "0.14.0", "pydantic": "2.9.0"},
    "distributions_complete": True,
    "cuda": {"runtime": "12.4", "driver": "550.54.15"},
}
PYLOCK = """\
lock-version = "1.0"
created-by = "uv"
[[packages]]
name = "torch"
version = "{0}"
wheels = [{{ url = "https://example.org/torch-{0}-py3-none-any.whl", hashes = {{ sha256 = "ab" }} }}]
"""
CONDA = "dependencies:\n  - python=3.10\n  - pytorch=2.5.0=py3.10_cuda11.8_cudnn9.1.0_0\n  - cuda-nvcc=11.8\n"


def judged(paths: list[Path], pins: Any, installed: dict[str, Any] = INSTALLED) -> dict[str, Any]:
    return dict(
        with_paths(Environment(installed), [str(path) for path in paths], pins=pins).without("requirements").facts
    )


def lay(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_txt", ".txt").replace("_toml", ".toml").replace(
            "_yml", ".yml"
        )
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    return folder


def test_ranges_stand_where_what_is_installed_does_not_meet_them(tmp_path: Path) -> None:
    folder = lay(tmp_path, requirements_txt="torch>=2.4,<2.6\ntransformers>=4.40\npydantic>=2\n")
    found = judged([folder], "instead")
    assert found["distributions"] == {} and not found["distributions_complete"]
    assert found["distribution_ranges"] == {"torch": ">=2.4,<2.6", "transformers": ">=4.40", "pydantic": ">=2"}
    assert judged([folder], "over") == INSTALLED
    assert judged([folder], "ignored") == INSTALLED


def test_what_is_installed_stands_where_it_is_what_the_project_asks_for(tmp_path: Path) -> None:
    folder = lay(tmp_path, pyproject_toml='[project]\ndependencies = ["torch>=2.6", "peft==0.14.0"]\n')
    assert judged([folder], "instead")["distributions"] == INSTALLED["distributions"]


def test_a_lock_counts_over_wishes_and_requirements_over_an_image(tmp_path: Path) -> None:
    folder = lay(
        tmp_path,
        Dockerfile="FROM pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime\nRUN pip install peft==0.5.0 trl==0.7.0\n",
        requirements_txt="peft==0.11.1\ntorch>=2.0\naccelerate==0.30.0\n",
        pylock_toml=PYLOCK.format("2.5.0"),
    )
    assert judged([folder], "instead")["distributions"] == {
        "torch": "2.5.0",
        "peft": "0.11.1",
        "trl": "0.7.0",
        "accelerate": "0.30.0",
    }


def test_a_whole_environment_brings_its_python_and_cuda_only_where_it_stands_for_the_whole(tmp_path: Path) -> None:
    folder = lay(tmp_path, environment_yml=CONDA)
    instead = judged([folder], "instead")
    assert instead["python"] == "3.10"
    assert instead["cuda"] == {"runtime": "11.8", "cudnn": "9.1.0", "toolkit": "11.8", "driver": "550.54.15"}
    over = judged([folder], "over")
    assert over["python"] == "3.11.7"
    assert over["cuda"] == {"runtime": "11.8", "cudnn": "9.1.0", "driver": "550.54.15"}, "they come with another torch"
    assert judged([folder], "ignored") == INSTALLED


def test_an_image_of_nvidia_s_stands_for_the_whole_or_not_at_all(tmp_path: Path) -> None:
    lay(tmp_path, Dockerfile="FROM nvcr.io/nvidia/pytorch:23.10-py3\nRUN pip install torch==2.2.0\n")
    here = {**INSTALLED, "platform": {"system": "Linux", "machine": "x86_64", "libc": "glibc 2.39"}}
    instead = judged([tmp_path], "instead", here)
    assert instead["image"] == {"name": "nvcr.io/nvidia/pytorch", "release": "23.10"}
    assert "python" not in instead and instead["platform"] == {"system": "Linux", "machine": "x86_64"}
    over = judged([tmp_path], "over", here)
    assert "image" not in over and over["distributions"]["torch"] == "2.2.0"
    assert judged([tmp_path], "ignored", here) == here


def test_of_several_images_in_a_folder_none_counts_and_the_reason_names_them(tmp_path: Path) -> None:
    folder = lay(
        tmp_path,
        docker__Dockerfile="FROM pytorch/pytorch:2.5.0-cuda11.8-cudnn9-devel\n",
        docker__Dockerfile_cpu="FROM python:3.10\n",
    )
    environment = with_paths(Environment(INSTALLED), [str(folder)], pins="instead")
    assert environment.facts["distributions"] == INSTALLED["distributions"]
    assert environment.reasons["dockerfile"].startswith("there are 2 such files; pass the file that is in use: ")
    named = with_paths(Environment(INSTALLED), [str(folder / "docker" / "Dockerfile")], pins="instead")
    assert named.facts["distributions"] == {"torch": "2.5.0"}


def test_the_topmost_of_several_locks_counts(tmp_path: Path) -> None:
    folder = lay(tmp_path, pylock_toml=PYLOCK.format("2.5.0"), tools__pylock_toml=PYLOCK.format("1.13.0"))
    assert judged([folder], "instead")["distributions"] == {"torch": "2.5.0"}


def test_markers_are_judged_by_the_interpreter_that_is_judged(tmp_path: Path) -> None:
    text = "numpy==1.26.4; python_version < '3.11'\nnumpy==2.1.0; python_version >= '3.11'\n"
    folder = lay(tmp_path, requirements_txt=text)
    assert judged([folder], "over")["distributions"]["numpy"] == "2.1.0"
    assert judged([folder], "over", {**INSTALLED, "python": "3.10.4"})["distributions"]["numpy"] == "1.26.4"


@pytest.mark.parametrize("pins", ["instead", "over"])
def test_a_snapshot_of_ranges_reads_back_the_same(tmp_path: Path, pins: Any) -> None:
    import json

    folder = lay(tmp_path, requirements_txt="torch>=2.4,<2.6\ntransformers==4.48.0\n")
    environment = with_paths(Environment(INSTALLED), [str(folder)], pins=pins)
    assert load_snapshot(json.dumps(environment.dump()), "test") == environment


@pytest.mark.parametrize(
    ("requires", "python"),
    [
        (">=3.11,<3.12", "3.11"),
        ("==3.10.*", "3.10"),
        ("~=3.12.1", "3.12"),
        (">=3.10", None),
        (">=3.15", None),
        ("<3.9", None),
    ],
)
def test_a_project_that_admits_one_python_states_it(tmp_path: Path, requires: str, python: str | None) -> None:
    text = f'[project]\nname = "mine"\nrequires-python = "{requires}"\ndependencies = ["torch==2.5.0"]\n'
    folder = lay(tmp_path, pyproject_toml=text)
    environment = with_paths(Environment({"platform": {}}), [str(folder)], pins="instead")
    assert environment.facts.get("python") == python
    at = environment.locations.get("python")
    assert (at and at.line) == (3 if python else None)
    assert judged([folder], "over")["python"] == INSTALLED["python"]
