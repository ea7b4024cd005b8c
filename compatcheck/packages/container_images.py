"""What the name and tag of a container image say of its contents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from compatcheck.packages.frameworks import frameworks

_RELEASE = re.compile(r"v?(\d+\.\d+\.\d+(?:\.?(?:post|rc)\d+)?)(?=-|\Z)")
_REFERENCE = re.compile(r"(?P<name>[^\s:@]+(?::\d+/[^\s:@]+)?)(?::(?P<tag>[^\s@]+))?(?:@\S+)?\Z")
_PYTORCH = re.compile(
    r"(?P<torch>\d+\.\d+(?:\.\d+)?)-cuda(?P<cuda>\d+\.\d+)-cudnn\d+(?:-(?P<flavour>devel|runtime))?\Z"
)
_NGC, _NGC_RELEASE = "nvcr.io/nvidia/pytorch", re.compile(r"(\d{2}\.\d{2})-py3\Z")
_CUDA = re.compile(r"(?P<cuda>\d+\.\d+)(?:\.\d+)?-(?:cudnn\d*-)?(?P<flavour>devel|runtime|base)\b")
_CANN = re.compile(
    r"v?(?P<cann>\d+\.\d+(?:\.\d+)?(?:\.?rc\d)?)-(?P<chip>910\w?|310p)-.*?(?:py(?P<python>3\.\d+))?\Z", re.I
)
_ROCM = re.compile(r"rocm(\d+\.\d+(?:\.\d+)?)(?=[-_]|\Z)")
_PYTHON = re.compile(r"(?P<python>3\.\d+(?:\.\d+)?)(?:-|\Z)")
_UV = re.compile(r"(?:[\w.]+-)?python(?P<python>3\.\d+)")
_PACKAGES = {"modelscope": "modelscope", "ms-swift": "swift", "transformers": "transformers", "vllm": "vllm"}
"""Packages with the word that tags which list their parts have for them."""

_WORDS = {
    "python": re.compile(r"(?:^|[-_])(?:py|python)(3)\.?(\d{1,2})(?=[-_]|$)"),
    "torch": re.compile(r"(?:^|[-_])(?:torch|pytorch)?(\d+\.\d+\.\d+)(?=[-_]|$)"),
    "named_torch": re.compile(r"(?:^|[-_])(?:th|torch|pytorch)(?:_release)?[-_]?(\d+\.\d+\.\d+)(?=[-_]|$)"),
    **{
        package: re.compile(rf"(?:^|[-_]){word}(\d+\.\d+\.\d+(?:\.post\d+)?)(?=[-_]|$)")
        for package, word in _PACKAGES.items()
    },
    "cuda": re.compile(r"(?:^|[-_])(?:cu(\d{2})(\d)|cuda(\d+)\.(\d+)(?:\.\d+)?)(?=[-_]|$)"),
}


@cache
def _release_images() -> Mapping[str, str]:
    """Images that are tagged with the release of the one package they are made for."""
    own = {image: each.distributions[0] for each in frameworks().values() for image in each.images}
    return {"vllm/vllm-openai": "vllm", "lmsysorg/sglang": "sglang", "xprobe/xinference": "xinference", **own}


@cache
def _reference() -> re.Pattern[str]:
    return re.compile(
        r"(?<![\w.-])(?:[\w.-]+(?::\d+)?[/#]){0,4}(?:(?:pytorch|nvidia|rocm)/pytorch|modelscope(?:-repo)?/modelscope|"
        r"(?:huggingface-)?pytorch-(?:training|inference)|ascend/cann|nvidia/cuda|"
        rf"{'|'.join(_release_images())}):\w[\w.-]*"
    )


class Contents(NamedTuple):
    """What an image holds: versions of distributions, of Python and of CUDA; ``reason`` where its torch is not told.

    ``image`` and ``release`` name one whose contents the matrix lists.
    """

    distributions: dict[str, str]
    python: str | None = None
    runtime: str | None = None
    toolkit: str | None = None
    reason: str = ""
    image: str | None = None
    release: str | None = None
    hip: str | None = None
    cann: str | None = None


def mentioned(text: str) -> Iterator[str]:
    """The references in a text of images whose tags say what they hold."""
    return (found[0].rstrip(".-").replace("#", "/") for found in _reference().finditer(text))


def contents_of(image: str) -> Contents:
    """What the reference of an image says, as ``pytorch/pytorch:2.5.0-cuda11.8-cudnn9-devel``."""
    image = image.strip("\"'")
    found = _REFERENCE.match(image)
    if found is None or "$" in image:
        return Contents({}, reason=f"the image {image} depends on a variable that has no default")
    name, tag = found["name"].lower().removeprefix("docker.io/").removeprefix("library/"), found["tag"] or "latest"
    if name == "pytorch/pytorch":
        return _pytorch_contents(image, tag)
    if name == "nvidia/pytorch" or name.endswith("/nvidia/pytorch"):
        return _nvidia_contents(image, tag)
    if name.rpartition("/")[0] in ("nvidia", "nvcr.io/nvidia") and name.endswith("/cuda"):
        stated = _CUDA.match(tag)
        return Contents({}, toolkit=stated["cuda"] if stated and stated["flavour"] == "devel" else None)
    if name in ("python", "ghcr.io/astral-sh/uv"):
        stated = (_PYTHON if name == "python" else _UV).match(tag)
        return Contents({}, python=stated["python"] if stated else None)
    if name.endswith("ascend/cann"):
        stated = _CANN.match(tag)
        return (
            Contents({}, stated["python"], cann=stated["cann"].lower()) if stated else Contents({}, reason="no release")
        )
    package, release = _release_images().get("/".join(name.split("/")[-2:])), _RELEASE.match(tag)
    if package and release:
        why = f"the tag of the image {image} does not show its torch version"
        return Contents({package: release[1]}, reason=why)
    lists_parts = name.startswith(("mosaicml/", "axolotlai/", "winglian/")) or name.endswith("pytorch-training")
    return _listed_contents(image, tag, "torch" if lists_parts else "named_torch")


def _pytorch_contents(image: str, tag: str) -> Contents:
    stated = _PYTORCH.match(tag)
    if stated is None:
        return Contents({}, reason=f"the tag of the image {image} does not show its torch version")
    toolkit = stated["cuda"] if stated["flavour"] == "devel" else None
    return Contents({"torch": stated["torch"]}, runtime=stated["cuda"], toolkit=toolkit)


def _nvidia_contents(image: str, tag: str) -> Contents:
    release = _NGC_RELEASE.match(tag)
    if release is None:
        return Contents({}, reason=f"the tag of the image {image} does not show its torch version")
    return Contents({}, image=_NGC, release=release[1])


def _listed_contents(image: str, tag: str, torch: str) -> Contents:
    """Tags that list their parts, as ``2.5.1-gpu-py311-cu124-ubuntu22.04`` or ``cuda12.1.0-py310-torch2.3.1``.

    One that does not name torch is taken to say nothing: its other numbers may be of anything.
    """
    words = {key: pattern.search(tag) for key, pattern in _WORDS.items()}
    if not words[torch]:
        return Contents({}, reason=f"the name of the image {image} does not show its torch version")
    python, cuda = words["python"], words["cuda"]
    held = {"torch": words[torch], **{package: words[package] for package in _PACKAGES}}
    runtime = f"{cuda[1] or cuda[3]}.{cuda[2] or cuda[4]}" if cuda else None
    return Contents(
        {key: match[1] for key, match in held.items() if match},
        python=f"{python[1]}.{python[2]}" if python else None,
        runtime=runtime,
        hip=rocm[1] if (rocm := _ROCM.search(tag)) else None,
    )
