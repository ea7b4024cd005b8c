"""Models built inside DeepSpeed's zero.Init.

A small network is built under `with deepspeed.zero.Init():` and takes one ZeRO-3 step on two ranks. Its gradient is
compared with the exact gradient of the global batch. The same step with the network built outside the context, and one
process of plain torch, are the controls. Then torch._dynamo is imported for the first time inside the context, as
happens when a transformers model is built there in a fresh process. For comparison, it is also imported before the
context.

Bound of the gradient: as in zero_gradients, 64 u in float32 (relative, 2-norm), and twice the error of one process.
The import fails if it raises an error.
Known: with torch 2.13.0 to 2.15.0 and DeepSpeed 0.19.8, the import inside the context raises "TypeError: Signature
mismatch". zero.Init replaces torch.Tensor.__new__ by a function whose signature dynamo does not accept. DeepSpeed up
to 0.19.7 imports torch._dynamo itself, long before. The fault affects only programs that have not imported
torch._dynamo when the context opens, so it is recorded, and judged only on request.

The probe runs over gloo on the CPU, and over NCCL if two GPUs are free. Nothing is compiled.

Request: seed, device, lazy_import (true: also judge the import inside the context).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Dict, List, Tuple

from compatcheck.probes._criterion import Case, Measuring, Request, Row, Stage
from compatcheck.probes.distributed import _ranks
from compatcheck.probes.distributed._ranks import _toy, _zero
from compatcheck.probes.distributed._ranks import judge as judge

if TYPE_CHECKING:
    from compatcheck.probes.distributed._ranks._rank import Rank

NEEDS: Dict[str, str] = {"torch": ">=2.0", "deepspeed": ">=0.10"}
TIMEOUT: float = 240.0
PROFILE: str = "deep"
SECONDS: float = 12.0
ASKED_BY: Tuple[str, ...] = ("training.deepspeed",)
FRESH = True

IMPORTED = "torch._dynamo"
IMPORT = "first import of " + IMPORTED
NOTHING_OFF = {"theta": 0.0, "rho": 0.0, "nonfinite": 0, "tensor": IMPORT}


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of the import inside and before, then of the gradient of a network built inside and outside."""
    where = _ranks.place(request)
    if isinstance(where, str):
        return {"unsupported": where}
    # The import inside comes first, for it happens once in a process; where it raises, the rest has fresh ones.
    for row in _ranks.rows(__file__, _cases(request), where, stage, _zero.environ(where.device)):
        if not (row["case"] == IMPORT and row.get("control")):
            yield row
    return {"ranks": where._asdict()}


def work(case: Case, rank: Rank) -> Row:
    """In each rank: one step of a network, or one import."""
    if "import" in case:
        return _import(case, rank)
    problem = _toy.problem(case["seed"], case["dtype"], rank.device)
    return _toy.answer(_zero.gradient(problem, case, rank), problem)


def _import(case: Case, rank: Rank) -> Row:
    import importlib

    if case["import"] == "before":
        importlib.import_module(IMPORTED)
    deepspeed = _zero.joined(rank)
    early = IMPORTED in sys.modules
    with deepspeed.zero.Init():
        importlib.import_module(IMPORTED)
    return {"measured": {**NOTHING_OFF, "imported_before": early}, "control": NOTHING_OFF, "digest": ""}


def _cases(request: Request) -> List[Row]:
    seeded = {"dtype": "float32", "seed": int(request["seed"])}
    imported = {**seeded, "case": IMPORT, "any_device": True}
    inside = {**imported, "variant": "inside zero.Init", "import": "inside"}
    if not request.get("lazy_import"):
        inside["recorded"] = "affects only a model that is built by hand before anything imports " + IMPORTED
    step = {**seeded, "case": _ranks.passes(1), "stage": 3}
    return [
        inside,
        {**imported, "variant": "before zero.Init", "import": "before"},
        {**step, "variant": "ZeRO-3, built outside zero.Init"},
        {**step, "variant": "ZeRO-3, built inside zero.Init", "init": True},
    ]
