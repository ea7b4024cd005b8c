"""What a Dockerfile says of the image it builds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Environment, Location
from compatcheck.errors import InputError
from compatcheck.project.requirements._installs import installs_in
from compatcheck.project.requirements.formats import dockerfile

WHOLE = """\
# syntax=docker/dockerfile:1
ARG TORCH=2.5.0
ARG CUDA=11.8
FROM --platform=linux/amd64 pytorch/pytorch:${TORCH}-cuda${CUDA}-cudnn9-devel AS base
ENV TORCH_CUDNN_SDPA_DEPRIORITIZED=1 HF_TOKEN=abc
ARG TRANSFORMERS="4.48.0"

FROM alpine AS other
RUN pip install torch==1.0

FROM base
COPY requirements/train.txt /tmp/requirements.txt
RUN --mount=type=cache,target=/var/cache/pip apt-get update && apt-get install -y git \\
    # a comment
    && pip install --no-cache-dir transformers==${TRANSFORMERS} "deepspeed>=0.14,<0.16" 2>&1 | tee log \\
    && python -m pip install -r /tmp/requirements.txt
RUN uv pip install --system 'flash-attn==2.7.4.post1' --no-build-isolation || true
RUN <<EOF
pip install "trl>=0.9"
EOF
"""


def read(tmp_path: Path, text: str) -> Environment:
    path = tmp_path / "Dockerfile"
    path.write_text(text, encoding="utf-8")
    return dockerfile.read(str(path))


def known(tmp_path: Path, text: str) -> dict[str, Any]:
    return dict(read(tmp_path, text).facts)


def test_the_last_stage_is_followed_to_its_image(tmp_path: Path) -> None:
    (tmp_path / "requirements").mkdir()
    listed = tmp_path / "requirements" / "train.txt"
    listed.write_text("peft==0.11.1\naccelerate>=0.30\n")
    facts = read(tmp_path, WHOLE)
    assert facts.without("requirements").facts == {
        "distributions": {"torch": "2.5.0", "transformers": "4.48.0", "peft": "0.11.1", "flash-attn": "2.7.4.post1"},
        "distributions_complete": False,
        "distribution_ranges": {"deepspeed": ">=0.14,<0.16", "accelerate": ">=0.30", "trl": ">=0.9"},
        "cuda": {"runtime": "11.8", "toolkit": "11.8"},
        "environ": {"TORCH_CUDNN_SDPA_DEPRIORITIZED": "1"},
        "platform": {"system": "Linux"},
    }
    path = str(tmp_path / "Dockerfile")
    assert facts.locations["distributions.torch"] == Location(path, 4)
    assert facts.locations["distributions.transformers"] == Location(path, 13)
    assert facts.locations["distributions.peft"] == Location(str(listed), 1)
    assert facts.locations["environ.TORCH_CUDNN_SDPA_DEPRIORITIZED"] == Location(path, 5)


def test_the_requirements_of_the_build_context_above_are_found(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("peft==0.11.1\n")
    (tmp_path / "docker").mkdir()
    text = "FROM python:3.10-slim\nWORKDIR /app\nCOPY requirements.txt .\nRUN pip3 install -r requirements.txt\n"
    facts = read(tmp_path / "docker", text)
    assert facts.facts["distributions"] == {"peft": "0.11.1"}
    assert facts.facts["python"] == "3.10"


def test_a_requirements_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    facts = read(tmp_path, "FROM python:3.10\nRUN pip install -r /opt/gone.txt peft==0.11.1\n")
    assert facts.facts["distributions"] == {"peft": "0.11.1"}
    assert facts.reasons["distributions"] == "/opt/gone.txt, which line 2 installs, is not next to the file"


def test_an_image_that_says_nothing_leaves_torch_unknown_with_the_reason(tmp_path: Path) -> None:
    facts = read(tmp_path, "FROM nvcr.io/nvidia/pytorch:24.08-py3-igpu\nRUN pip install peft==0.11.1\n")
    assert facts.facts["distributions"] == {"peft": "0.11.1"}
    assert "nvcr.io/nvidia/pytorch:24.08-py3-igpu" in facts.reasons["distributions.torch"]


@pytest.mark.parametrize(
    ("lines", "open_still"),
    [
        (["RUN pip install peft==0.11.1"], False),
        (["RUN pip install torch torchvision"], False),
        (["RUN pip install --no-deps vllm==0.4.0"], False),
        (["RUN pip install -U torch"], True),
        (["RUN pip install 'torch>=2.4'"], True),
        (["RUN pip install vllm==0.4.0"], True),
        (["RUN pip install -r gone.txt"], True),
        (["ARG TORCH", "RUN pip install torch==${TORCH}"], True),
    ],
)
def test_what_an_image_of_nvidia_s_holds_is_left_to_the_matrix_until_something_replaces_it(
    tmp_path: Path, lines: list[str], open_still: bool
) -> None:
    facts = read(tmp_path, "\n".join(["FROM nvcr.io/nvidia/pytorch:23.10-py3", *lines, ""]))
    assert facts.facts["image"] == {"name": "nvcr.io/nvidia/pytorch", "release": "23.10"}
    assert facts.locations["image"] == Location(str(tmp_path / "Dockerfile"), 1)
    reason = facts.reasons.get("distributions.torch") or facts.reasons.get("distributions")
    assert (reason is not None) == open_still
    assert "torch" not in facts.facts["distributions"]


@pytest.mark.parametrize(
    ("lines", "torch"),
    [
        (["RUN pip install torch==2.4.0", "RUN pip install torch==2.5.0"], "2.5.0"),
        (["RUN pip install torch==2.4.0", "RUN pip install 'torch>=2.0'"], "2.4.0"),
        (["RUN pip install torch==2.4.0", "RUN pip install -U torch"], None),
        (["RUN pip install torch==2.4.0", "RUN pip install vllm"], None),
        (["RUN pip install torch==2.4.0", "RUN pip install --no-deps vllm"], "2.4.0"),
        (["RUN pip install torch==2.4.0 torchvision==0.19.0"], "2.4.0"),
        (['RUN if [ -n "$GPU" ]; then pip install torch==2.4.0; fi'], None),
        (["RUN command -v torchrun || pip install torch==2.4.0"], None),
        (["RUN pip install torch>=2.4"], None),
        (["ARG VERSION", "RUN pip install torch==${VERSION}"], None),
        (["ARG VERSION=2.4.0", "RUN pip install torch==$VERSION"], "2.4.0"),
        (["ENV VERSION 2.4.0", "RUN pip install torch==${VERSION:-2.5.0}"], "2.4.0"),
        (["RUN pip install torch==${VERSION:-2.5.0}"], "2.5.0"),
        (['RUN ["pip", "install", "torch==2.4.0"]'], "2.4.0"),
        (['RUN ["bash", "-c", "pip install torch==2.4.0"]'], "2.4.0"),
        (["RUN echo 'pip install torch==2.4.0'"], None),
        (["RUN pip uninstall -y torch==2.4.0"], None),
        (["RUN pip install torch==2.4.0 --index-url https://download.pytorch.org/whl/cu118"], "2.4.0+cu118"),
        (["RUN conda install -y pytorch=2.4.0 pytorch-cuda=11.8 -c pytorch -c nvidia"], "2.4.0"),
        (["RUN . /opt/venv/bin/activate && /opt/venv/bin/pip install torch==2.4.0"], "2.4.0"),
        (
            [
                'RUN <<"EOF" bash -exu -o pipefail',
                "apt-get install -y \\",
                "  git \\",
                "",
                "pip install torch==2.4.0",
                "EOF",
            ],
            "2.4.0",
        ),
        (["RUN bash -e <<EOF", "pip install torch==2.4.0", "EOF"], "2.4.0"),
        (["RUN cat <<EOF > install.sh", "pip install torch==2.4.0", "EOF"], None),
        (["RUN <<EOF python3", "pip install torch==2.4.0", "EOF"], None),
        (["RUN MAX_JOBS=4 pip install torch==2.4.0"], "2.4.0"),
    ],
)
def test_what_the_run_lines_leave_of_torch(tmp_path: Path, lines: list[str], torch: str | None) -> None:
    text = "\n".join(["FROM nvidia/cuda:12.1.1-devel-ubuntu22.04", *lines, ""])
    assert known(tmp_path, text)["distributions"].get("torch") == torch


def test_an_unquoted_comparison_is_the_shell_s_and_any_version_is_installed(tmp_path: Path) -> None:
    assert known(tmp_path, "FROM python:3.10\nRUN pip install torch>=2.4\n")["distribution_ranges"] == {"torch": ""}


def test_another_torch_than_the_image_s_brings_its_own_cuda(tmp_path: Path) -> None:
    text = "FROM pytorch/pytorch:2.5.0-cuda11.8-cudnn9-devel\nRUN pip install torch==2.6.0\n"
    assert known(tmp_path, text)["cuda"] == {"toolkit": "11.8"}


def test_options_of_pip_are_no_requirements() -> None:
    (found,) = installs_in("pip install -q --timeout 100 -i https://x --target=/a -c limits.txt -rmore.txt -e . peft")
    assert found.requirements == ("-e .", "peft")
    assert found.files == (("limits.txt", True), ("more.txt", False))
    assert found.indexes == ("https://x",)


@pytest.mark.parametrize(
    ("name", "text", "recognised"),
    [
        *((name, "FROM python:3.10\n", True) for name in ("Dockerfile", "Dockerfile.gpu", "train.Dockerfile")),
        ("Containerfile", "# a comment\n  from python:3.10\n", True),
        ("Dockerfile", "services: {}\n", False),
        ("docker-compose.yml", "FROM python:3.10\n", False),
        ("Dockerfile.dockerignore", "FROM python:3.10\n", False),
        ("dockerfile_guide.rst", "FROM python:3.10\n", False),
    ],
)
def test_recognition_is_by_name_and_content(tmp_path: Path, name: str, text: str, recognised: bool) -> None:
    (tmp_path / name).write_text(text)
    assert dockerfile.recognises(str(tmp_path / name)) is recognised


def test_an_environment_copied_from_an_earlier_stage_is_followed(tmp_path: Path) -> None:
    text = (
        "FROM python:3.10 AS build\nRUN python -m venv /opt/venv && /opt/venv/bin/pip install torch==2.5.0\n"
        "FROM build AS docs\nRUN pip install sphinx==8.0\n"
        "FROM nvidia/cuda:12.1.1-devel-ubuntu22.04\nCOPY --from=docs /site /site\n"
        "COPY --from=build /opt/venv /opt/venv\nRUN /opt/venv/bin/pip install peft==0.11.1\n"
    )
    assert known(tmp_path, text)["distributions"] == {"torch": "2.5.0", "peft": "0.11.1"}


@pytest.mark.parametrize(
    "text",
    [
        "FROM a AS a\nFROM a\n",
        "FROM b AS a\nFROM a AS b\nFROM b\n",
        "FROM 0\nFROM 1\n",
        "ARG A=$B\nARG B=$A\nFROM $A\n",
        "ARG A=" + "x" * 60_000 + "\nARG B=$A$A$A$A\nARG C=$B$B$B$B\nARG D=$C$C$C$C\nFROM $D\n",
        "FROM python:3.10\nRUN pip install 'torch\n",
        "FROM python:3.10\nRUN <<EOF\npip install torch==2.4.0\n",
        "FROM python:3.10\nRUN [1, 2\nENV\nENV =\nARG\nCOPY\nFOO bar\n",
        "FROM\n",
    ],
)
def test_broken_or_circular_files_never_break_the_reader(tmp_path: Path, text: str) -> None:
    read(tmp_path, text)


@pytest.mark.parametrize("text", ["", "RUN pip install torch\n", "\x00\x01"])
def test_what_is_no_dockerfile_is_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="the file has no FROM line"):
        read(tmp_path, text)
