"""Ascend's driver and CANN, read from folders laid out as their installers lay them."""

from __future__ import annotations

from pathlib import Path

import pytest

from compatcheck.installed.ascend import from_folders


def lay(folder: Path, text: str, name: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


@pytest.mark.parametrize(
    ("name", "text", "cann"),
    [
        (
            "ascend-toolkit/latest/version.cfg",
            "runtime_running_version=[7.3.0.1.231:8.0.RC2]\ntoolkit_running_version=[7.3.0.1.231:8.0.RC2]\n",
            "8.0.rc2",
        ),
        (
            "ascend-toolkit/latest/aarch64-linux/ascend_toolkit_install.info",
            "package_name=Ascend-cann-toolkit\nversion=8.3.RC2\ninnerversion=V100R001C23SPC002B210\n",
            "8.3.rc2",
        ),
        ("cann/x86_64-linux/ascend_toolkit_install.info", "package_name=Ascend-cann\nversion=8.5.0\n", "8.5.0"),
    ],
)
def test_the_release_of_cann(tmp_path: Path, name: str, text: str, cann: str) -> None:
    lay(tmp_path, text, name)
    assert from_folders(str(tmp_path / "dev"), str(tmp_path), {}).get("npu.cann") == cann


def test_devices_and_driver(tmp_path: Path) -> None:
    for name in ("davinci0", "davinci1", "davinci_manager"):
        lay(tmp_path, "", f"dev/{name}")
    lay(tmp_path, "Version=24.1.RC3\nascendhal_version=7.35.19\n", "driver/version.info")
    found = from_folders(str(tmp_path / "dev"), str(tmp_path), {})
    assert found.facts == {"gpus": [{"name": "Ascend", "compute_capability": None}] * 2, "npu": {"driver": "24.1.rc3"}}


def test_the_variable_of_set_env_counts_alone(tmp_path: Path) -> None:
    lay(tmp_path, "version=8.3.RC1\n", "mine/x86_64-linux/ascend_toolkit_install.info")
    lay(tmp_path, "version=8.0.0\n", "cann/x86_64-linux/ascend_toolkit_install.info")
    environ = {"ASCEND_TOOLKIT_HOME": str(tmp_path / "mine")}
    assert from_folders(str(tmp_path / "dev"), str(tmp_path), environ).facts == {"npu": {"cann": "8.3.rc1"}}


def test_another_machine_states_nothing(tmp_path: Path) -> None:
    assert from_folders(str(tmp_path), str(tmp_path), {}).facts == {}
