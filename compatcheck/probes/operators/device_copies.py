"""Copies between GPUs, compared bit by bit: every ordered pair, directly and through the host.

A pattern of 8 bytes to 64 MiB is made on one GPU, copied to another GPU and compared there with the same pattern,
which the second GPU makes itself. So only the tested copy moves data. Four ways are tested: `tensor.to` on the default
stream, `copy_` on a side stream, and copies through the host in pageable and in pinned memory. Each target is filled
with ones before the copy, so that a copy that writes nothing can be distinguished from a copy that writes zeros.

Bound: every bit. A failure means that one way of copying delivers different data than was sent, while another way
passes between the same two GPUs. The usual cause is direct access between GPUs that the driver reports
(`torch.cuda.can_device_access_peer`) but the machine does not provide, for example with IOMMU or PCIe access control
enabled. Training on several GPUs then continues with zeros for weights and gradients
(https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html, pytorch/pytorch#84803).

The probe needs two GPUs. Another seed changes the pattern.

Request: seed, device, devices (names of torch devices; default every GPU; a GPU that is named twice copies to itself).
"""

from __future__ import annotations

import contextlib
import itertools
import math
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Tuple

from compatcheck.probes import _criterion
from compatcheck.probes._criterion import Measured, Measuring, Request, Row, Stage, Tensor

if TYPE_CHECKING:
    from compatcheck.results.findings import Outcome

NEEDS: Dict[str, str] = {"torch": ">=1.13"}
TIMEOUT: float = 180.0
PROFILE: str = "quick"
SECONDS: float = 0.5
ASKED_BY: Tuple[str, ...] = ()
FRESH = True

WORD = 8
SIZES = (8, 64, 4096, 2**16 + 8, 2**20, 2**23 + 8, 2**26)
MULTIPLIER = 6364136223846793005
UNWRITTEN = -1
Copy = Callable[[Tensor, str], Tensor]


def measure(request: Request, stage: Stage) -> Measuring:
    """A row for each ordered pair of devices and each way between them: the sizes at which it fails."""
    import torch

    devices = [str(name) for name in request.get("devices") or _gpus(request)]
    if len(devices) < 2:
        return {"unsupported": "copies between GPUs need two GPUs, but %d can be used here" % len(devices)}
    pairs = [
        (source, target)
        for number, source in enumerate(devices)
        for other, target in enumerate(devices)
        if number != other
    ]
    promised = {}
    seeds = itertools.count(int(request.get("seed", 0)) * 2**16)
    for source, target in dict.fromkeys(pairs):
        case = "%s to %s" % (source, target)
        promised[case] = _promised(source, target)
        for name, copy in _ways(source).items():
            stage("%s, %s" % (case, name))
            yield {
                "case": case,
                "variant": name,
                "dtype": "bytes",
                "direct": name.startswith("direct"),
                **_tried(copy, source, target, seeds, case, name),
            }
    return {"peer_access": promised, "gpus": [torch.cuda.get_device_name(each) for each in _gpus(request)]}


def judge(measured: Measured) -> Tuple[Outcome, str]:
    """As `_criterion.judge`; a direct copy that fails although direct access is promised says so."""
    outcome, why = _criterion.judge(measured)
    if outcome != "fail":
        return outcome, why
    broken = [row for row in measured["rows"] if row["theta"] != 0]
    pairs = sorted({row["case"] for row in broken})
    told = "%d of %d pairs fail" % (len(pairs), len({row["case"] for row in measured["rows"]}))
    if all(row["direct"] and measured["peer_access"].get(row["case"]) for row in broken):
        told += (
            "; can_device_access_peer reports direct access for every pair that fails, so disable IOMMU and PCIe ACS"
        )
    return outcome, "%s; %s" % (why, told)


def _gpus(request: Request) -> List[str]:
    import torch

    if request.get("device") == "cpu" or not torch.cuda.is_available():
        return []
    return ["cuda:%d" % number for number in range(torch.cuda.device_count())]


def _promised(source: str, target: str) -> Any:
    """What the driver says of direct access, None where nobody is asked."""
    import torch

    if not (source.startswith("cuda") and target.startswith("cuda")) or source == target:
        return None
    return bool(torch.cuda.can_device_access_peer(torch.device(target), torch.device(source)))


def _ways(source: str) -> Dict[str, Copy]:
    ways: Dict[str, Copy] = {
        "direct, to": _to,
        "direct, copy_ on a side stream": _copy_aside,
        "through the host": _through_the_host,
    }
    if source.startswith("cuda"):
        ways["through pinned memory"] = _through_pinned_memory
    return ways


def _to(value: Tensor, target: str) -> Tensor:
    return value.to(target, copy=True)


def _copy_aside(value: Tensor, target: str) -> Tensor:
    """Waits for the source, whose work is on the default stream, and for the side stream after the copy."""
    import torch

    found = torch.full_like(value, UNWRITTEN, device=target)
    _wait(value, found)
    with _side_streams(value, found):
        found.copy_(value, non_blocking=True)
    _wait(value, found)
    return found


def _through_the_host(value: Tensor, target: str) -> Tensor:
    return _from_host(value.cpu(), target)


def _through_pinned_memory(value: Tensor, target: str) -> Tensor:
    return _from_host(value.cpu().pin_memory(), target)


def _from_host(value: Tensor, target: str) -> Tensor:
    """What numpy or the copy engine brings from the host: on the CPU a plain clone."""
    return value.clone() if target.startswith("cpu") else value.to(target)


def _side_streams(*values: Tensor) -> Any:
    import torch

    streams = contextlib.ExitStack()
    for value in values:
        if value.is_cuda:
            streams.enter_context(torch.cuda.stream(torch.cuda.Stream(value.device)))
    return streams


def _wait(*values: Tensor) -> None:
    import torch

    for value in values:
        if value.is_cuda:
            torch.cuda.synchronize(value.device)


def _tried(copy: Copy, source: str, target: str, seeds: Iterator[int], case: str, way: str) -> Row:
    """theta 0 where every size arrives, infinite where one does not, with what came in its place."""
    wrong = dict(_wrong(copy, source, target, seeds))
    fine = {"tensor": "what was copied", "theta": 0.0, "rho": 0.0, "nonfinite": 0, "sizes": list(SIZES)}
    if not wrong:
        return {**fine, "says": "every bit arrives"}
    size = min(wrong)
    says = "%s, %s: %s of a copy of %d bytes" % (case, way, wrong[size], size)
    if len(wrong) > 1:
        says += ", and %d larger sizes are wrong too" % (len(wrong) - 1)
    return {**fine, "theta": math.inf, "wrong": {str(key): value for key, value in wrong.items()}, "says": says}


def _wrong(copy: Copy, source: str, target: str, seeds: Iterator[int]) -> Iterator[Tuple[int, str]]:
    """Each copy has a pattern of its own, so that memory used before never holds what is expected."""
    for size, seed in zip(SIZES, seeds):
        found = copy(_pattern(size // WORD, source, seed), target)
        expected = _pattern(size // WORD, target, seed)
        _wait(found, expected)
        different = found != expected
        count = int(different.sum())
        if count:
            words = found[different]
            kind = "zeros" if not bool(words.any()) else "nothing" if bool((words == UNWRITTEN).all()) else "other bits"
            yield size, "%s in %d of %d words" % (kind, count, size // WORD)


def _pattern(words: int, device: str, seed: int) -> Tensor:
    """Words of 64 bits, all different and none zero in practice, by whole-number arithmetic that all devices share."""
    import torch

    return (torch.arange(1, words + 1, dtype=torch.int64, device=device) + seed * 2**32) * MULTIPLIER
