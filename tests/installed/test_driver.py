"""NVML is stood in for: the machines that run the tests have no GPU. Its error codes are the real ones."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from compatcheck.installed import driver

ARGUMENTS = {
    "nvmlSystemGetDriverVersion": "535.104.05",
    "nvmlSystemGetCudaDriverVersion": 12020,
    "nvmlDeviceGetCount": 1,
    "nvmlDeviceGetHandleByIndex": "handle",
    "nvmlDeviceGetName": b"NVIDIA A100-SXM4-80GB",
    "nvmlDeviceGetCudaComputeCapability": (8, 0),
    "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=81920 << 20),
    "nvmlDeviceGetUUID": "GPU-1",
}
Stand = Callable[..., None]


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Stand:
    """Answer as given; an integer in the place of an answer of another type is an NVML error."""

    def put(start: int = 0, **answers: Any) -> None:
        (tmp_path / "version").write_text("535.104.05\n")
        monkeypatch.setattr(driver, "_MODULE", str(tmp_path / "version"))
        monkeypatch.setattr(driver.kernel_module_version, "__defaults__", (str(tmp_path / "version"), "/not/there"))

        def question(answer: Any) -> Callable[..., Any]:
            def ask(*_: Any) -> Any:
                if isinstance(answer, pynvml.NVMLError):
                    raise answer
                return answer

            return ask

        monkeypatch.setattr(pynvml, "nvmlInit", question(pynvml.NVMLError(start) if start else None))
        monkeypatch.setattr(pynvml, "nvmlShutdown", question(None))
        for name, answer in {**ARGUMENTS, **answers}.items():
            monkeypatch.setattr(pynvml, name, question(answer))

    return put


def test_a_machine_without_a_driver_speaks_for_none() -> None:
    facts = driver.collect()
    if "no NVIDIA driver on this machine" not in facts.reasons.values():
        pytest.skip("this machine has a driver")
    assert facts.facts == {}
    assert set(facts.reasons) == {"cuda.driver", "cuda.driver_api", "gpus"}


def test_a_driver_and_its_gpu(stand: Stand) -> None:
    stand()
    facts = driver.collect()
    assert facts.facts == {
        "cuda": {"driver": "535.104.05", "driver_api": "12.2"},
        "gpus": [{"name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0", "memory_mib": 81920, "uuid": "GPU-1"}],
    }
    assert facts.reasons == {}


def test_what_a_gpu_does_not_tell_is_left_out(stand: Stand) -> None:
    stand(
        nvmlDeviceGetMemoryInfo=pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED), nvmlDeviceGetUUID=pynvml.NVMLError(4)
    )
    assert driver.collect().facts["gpus"] == [{"name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0"}]
    stand(nvmlDeviceGetHandleByIndex=pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST))
    assert driver.collect().facts["gpus"] == [{}]
    stand(nvmlDeviceGetCount=pynvml.NVMLError(999))
    assert "gpus" in driver.collect().reasons


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "have access to the driver"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "no permission"),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "have access to the GPUs"),
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "the NVIDIA driver is broken: .*[Mm]ismatch"),
    ],
)
def test_the_ways_nvml_does_not_start_are_told_apart(stand: Stand, code: int, reason: str) -> None:
    import re

    stand(start=code)
    facts = driver.collect()
    assert facts.facts == {"cuda": {"driver": "535.104.05"}}
    assert set(facts.reasons) == {"cuda.driver_api", "gpus"}
    assert re.search(reason, facts.reasons["gpus"])


def test_nvml_missing_beside_compatcheck(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    stand()
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "not installed with compatcheck" in driver.collect().reasons["gpus"]


def test_the_kernel_module_states_its_version_in_two_places(tmp_path: Path) -> None:
    line = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs-builder)\n"
    (tmp_path / "proc").write_text(line)
    assert driver.kernel_module_version("/not/there", str(tmp_path / "proc")) == "580.65.06"
    (tmp_path / "module").write_text("560.94\n")
    assert driver.kernel_module_version(str(tmp_path / "module"), "/not/there") == "560.94"
    assert driver.kernel_module_version("/not/there", "/not/there") is None
