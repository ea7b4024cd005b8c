"""What training scripts decide: each snippet with the facts it gives, and where they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Environment, Unknown
from compatcheck.project.reading import read_paths

HEAD = """\
import torch
from peft import IA3Config, LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig, GPTQConfig, Trainer, TrainingArguments
from trl import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer
"""
LOAD = 'model = AutoModelForCausalLM.from_pretrained("acme/seven")\n'
COLLATOR = "from transformers import DataCollatorForLanguageModeling\n"
MADE = 'Trainer(model=model, args=TrainingArguments(output_dir="out")).train()\n'
FOUR = 'BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16)'


def said(tmp_path: Path, body: str, head: str = HEAD) -> Environment:
    script = tmp_path / "train.py"
    script.write_text(head + body, encoding="utf-8")
    return read_paths([str(script)]).environment


def test_a_trainer_of_pipelines_has_no_arguments_of_the_trainer_and_no_model_of_transformers(tmp_path: Path) -> None:
    facts = said(
        tmp_path,
        'scorer = CLIPModel.from_pretrained("acme/clip")\n'
        "DDPOTrainer(DDPOConfig(num_epochs=2), scorer, prompts, pipeline).train()\n",
        "from transformers import CLIPModel\nfrom trl import DDPOConfig, DDPOTrainer\n",
    )
    assert facts.get("training.objective") == "ddpo"
    assert not facts.section("training.arguments") and not facts.section("model")
    assert facts.get("training.per_device_train_batch_size") == Unknown()


def test_what_a_function_makes_is_no_method_of_quantization(tmp_path: Path) -> None:
    facts = said(
        tmp_path,
        "from trl import get_quantization_config\n"
        'model = AutoModelForCausalLM.from_pretrained("a/b", quantization_config=get_quantization_config(given))\n'
        + MADE,
    )
    assert isinstance(facts.get("training.quantization"), Unknown)
    assert not facts.states("training.load_dtype")


@pytest.mark.parametrize(
    ("body", "facts"),
    [
        (LOAD + MADE, {"framework": "transformers", "quantization": None, "lora": None, "method": "full"}),
        (LOAD + MADE, {"arguments.eval_strategy": "no", "arguments.eval_steps": Unknown()}),
        (
            LOAD + MADE.replace('"out"', '"out", eval_strategy="steps", logging_steps=7'),
            {"arguments.eval_steps": 7},
        ),
        (LOAD + MADE, {"gradient_accumulation_steps": 1, "unsloth": False, "resume_from_checkpoint": False}),
        (
            "load = AutoModelForCausalLM.from_pretrained\n"
            'model = load("a/b", torch_dtype=torch.float16, attn_implementation="eager")\n' + MADE,
            {"load_dtype": "float16", "attention": "eager"},
        ),
        (
            'SFTTrainer(model="a/b", args=SFTConfig("out", model_init_kwargs={"torch_dtype": "bfloat16"})).train()\n',
            {"attention_rule": "default", "load_dtype": "bfloat16"},
        ),
        (
            'SFTTrainer("a/b", args=SFTConfig("out", model_init_kwargs={"attn_implementation": "eager"})).train()\n',
            {"attention_rule": Unknown(), "attention": "eager"},
        ),
        (
            f'model = AutoModelForCausalLM.from_pretrained("a/b", quantization_config={FOUR})\n'
            "model = get_peft_model(model, LoraConfig(r=4))\n" + MADE,
            {
                "quantization.bits": 4,
                "quantization.type": "nf4",
                "quantization.compute_dtype": "bfloat16",
                "quantization.double_quant": False,
                "load_dtype": None,
                "lora.r": 4,
                "lora.lora_alpha": 8,
                "method": "qlora",
                "kbit_prepared": False,
            },
        ),
        (
            f'model = AutoModelForCausalLM.from_pretrained("a/b", quantization_config={FOUR})\n'
            "model = prepare_model_for_kbit_training(model)\n"
            "model = get_peft_model(model, LoraConfig(r=4))\n" + MADE,
            {"kbit_prepared": True, "gradient_checkpointing": True},
        ),
        (
            'model = AutoModelForCausalLM.from_pretrained("a/b", quantization_config=GPTQConfig(bits=3))\n' + MADE,
            {"quantization.method": "gptq", "quantization.bits": 3},
        ),
        (LOAD + "model = get_peft_model(model, IA3Config())\n" + MADE, {"method": "ia3"}),
        (LOAD + "model.gradient_checkpointing_enable()\n" + MADE, {"gradient_checkpointing": True}),
        (LOAD + "model.config.use_cache = False\n" + MADE, {"use_cache": False}),
        (
            'tokenizer = AutoTokenizer.from_pretrained("a/b")\ntokenizer.padding_side = "right"\n' + LOAD + MADE,
            {"padding_side": "right"},
        ),
        (LOAD + "torch.backends.cuda.enable_cudnn_sdp(False)\n" + MADE, {"cudnn_sdp": False}),
        (
            COLLATOR + LOAD + "collator = DataCollatorForLanguageModeling(None, mlm=False)\n" + MADE,
            {"model_class": "AutoModelForCausalLM", "labels": "inputs"},
        ),
        (COLLATOR + LOAD + "collator = DataCollatorForLanguageModeling(None)\n" + MADE, {"labels": None}),
        (LOAD + MADE, {"labels": Unknown()}),
        (
            'SFTTrainer("acme/seven", args=SFTConfig(bf16=True, packing=True), peft_config=LoraConfig(r=2)).train()\n',
            {"framework": "trl", "objective": "sft", "packing": True, "lora.r": 2, "dtype": "bfloat16"},
        ),
        (
            'GRPOTrainer(model="acme/seven", args=GRPOConfig(use_vllm=True), train_dataset=None).train()\n',
            {"objective": "grpo", "use_vllm": True, "lora": None},
        ),
        (LOAD + 'Trainer(model, TrainingArguments("out", fp16=True)).train(True)\n', {"resume_from_checkpoint": True}),
        (
            LOAD + "can = torch.cuda.is_bf16_supported()\n"
            'Trainer(model, TrainingArguments("out", bf16=can, fp16=not can)).train()\n',
            {"dtype_rule": "bfloat16-if-supported"},
        ),
    ],
)
def test_a_script_states_the_facts_of_its_calls(tmp_path: Path, body: str, facts: dict[str, Any]) -> None:
    environment = said(tmp_path, body)
    assert {path: environment.get(f"training.{path}") for path in facts} == facts


@pytest.mark.parametrize(
    ("head", "body", "facts"),
    [
        (
            "from unsloth import FastLanguageModel\nfrom trl import SFTConfig, SFTTrainer\n",
            'model, tokenizer = FastLanguageModel.from_pretrained("unsloth/seven", max_seq_length=512)\n'
            "model = FastLanguageModel.get_peft_model(model, r=16)\n"
            "SFTTrainer(model=model, args=SFTConfig()).train()\n",
            {"unsloth": True, "quantization.bits": 4, "method": "qlora", "max_length": 512, "framework": "trl"},
        ),
        (
            "from accelerate import Accelerator\n",
            'accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=3)\n',
            {"framework": "accelerate", "dtype": "bfloat16", "gradient_accumulation_steps": 3},
        ),
        (
            "from accelerate import Accelerator, DeepSpeedPlugin\n",
            "accelerator = Accelerator(deepspeed_plugin=DeepSpeedPlugin(zero_stage=3))\n",
            {"deepspeed.zero_stage": 3},
        ),
        (
            "import lightning as L\n",
            'L.Trainer(precision="16-mixed", devices=4, strategy="fsdp", accumulate_grad_batches=2).fit(None)\n',
            {"framework": "lightning", "dtype": "float16", "world_size": 4, "deepspeed": None, "fsdp": {}},
        ),
        (
            "import deepspeed\n",
            'deepspeed.initialize(model=None, config={"zero_optimization": {"stage": 2}, "bf16": {"enabled": True}})\n',
            {"framework": "deepspeed", "deepspeed.zero_stage": 2, "deepspeed.bf16.enabled": True},
        ),
        (
            "import torch\nfrom torch.distributed.fsdp import fully_shard\n",
            "model = torch.nn.Linear(2, 2)\nfully_shard(model)\n"
            'with torch.autocast("cuda", dtype=torch.bfloat16):\n    loss = model(None)\nloss.backward()\n',
            {"fsdp.version": 2, "mixed_precision": "bf16"},
        ),
    ],
)
def test_other_libraries_have_their_own_words(tmp_path: Path, head: str, body: str, facts: dict[str, Any]) -> None:
    environment = said(tmp_path, body, head)
    assert {path: environment.get(f"training.{path}") for path in facts} == facts


@pytest.mark.parametrize(
    ("body", "fact", "reason"),
    [
        (LOAD + "Trainer(model, TrainingArguments('o', fp16=torch.cuda.is_available())).train()\n", "dtype", ""),
        (
            "def train(use_lora):\n    "
            + LOAD
            + "    if use_lora:\n        model = get_peft_model(model, LoraConfig(r=4))\n"
            "    " + MADE + "import sys\ntrain(bool(sys.argv[1:]))\n",
            "lora",
            "",
        ),
        (
            LOAD + "args = TrainingArguments('o', gradient_accumulation_steps=2)\n"
            "other = TrainingArguments('o', gradient_accumulation_steps=4)\n"
            "Trainer(model, args).train()\nTrainer(model, other).train()\n",
            "gradient_accumulation_steps",
            "lines 6, 7",
        ),
        (LOAD + "settings = load()\nTrainer(model, TrainingArguments(**settings)).train()\n", "max_grad_norm", ""),
    ],
)
def test_what_is_computed_or_differs_is_unknown(tmp_path: Path, body: str, fact: str, reason: str) -> None:
    value = said(tmp_path, body).get(f"training.{fact}")
    assert isinstance(value, Unknown), value
    assert value.reason and reason in value.reason


def test_each_fact_has_the_line_of_its_argument(tmp_path: Path) -> None:
    body = LOAD + "args = TrainingArguments(\n    output_dir='out',\n    bf16=True,\n)\nTrainer(model, args).train()\n"
    environment = said(tmp_path, body)
    assert environment.locations["training.dtype"].line == 8
    assert environment.get("training.calls.transformers.TrainingArguments") == ["bf16", "output_dir"]
    assert environment.get("training.calls.transformers.from_pretrained") == ["pretrained_model_name_or_path"]


@pytest.mark.parametrize(
    "body",
    [
        'model = AutoModelForCausalLM.from_pretrained("a/b")\nmodel.generate()\n',
        LOAD + "Trainer(model, TrainingArguments('o')).evaluate()\n",
    ],
)
def test_a_script_without_a_training_is_none(tmp_path: Path, body: str) -> None:
    (tmp_path / "use.py").write_text(HEAD + body, encoding="utf-8")
    assert not read_paths([str(tmp_path)]).environment.facts.get("training")
