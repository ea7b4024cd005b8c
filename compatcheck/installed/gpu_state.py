"""How the GPUs are set and how they fare: what no version tells, and what makes one node slower than the others."""

from __future__ import annotations

from typing import Any

from compatcheck.environment import Environment, Target
from compatcheck.installed import driver
from compatcheck.installed.driver import query

# Reasons to run below the clock that mean trouble: hardware slowdown, thermal and power brake (nvml.h).
_TROUBLED = {0x8: "hardware slowdown", 0x40: "thermal slowdown", 0x80: "power brake"}


def collect_gpu_state(target: Target) -> Environment:
    """``gpu_state``, an entry for each GPU: clocks in MHz, power limit in W, ECC, PCIe width; nothing without NVML."""
    if not driver.is_here():
        return Environment({})
    try:
        import pynvml
    except ImportError:
        return Environment({})
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return Environment({})
    try:
        count = query(pynvml, pynvml.nvmlDeviceGetCount) or 0
        return Environment({"gpu_state": [_state(pynvml, index) for index in range(count)]})
    finally:
        pynvml.nvmlShutdown()


def _state(nvml: Any, index: int) -> dict[str, Any]:
    """What the driver tells of one GPU; what it refuses is left out."""
    handle = query(nvml, nvml.nvmlDeviceGetHandleByIndex, index)
    if handle is None:
        return {}
    ecc = query(nvml, nvml.nvmlDeviceGetEccMode, handle)
    errors = query(
        nvml,
        nvml.nvmlDeviceGetTotalEccErrors,
        handle,
        nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
        nvml.NVML_VOLATILE_ECC,
    )
    power = query(nvml, nvml.nvmlDeviceGetPowerManagementLimit, handle)
    throttled = query(nvml, nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
    found = {
        "max_sm_clock_mhz": query(nvml, nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM),
        "max_memory_clock_mhz": query(nvml, nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_MEM),
        "application_clock_mhz": query(nvml, nvml.nvmlDeviceGetApplicationsClock, handle, nvml.NVML_CLOCK_SM),
        "power_limit_w": power // 1000 if power else None,
        "ecc": None if ecc is None else bool(ecc[0]),
        "uncorrected_ecc_errors": None if errors is None else bool(errors),
        "persistence": _flag(query(nvml, nvml.nvmlDeviceGetPersistenceMode, handle)),
        "mig": _flag((query(nvml, nvml.nvmlDeviceGetMigMode, handle) or (None,))[0]),
        "pcie_width": query(nvml, nvml.nvmlDeviceGetCurrPcieLinkWidth, handle),
        "slowed_by": [name for bit, name in _TROUBLED.items() if throttled and throttled & bit] or None,
    }
    return {key: value for key, value in found.items() if value is not None}


def _flag(value: Any) -> bool | None:
    return None if value is None else bool(value)
