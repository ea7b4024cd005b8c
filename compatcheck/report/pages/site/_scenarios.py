"""The GPUs and training setups that the pages can be filtered by, as parts of a snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from compatcheck.report.pages.site._source import Choice, Entry

_MOST_MODELS = 8


class Scenario(NamedTuple):
    """A choice as it is called on a page, and the facts that it states."""

    label: str
    facts: Choice = {}


UNSTATED = Scenario("not stated")

GPUS = (
    Scenario("V100", {"gpus": [{"name": "Tesla V100-SXM2-32GB", "memory_mib": 32768}]}),
    Scenario("T4", {"gpus": [{"name": "Tesla T4", "memory_mib": 15360}]}),
    Scenario("A100", {"gpus": [{"name": "NVIDIA A100-SXM4-80GB", "memory_mib": 81920}]}),
    Scenario("RTX 4090", {"gpus": [{"name": "NVIDIA GeForce RTX 4090", "memory_mib": 24564}]}),
    Scenario("H100", {"gpus": [{"name": "NVIDIA H100 80GB HBM3", "memory_mib": 81559}]}),
    Scenario("B200", {"gpus": [{"name": "NVIDIA B200", "memory_mib": 183359}]}),
    Scenario("RTX 5090", {"gpus": [{"name": "NVIDIA GeForce RTX 5090", "memory_mib": 32607}]}),
)


def _setup(dtype: str, mixed: str, **stated: Any) -> Mapping[str, object]:
    usual = {"framework": "transformers", "quantization": None, "deepspeed": None, "lora": None}
    return {"training": {**usual, "dtype": dtype, "mixed_precision": mixed, **stated}}


def _full(**stated: Any) -> Mapping[str, Any]:
    return _setup("bfloat16", "bf16", method="full", **stated)


SETUPS = (
    Scenario("LoRA, fp16", _setup("float16", "fp16", method="lora", lora={}, load_dtype="float16")),
    Scenario("full, bf16, sdpa", _full(attention="sdpa")),
    Scenario("full, bf16, flash_attention_2", _full(attention="flash_attention_2")),
    Scenario("full, bf16, ZeRO-2", _full(deepspeed={"zero_stage": 2})),
    Scenario("full, bf16, ZeRO-3", _full(deepspeed={"zero_stage": 3})),
    Scenario(
        "QLoRA, 4 bit, bf16",
        _setup("bfloat16", "bf16", method="qlora", lora={}, quantization={"bits": 4, "method": "bitsandbytes"}),
    ),
)


def models(entries: Iterable[Entry]) -> tuple[Scenario, ...]:
    """The model types that most entries speak of, in the library's own implementation."""
    counted = Counter(kind for entry in entries for kind in _model_types(entry))
    most = sorted(counted, key=lambda kind: (-counted[kind], kind))[:_MOST_MODELS]
    return tuple(Scenario(kind, {"model": {"type": kind, "remote_code": False}}) for kind in sorted(most))


def _model_types(entry: Entry) -> set[str]:
    stated = [table["model.type"] for table in entry["affected"] if "model.type" in table]
    return {kind for each in stated for kind in ([each] if isinstance(each, str) else each)} - {"present", "absent"}
