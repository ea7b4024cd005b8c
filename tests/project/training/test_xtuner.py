from __future__ import annotations

import ast
import json
import os
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compatcheck.environment import Location, Unknown
from compatcheck.environment.snapshot import load_snapshot
from compatcheck.errors import InputError
from compatcheck.project.training._python_config import _plain
from compatcheck.project.training._python_value import Evaluator, Open
from compatcheck.project.training.document import Configuration, open_document
from compatcheck.project.training.formats import xtuner

QLORA = """\
import torch
from datasets import load_dataset
from mmengine.optim import AmpOptimWrapper
from peft import LoraConfig
from torch.optim import AdamW
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig

from xtuner.dataset import process_hf_dataset
from xtuner.model import SupervisedFinetune
from xtuner.utils import PROMPT_TEMPLATE

path = 'internlm/internlm2-chat-7b'
use_varlen_attn = False
prompt_template = PROMPT_TEMPLATE.internlm2_chat
max_length = 2048
pack_to_max_length = True
sequence_parallel_size = 2
batch_size = 1  # per_device
accumulative_counts = 8
accumulative_counts *= sequence_parallel_size
optim_type = AdamW
lr = 2e-4
max_norm = 1

tokenizer = dict(
    type=AutoTokenizer.from_pretrained,
    pretrained_model_name_or_path=path,
    padding_side='right')
model = dict(
    type=SupervisedFinetune,
    llm=dict(
        type=AutoModelForCausalLM.from_pretrained,
        pretrained_model_name_or_path=path,
        torch_dtype=torch.float16,
        quantization_config=dict(
            type=BitsAndBytesConfig,
            load_in_4bit=True,
            load_in_8bit=False,
            bnb_4bit_compute_dtype=torch.float16,
            bnb_4bit_use_double_quant=True,
            bnb_4bit_quant_type='nf4')),
    lora=dict(type=LoraConfig, r=64, lora_alpha=16, bias='none'))
train_dataset = dict(
    type=process_hf_dataset,
    dataset=dict(type=load_dataset, path='tatsu-lab/alpaca'),
    max_length=max_length,
    template_map_fn=dict(type=PROMPT_TEMPLATE, template=prompt_template),
    pack_to_max_length=pack_to_max_length)
train_dataloader = dict(batch_size=batch_size, dataset=train_dataset)
optim_wrapper = dict(
    type=AmpOptimWrapper,
    optimizer=dict(type=optim_type, lr=lr),
    clip_grad=dict(max_norm=max_norm, error_if_nonfinite=False),
    accumulative_counts=accumulative_counts,
    loss_scale='dynamic',
    dtype='float16')
train_cfg = dict(max_epochs=3)
custom_hooks = []
if use_varlen_attn:
    custom_hooks += [dict(type=AmpOptimWrapper)]
resume = False
"""
TRAINER = """\
from peft import LoraConfig
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
import torch
from xtuner.dataset import process_hf_dataset

framework = 'huggingface'
trainer = Trainer
training_args = dict(
    type=TrainingArguments, learning_rate=3e-4, per_device_train_batch_size=1,
    gradient_accumulation_steps=16, num_train_epochs=1, fp16=True, optim='adamw_torch')
model = dict(
    type=AutoModelForCausalLM.from_pretrained, pretrained_model_name_or_path='meta-llama/Llama-2-70b-hf',
    torch_dtype=torch.float16, load_in_8bit=True)
lora = dict(type=LoraConfig, r=16, lora_alpha=16, target_modules=['gate_proj', 'down_proj'])
train_dataset = dict(type=process_hf_dataset, max_length=2048, pack_to_max_length=False)
"""
FULL = """\
# as XTuner 0.1.3 had it
from bitsandbytes.optim import PagedAdamW32bit
from mmengine.optim import AmpOptimWrapper
from transformers import AutoModelForCausalLM
from xtuner.model import SupervisedFinetune
model = dict(
    type=SupervisedFinetune,
    llm=dict(type=AutoModelForCausalLM.from_pretrained, pretrained_model_name_or_path='meta-llama/Llama-2-7b-hf'))
train_dataloader = dict(batch_size=2, num_workers=0)
optim_wrapper = dict(type=AmpOptimWrapper, optimizer=dict(type=PagedAdamW32bit, lr=2e-5 * 0.1), dtype='bfloat16')
train_cfg = dict(by_epoch=True, max_epochs=1, val_interval=1)
"""
SAMPLES = {"qlora.py": QLORA, "trainer.py": TRAINER, "full.py": FULL}


