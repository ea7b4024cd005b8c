"""Two ranks over gloo: replicas, synchronisation that is left out while gradients accumulate, unused parameters."""

from __future__ import annotations

import importlib
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from tools.healthy_programs.draw import Draw

_RANKS = 2
Body = Callable[[Draw, int], None]


def _run(draw: Draw, body: Body) -> None:
    """Run a body on each rank of a new group; what the guard of the first says becomes a guard of the draw."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.set_num_threads(1)
    importlib.import_module("torch._dynamo")  # what optimizers import at their first step, once for both ranks
    arguments = (body, draw.random.randrange(1 << 30), str(draw.folder), port)
    torch.multiprocessing.start_processes(_rank, args=arguments, nprocs=_RANKS, start_method="fork")
    for path in sorted(Path(draw.folder).glob("rank-*.json")):
        told = json.loads(path.read_text(encoding="utf-8"))
        draw.guards.append(SimpleNamespace(alarms=[SimpleNamespace(**each) for each in told], close=lambda: None))


def _rank(rank: int, body: Body, seed: int, folder: str, port: int) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(_RANKS))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=_RANKS)
    draw = Draw(seed, Path(folder))
    body(draw, rank)
    for guard in draw.guards:
        guard.close()
    told = [{"signature": each.signature, "seen": each.seen} for guard in draw.guards for each in guard.alarms]
    Path(folder, f"rank-{rank}.json").write_text(json.dumps(told), encoding="utf-8")
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def _train(draw: Draw, rank: int, *, every: int = 1, unused: bool = False) -> None:
    net = nn.ModuleDict({"body": draw.mlp(), "unused": nn.Linear(3, 3)}) if unused else draw.mlp()
    model = DistributedDataParallel(_First(net) if unused else net, find_unused_parameters=unused)
    optimizer = draw.of(torch.optim.AdamW, torch.optim.SGD)(model.parameters(), lr=1e-2)
    guard = draw.watch(model, optimizer)
    torch.manual_seed(rank)
    for number, (batch, target) in enumerate(draw.classes()):
        last = (number + 1) % every == 0
        model.require_backward_grad_sync = last
        loss = F.cross_entropy(model(batch), target)
        loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
        guard.step(loss)


class _First(nn.Module):
    def __init__(self, parts: nn.ModuleDict) -> None:
        super().__init__()
        self.parts = parts

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.parts["body"](batch)


def replicas(draw: Draw) -> None:
    _run(draw, _train)


def _accumulates(draw: Draw, rank: int) -> None:
    _train(draw, rank, every=3)


def replicas_that_accumulate(draw: Draw) -> None:
    _run(draw, _accumulates)


def _with_unused(draw: Draw, rank: int) -> None:
    _train(draw, rank, unused=True)


def replicas_with_unused_parameters(draw: Draw) -> None:
    _run(draw, _with_unused)


def _apart(draw: Draw, rank: int) -> None:
    """Each rank trains a model of its own, as in a search over settings."""
    torch.manual_seed(100 + rank)
    model = draw.mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    guard = draw.watch(model, optimizer)
    for batch, target in list(draw.classes())[: 8 + 8 * rank]:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch), target)
        loss.backward()
        optimizer.step()
        guard.step(loss)


def ranks_apart(draw: Draw) -> None:
    _run(draw, _apart)


def _uneven(draw: Draw, rank: int) -> None:
    """The ranks have different numbers of batches, joined at the end."""
    model = DistributedDataParallel(draw.mlp())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    guard = draw.watch(model, optimizer)
    with model.join():
        for batch, target in list(draw.classes())[: 10 + 6 * rank]:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(batch), target)
            loss.backward()
            optimizer.step()
            guard.step(loss)


def uneven_ranks(draw: Draw) -> None:
    _run(draw, _uneven)
