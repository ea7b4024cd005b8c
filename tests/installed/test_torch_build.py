from __future__ import annotations

import struct
from pathlib import Path

import pytest

from compatcheck.environment import Target
from compatcheck.installed import torch_build
from compatcheck.installed._architectures import compiled_architectures
from tests.installed.conftest import Install

FLAGS = b"sm_50 sm_80 sm_90a compute_90"


def lay_torch(site: Path, version_file: str) -> Path:
    folder = site / "torch"
    (folder / "lib").mkdir(parents=True)
    (folder / "version.py").write_text(version_file)
    return folder


def elf(constants: bytes, code: bytes = b"") -> bytes:
    """A 64-bit ELF file with ``.text`` and ``.rodata``, as far as the section table goes."""
    names = b"\0.text\0.rodata\0.shstrtab\0"
    offsets = [64, 64 + len(code), 64 + len(code) + len(constants)]
    table = offsets[2] + len(names)
    head = (
        b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, 4, 3)
    )
    rows = [(0, 0, 0), (1, offsets[0], len(code)), (7, offsets[1], len(constants)), (15, offsets[2], len(names))]
    sections = b"".join(struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, at, size, 0, 0, 1, 0) for name, at, size in rows)
    return head + code + constants + names + sections


def test_a_cpu_build_has_no_cuda(site: Path, target: Target, install: Install) -> None:
    install("torch-2.13.0+cpu")
    lay_torch(site, "from typing import Optional\ncuda: Optional[str] = None\nhip: Optional[str] = None\n")
    facts = torch_build.collect(target)
    assert facts.facts["cuda"] == {"runtime": None, "cudnn": None, "nccl": None}
    assert facts.facts["torch_build"] == {"cuda": None, "hip": None}
    assert facts.reasons == {}


def test_no_torch_is_no_runtime(target: Target) -> None:
    assert torch_build.collect(target).facts == {
        "cuda": {"runtime": None, "cudnn": None, "nccl": None},
        "torch_build": None,
    }


def test_a_cuda_build_with_its_libraries(site: Path, target: Target, install: Install) -> None:
    install("torch-2.5.0")
    install("nvidia_cudnn_cu11-8.7.0.84")
    install("nvidia_cudnn_cu12-9.1.0.70")
    install("nvidia_cudnn_cu13-9.20.0.48")
    folder = lay_torch(
        site, "__version__ = '2.5.0+cu124'\ncuda: Optional[str] = '12.4'\ngit_version = 'ab'\nhip = None\n"
    )
    (folder / "lib" / "libtorch_python.so").write_bytes(elf(b"\0" + FLAGS + b"\0"))
    facts = torch_build.collect(target)
    assert facts.facts["cuda"] == {"runtime": "12.4", "cudnn": "9.1.0.70"}
    assert "its own copy" in facts.reasons["cuda.nccl"]
    assert facts.facts["torch_build"] == {
        "cuda": "12.4",
        "git_version": "ab",
        "hip": None,
        "architectures": ["sm_50", "sm_80", "sm_90a", "compute_90"],
    }


def test_architectures_can_be_left_out_or_missing(site: Path, target: Target, install: Install) -> None:
    install("torch-2.5.0")
    lay_torch(site, "cuda = '12.4'\n")
    assert "torch_build.architectures" not in torch_build.collect(target, architectures=False).reasons
    assert "does not state" in torch_build.collect(target).reasons["torch_build.architectures"]


@pytest.mark.parametrize("content", [None, "cuda = __import__('os').getenv('X')\n", ""])
def test_a_version_file_that_says_nothing_leaves_it_unknown(
    site: Path, target: Target, install: Install, content: str | None
) -> None:
    install("torch-2.5.0")
    if content is not None:
        lay_torch(site, content)
    facts = torch_build.collect(target)
    assert facts.facts == {}
    assert "does not say how it was built" in facts.reasons["cuda.runtime"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (elf(b"x\0" + FLAGS + b"\0y"), tuple(FLAGS.decode().split())),
        (elf(b"\0sm_90\0"), ("sm_90",)),
        (elf(b"\0sm_90\0", code=b"\0sm_50 sm_60\0"), ("sm_90",)),
        (b"MZ" + bytes(1 << 20) + FLAGS + bytes(9), tuple(FLAGS.decode().split())),
        (bytes((1 << 20) - 10) + FLAGS + bytes(2 << 20), tuple(FLAGS.decode().split())),
        (elf(b"\0sm_50\0\0sm_60\0"), None),
        (elf(b"asm_90 sm_80 text"), None),
        (b"\x7fELF\x02\x01\x01" + b"\xff" * 57, None),
        (b"", None),
    ],
    ids=["elf", "one", "only constants", "no elf", "across chunks", "two", "none", "hostile", "empty"],
)
def test_where_the_architectures_stand(tmp_path: Path, content: bytes, expected: tuple[str, ...] | None) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libtorch_python.so").write_bytes(content)
    assert compiled_architectures(str(tmp_path)) == expected


@pytest.mark.parametrize(("label", "cuda"), [("+cu130", "13.0"), ("+cu92", "9.2"), ("+cpu", None)])
def test_companion_says_its_cuda(site: Path, target: Target, install: Install, label: str, cuda: str | None) -> None:
    install("torchvision-0.28.0")
    (site / "torchvision").mkdir()
    (site / "torchvision" / "version.py").write_text(f"__version__ = '0.28.0{label}'\ngit_version = 'ab'\n")
    assert torch_build.collect(target).facts["torchvision_build"] == {"cuda": cuda}


def test_companion_without_label_is_unknown(site: Path, target: Target, install: Install) -> None:
    install("torchvision-0.28.0")
    (site / "torchvision").mkdir()
    (site / "torchvision" / "version.py").write_text("__version__ = '0.28.0'\n")
    assert "torchvision_build" not in torch_build.collect(target).facts