def read(tmp_path: Path, text: str, name: str = "config.py") -> Configuration:
    path = tmp_path / name
    path.write_text(text)
    document = open_document(str(path))
    assert xtuner.recognises(document)
    return xtuner.read(document)


def fact(said: Configuration, path: str) -> Any:
    return said.facts.get(path)


def test_a_qlora_training_is_read_with_the_lines_where_its_values_are_given(tmp_path: Path) -> None:
    said = read(tmp_path, QLORA)
    expected = {
        "model.name": ("internlm/internlm2-chat-7b", 12),
        "training.template": ("internlm2_chat", 14),
        "training.max_length": (2048, 15),
        "training.packing": (True, 16),
        "training.per_device_train_batch_size": (1, 18),
        "training.gradient_accumulation_steps": (16, 20),
        "training.optimizer": ("adamw_torch", 21),
        "training.learning_rate": (2e-4, 22),
        "training.max_grad_norm": (1, 23),
        "training.padding_side": ("right", 28),
        "training.objective": ("sft", 30),
        "training.quantization.bits": (4, 37),
        "training.quantization.compute_dtype": ("float16", 39),
        "training.quantization.double_quant": (True, 40),
        "training.quantization.type": ("nf4", 41),
        "training.lora.r": (64, 42),
        "training.num_train_epochs": (3, 57),
    }
    for path, (value, at) in expected.items():
        assert fact(said, path) == value, path
        assert said.facts.locations[path] == Location(str(tmp_path / "config.py"), at), path
    assert fact(said, "training.method") == "qlora"
    assert fact(said, "training.kbit_prepared") is True
    assert fact(said, "training.gradient_checkpointing") is True
    assert fact(said, "training.lora.target_modules") == ["all-linear"]


def test_the_dtype_hangs_on_how_it_is_launched(tmp_path: Path) -> None:
    said = read(tmp_path, QLORA)
    for path in ("training.dtype", "training.load_dtype", "training.deepspeed", "training.attention"):
        assert isinstance(fact(said, path), Unknown), path
    assert "float16 in this file" in str(fact(said, "training.dtype").reason)
    document = open_document(str(tmp_path / "config.py"))
    alone = xtuner.launched(document, None)
    assert fact(alone, "training.dtype") == "float16"
    assert fact(alone, "training.mixed_precision") == "fp16"
    assert fact(alone, "training.deepspeed") is None
    sharded = xtuner.launched(document, "deepspeed_zero3")
    assert sharded.names["deepspeed"] == "deepspeed_zero3"
    assert isinstance(fact(sharded, "training.dtype"), Unknown)
    assert isinstance(fact(sharded, "training.quantization.compute_dtype"), Unknown)


def test_its_trainer_mode_is_read_by_the_names_of_transformers(tmp_path: Path) -> None:
    said = read(tmp_path, TRAINER)
    assert fact(said, "training.dtype") == "float16"
    assert fact(said, "training.load_dtype") == "float16"
    assert fact(said, "training.gradient_accumulation_steps") == 16
    assert fact(said, "training.quantization") == {"bits": 8, "method": "bitsandbytes"}
    assert fact(said, "training.method") == "lora"
    assert fact(said, "training.lora.target_modules") == ["gate_proj", "down_proj"]
    assert fact(said, "training.packing") is False


def test_a_full_training_of_an_old_release_is_read(tmp_path: Path) -> None:
    said = read(tmp_path, FULL)
    assert fact(said, "training.method") == "full"
    assert fact(said, "training.lora") is None
    assert fact(said, "training.quantization") is None
    assert fact(said, "training.optimizer") == "paged_adamw_32bit"
    assert fact(said, "training.learning_rate") == pytest.approx(2e-6)
    assert fact(said, "training.gradient_accumulation_steps") == 1
    assert fact(xtuner.launched(open_document(str(tmp_path / "config.py")), None), "training.dtype") == "bfloat16"


