"""Memory use over many identical training steps.

The user's architecture in miniature, with random weights, is trained on one fixed batch with the user's precision,
adapters, checkpointing and optimizer. After 4 steps of warm-up, two windows of 18 steps are read. Each reading is
taken at the same point of the step, after `zero_grad` and a garbage collection: on CUDA `memory_allocated`, on a CPU
the bytes of all live tensor storages, counted when they are created and freed. torch before 2.1 cannot follow
storages, so live tensors are counted instead, and memory that only autograd keeps is missed. The resident set of the
process is reported as a fact and not judged.

Both windows must meet the same rule for a leak: Mann-Kendall z above 2.33; a Theil-Sen slope whose rise over the
window is above 4096 bytes and 0.2 % of the median; growth in each third; a slope of the last third of at least half
the slope of the first; and 30 % of the steps upwards. On simulated series without a leak (flat, alternating, decaying,
late-settling, one step up), the rule gave no false alarm in 40 to 60 repetitions each. It found every leak of 64 KiB a
step on 50 MB. A few equations solved by hand in plain torch, read in the same way, are the control.

A failure means that something keeps tensors of every step: a hook, a cache, or a list of losses that keep their graph.

Request: seed, device, dtype, config, training (the recipe).
"""

from __future__ import annotations

import gc
import sys
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Tuple

from compatcheck.probes._criterion import Measured, Measuring, Request, Row, Stage, Tensor
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.training._batches import on, padded, sequences
from compatcheck.probes.training._model import Unbuildable, build, instance
from compatcheck.probes.training._recipe import apply, computing, optimizer_of, recipe_of, trainable

if TYPE_CHECKING:
    from compatcheck.results.findings import Outcome

NEEDS: Dict[str, str] = {"torch": ">=1.13", "transformers": ">=4.31"}
TIMEOUT: float = 180.0
PROFILE = "deep"
SECONDS: float = 4.0

WARM_UP, WINDOW = 4, 18
FLOOR_BYTES, FLOOR_SHARE = 8 * 512.0, 0.002
COUNT = 2

Step = Callable[[], None]


def measure(request: Request, stage: Stage) -> Measuring:
    """Two windows of readings in bytes, of the model and of the control."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    stage("model")
    try:
        step, facts = _training_step(request, device)
    except Unbuildable as reason:
        return {"unsupported": str(reason)}
    meter = _meter(device)
    for variant, work in (("training step", step), ("plain torch", _plain_step(device))):
        stage(variant)
        yield {"variant": variant, "control": work is not step, "meter": meter, **_windows(work, device, meter)}
    return {"device": device, **facts}


def judge(measured: Measured) -> Tuple[Outcome, str]:
    """A leak that goes on in the second window fails, where plain torch keeps its memory."""
    from compatcheck.symptoms.growth import Floor, grows, slope

    if "unsupported" in measured:
        return "skip", str(measured["unsupported"])
    floor = Floor(FLOOR_BYTES, FLOOR_SHARE)
    leaks = {
        bool(row["control"]): all(grows([float(value) for value in window], floor) for window in row["windows"])
        for row in measured["rows"]
    }
    row = next(row for row in measured["rows"] if not row["control"])
    second = [float(value) for value in row["windows"][1]]
    rate, where = slope(second), f"{row['meter']}, {2 * len(second)} steps on {measured['device']}"
    if not leaks[False]:
        return "pass", f"memory settles: {second[-1] / 2**20:.1f} MiB, {rate:+.0f} bytes a step ({where})"
    if leaks[True]:
        return "watch", f"{rate:.0f} bytes per step are not freed; plain torch also keeps some ({where})"
    return "fail", f"{rate:.0f} bytes per step are not freed, while plain torch keeps nothing ({where})"


def _training_step(request: Request, device: str) -> Tuple[Step, Row]:
    """One forward, backward and optimiser step of the user's recipe, gradients dropped at its end."""
    import torch

    built, recipe = build(request), recipe_of(request)
    if recipe.dtype == "float16" and device == "cpu":
        recipe = recipe._replace(dtype="float32", weights="float32", autocast=False)
    attention = recipe.attention if recipe.attention in built.attentions else None
    model = apply(recipe, instance(built, recipe.weights, attention).to(device), int(request["seed"]))
    parameters = list(trainable(model).values())
    optimizer, name = optimizer_of(recipe._replace(learning_rate=1e-5), parameters)
    chosen = sequences(built.vocabulary, built.special_ids, int(request["seed"]))[:COUNT]
    batch = on(padded(chosen, "right", built.pad_id), device)

    def step() -> None:
        with computing(recipe, device):
            loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step, {"model": built.facts, "recipe": recipe.describe(), "optimizer": name}


