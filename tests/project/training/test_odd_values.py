"""A value that cannot be read leaves its fact unknown, with the reason and the line, in every format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Unknown
from compatcheck.environment.snapshot import load_snapshot
from compatcheck.project.python_values import Open, Reference
from compatcheck.project.reading import read_paths
from compatcheck.project.training import readers
from compatcheck.project.training._values import ATTENTION, DTYPE, FLAG, LABELS, NUMBER, SIDE, TEXT, WHOLE, Kind
from compatcheck.project.training.document import Document, open_document
from tests.project.training import test_recognition, test_verl
from tests.project.training.test_recognition import laid

HUGE = 10**400
ODD: tuple[Any, ...] = (
    *(None, [], {}, "", "word", "auto", "AUTO", -1, 0, 1, 2.5, True, HUGE, float("inf"), float("nan"), [[1]]),
    *({"a": {"b": 1}}, "${BATCH}", "$BATCH", "{{ batch }}", "x-${a}", ["${a}"], "yes", "off", "2e-5", Open("not set")),
    Reference("torch.float16"),
)
SAMPLES = {
    **test_recognition.SAMPLES,
    "verl": {"verl.yaml": test_verl.WHOLE},
    "accelerate": {
        "accelerate.yaml": test_recognition.ACCELERATE,
        "deepspeed.yaml": "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\ndeepspeed_config:\n"
        "  zero_stage: 3\n  gradient_clipping: 1.0\n  gradient_accumulation_steps: 2\n"
        "  offload_optimizer_device: cpu\nmixed_precision: bf16\nnum_processes: 2\n",
    },
    "deepspeed": {
        "ds.json": '{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "overlap_comm": true},'
        ' "compile": {"enabled": true}, "optimizer": {"type": "AdamW"}, "fp16": {"enabled": true}}'
    },
}
SHORT = ("train.json", "prompt.json", "linear.json", "ds.json")
CASES = [(reader, name) for reader, samples in SAMPLES.items() for name in samples if not name.endswith(".py")]


def paths_of(value: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*keys, key)
            yield from paths_of(inner, (*keys, key))


def put(value: dict[str, Any], keys: tuple[str, ...], odd: Any) -> dict[str, Any]:
    first, *rest = keys
    return {**value, first: put(value[first], tuple(rest), odd) if rest else odd}


def changed(document: Document, odd: Any) -> Iterator[tuple[tuple[str, ...], Document]]:
    """The document with an odd value at each of its keys in turn, as far as it still belongs to its reader."""
    for keys in paths_of(document.value):
        yield keys, document._replace(value=put(document.value, keys, odd))


@pytest.mark.parametrize(("reader", "name"), CASES)
def test_no_value_is_refused(tmp_path: Path, reader: str, name: str) -> None:
    document = open_document(laid(tmp_path, name, SAMPLES[reader][name]))
    module = readers()[reader]
    for odd in ODD:
        for _, other in changed(document, odd):
            if not module.recognises(other):
                continue
            said = module.read(other)
            load_snapshot(json.dumps(said.facts.dump()), "snapshot")
            assert all(why.strip() and "\n" not in why for why in said.facts.reasons.values())
            assert "${" not in str(said.facts.facts) + str(said.names)


@pytest.mark.parametrize(("reader", "name"), [case for case in CASES if case[1] not in SHORT])
def test_no_fact_is_stated_at_the_place_of_a_placeholder(tmp_path: Path, reader: str, name: str) -> None:
    document = open_document(laid(tmp_path, name, SAMPLES[reader][name]))
    module = readers()[reader]
    for keys, other in changed(document, "${BATCH}"):
        if not module.recognises(other) or isinstance(document.value.get(keys[0]), dict):
            continue
        place = document.place(keys)
        said = module.read(other)
        here = [fact for fact, at in said.facts.locations.items() if at == place and at.line]
        assert here == [], keys


TABLE = [
    (
        "axolotl",
        "qlora.yml",
        "micro_batch_size: 2",
        "micro_batch_size: 2.5",
        "per_device_train_batch_size",
        "is 2.5",
    ),
    ("axolotl", "qlora.yml", "bf16: true", "bf16: sometimes", "dtype", "bf16 is 'sometimes', not true or false"),
    ("axolotl", "qlora.yml", "adapter: qlora", "adapter: [qlora]", "method", "adapter is ['qlora'], not a word"),
    ("axolotl", "qlora.yml", "flash_attention: true", "flash_attention: 7", "attention", "flash_attention is 7"),
    ("axolotl", "qlora.yml", "deepspeed:\n", "deepspeed: 3\n", "deepspeed", "not the path of a DeepSpeed JSON"),
    (
        "llama_factory",
        "lora.yaml",
        "size: 2\n",
        "size: ${BATCH}\n",
        "per_device_train_batch_size",
        "is filled in",
    ),
    ("llama_factory", "lora.yaml", "lora_rank: 16", "lora_rank: [16]", "lora.r", "lora_rank is [16], not a number"),
    ("llama_factory", "lora.yaml", "bf16: true", "bf16: maybe", "dtype", "bf16 is 'maybe', not true or false"),
    ("llama_factory", "lora.yaml", "flash_attn: fa2", "flash_attn: fast", "attention", "flash_attn is 'fast'"),
    ("llama_factory", "lora.yaml", "stage: sft", "stage: sfft", "objective", "stage is 'sfft', not one of pt, sft"),
    ("llama_factory", "lora.yaml", "packing: true", "packing: perhaps", "packing", "packing is 'perhaps'"),
    (
        "llama_factory",
        "lora.yaml",
        "template: qwen",
        "template: {a: 1}",
        "template",
        "template is a mapping",
    ),
    ("llama_factory", "lora.yaml", "5.0e-5", ".inf", "learning_rate", "learning_rate is inf, not a number"),
    ("ms_swift", "args.json", '"padding_side": "right"', '"padding_side": "top"', "padding_side", "not left or right"),
    ("ms_swift", "args.json", '"torch_dtype": "bfloat16"', '"torch_dtype": 16', "load_dtype", "not a known dtype"),
    ("ms_swift", "args.json", '"packing": false', '"packing": "perhaps"', "packing", "packing is 'perhaps'"),
    ("ms_swift", "args.json", '"lora_rank": 8', f'"lora_rank": {HUGE}', "lora.r", "lora_rank is 1000"),
    (
        "nemo",
        "lora.yaml",
        "precision: bf16",
        "precision: half",
        "mixed_precision",
        "precision is 'half', the value is not 16",
    ),
    ("nemo", "lora.yaml", "batch_size: 2", "batch_size: x", "per_device_train_batch_size", "not a whole number"),
    ("peft_adapter", "adapter_config.json", '"r": 16', '"r": "big"', "lora.r", "r is 'big', not a number"),
    ("torchtune", "qlora.yaml", "packed: False", "packed: 3", "packing", "dataset.packed is 3, not true or false"),
    ("torchtune", "qlora.yaml", "dtype: bf16", "dtype: 16", "dtype", "dtype is 16, not a known dtype"),
    ("verl", "verl.yaml", "lora_alpha: 16", "lora_alpha: many", "lora.lora_alpha", "is 'many', not a number"),
    ("deepspeed", "ds.json", '"stage": 2', '"stage": "two"', "deepspeed.zero_stage", "stage is 'two', not a whole"),
    ("deepspeed", "ds.json", '"stage": 2', '"stage": Infinity', "deepspeed.zero_stage", "not a whole number"),
    ("deepspeed", "ds.json", '{"enabled": true}, "opt', '7, "opt', "deepspeed.compile", "compile is 7, not a mapping"),
]


@pytest.mark.parametrize(("reader", "name", "old", "new", "fact", "why"), TABLE)
def test_the_reason_names_the_value_and_its_line(
    tmp_path: Path, reader: str, name: str, old: str, new: str, fact: str, why: str
) -> None:
    text = SAMPLES[reader][name]
    assert text.count(old) >= 1
    path = laid(tmp_path, name, text.replace(old, new))
    found = readers()[reader].read(open_document(path)).facts.get(f"training.{fact}")
    assert isinstance(found, Unknown)
    line = text[: text.index(old)].count("\n") + 1
    assert why in str(found.reason) and str(found.reason).endswith(f" ({name}:{line})")


def test_a_placeholder_does_not_end_a_check(tmp_path: Path) -> None:
    for reader, name in CASES:
        text = SAMPLES[reader][name]
        laid(tmp_path, name, re.sub(r": [0-9][0-9.e-]*(?=[,}\n])", ': "${VALUE}"', text))
        read_paths([str(tmp_path / name)])


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (FLAG, {"yes": True, "Off": False, 1: True, 0: False, "2": None, 2: None, "": None, 0.5: None}),
        (
            NUMBER,
            {"2e-5": 2e-5, "5": 5, 7: 7, 2.5: 2.5, "inf": None, HUGE: None, True: None, "1" * 50: None},
        ),
        (WHOLE, {"5e8": 500_000_000, 5e8: 500_000_000, 2.5: None, "3": 3, float("nan"): None, False: None, HUGE: None}),
        (TEXT, {"a": "a", "": "", 1: None, None: None}),
        (SIDE, {"left": "left", "right": "right", "top": None, 1: None}),
        (DTYPE, {"BF16": "bfloat16", "torch.half": "float16", Reference("torch.float16"): "float16", 16: None}),
        (ATTENTION, {"fa2": "flash_attention_2", "SDPA": "sdpa", "fast": None, True: None}),
        (LABELS, {"a, b": ["a", "b"], "": [], ("a", "b"): ["a", "b"], (1, 2): None, 3: None}),
    ],
    ids=lambda value: value.mismatch if isinstance(value, Kind) else "",
)
def test_kinds(kind: Kind[Any], values: dict[Any, Any]) -> None:
    for value, expected in values.items():
        assert kind.parse(value) == expected, value