def test_deepspeed_in_the_file_itself_is_told(tmp_path: Path) -> None:
    strategy = "strategy = dict(type='DeepSpeedStrategy', zero_optimization=dict(stage=2, overlap_comm=True))\n"
    said = read(tmp_path, FULL + strategy)
    assert said.inlined["deepspeed"].value["zero_optimization"] == {"stage": 2, "overlap_comm": True}
    assert said.inlined["deepspeed"].place(("zero_optimization", "stage")).line == 12
    computed = read(tmp_path, FULL + "strategy = dict(zero_optimization=dict(stage=pick()))\n")
    assert isinstance(fact(computed, "training.deepspeed"), Unknown)


CHILD = """\
_base_ = ['./bases/model.py', 'bases/data.py']
model = dict(llm=dict(torch_dtype='bfloat16', attn_implementation='sdpa'), lora=dict(_delete_=True, r=4))
train_dataloader = dict(batch_size={{_base_.size}})
optim_wrapper = dict(accumulative_counts=2 * _base_.size)
"""
BASES = {
    "bases/model.py": "from xtuner.model import SupervisedFinetune\nsize = 3\nmodel = dict(\n"
    "    type=SupervisedFinetune,\n    llm=dict(pretrained_model_name_or_path='a/b', torch_dtype='float16'),\n"
    "    lora=dict(r=64, lora_alpha=16))\n",
    "bases/data.py": "train_dataloader = dict(\n    batch_size=1, dataset=dict(max_length=512))\n"
    "optim_wrapper = dict(type='AmpOptimWrapper', accumulative_counts=1, dtype='float16')\n",
}


