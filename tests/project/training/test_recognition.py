"""Over the samples of every reader: each belongs to its own and to no other, and travels through a snapshot."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from compatcheck.environment import Unknown
from compatcheck.environment.snapshot import load_snapshot
from compatcheck.project.python_values import Open
from compatcheck.project.training import reader_of, readers
from compatcheck.project.training.document import open_document

TRAINER = """\
output_dir: out
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
learning_rate: 2.0e-5
num_train_epochs: 1
bf16: true
save_steps: 100
"""
ACCELERATE = (
    "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nmixed_precision: bf16\nnum_processes: 2\n"
)
DEEPSPEED = '{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 1}'
FOLDER = Path(__file__).parent
SAMPLES = {
    **{
        name: samples
        for name in readers()
        if (FOLDER / f"test_{name}.py").exists()
        and (samples := getattr(importlib.import_module(f"{__package__}.test_{name}"), "SAMPLES", None))
    },
    "training_arguments": {"args.yaml": TRAINER},
    "accelerate": {"accelerate.yaml": ACCELERATE},
    "deepspeed": {"ds.json": DEEPSPEED},
}
CASES = [(reader, name) for reader, samples in SAMPLES.items() for name in samples]
NONE = {
    "values.yaml": "replicas: 2\nmodel: {name: a}\nbatch_size: 3\n",
    "package.json": '{"name": "a", "scripts": {"train": "x"}, "dependencies": {}}',
    "config.json": '{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64}',
    "setup.py": "from setuptools import setup\nsetup(name='a')\n",
    "train.py": "from xtuner.model import SupervisedFinetune\nmodel = SupervisedFinetune(llm=1)\n",
    "compose.yaml": "services:\n  a:\n    image: b\n",
    "empty.yaml": "",
}


def laid(tmp_path: Path, name: str, text: str) -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(("reader", "name"), CASES)
def test_a_file_belongs_to_its_own_reader_and_to_no_other(tmp_path: Path, reader: str, name: str) -> None:
    document = open_document(laid(tmp_path, name, SAMPLES[reader][name]))
    fitting = [
        each
        for each, module in readers().items()
        if name.endswith(module.SUFFIXES) and module.recognises(document) and not getattr(module, "GENERAL", False)
    ]
    assert fitting == ([] if reader == "training_arguments" else [reader])
    assert reader_of(document) == reader


@pytest.mark.parametrize(("reader", "name"), CASES)
def test_the_words_a_reader_is_looked_for_by_stand_in_its_files(reader: str, name: str) -> None:
    marks = getattr(readers()[reader], "MARKS", ())
    assert not marks or any(mark in SAMPLES[reader][name] for mark in marks)


@pytest.mark.parametrize("name", NONE)
def test_files_that_are_no_training_belong_to_no_reader(tmp_path: Path, name: str) -> None:
    assert reader_of(open_document(laid(tmp_path, name, NONE[name]))) is None


@pytest.mark.parametrize(("reader", "name"), [case for case in CASES if case[0] != "deepspeed"])
def test_what_a_reader_says_travels_through_a_snapshot(tmp_path: Path, reader: str, name: str) -> None:
    said = readers()[reader].read(open_document(laid(tmp_path, name, SAMPLES[reader][name])))
    environment = said.facts
    again = load_snapshot(json.dumps(environment.dump()), "snapshot")
    assert again.facts["training"] == environment.facts["training"]
    assert again.facts.get("model") == environment.facts.get("model")
    assert dict(again.reasons) == dict(environment.reasons)
    assert dict(again.locations) == dict(environment.locations)


@pytest.mark.parametrize(("reader", "name"), CASES)
def test_every_reason_and_every_place_is_of_a_fact_of_the_training_or_its_model(
    tmp_path: Path, reader: str, name: str
) -> None:
    said = readers()[reader].read(open_document(laid(tmp_path, name, SAMPLES[reader][name])))
    for path in (*said.facts.reasons, *said.facts.locations):
        assert path.split(".")[0] in ("training", "model"), path
    for path, why in said.facts.reasons.items():
        assert why.strip() and "\n" not in why, path
    for at in said.facts.locations.values():
        assert at.line is None or at.line > 0


MAPPINGS = [(reader, name) for reader, name in CASES if name.endswith((".yaml", ".yml", ".toml", ".json"))]


@pytest.mark.parametrize(("reader", "name"), [case for case in MAPPINGS if case[0] != "deepspeed"])
def test_a_key_that_is_no_word_is_passed_over(tmp_path: Path, reader: str, name: str) -> None:
    document = open_document(laid(tmp_path, name, SAMPLES[reader][name]))
    changed = document._replace(value={**document.value, 7: "x", None: 1})
    assert readers()[reader].recognises(changed)
    assert readers()[reader].read(changed).facts == readers()[reader].read(document).facts


@pytest.mark.parametrize(
    ("reader", "name", "key", "facts_left"),
    [
        ("llama_factory", "qlora.yml", "quantization_bit", ("training.quantization",)),
        ("llama_factory", "lora.yaml", "deepspeed", ("training.deepspeed",)),
        ("llama_factory", "lora.yaml", "flash_attn", ("training.attention",)),
        ("llama_factory", "lora.yaml", "bf16", ("training.dtype",)),
        ("axolotl", "qlora.yml", "load_in_4bit", ("training.quantization",)),
        ("axolotl", "old.yml", "deepspeed", ("training.deepspeed",)),
        ("ms_swift", "args.json", "quant_bits", ("training.quantization",)),
        ("ms_swift", "args.json", "bf16", ("training.dtype",)),
        ("ms_swift", "sft.yaml", "deepspeed", ("training.deepspeed",)),
        ("ms_swift", "sft.yaml", "per_device_train_batch_size", ("training.per_device_train_batch_size",)),
    ],
)
def test_a_value_that_the_script_does_not_set_leaves_its_facts_open(
    tmp_path: Path, reader: str, name: str, key: str, facts_left: tuple[str, ...]
) -> None:
    document = open_document(laid(tmp_path, name, SAMPLES[reader][name]))
    changed = document._replace(value={**document.value, key: Open("$X is not set here")})
    environment = readers()[reader].read(changed).facts
    for path in facts_left:
        found = environment.get(path)
        assert isinstance(found, Unknown) and "$X is not set here" in str(found.reason), path
