"""Time a training loop with and without the guard, in blocks that take turns.

    python tools/benchmarks/guard_cost.py [--steps 60] [--pairs 6] [--hidden 1024] [--layers 24] [--rows 4]

The model is a Llama of random weights, on the GPU where there is one and in bfloat16 there. The first steps, which the
guard looks at whatever they cost, are part of each block. Exit status 1 where the guard costs more than its share.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from contextlib import ExitStack, redirect_stdout
from typing import NamedTuple

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from compatcheck.integrations.guard import Guard

SHARE = 0.02


class Block(NamedTuple):
    wall: float
    processor: float


def main() -> int:
    options = _options()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = _model(options.hidden, options.layers).to(device, torch.bfloat16 if device == "cuda" else torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    tokens = torch.randint(0, model.config.vocab_size, (8, options.rows, options.length), device=device)
    _block(model, optimizer, tokens, options.steps, guarded=False)
    pairs = []
    for number in range(options.pairs):
        order = (False, True) if number % 2 == 0 else (True, False)
        blocks = {guarded: _block(model, optimizer, tokens, options.steps, guarded=guarded) for guarded in order}
        pairs.append((blocks[False], blocks[True]))
    name = torch.cuda.get_device_name() if device == "cuda" else f"{os.cpu_count()} processor cores"
    million = sum(each.numel() for each in model.parameters()) / 1e6
    print(f"{name}, torch {torch.__version__}; {million:.0f} million parameters, {options.steps} steps a block")
    cost = 0.0
    for kind in Block._fields:
        ratios = [getattr(guarded, kind) / getattr(plain, kind) - 1 for plain, guarded in pairs]
        plain = statistics.median(getattr(each, kind) for each, _ in pairs) / options.steps
        spread = f"{min(ratios):+.1%} to {max(ratios):+.1%}"
        print(f"{kind:10} {plain * 1e3:8.2f} ms a step, guarded {statistics.median(ratios):+.1%} ({spread})")
        cost = cost or statistics.median(ratios)
    return int(cost > SHARE)


def _model(hidden: int, layers: int) -> LlamaForCausalLM:
    torch.manual_seed(0)
    heads = max(1, hidden // 64)
    sizes = {"hidden_size": hidden, "intermediate_size": 4 * hidden, "num_hidden_layers": layers}
    return LlamaForCausalLM(LlamaConfig(vocab_size=8192, num_attention_heads=heads, num_key_value_heads=heads, **sizes))


def _block(
    model: LlamaForCausalLM, optimizer: torch.optim.Optimizer, tokens: torch.Tensor, steps: int, *, guarded: bool
) -> Block:
    with ExitStack() as held:
        held.enter_context(redirect_stdout(sys.stderr))
        guard = held.enter_context(Guard(model, optimizer, check=False, report=None)) if guarded else None
        _wait()
        wall, processor = time.perf_counter(), time.process_time()
        for step in range(steps):
            rows = tokens[step % len(tokens)]
            loss = model(input_ids=rows, labels=rows).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if guard:
                guard.step(loss)
        _wait()
        return Block(time.perf_counter() - wall, time.process_time() - processor)


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {"steps": 60, "pairs": 6, "hidden": 1024, "layers": 24, "rows": 4, "length": 1024}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
