"""The NVIDIA driver and the GPUs it shows, through NVML, which no driver installation lacks.

A machine without a driver says nothing about the machine that will train: its GPUs are unknown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from compatcheck.environment import Environment
from compatcheck.files.reading import start_of
from compatcheck.language import gettext as _

_MODULE = "/sys/module/nvidia/version"
_PROC = "/proc/driver/nvidia/version"
_DEVICE = "/dev/nvidiactl"
_LIBRARIES = ("/usr/lib/wsl/lib/libnvidia-ml.so.1", r"C:\Windows\System32\nvml.dll")
_PATHS = ("cuda.driver", "cuda.driver_api", "gpus")


def collect() -> Environment:
    """``cuda.driver``, ``cuda.driver_api`` (the CUDA level it offers) and ``gpus``; memory in MiB."""
    if not is_here():
        return _unknown(_("no NVIDIA driver on this machine"), None)
    version = kernel_module_version()
    try:
        import pynvml
    except ImportError:
        return _unknown(_("nvidia-ml-py is not installed with compatcheck"), version)
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return _unknown(_why_not(pynvml, error), version)
    try:
        return _describe(pynvml, version)
    finally:
        pynvml.nvmlShutdown()


def presence() -> Environment:
    """``cuda.driver_present``, which is known of any machine."""
    return Environment({"cuda": {"driver_present": is_here()}})


def is_here() -> bool:
    """Whether an NVIDIA driver has left any trace on this machine."""
    return any(map(os.path.exists, (_MODULE, _PROC, _DEVICE, *_LIBRARIES)))


def kernel_module_version(module: str = _MODULE, proc: str = _PROC) -> str | None:
    """The version of the loaded kernel module, which needs no library to read."""
    for path in (module, proc):
        if match := re.search(r"\b\d{3,}\.\d+(?:\.\d+)*\b", start_of(path) or ""):
            return match[0]
    return None


def _unknown(reason: str, version: str | None) -> Environment:
    reasons = {path: reason for path in _PATHS if not (version and path == "cuda.driver")}
    return Environment({"cuda": {"driver": version}} if version else {}, reasons)


def _why_not(nvml: Any, error: Any) -> str:
    """Why NVML does not start: the ways a person mends differently are told apart."""
    if error.value == nvml.NVML_ERROR_LIBRARY_NOT_FOUND:
        return (
            "the kernel module is loaded, but NVML's library is missing: does the container have access to the driver?"
        )
    if error.value == nvml.NVML_ERROR_NO_PERMISSION:
        return f"no permission to ask the NVIDIA driver ({_DEVICE})"
    if error.value == nvml.NVML_ERROR_DRIVER_NOT_LOADED:
        if not os.path.exists(_DEVICE) and os.path.exists(_MODULE):
            return f"the kernel module is loaded, but {_DEVICE} is missing: does the container have access to the GPUs?"
        return "the NVIDIA driver is installed and not loaded"
    return f"the NVIDIA driver is broken: {error}"


def _describe(nvml: Any, version: str | None) -> Environment:
    cuda: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    driver = query(nvml, nvml.nvmlSystemGetDriverVersion)
    api = query(nvml, nvml.nvmlSystemGetCudaDriverVersion)
    for key, value in (("driver", _text(driver) or version), ("driver_api", _api_level(api))):
        if value is None:
            reasons[f"cuda.{key}"] = "NVML does not report this value"
        else:
            cuda[key] = value
    known: dict[str, Any] = {"cuda": cuda} if cuda else {}
    count = query(nvml, nvml.nvmlDeviceGetCount)
    if count is None:
        reasons["gpus"] = "NVML does not report the number of GPUs"
    else:
        known["gpus"] = [_gpu(nvml, index) for index in range(count)]
    return Environment(known, reasons)


def _gpu(nvml: Any, index: int) -> dict[str, Any]:
    """One GPU; what the driver refuses to tell, as it may for a MIG slice, is left out."""
    handle = query(nvml, nvml.nvmlDeviceGetHandleByIndex, index)
    if handle is None:
        return {}
    capability = query(nvml, nvml.nvmlDeviceGetCudaComputeCapability, handle)
    memory = query(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    found = {
        "name": _text(query(nvml, nvml.nvmlDeviceGetName, handle)),
        "compute_capability": ".".join(map(str, capability)) if capability else None,
        "memory_mib": memory.total >> 20 if memory else None,
        "uuid": _text(query(nvml, nvml.nvmlDeviceGetUUID, handle)),
    }
    return {key: value for key, value in found.items() if value is not None}


def query(nvml: Any, question: Callable[..., Any], *arguments: Any) -> Any:
    """The answer to one question, None where NVML refuses it."""
    try:
        return question(*arguments)
    except nvml.NVMLError:
        return None


def _text(value: str | bytes | None) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _api_level(number: int | None) -> str | None:
    """``12020`` is CUDA 12.2."""
    return f"{number // 1000}.{number % 1000 // 10}" if number else None
