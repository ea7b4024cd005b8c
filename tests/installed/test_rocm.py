"""AMD's driver and ROCm, read from folders laid out as the kernel and the installers lay them."""

from __future__ import annotations

from pathlib import Path

import pytest

from compatcheck.installed.rocm import from_folders, target_of

CPU = "cpu_cores_count 96\nsimd_count 0\ngfx_target_version 0\n"
MI210 = "cpu_cores_count 0\nsimd_count 416\ngfx_target_version 90010\ndrm_render_minor 128\n"


@pytest.mark.parametrize(
    ("number", "target"), [(90010, "gfx90a"), (90402, "gfx942"), (100300, "gfx1030"), (110501, "gfx1151")]
)
def test_the_kernels_number_is_a_target(number: int, target: str) -> None:
    assert target_of(number) == target


def lay(folder: Path, text: str, name: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_gpus_and_release_come_from_files(tmp_path: Path) -> None:
    lay(tmp_path, CPU, "nodes/0/properties")
    lay(tmp_path, MI210, "nodes/1/properties")
    lay(tmp_path, "heap_type 1\nsize_in_bytes 68702699520\n", "nodes/1/mem_banks/0/properties")
    lay(tmp_path, "AMD Instinct MI210\n", "cards/renderD128/device/product_name")
    lay(tmp_path, "6.2.4-139\n", "rocm/.info/version")
    found = from_folders(str(tmp_path / "nodes"), str(tmp_path / "cards"), {"ROCM_PATH": str(tmp_path / "rocm")})
    gpu = {"compute_capability": None, "gfx": "gfx90a", "name": "AMD Instinct MI210", "memory_mib": 65520}
    assert found.facts == {"gpus": [gpu], "rocm": {"version": "6.2.4"}}


def test_what_no_file_states_stays_unknown(tmp_path: Path) -> None:
    lay(tmp_path, "gfx_target_version 110000\n", "nodes/1/properties")
    found = from_folders(str(tmp_path / "nodes"), str(tmp_path / "cards"), {"ROCM_PATH": str(tmp_path)})
    assert found.facts == {"gpus": [{"compute_capability": None, "gfx": "gfx1100"}]}
