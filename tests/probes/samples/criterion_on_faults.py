"""Errors of attention with planted faults, and of the exact formulas against autograd."""

from compatcheck.probes.operators._attention import Attention

NEEDS = {"torch": ">=2.0"}
TIMEOUT = 120


def measure(request, stage):
    import math

    import torch

    torch.set_num_threads(1)
    dtype = request["dtype"]
    narrow = getattr(torch, dtype)
    generator = torch.Generator().manual_seed(request["seed"])
    draw = (torch.randn(2, 2, 65, 16, generator=generator, dtype=torch.float64) for _ in range(4))
    inputs = {name: value.to(narrow).double() for name, value in zip(("q", "k", "v", "upstream"), draw)}
    mask = torch.ones(65, 65, dtype=torch.bool).tril().expand(2, 1, 65, 65).clone()
    dead = torch.zeros(2, 1, 65, 1, dtype=torch.bool)
    problem = Attention(inputs, mask, dead, dtype, 2.0**-24, False)

    def run(allowed=mask, scale=0.25, work=narrow):
        q, k, v = (inputs[name].to(work).clone().requires_grad_() for name in "qkv")
        logits = (q @ k.transpose(-1, -2) * scale).masked_fill(~allowed, -math.inf)
        out = torch.softmax(logits, -1) @ v
        out.backward(inputs["upstream"].to(work))
        found = {"out": out.detach(), "dq": q.grad, "dk": k.grad, "dv": v.grad}
        return {name: value.double() for name, value in found.items()}

    exact, _, _ = problem._reference(False)
    autograd = run(work=torch.float64)
    future, missing = mask.clone(), mask.clone()
    future[0, 0, 10, 11] = True
    missing[..., -1, -1] = False
    lost = run()
    lost["dq"][1, 1, 7, 3] = math.nan
    faults = {
        "healthy": run(),
        "sees one future key": run(future),
        "misses the last key": run(missing),
        "scale of 17 for 16": run(scale=17**-0.5),
        "dropout left on": {**run(), "out": run()["out"] * (torch.rand(65, 16, generator=generator) > 0.01)},
        "one NaN": lost,
    }
    formulas = max(float((autograd[name] - exact[name]).abs().max()) for name in autograd)
    return {"formulas": formulas, "faults": {name: problem.worst(found, False) for name, found in faults.items()}}
