"""Stacks that nobody chose: days, packages and what is old among them are drawn by a seed.

A stack is what was current on one day, less one or two packages of another day, or with one package upgraded later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import NamedTuple

from packaging.version import Version

from compatcheck.matrix.compile import read_toml

_TORCH = {
    "2.0.1": date(2023, 5, 8),
    "2.2.2": date(2024, 3, 27),
    "2.4.1": date(2024, 9, 4),
    "2.6.0": date(2025, 1, 29),
    "2.8.0": date(2025, 8, 6),
    "2.13.0": date(2026, 9, 1),
}
_CORE = ("transformers", "accelerate", "peft", "datasets")
_MORE = (
    *("trl", "deepspeed", "bitsandbytes", "sentence-transformers", "setfit", "diffusers", "optimum", "lightning"),
    *("pytorch-lightning", "torchmetrics", "timm", "gradio", "liger-kernel", "torchao", "evaluate", "wandb"),
    *("flagembedding", "tensorboard", "torchvision"),
)
_FIRST, _LAST = date(2023, 7, 1), date(2026, 11, 20)


class Draw(NamedTuple):
    """The torch, the day, the requirements, and the package that is upgraded on a later day, if any."""

    torch: str
    until: str
    requirements: tuple[str, ...]
    upgraded: str = ""
    upgraded_on: str = ""


def drawn(seed: int) -> Draw:
    """The stack of one seed, the same wherever the table of releases reaches as far back."""
    table = Path(__file__).parents[2] / "matrix" / "tables" / "release-history.toml"
    history: Mapping[str, Mapping[str, date]] = read_toml(table)["releases"]
    dice = Random(seed)
    day = _FIRST + timedelta(days=dice.randrange((_LAST - _FIRST).days))
    kind = dice.choice(("fresh", "older", "older", "older", "upgraded", "upgraded"))
    there = [name for name in _MORE if _newest(history[name], day)]
    chosen = [*_CORE, *sorted(dice.sample(there, dice.randint(2, 5)))]
    other = timedelta(days=dice.randint(200, 900))
    if kind == "upgraded":
        early = max(_FIRST, day - other)
        kept = [name for name in chosen if _newest(history[name], early)]
        return Draw(_torch(early), str(early), _with_numpy(kept, early), dice.choice(kept), str(day))
    if kind == "older":
        may = [name for name in chosen if _newest(history[name], day - other)]
        old = dice.sample(may, min(len(may), dice.randint(1, 2)))
        chosen = [f"{name}=={_newest(history[name], day - other)}" if name in old else name for name in chosen]
    return Draw(_torch(day), str(day), _with_numpy(chosen, day))


def _newest(releases: Mapping[str, date], day: date) -> str | None:
    known = [Version(each) for each, at in releases.items() if at <= day]
    final = [each for each in known if not each.is_prerelease]
    return str(max(final)) if final else None


def _torch(day: date) -> str:
    return [version for version, since in _TORCH.items() if since <= day][-1]


def _with_numpy(chosen: Sequence[str], day: date) -> tuple[str, ...]:
    """The older builds of torch work with numpy 1 alone."""
    return (*chosen, "numpy<2") if _TORCH[_torch(day)] < date(2024, 4, 1) else tuple(chosen)
