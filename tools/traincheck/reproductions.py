"""One small program per fault; each returns the signatures of the alarms that the guard raises.

The facts are those of https://github.com/OrderLab/TrainCheck-Evaluation-Workloads; the programs are our own.
"""

from __future__ import annotations

import importlib
import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from compatcheck.integrations.guard import Guard

_STEPS = 12
_RANKS = 2


def _guard(model: Any, optimizer: Any, **options: Any) -> Guard:
    return Guard(
        model, optimizer, **{"check": False, "memory": False, "every": 1, "report": None, "share": 1.0, **options}
    )


def _network(outputs: int = 4) -> nn.Sequential:
    return nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, outputs))


def _signatures(guard: Guard) -> list[str]:
    guard.close()
    return [alarm.signature for alarm in guard.alarms]


def _train(model: Any, optimizer: Any, guard: Guard, *, clears: bool = True) -> list[str]:
    for _ in range(_STEPS):
        loss = F.cross_entropy(model(torch.randn(8, 12)), torch.randint(0, 4, (8,)))
        if clears:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        guard.step(loss)
    return _signatures(guard)


def gradients_never_cleared() -> list[str]:
    model = _network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    return _train(model, optimizer, _guard(model, optimizer), clears=False)


def frozen_after_the_optimizer_was_built() -> list[str]:
    """The head's parameters are in the optimizer and frozen, and normalisation alone is left to train."""
    model = nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model[3].parameters(), lr=1e-3)
    for number in (0, 3):
        model[number].requires_grad_(False)
    return _train(model, optimizer, _guard(model, optimizer))


class _Stages(nn.Module):
    """A backbone that freezes its first stages in ``train()``, as many of OpenMMLab do."""

    def __init__(self, frozen_stages: int) -> None:
        super().__init__()
        self.frozen_stages = frozen_stages
        self.stages = nn.ModuleList([nn.Linear(12, 16), nn.Linear(16, 16)])

    def train(self, mode: bool = True) -> _Stages:
        super().train(mode)
        for stage in list(self.stages)[: self.frozen_stages] if mode else ():
            stage.requires_grad_(False)
        return self

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        for stage in self.stages:
            batch = stage(batch).relu()
        return batch


def stages_that_are_not_frozen() -> list[str]:
    """A module is in training mode once it is built, so that nobody calls ``train()`` before the first step."""
    model = nn.Sequential(_Stages(1), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return _train(model, optimizer, _guard(model, optimizer))


def spectral_norm_evaluated_first() -> list[str]:
    model = nn.Sequential(nn.utils.spectral_norm(nn.Linear(12, 32)), nn.ReLU(), nn.Linear(32, 4))
    guard = _guard(model, torch.optim.Adam(model.parameters(), lr=1e-3))
    model.eval()
    with torch.no_grad():
        model(torch.randn(4, 12))
    return _signatures(guard)


class _Primitive(torch.autograd.Function):
    """A linear layer of a compiler of its own, which runs with autocast off and was not told to cast."""

    @staticmethod
    def forward(ctx: Any, batch: Any, weight: Any) -> Any:
        ctx.save_for_backward(batch, weight)
        return batch @ weight.T

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        batch, weight = ctx.saved_tensors
        return gradient @ weight, gradient.T @ batch


class _Primitives(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.ParameterList(nn.Parameter(torch.randn(12, 12) / 4) for _ in range(5))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", enabled=False):
            for weight in self.weights:
                batch = F.linear(batch, weight).relu()
        return batch[:, :4]


def primitives_that_autocast_misses() -> list[str]:
    model = _Primitives()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    guard = _guard(model, optimizer)
    for _ in range(_STEPS):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.cross_entropy(model(torch.randn(8, 12)), torch.randint(0, 4, (8,)))
        loss.backward()
        optimizer.step()
        guard.step(loss)
    return _signatures(guard)


def optimizer_of_other_parameters() -> list[str]:
    """What happens when a wrapper flattens the parameters after the optimizer was built."""
    model = _network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for module in model.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            setattr(module, name, nn.Parameter(parameter.detach().clone()))
    return _train(model, optimizer, _guard(model, optimizer))


def steps_skipped_after_no_gradient() -> list[str]:
    """A compiled loop whose third step has no gradients: torch 2.0 to 2.2 compile the step away for good."""
    model = nn.Sequential(nn.Linear(2, 3), nn.Sigmoid(), nn.Linear(3, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    guard = _guard(model, optimizer)
    batch = torch.rand(3, 2)

    def loop() -> None:
        for number in range(_STEPS):
            optimizer.zero_grad()
            model(batch).sum().backward()
            if number == 2:
                optimizer.zero_grad(set_to_none=True)
            optimizer.step()

    torch.compile(loop, backend="eager")()
    return _signatures(guard)


def dropout_of_flash_attention() -> list[str]:
    """M2M100 under FlashAttention-2 in evaluation, with a stand-in for the kernels that computes the same on a CPU."""
    _stand_in_for_flash_attention()
    import transformers

    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "vocab_size": 40, "attention_dropout": 0.1}
    configuration = transformers.M2M100Config(**sizes, **heads)
    configuration._attn_implementation = "flash_attention_2"
    model = transformers.M2M100ForConditionalGeneration(configuration)
    guard = _guard(model, torch.optim.AdamW(model.parameters(), lr=1e-3))
    model.eval()
    tokens = torch.randint(3, 40, (2, 8))
    with torch.no_grad():
        model(input_ids=tokens, decoder_input_ids=tokens)
    return _signatures(guard)


def _stand_in_for_flash_attention() -> None:
    import transformers

    def attend(query: Any, key: Any, value: Any, *rest: Any, dropout: float = 0.0, **options: Any) -> Any:
        parts = (each.transpose(1, 2) for each in (query, key, value))
        return F.scaled_dot_product_attention(*parts, dropout_p=dropout).transpose(1, 2)

    def enable(cls: Any, configuration: Any, *rest: Any, **options: Any) -> Any:
        configuration._attn_implementation = "flash_attention_2"
        return configuration

    transformers.PreTrainedModel._check_and_enable_flash_attn_2 = classmethod(enable)
    modelling = importlib.import_module("transformers.models.m2m_100.modeling_m2m_100")
    modelling._flash_attention_forward = attend


def _on_ranks(body: Callable[[int], Guard]) -> list[str]:
    """Run a body on two ranks over gloo, and return what the guard of the first says."""
    with tempfile.TemporaryDirectory(prefix="compatcheck-", ignore_cleanup_errors=True) as folder:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        arguments = (body, folder, port)
        torch.set_num_threads(1)
        importlib.import_module("torch._dynamo")  # what optimizers import at their first step, once for both ranks
        torch.multiprocessing.start_processes(_rank, args=arguments, nprocs=_RANKS, start_method="fork")
        return Path(folder, "0").read_text(encoding="utf-8").split()


def _rank(rank: int, body: Callable[[int], Guard], folder: str, port: int) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(_RANKS))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=_RANKS)
    torch.manual_seed(0)
    Path(folder, str(rank)).write_text("\n".join(_signatures(body(rank))), encoding="utf-8")
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def _train_replica(rank: int, model: Any, forward: Callable[[int], Any], **options: Any) -> Guard:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    guard = _guard(model, optimizer, **options)
    torch.manual_seed(1 + rank)
    for number in range(_STEPS):
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(number)(torch.randn(8, 12)), torch.randint(0, 4, (8,)))
        loss.backward()
        optimizer.step()
        guard.step(loss)
    return guard


