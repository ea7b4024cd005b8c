"""What the reference of a container image says of its contents."""

from __future__ import annotations

import pytest

from compatcheck.packages.container_images import contents_of, mentioned


@pytest.mark.parametrize(
    ("image", "held", "python", "runtime", "toolkit"),
    [
        ("pytorch/pytorch:2.5.0-cuda11.8-cudnn9-devel", {"torch": "2.5.0"}, None, "11.8", "11.8"),
        ("docker.io/pytorch/pytorch:2.1.2-cuda12.1-cudnn8-runtime", {"torch": "2.1.2"}, None, "12.1", None),
        ("pytorch/pytorch:latest", {}, None, None, None),
        ("nvidia/cuda:12.1.1-devel-ubuntu22.04", {}, None, None, "12.1"),
        ("nvcr.io/nvidia/cuda:12.1.1-cudnn8-devel-ubuntu22.04", {}, None, None, "12.1"),
        ("nvidia/cuda:12.1.1-runtime-ubuntu22.04", {}, None, None, None),
        ("python:3.10", {}, "3.10", None, None),
        ("python:3.11.7-slim-bookworm", {}, "3.11.7", None, None),
        ("python:3-slim", {}, None, None, None),
        ("ghcr.io/astral-sh/uv:python3.12-bookworm-slim", {}, "3.12", None, None),
        ("huggingface/transformers-pytorch-gpu:4.41.3", {"transformers": "4.41.3"}, None, None, None),
        (
            "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.5.1-gpu-py311-cu124-ubuntu22.04-ec2",
            {"torch": "2.5.1"},
            "3.11",
            "12.4",
            None,
        ),
        (
            "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-training:"
            "2.1.0-transformers4.36.0-gpu-py310-cu121-ubuntu20.04",
            {"torch": "2.1.0", "transformers": "4.36.0"},
            "3.10",
            "12.1",
            None,
        ),
        (
            "modelscope-registry.cn-hangzhou.cr.aliyuncs.com/modelscope-repo/modelscope:"
            "ubuntu22.04-cuda12.4.0-py310-torch2.6.0-vllm0.8.5.post1-modelscope1.25.0-swift3.3.0",
            {"torch": "2.6.0", "vllm": "0.8.5.post1", "modelscope": "1.25.0", "ms-swift": "3.3.0"},
            "3.10",
            "12.4",
            None,
        ),
        ("mosaicml/pytorch:2.5.1_cu124-python3.11-ubuntu22.04", {"torch": "2.5.1"}, "3.11", "12.4", None),
        ("rocm/pytorch:rocm6.4_ubuntu24.04_py3.12_pytorch_release_2.7.1", {"torch": "2.7.1"}, "3.12", None, None),
        ("team/pytorch:th2.6.0-cu124-flashattn2.7.4-devel", {"torch": "2.6.0"}, None, "12.4", None),
        ("team/rl:base-cu126-cudnn9.8-torch2.7.1-fa2.7.4", {"torch": "2.7.1"}, None, "12.6", None),
        ("axolotlai/axolotl-base:main-base-py3.11-cu124-2.6.0", {"torch": "2.6.0"}, "3.11", "12.4", None),
        ("team/train:py310-cu121-1.2.3", {}, None, None, None),
        ("nvcr.io/nvidia/pytorch:25.10-py3-igpu", {}, None, None, None),
        ("registry:5000/team/train:7", {}, None, None, None),
        ("vllm/vllm-openai:v0.8.5.post1", {"vllm": "0.8.5.post1"}, None, None, None),
        ("docker.io/lmsysorg/sglang:v0.4.6-cu124", {"sglang": "0.4.6"}, None, None, None),
        ("openmmlab/lmdeploy:v0.7.2-cu12", {"lmdeploy": "0.7.2"}, None, None, None),
        ("vllm/vllm-openai:latest", {}, None, None, None),
        ("team/vllm-openai:v0.8.5", {}, None, None, None),
        ("pytorch/pytorch@sha256:abcd", {}, None, None, None),
    ],
)
def test_what_the_name_of_an_image_says(
    image: str, held: dict[str, str], python: str | None, runtime: str | None, toolkit: str | None
) -> None:
    found = contents_of(image)
    assert (found.distributions, found.python, found.runtime, found.toolkit) == (held, python, runtime, toolkit)
    if not (held or python or "nvidia/cuda" in image or image.startswith("python")):
        assert image in found.reason


@pytest.mark.parametrize(
    ("image", "release"),
    [
        ("nvcr.io/nvidia/pytorch:23.10-py3", "23.10"),
        ("nvidia/pytorch:22.04-py3", "22.04"),
        ("mirror.example:5000/nvidia/pytorch:24.07-py3@sha256:abcd", "24.07"),
        ("nvcr.io/nvidia/pytorch:24.07-py3-igpu", None),
        ("nvcr.io/nvidia/pytorch:latest", None),
        ("notnvidia/pytorch:24.07-py3", None),
    ],
)
def test_the_tag_of_nvidia_s_container_is_its_release(image: str, release: str | None) -> None:
    found = contents_of(image)
    assert (found.release, found.image) == (release, "nvcr.io/nvidia/pytorch" if release else None)
    assert bool(found.reason) == (release is None)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("I run nvcr.io/nvidia/pytorch:23.10-py3.", ["nvcr.io/nvidia/pytorch:23.10-py3"]),
        ("docker://nvcr.io/nvidia/pytorch:23.10-py3,", ["nvcr.io/nvidia/pytorch:23.10-py3"]),
        ("--container-image=nvcr.io#nvidia/pytorch:22.04-py3", ["nvcr.io/nvidia/pytorch:22.04-py3"]),
        ("镜像：pytorch/pytorch:2.5.0-cuda12.4-cudnn9-devel", ["pytorch/pytorch:2.5.0-cuda12.4-cudnn9-devel"]),
        (
            "nvidia/pytorch:23.01-py3 to nvidia/pytorch:23.02-py3",
            ["nvidia/pytorch:23.01-py3", "nvidia/pytorch:23.02-py3"],
        ),
        ("docker run vllm/vllm-openai:v0.9.0 --model a/b", ["vllm/vllm-openai:v0.9.0"]),
        ("my-pytorch/pytorch:2.5.0-cuda12.4-cudnn9-devel", []),
        ("github.com/pytorch/pytorch/issues", []),
    ],
)
def test_images_are_found_in_a_text(text: str, named: list[str]) -> None:
    assert list(mentioned(text)) == named
