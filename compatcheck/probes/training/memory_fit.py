"""Memory that the user's training needs, compared with the memory of the GPU.

The probe predicts the memory before anything is loaded. It adds up: parameters, gradients, optimizer states and master
weights, calculated from ZeRO stage, LoRA, bits and optimizer (sources in `_memory/states.py`); the number of
parameters of a model that is built from the user's own `config.json` without its memory; activations, measured at the
real width on 2 and 4 layers of fake tensors and extrapolated to the real depth; logits as batch x length x vocabulary
x 10 to 18 bytes (`_memory/estimate.py`); 1 to 2 GiB for the CUDA context and workspaces; and 5 to 10 % for
fragmentation. The result is a range. Facts that are not stated, such as the dtype in which weights are loaded, make
the range wider. If a model does not run on fake tensors, its activations are estimated by formula, and their own size
is added as a tolerance on both sides.

The bound is the memory of the GPU. The probe fails if even the low end of the range is above it, gives a watch if the
memory lies within the range, and passes if the high end is below it. The reason names the first setting that makes the
training fit, in this order: gradient checkpointing, smaller batch with accumulation, half the length, ZeRO-2 and 3,
8-bit optimizer, LoRA, QLoRA, offload, or the shortest combination.
Without the memory of the GPU, the batch size or the length, the probe reports what is known and judges nothing, unless
the parameters and states alone do not fit. For small models that were really trained with AdamW, the middle of the
range was at most 8 % from the peak of live tensors. accelerate's estimate, which has no activations, was 0 to 70 %
below the peak (tools/benchmarks/memory_estimates.py).

Request: config (the parsed config.json), training (the snapshot's training keys), memory_mib (of one GPU; default what
torch sees), world_size, trust_remote_code and model_folder (for a model's own code).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional, Tuple

from compatcheck.probes._criterion import Measured, Measuring, Request, Stage
from compatcheck.probes.training._memory.estimate import GIB, Model, estimate, plain, remedies, tokens_that_fit
from compatcheck.probes.training._memory.measured import (
    BY_FORMULA,
    Activations,
    Architecture,
    activations,
    architecture,
    count,
    formula,
)
from compatcheck.probes.training._memory.setup import Setup, stated
from compatcheck.probes.training._model import Unbuildable

if TYPE_CHECKING:
    from compatcheck.results.findings import Outcome

NEEDS: dict[str, str] = {"torch": ">=1.13", "transformers": ">=4.31"}
TIMEOUT: float = 120.0
PROFILE = "quick"
SECONDS = 3.0

PROBE_LENGTH = 512
MIB = 2.0**20


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of the settings and the GiB that each needs, the user's own first."""
    if not request.get("config"):
        return {"unsupported": "no config.json found; pass the model with --model"}
    if not request.get("training"):
        return {"unsupported": "no training settings are known; pass their file with --config"}
    memory, devices = _gpu(request)
    known = stated(request, devices)
    stage("count parameters")
    models: List[Model] = []
    notes: List[str] = []
    try:
        built = architecture(request["config"], request)
        for setup in known.setups:
            counts = count(built, setup)
            stage("activations, " + setup.describe())
            measured = setup if setup.length > 1 else setup._replace(length=PROBE_LENGTH)
            kept = [each for each in models if each.setup._replace(world=setup.world) == measured]
            models.append(
                Model(counts, measured, kept[0].activations if kept else _activations(built, measured, notes))
            )
    except Unbuildable as error:
        return {"unsupported": str(error)}
    found = [estimate(setup, model) for setup, model in zip(known.setups, models)]
    widest = max(range(len(found)), key=lambda index: found[index].total[1])
    setup, model = known.setups[widest], models[widest]
    low = min(each.total[0] for each in found) / GIB
    yield {"setting": "as stated", **plain(found[widest]), "low": round(low, 2)}
    if memory is not None and found[widest].total[1] > memory:
        for names, after in remedies(setup, model, memory):
            yield {"setting": " + ".join(names), **plain(after), "fits": after.total[1] <= memory}
    room = tokens_that_fit(setup, model, memory) if memory is not None else None
    return {
        "memory": None if memory is None else round(memory / GIB, 2),
        "unknown": list(known.unknown),
        "setup": [each.describe() for each in known.setups],
        "parameters": model.counts.total,
        "activations": model.activations.how,
        "notes": notes,
        "tokens_that_fit": room,
    }


def judge(measured: Measured) -> Tuple[Outcome, str]:
    """The stated settings against the memory; the first other setting that fits is named."""
    if "unsupported" in measured:
        return "skip", str(measured["unsupported"])
    own, memory = measured["rows"][0], measured["memory"]
    unknown = list(measured["unknown"])
    least = "at least " if unknown else ""
    needs = "needs %s%s (%s)" % (least, _gib(own), _parts(own))
    if memory is None:
        return "skip", "%s; the GPU's memory is not known%s" % (needs, _left_open(unknown))
    doubt = float(own["parts"]["activations"][1]) if measured["activations"] == BY_FORMULA else 0.0
    if own["low"] - doubt > memory:
        over = own["low"] - memory
        rest = ", plus what %s needs, which is unknown" % " and ".join(unknown) if unknown else ""
        return "fail", "%s, %.1f GiB more than the GPU's %.1f%s%s" % (needs, over, memory, rest, _remedy(measured))
    if unknown:
        room = measured["tokens_that_fit"]
        hint = "; a micro-batch of about %d tokens fits" % room if room else ""
        return "skip", "%s, the GPU has %.1f GiB%s%s" % (needs, memory, _left_open(unknown), hint)
    if own["high"] + doubt > memory:
        return "watch", "borderline: %s, the GPU has %.1f GiB%s" % (needs, memory, _remedy(measured))
    return "pass", "%s, the GPU has %.1f GiB" % (needs, memory)


def _remedy(measured: Measured) -> str:
    fitting = [row for row in measured["rows"][1:] if row["fits"]]
    if fitting:
        return "; the training fits with %s: %s" % (fitting[0]["setting"], _gib(fitting[0]))
    if len(measured["rows"]) > 1:
        least = min(measured["rows"][1:], key=lambda row: float(row["high"]))
        return "; no setting that was tried makes the training fit; the closest is %s: %s" % (
            least["setting"],
            _gib(least),
        )
    return ""


def _gib(row: Measured) -> str:
    return "%.1f to %.1f GiB" % (row["low"], row["high"])


def _parts(row: Measured) -> str:
    sizes = sorted(row["parts"].items(), key=lambda item: -float(item[1][1]))
    return ", ".join("%s %.1f" % (name, high) for name, (_, high) in sizes if high >= 0.05)


def _left_open(unknown: List[str]) -> str:
    return "; not given: %s" % ", ".join(unknown) if unknown else ""


def _activations(built: Architecture, setup: Setup, notes: List[str]) -> Activations:
    try:
        return activations(built, setup)
    except Unbuildable as error:
        if str(error) not in notes:
            notes.append(str(error))
        return formula(built.values, setup)


def _gpu(request: Request) -> Tuple[Optional[float], int]:
    """Bytes of one GPU's memory, None where it is not known, and the number of GPUs seen, 0 likewise."""
    import torch

    devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if request.get("memory_mib"):
        return float(request["memory_mib"]) * MIB, devices
    if not devices or request.get("device") == "cpu":
        return None, devices
    return float(min(torch.cuda.get_device_properties(index).total_memory for index in range(devices))), devices
