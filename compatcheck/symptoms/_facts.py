"""What a log states of its own environment: banners, dumps of settings, the Trainer's summary of the run.

Only what says plainly what it is counts. What the later run of a log states stands for the earlier one's.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import Any

from compatcheck.environment import Environment, Location
from compatcheck.packages.interface_errors import MARKS as INTERFACE_MARKS
from compatcheck.packages.interface_errors import missing_name
from compatcheck.packages.interface_failures import Failure, add_failure, read_failure, to_fact
from compatcheck.packages.traceback_frames import MOST_LINES

MARKS = (
    *INTERFACE_MARKS,
    "ersion",
    "DeepSpeed info",
    "batch size",
    "ccumulation steps",
    ":print]",
    "Arguments(",
    "Config(",
    "DataParallel",
    "PyTorch: ",
    "MMEngine: ",
)
_VERSION = r"(\d+\.\d+[\w.+]*?)(?=[,;)\s'\"]|\Z)"
_PACKAGES = "transformers|torch|pytorch|deepspeed|peft|accelerate|trl|bitsandbytes|xtuner|tokenizers|flash[-_]attn"
_NAMED = (
    (re.compile(rf"\bDeepSpeed info: version={_VERSION}"), "deepspeed"),
    (re.compile(rf"\b(?i:({_PACKAGES}))`?(?:\.__version__| version)\s*[:=]\s*v?{_VERSION}"), None),
    (re.compile(rf"\bPyTorch: {_VERSION}"), "torch"),
    (re.compile(rf"\bMMEngine: {_VERSION}"), "mmengine"),
)
_ARGUMENT = re.compile(r"\A\s*(?:\S*\s)?(\w+)=(.*)\Z")
_SETTING = re.compile(r"\[config\.py:\d+:print\]\s+(\w+)\s+(?:\.+\s+)?(.+?)\s*\Z")
_ZERO = re.compile(r"\b['\"]?(\w+)['\"]?(?:=|: )([^\s=]+)")
_SUMMARY = re.compile(
    r"(Instantaneous batch size per device|Total train batch size[^=]*|Gradient Accumulation steps) = ([\d,]+)"
)
_OPTIMIZER = re.compile(r"OptimizerNames\.(\w+)|\A['\"]?([a-z_0-9]+)['\"]?\Z")

_MOST_FAILURES = 20
_ZERO_FLAGS = ("overlap_comm", "contiguous_gradients", "reduce_scatter", "use_multi_rank_bucket_allreduce")
_DUMP = re.compile(r"(?:TrainingArguments|(?:SFT|DPO|KTO|ORPO|GRPO|Reward)Config)\(\s*\Z")


def _integer(text: str) -> int | None:
    cleaned = text.replace(",", "").replace("_", "").strip()
    try:
        return int(float(cleaned)) if cleaned else None
    except (ValueError, OverflowError):
        return None


def _flag(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.strip().strip("'\"").lower())


_ARGUMENTS: dict[str, Callable[[str], Any]] = {
    "per_device_train_batch_size": _integer,
    "gradient_accumulation_steps": _integer,
    "gradient_checkpointing": _flag,
    "torch_compile": _flag,
}


class StatedFacts:
    """Takes the lines that may state a fact and keeps the facts with their lines."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._found: dict[str, tuple[Any, int]] = {}
        self._in_dump = False
        self._half: dict[str, bool] = {}
        self._sizes: dict[str, int] = {}
        self._failures: list[Failure] = []
        self._above: deque[str] = deque(maxlen=MOST_LINES)
        self._last = 0

    def __bool__(self) -> bool:
        """Whether a dump of settings is open, so that every line may belong to it."""
        return self._in_dump

    def pass_by(self, number: int, text: str) -> None:
        """Keep a line that may be the frame of an error below it."""
        if number > self._last + 1:
            self._above.clear()
        self._above.append(text)
        self._last = number

    def feed(self, number: int, text: str) -> None:
        if self._in_dump:
            self._argument(number, text)
            return
        if _DUMP.search(text):
            self._in_dump, self._half = True, {}
            return
        self._versions(number, text)
        if any(mark in text for mark in INTERFACE_MARKS):
            self._failure(number, text)
        if "DataParallel so batch size" in text:
            self._sizes.clear()
        summary = _SUMMARY.search(text)
        if summary:
            self._summarise(number, summary[1], int(summary[2].replace(",", "")))
        setting = _SETTING.search(text)
        if setting:
            self._setting(number, setting[1], setting[2])

    def facts(self) -> Environment:
        known: dict[str, Any] = {}
        locations: dict[str, Location] = {}
        for path, (value, line) in self._found.items():
            head, _, name = path.partition(".")
            keys = [head, name] if head == "distributions" else path.split(".")
            inner = known
            for key in keys[:-1]:
                inner = inner.setdefault(key, {})
            inner[keys[-1]] = value
            locations[path] = Location(self._path, line)
        return Environment(known, {}, locations)

    def _state(self, path: str, value: object, number: int) -> None:
        if value is not None:
            self._found[path] = (value, number)

    def _versions(self, number: int, text: str) -> None:
        for regex, name in _NAMED:
            for match in regex.finditer(text):
                words = match.groups()
                said = (name or words[0].lower()).replace("_", "-").replace("pytorch", "torch")
                self._state(f"distributions.{said}", words[-1].rstrip("."), number)

    def _failure(self, number: int, text: str) -> None:
        """What errors say is missing, each once, with the line of the first."""
        failure = read_failure([*self._above, text])
        if failure is None or len(self._failures) == _MOST_FAILURES:
            return
        self._failures = add_failure(self._failures, failure)
        first = self._found.get("interface_errors", (None, number))[1]
        self._state("interface_errors", [to_fact(each) for each in self._failures], first)
        missing = [said for each in self._failures if (said := missing_name(each.error))]
        if missing:
            self._state("missing_names", missing, self._found.get("missing_names", (None, number))[1])

    def _argument(self, number: int, text: str) -> None:
        if text.strip() in (")", "),"):
            self._in_dump = False
            return
        match = _ARGUMENT.match(text)
        if match is None:
            self._in_dump = False
            return
        key, value = match[1], match[2].rstrip(", ")
        if key in _ARGUMENTS:
            self._state(f"training.{key}", _ARGUMENTS[key](value), number)
        elif key == "optim":
            optimizer = _OPTIMIZER.search(value)
            self._state("training.optimizer", (optimizer[1] or optimizer[2]).lower() if optimizer else None, number)
        elif key in ("bf16", "fp16") and (flag := _flag(value)) is not None:
            self._half[key] = flag
            self._precision(number)

    def _precision(self, number: int) -> None:
        """A dtype is stated where one of the two half precisions is on; where none is, the model's own is in use."""
        if self._half.get("bf16"):
            self._state("training.dtype", "bfloat16", number)
        elif self._half.get("fp16"):
            self._state("training.dtype", "float16", number)

    def _summarise(self, number: int, label: str, value: int) -> None:
        """The Trainer's own counts; how many processes there are follows from the product."""
        name = label.split(" ")[0].lower()
        self._sizes[name] = value
        if name == "instantaneous":
            self._sizes = {name: value}
            self._state("training.per_device_train_batch_size", value, number)
        elif name == "gradient":
            self._state("training.gradient_accumulation_steps", value, number)
            each, total = self._sizes.get("instantaneous"), self._sizes.get("total")
            if each and value and total and total % (each * value) == 0:
                self._state("training.world_size", total // (each * value), number)

    def _setting(self, number: int, key: str, value: str) -> None:
        """A line of the configuration that DeepSpeed's engine prints.

        https://github.com/deepspeedai/DeepSpeed/blob/master/deepspeed/runtime/config.py
        """
        section = "training.deepspeed"
        if key == "zero_optimization_stage":
            self._state(f"{section}.zero_stage", _integer(value), number)
        elif key == "gradient_accumulation_steps":
            self._state("training.gradient_accumulation_steps", _integer(value), number)
        elif key == "train_micro_batch_size_per_gpu":
            self._state("training.per_device_train_batch_size", _integer(value), number)
        elif key == "world_size":
            self._state("training.world_size", _integer(value), number)
        elif key in ("bfloat16_enabled", "fp16_enabled"):
            self._half["bf16" if key[0] == "b" else "fp16"] = value == "True"
            self._precision(number)
        elif key == "zero_config":
            stated = {name: said.strip(",{}'\"") for name, said in reversed(_ZERO.findall(value))}
            for name in _ZERO_FLAGS:
                self._state(f"{section}.{name}", _flag(stated.get(name, "")), number)
            self._state(f"{section}.reduce_bucket_size", _integer(stated.get("reduce_bucket_size", "")), number)