def moved_after_wrapping() -> list[str]:
    """Moving a wrapped model replaces the gradient accumulators that DDP hooked; a change of type does as well."""

    def body(rank: int) -> Guard:
        model = DistributedDataParallel(_network())
        model.double()
        model.float()
        return _train_replica(rank, model, lambda number: model)

    return _on_ranks(body)


def wrapped_in_every_other_step() -> list[str]:
    def body(rank: int) -> Guard:
        model = _network()
        wrapped = DistributedDataParallel(model)
        return _train_replica(rank, model, lambda number: wrapped if number % 2 else model, replicated=True)

    return _on_ranks(body)


def copies_that_arrive_as_zeros() -> list[str]:
    """Peer-to-peer copies lose data on one rank: its averaged gradients are zeros now and then."""

    def body(rank: int) -> Guard:
        model = DistributedDataParallel(_network())
        calls = [0]

        def lossy(state, bucket):  # type: ignore[no-untyped-def]  # torch refuses annotations as text
            calls[0] += 1
            lost = rank == 1 and calls[0] % 4 == 0
            future = torch.distributed.all_reduce(bucket.buffer().div_(_RANKS), async_op=True).get_future()
            return future.then(lambda done: done.value()[0].mul_(0.0 if lost else 1.0))

        model.register_comm_hook(None, lossy)
        return _train_replica(rank, model, lambda number: model)

    return _on_ranks(body)


def clipped_by_unlike_norms() -> list[str]:
    """Two ranks of tensor parallelism: each holds a part of the linear layers and the whole layer norm.

    Gradients of what is replicated are clipped on the first rank only, as in the first form of BF16_Optimizer.
    """

    def body(rank: int) -> Guard:
        norm, own = nn.LayerNorm(12), nn.Linear(12, 4)
        torch.manual_seed(7 + rank)
        nn.init.normal_(own.weight)
        model = nn.ModuleDict({"norm": norm, "own": own})
        for parameter in own.parameters():
            parameter.tensor_model_parallel = True
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        guard = _guard(model, optimizer, replicated=True)
        torch.manual_seed(1)
        for _ in range(_STEPS):
            optimizer.zero_grad()
            partial = own(norm(torch.randn(8, 12)))
            torch.distributed.all_reduce(total := partial.detach().clone())
            loss = F.cross_entropy(partial + (total - partial).detach(), torch.randint(0, 4, (8,)))
            loss.backward()
            for parameter in norm.parameters():
                torch.distributed.all_reduce(parameter.grad)
            clipped = [each for each in model.parameters() if rank == 0 or hasattr(each, "tensor_model_parallel")]
            nn.utils.clip_grad_norm_(clipped, 0.1)
            optimizer.step()
            guard.step(loss)
        return guard

    return _on_ranks(body)
