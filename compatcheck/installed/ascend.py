"""Ascend NPUs, their driver and CANN, from the files that Ascend's installers leave; npu-smi is never run.

The chip's name stands in no file: an NPU is known by its device, as ``Ascend``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from compatcheck.environment import Environment
from compatcheck.files.reading import start_of

_DEVICE = re.compile(r"davinci\d+\Z")
_DRIVER = re.compile(r"^Version=(\d\S{0,30})", re.MULTILINE)
_CANN = re.compile(
    r"^(?:version=|toolkit_running_version=\[[^:\]\n]*:|Version=)(\d+\.\d+(?:\.\d+)?(?:\.?RC\d+)?)", re.MULTILINE | re.I
)
_STATED_IN = ("version.cfg", "ascend_toolkit_install.info", "version.info")


def collect() -> Environment:
    """``npu.driver``, ``npu.cann`` and an entry of ``gpus`` for each NPU; nothing on a machine without any of them."""
    return from_folders("/dev", "/usr/local/Ascend", os.environ)


def from_folders(devices: str, ascend: str, environ: Mapping[str, str]) -> Environment:
    """The same, from the folder of the devices and that of Ascend's installers."""
    npus = [name for name in _listed(devices) if _DEVICE.match(name)]
    known: dict[str, Any] = {"gpus": [{"name": "Ascend", "compute_capability": None}] * len(npus)} if npus else {}
    driver = _DRIVER.search(start_of(os.path.join(ascend, "driver", "version.info")) or "")
    npu = {"driver": driver[1].lower() if driver else None, "cann": _cann(ascend, environ)}
    if stated := {key: value for key, value in npu.items() if value}:
        known["npu"] = stated
    return Environment(known)


def _cann(ascend: str, environ: Mapping[str, str]) -> str | None:
    """``8.0.rc3`` from the first folder of CANN that states its release."""
    for folder in _folders(ascend, environ):
        for name in _STATED_IN:
            if match := _CANN.search(start_of(os.path.join(folder, name)) or ""):
                return match[1].lower()
    return None


def _folders(ascend: str, environ: Mapping[str, str]) -> Iterator[str]:
    given = environ.get("ASCEND_TOOLKIT_HOME") or environ.get("ASCEND_HOME_PATH")
    roots = [given] if given else [os.path.join(ascend, *parts) for parts in (("ascend-toolkit", "latest"), ("cann",))]
    for root in roots:
        yield root
        yield from (os.path.join(root, name) for name in _listed(root) if name.endswith("-linux"))


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