def laid(tmp_path: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_bases_are_merged_as_mmengine_does_and_keep_their_places(tmp_path: Path) -> None:
    laid(tmp_path, BASES)
    said = read(tmp_path, CHILD)
    assert fact(said, "training.load_dtype") == "bfloat16"
    assert fact(said, "training.attention") == "sdpa"
    assert fact(said, "model.name") == "a/b"
    assert fact(said, "training.lora.r") == 4
    assert isinstance(fact(said, "training.lora.lora_alpha"), Unknown)
    assert fact(said, "training.per_device_train_batch_size") == 3
    assert fact(said, "training.gradient_accumulation_steps") == 6
    where = {path: (os.path.basename(at.file), at.line) for path, at in said.facts.locations.items()}
    assert where["model.name"] == ("model.py", 5)
    assert where["training.max_length"] == ("data.py", 2)
    assert where["training.load_dtype"] == ("config.py", 2)


LITERALS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(LITERALS)
def test_literals_have_the_value_they_have_in_python(value: Any) -> None:
    evaluator = Evaluator("config.py")
    for statement in ast.parse(f"a = {value!r}\nb = [a, {{'c': a}}]\nd = b[1].c").body:
        evaluator.run(statement)
    assert _plain(evaluator.names["d"], (), {}) == value


@given(
    st.recursive(
        st.integers(-9, 9).map(str),
        lambda inner: st.tuples(inner, st.sampled_from("+-*/%"), inner).map(lambda parts: f"({' '.join(parts)})"),
        max_leaves=8,
    )
)
def test_arithmetic_has_the_value_it_has_in_python(text: str) -> None:
    found = Evaluator("config.py").value(ast.parse(text, mode="eval").body).value
    try:
        assert found == eval(text)
    except ZeroDivisionError:
        assert isinstance(found, Open)


def test_read_base_brings_names_in_and_statements_change_them(tmp_path: Path) -> None:
    laid(tmp_path, BASES)
    text = (
        "from mmengine.config import read_base\nwith read_base():\n    from .bases.model import *\n"
        "    from .bases.data import train_dataloader as data, optim_wrapper\n"
        "model.llm.torch_dtype = 'float32'\nmodel['llm'].update(attn_implementation='eager')\n"
        "data.update(dict(batch_size=size + 1))\ntrain_dataloader = data\n"
        "a, (b, c) = 1, (2, 3)\noptim_wrapper.accumulative_counts = c if size >= 3 and not False else b\n"
    )
    said = read(tmp_path, text)
    assert fact(said, "training.load_dtype") == "float32"
    assert fact(said, "training.attention") == "eager"
    assert fact(said, "training.per_device_train_batch_size") == 4
    assert fact(said, "training.gradient_accumulation_steps") == 3


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"config.py": "_base_ = './gone.py'\n"}, "config.py: the base file ./gone.py does not exist"),
        ({"config.py": "_base_ = './x.json'\n"}, "is not a Python file"),
        ({"config.py": "_base_ = [pick()]\n"}, "line 2: _base_ is not a path"),
        ({"config.py": "_base_ = 'config.py'\n"}, "the _base_ files form a cycle"),
        ({"config.py": "_base_ = 'a.py'\n", "a.py": "_base_ = 'config.py'\n"}, "the _base_ files form a cycle"),
        (
            {"config.py": "_base_ = ['a.py', 'b.py']\n", "a.py": "lr = 1\n", "b.py": "lr = 2\n"},
            "two of the base files set lr",
        ),
        (
            {"config.py": "_base_ = 'a.py'\n", "a.py": "train_cfg = 3\n"},
            "train_cfg is a mapping here but not in the base",
        ),
        ({"config.py": "_base_ = 'a.py'\n", "a.py": "lr = = 2\n"}, "a.py: line 1: invalid syntax"),
    ],
)
def test_what_cannot_be_merged_is_told_in_one_line(tmp_path: Path, files: dict[str, str], told: str) -> None:
    head = "import xtuner\n"
    tail = "model = dict(type=xtuner.SFT)\n"
    tail += "" if "train_cfg =" in files["config.py"] else "train_cfg = dict(max_epochs=1)\n"
    laid(tmp_path, {**files, "config.py": head + files["config.py"] + tail})
    document = open_document(str(tmp_path / "config.py"))
    assert xtuner.recognises(document)
    with pytest.raises(InputError) as error:
        xtuner.read(document)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


