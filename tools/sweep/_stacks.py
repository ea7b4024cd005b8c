"""Which stacks are swept, the most telling first."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from packaging.version import Version

from compatcheck import matrix

DAY, NEWEST = "of its day", "newest"
TORCHES = ("2.1.2", "2.4.1", "2.8.0", "2.13.0")
"""The torch releases that stacks are built on: of a day, the last that was out; before them all, the first."""
LORA = {"training": {"lora": {"r": 4}}}
TRIALS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "packed_sequences, packed": ("packed_sequences", {"training": {"packing": True}}),
    "save_reload, LoRA": ("save_reload", LORA),
    "micro_training, LoRA": ("micro_training", LORA),
    "gradient_checkpointing, LoRA": ("gradient_checkpointing", LORA),
    "trl_dpo, dropout": ("trl_dpo", {"cases": ["attention dropout"]}),
    "packed_sequences, padding-free": ("packed_sequences", {"training": {"packing": True, "framework": "trl"}}),
    "micro_training, padded left": ("micro_training", {"training": {"padding_side": "left"}}),
}
"""Probes with a request, by the name of their column; any other column is a probe with its defaults."""
TRAINER = (
    *("gradient_accumulation", "micro_training", "packed_sequences", "gradient_checkpointing", "save_reload"),
    *("packed_sequences, packed", "save_reload, LoRA", "trainer_ranks"),
)
ADAPTERS = (*("save_reload, LoRA", "micro_training, LoRA", "gradient_checkpointing, LoRA", "low_precision_trainables"),)
TRL = ("trl_sft", "trl_dpo", "trl_dpo, dropout", "trl_reward", "trl_grpo")
ZERO = ("zero_gradients", "zero_backward_passes", "zero_default_clipping", "zero_init", "zero_training")
QUANTISED = ("quantized_linear", "optimizer_8bit")
KERNELS = (
    *("attention_masked", "matmul", "softmax", "layer_norm", "rms_norm", "cross_entropy", "embedding_backward"),
    *("reduction", "adamw", "gradient_clipping", "rotary_embedding", "bitwise_repeat", "all_reduce", "ddp_gradients"),
)


class Subject(NamedTuple):
    """A package whose releases are swept from ``since`` on, with what is installed beside it, and its columns."""

    since: str
    companions: tuple[str, ...]
    columns: tuple[str, ...]


SUBJECTS = {
    "transformers": Subject("4.31.0", ("accelerate", "peft", "trl"), TRAINER),
    "trl": Subject("0.7.0", ("transformers", "accelerate", "peft", "rich"), TRL),
    "deepspeed": Subject("0.10.0", ("transformers", "accelerate"), ZERO),
    "peft": Subject("0.4.0", ("transformers", "accelerate"), ADAPTERS),
    "bitsandbytes": Subject("0.41.0", (), QUANTISED),
    "torch": Subject("2.1.0", ("numpy",), KERNELS),
}
ALWAYS = ("numpy", "setuptools<80")


class Stack(NamedTuple):
    """What is installed: the release, the others as the index stood at ``until`` (None: now), and torch."""

    package: str
    version: str
    companions: str
    torch: str
    until: datetime.date | None
    requirements: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.package} {self.version}, {self.companions}"


def releases(package: str) -> dict[str, datetime.date]:
    """The swept releases of a package with their days, by the table of release days."""
    since = Version(SUBJECTS[package].since)
    return {version: day for version, day in _days(package).items() if Version(version) >= since}


@functools.cache
def _days(package: str) -> dict[str, datetime.date]:
    days = matrix.load().table("release-history")["releases"][package]
    return {version: datetime.date.fromisoformat(day) for version, day in days.items()}


def plan() -> Iterator[Stack]:
    """Every stack once, by how much it tells: minors of their day, minors beside the newest, then all patches."""
    first = [
        *_spread(_stacks("transformers", DAY, last=False)),
        *_spread(_stacks("trl", DAY)),
        *_spread(_stacks("deepspeed", DAY)),
        *_spread(_stacks("transformers", NEWEST)),
        *(stack for package in ("peft", "torch", "bitsandbytes") for stack in _spread(_stacks(package, DAY))),
    ]
    yield from first
    names = {stack.name for stack in first}
    for package in SUBJECTS:
        for companions in (DAY, NEWEST):
            every = (stack_of(package, version, companions) for version in releases(package))
            yield from (stack for stack in every if stack.name not in names)


def newest(latest: Callable[[str], str]) -> Iterator[Stack]:
    """The last release of each package beside the newest of the others; ``latest`` tells it of a package."""
    torch = latest("torch")
    for package in SUBJECTS:
        version = torch if package == "torch" else latest(package)
        yield stack_of(package, version, NEWEST)._replace(torch=torch)


def _stacks(package: str, companions: str, last: bool = True) -> list[Stack]:
    """One stack for each minor release: that of its last patch, or of its first."""
    minors: dict[tuple[int, ...], str] = {}
    for version in releases(package):
        minor = Version(version).release[:2]
        if last or minor not in minors:
            minors[minor] = version
    return [stack_of(package, version, companions) for version in minors.values()]


def stack_of(package: str, version: str, companions: str) -> Stack:
    """The stack of a release, of its day or with the newest packages."""
    subject = SUBJECTS[package]
    day = _days(package)[version] if companions == DAY else None
    torch = version if package == "torch" else torch_of(day)
    others = (*subject.companions, *ALWAYS)
    until = day + datetime.timedelta(days=1) if day else None
    own = () if package == "torch" else (f"{package}=={version}",)
    return Stack(package, version, companions, torch, until, (*own, *others), subject.columns)


def torch_of(day: datetime.date | None) -> str:
    """The last torch of those we build on that was out on a day; the first of them for a day before them all."""
    days = _days("torch")
    out = [version for version in TORCHES if day is None or days[version] <= day]
    return out[-1] if out else TORCHES[0]


def _spread(stacks: list[Stack]) -> Iterator[Stack]:
    """Every eighth stack, then those half-way between, and so on: what is cut short has still seen all times."""
    taken: set[int] = set()
    for step in (8, 4, 2, 1):
        for place in range(len(stacks) - 1, -1, -step):
            if place not in taken:
                taken.add(place)
                yield stacks[place]
