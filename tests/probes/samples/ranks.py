"""Two ranks whose cases answer, raise, die or hang, as the request says."""

from compatcheck.probes.distributed import _ranks

NEEDS = {}
TIMEOUT = 60


def measure(request, stage):
    _ranks.CASE_SECONDS = request.get("case_seconds", 60.0)
    cases = [
        {"case": word, "variant": "ranks", "dtype": "float32", "folder": request["folder"]} for word in request["do"]
    ]
    where = _ranks.Place("gloo", "cpu", 2, "the test says so", request.get("stands_in", False))
    yield from _ranks.rows(__file__, cases, where, stage, {})
    return {}


def work(case, rank):
    import os
    import time

    import torch

    with open(os.path.join(case["folder"], "pids"), "a", encoding="utf-8") as pids:
        pids.write(f"{os.getpid()}\n")
    if case["case"] == "raise" and rank.number == 1:
        raise ValueError("planted")
    if case["case"] == "die" and rank.number == 1:
        os._exit(7)
    if case["case"] == "hang":
        time.sleep(600)
    total = torch.ones(1)
    torch.distributed.all_reduce(total)
    exact = {"tensor": "the sum", "theta": 0.0, "rho": 0.0, "nonfinite": 0}
    own = str(rank.number) if case["case"] == "disagree" else "equal"
    return {"measured": {**exact, "sum": float(total)}, "control": exact, "digest": own}