HOSTILE = {
    "a command": "lr = __import__('os').system('touch {mark}')",
    "an opened file": "lr = open('{mark}', 'w').read()",
    "a comprehension": "lr = [open(m, 'w') for m in ['{mark}']]",
    "a lambda": "lr = (lambda: open('{mark}', 'w'))()",
    "a loop": "for i in range(9**9):\n    open('{mark}', 'w')\n    lr = i",
    "a class": "class A:\n    open('{mark}', 'w')\nlr = A()",
    "a walrus": "lr = (x := open('{mark}', 'w'))",
    "a bomb of exponents": "lr = 9**9**9",
    "a bomb of exponents in steps": "a = 10**17\n" + "a = a * a\n" * 60 + "lr = a",
    "a bomb of floats": "lr = 1e308 * 1e308",
    "a bomb of a string": "lr = 'x' * 10**12",
    "a bomb of a list": "lr = [0] * 10**12",
    "a bomb of shifts": "lr = 1 << 10**10",
    "doubled lists": "a = [0]\n" + "a = a + a\n" * 60 + "lr = a",
    "doubled strings": "a = 'x'\n" + "a = a + a\n" * 60 + "lr = a",
    "a division by zero": "lr = 1 / 0",
    "a long chain of attributes": "import torch\nlr = torch" + ".a" * 60 + "()",
    "a long chain of subscripts": "a = {}\nlr = a" + "['x']" * 60,
    "nested conditions": "lr = " + "(1 if x else " * 40 + "2" + ")" * 40,
    "an f-string": 'lr = f\'{{open("{mark}", "w")}}\'',
    "a decorator": "@open('{mark}', 'w')\ndef lr(): pass",
    "a default": "def lr(a=open('{mark}', 'w')): pass",
    "an assertion": "assert open('{mark}', 'w')\nlr = exec('1')",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_of_a_configuration_is_run_and_it_costs_little(tmp_path: Path, name: str) -> None:
    mark = tmp_path / "mark"
    code = HOSTILE[name].replace("{mark}", str(mark)).replace("{{", "{").replace("}}", "}")
    tracemalloc.start()
    began = time.perf_counter()
    said = read(tmp_path, f"{code}\n{FULL.replace('lr=2e-5 * 0.1', 'lr=lr')}")
    seconds, (_, peak) = time.perf_counter() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not mark.exists()
    assert isinstance(fact(said, "training.learning_rate"), Unknown)
    assert fact(said, "training.per_device_train_batch_size") == 2
    assert seconds < 5
    assert peak < 32 << 20


@pytest.mark.parametrize(
    "code",
    [
        "a = [0]\n" + "a = [a, a]\n" * 40 + "train_cfg = a\n",
        "a = {}\n" + "a = dict(x=a, y=a)\n" * 40 + "train_cfg = a\n",
        "a = [0]\n" + "a = [a]\n" * 5000 + "train_cfg = a\n",
        "a = [0]\n" + "a = [a]\n" * 100 + "train_cfg = a\n",
        "a = {}\na['x'] = a\n",
        "a = [0, 1, 2, 3]\n" + "a = [*a, *a]\n" * 10 + "b = [*a]\n" * 3000,
        "a = " + "1 + " * 20_000 + "1\n",
    ],
)
def test_what_grows_out_of_proportion_is_refused_in_one_line(tmp_path: Path, code: str) -> None:
    path = tmp_path / "config.py"
    path.write_text(FULL + code)
    began = time.perf_counter()
    with pytest.raises(InputError) as error:
        xtuner.read(open_document(str(path)))
    assert "\n" not in str(error.value)
    assert time.perf_counter() - began < 10


def test_code_that_is_not_run_leaves_open_what_it_may_change(tmp_path: Path) -> None:
    changes = (
        "llm = model['llm']\nllm.setdefault('torch_dtype', 1)\n"
        "for part in (train_dataloader,):\n    part['batch_size'] = 9\n"
        "if pick():\n    train_cfg = dict(max_epochs=7)\n"
    )
    said = read(tmp_path, FULL + changes)
    assert isinstance(fact(said, "model.name"), Unknown)
    assert isinstance(fact(said, "training.per_device_train_batch_size"), Unknown)
    assert isinstance(fact(said, "training.num_train_epochs"), Unknown)
    assert fact(said, "training.optimizer") == "paged_adamw_32bit"


@pytest.mark.parametrize(
    "text",
    [
        "from xtuner.model import SupervisedFinetune\n\n\ndef main():\n    model = 1\n",
        "_base_ = 'mask_rcnn.py'\nmodel = dict(type='MaskRCNN')\noptim_wrapper = dict(type='AmpOptimWrapper')\n",
        "from xtuner.v1.train import TrainerConfig\nmodel = 1\ntrainer = TrainerConfig()\n",
    ],
)
def test_programs_and_configurations_of_others_are_not_claimed(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.py"
    path.write_text(text)
    assert not xtuner.recognises(open_document(str(path)))


@pytest.mark.parametrize("text", [QLORA, TRAINER, FULL])
def test_whatever_is_assigned_is_read_or_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.py"
    path.write_text(text)
    document = open_document(str(path))
    places = [each for each in ast.walk(document.value) if isinstance(each, (ast.Assign, ast.keyword))]
    for place in places:
        kept = place.value
        for wrong in (
            "None",
            "[]",
            "{}",
            "'word'",
            "-1",
            "2.5",
            "True",
            "f()",
            "[[1]]",
            "dict(a=dict(b=1))",
            "torch.x",
        ):
            place.value = ast.copy_location(ast.parse(wrong, mode="eval").body, kept)
            for read_as in (xtuner.read, lambda document: xtuner.launched(document, None)):
                try:
                    said = read_as(document)
                except InputError as error:
                    assert "\n" not in str(error)
                    continue
                load_snapshot(json.dumps(said.facts.dump()), "snapshot")
        place.value = kept