def _plain_step(device: str) -> Step:
    """Least squares by gradients worked out by hand."""
    import torch

    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 32, generator=generator).to(device)
    y = torch.randn(64, 8, generator=generator).to(device)
    weight = torch.zeros(32, 8, device=device)

    def step() -> None:
        weight.sub_(1e-3 * (x.transpose(0, 1) @ (x @ weight - y)))

    return step


def _meter(device: str) -> str:
    if device == "cuda":
        return "allocated bytes"
    return "live storages" if _storages_can_be_followed() else "live tensors"


def _storages_can_be_followed() -> bool:
    """Whether the Python object of a storage lives as long as the storage (torch 2.1 and later)."""
    import torch

    kept = torch.zeros(4)
    if not hasattr(kept, "untyped_storage"):
        return False
    died: List[bool] = []
    weakref.finalize(kept.untyped_storage(), died.append, True)
    gc.collect()
    return not died


def _windows(step: Step, device: str, meter: str) -> Row:
    """Readings of two windows after the warm-up, and the resident set before and after."""
    import torch

    if device == "cuda":

        def allocated() -> int:
            torch.cuda.synchronize()
            return int(torch.cuda.memory_allocated())

        return _readings(step, allocated)
    with _Living(meter == "live storages") as living:
        return _readings(step, lambda: living.size)


def _readings(step: Step, read: Callable[[], int]) -> Row:
    for _ in range(WARM_UP):
        step()
    gc.collect()
    gc.freeze()
    resident, windows = _resident_kib(), []
    for _ in range(2):
        window = []
        for _ in range(WINDOW):
            step()
            gc.collect()
            window.append(read())
        windows.append(window)
    gc.unfreeze()
    return {"windows": windows, "resident_kib": [resident, _resident_kib()]}


def _resident_kib() -> int:
    """The process's resident set, 0 where the system does not tell."""
    if not sys.platform.startswith("linux"):
        return 0
    with open("/proc/self/status", encoding="ascii") as stream:
        return int(next((line.split()[1] for line in stream if line.startswith("VmRSS")), 0))


class _Living:
    """Bytes of the storages that operations inside it have made and that still live; ``size`` is their sum."""

    def __init__(self, storages: bool) -> None:
        self.storages = storages
        self.size = 0
        self.known: Dict[int, Any] = {}

    def __enter__(self) -> _Living:
        from torch.utils._python_dispatch import TorchDispatchMode

        count = self.count

        class Counting(TorchDispatchMode):  # type: ignore[misc]
            def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                made = function(*args, **(kwargs or {}))
                count(made)
                return made

        self.mode = Counting()
        self.mode.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self.mode.__exit__(*raised)

    def count(self, made: Any) -> None:
        """Enter the tensors of an operation's result, each storage once."""
        import torch

        if isinstance(made, (tuple, list)):
            for part in made:
                self.count(part)
        elif isinstance(made, torch.Tensor):
            self._enter(made)

    def _enter(self, tensor: Tensor) -> None:
        if self.storages:
            owner = tensor.untyped_storage()
            place, size = owner.data_ptr(), int(owner.nbytes())
        else:
            owner, place, size = tensor, id(tensor), tensor.numel() * tensor.element_size()
        if size and place not in self.known:
            self.size += size
            self.known[place] = weakref.ref(owner, lambda gone: self._leave(place, size))

    def _leave(self, place: int, size: int) -> None:
        self.size -= size
        del self.known[place]
