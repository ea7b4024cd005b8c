"""The kinds of the founding cases as ordinary project folders: nothing is stated by hand but the GPU."""

from __future__ import annotations

import pytest

from tests.situations.conftest import A100, Judge

QLORA = {
    "requirements.txt": (
        "torch==2.3.1\ntransformers==4.41.2\npeft==0.11.1\nbitsandbytes==0.43.1\naccelerate==0.30.1\ndatasets==2.19.1\n"
    ),
    "tune.py": """\
import torch
from peft import LoraConfig, TaskType, get_peft_model
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, Trainer, TrainingArguments

BASE = "mistralai/Mistral-7B-v0.3"


def quantized():
    settings = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.bfloat16)
    return AutoModelForCausalLM.from_pretrained(BASE, quantization_config=settings)


adapters = LoraConfig(task_type=TaskType.CAUSAL_LM, r=8, target_modules=["q_proj", "k_proj", "embed_tokens"])
model = get_peft_model(quantized(), adapters)
arguments = TrainingArguments("runs/one", per_device_train_batch_size=2, learning_rate=1e-4, bf16=True)
Trainer(model, arguments, train_dataset=rows).train()
""",
    "go.sh": "python tune.py\n",
}
ADAPTERS = "CC-2024-0044"
PREPARED = (
    "model = get_peft_model(quantized(), ",
    "from peft import prepare_model_for_kbit_training\n\n"
    "model = get_peft_model(prepare_model_for_kbit_training(quantized()), ",
)
QLORA_NEIGHBOURS: dict[str, dict[str, tuple[str, str]]] = {
    "loaded in bfloat16": {
        "tune.py": ("quantization_config=settings", "quantization_config=settings, torch_dtype=torch.bfloat16")
    },
    "prepared": {"tune.py": PREPARED},
    "adapters on attention alone": {"tune.py": (', "embed_tokens"', "")},
    "later peft": {"requirements.txt": ("peft==0.11.1", "peft==0.12.0")},
}


def test_adapters_in_float16(judge: Judge) -> None:
    judged = judge(QLORA, *A100)
    assert judged.exit_status == 1
    assert judged.affected[ADAPTERS].startswith("tune.py:")


@pytest.mark.parametrize("neighbour", QLORA_NEIGHBOURS)
def test_adapters_in_float32(judge: Judge, neighbour: str) -> None:
    judged = judge(QLORA, *A100, changes=QLORA_NEIGHBOURS[neighbour])
    assert judged == (0, {})


CHECKPOINTING = {
    "requirements.txt": "torch==2.3.0\ntransformers==4.40.2\npeft==0.11.1\naccelerate==0.30.1\n",
    "finetune.py": """\
import argparse

from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="weights")
options = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained(options.model, trust_remote_code=True)
arguments = TrainingArguments(output_dir="out", bf16=True, gradient_checkpointing=True)
Trainer(model=model, args=arguments, train_dataset=rows).train()
""",
    "weights/config.json": """{
  "model_type": "ourmodel",
  "architectures": ["OurModel"],
  "auto_map": {"AutoConfig": "configuration_our.OurConfig", "AutoModelForCausalLM": "modeling_our.OurModel"}
}
""",
    "weights/configuration_our.py": """\
from transformers import PretrainedConfig


class OurConfig(PretrainedConfig):
    model_type = "ourmodel"
""",
    "weights/modeling_our.py": """\
import torch
from transformers import PreTrainedModel

from .configuration_our import OurConfig


class OurModel(PreTrainedModel):
    config_class = OurConfig
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.blocks = torch.nn.ModuleList()
        self.gradient_checkpointing = False
        self.post_init()

    def gradient_checkpointing_enable(self, gradient_checkpointing_kwargs=None):
        pass
""",
}
NOOP = "CC-2024-0003"


def test_checkpointing_that_does_nothing(judge: Judge) -> None:
    judged = judge(CHECKPOINTING)
    assert judged == (1, {NOOP: "weights/modeling_our.py:17"})


CHECKPOINTING_NEIGHBOURS: dict[str, dict[str, tuple[str, str]]] = {
    "sets the flag": {"weights/modeling_our.py": ("        pass\n", "        self.gradient_checkpointing = True\n")},
    "inherited": {"weights/modeling_our.py": ("def gradient_checkpointing_enable(", "def another_method(")},
    "not asked for": {"finetune.py": ("gradient_checkpointing=True", "gradient_checkpointing=False")},
}


@pytest.mark.parametrize("neighbour", CHECKPOINTING_NEIGHBOURS)
def test_checkpointing_that_works(judge: Judge, neighbour: str) -> None:
    judged = judge(CHECKPOINTING, changes=CHECKPOINTING_NEIGHBOURS[neighbour])
    assert judged == (0, {})


ZERO_2 = """{
  "train_micro_batch_size_per_gpu": "auto",
  "gradient_accumulation_steps": "auto",
  "bf16": {"enabled": "auto"},
  "zero_optimization": {
    "stage": 2,
    "overlap_comm": true,
    "contiguous_gradients": true
  }
}
"""
OVERLAP = {
    "requirements.txt": (
        "torch==2.4.1\ntransformers==4.44.2\ndeepspeed==0.15.1\naccelerate==0.34.2\npeft==0.12.0\nllamafactory==0.9.0\n"
    ),
    "zero2.json": ZERO_2,
    "full.yaml": """\
model_name_or_path: Qwen/Qwen2.5-7B
stage: sft
do_train: true
finetuning_type: full
deepspeed: zero2.json
dataset: chats
template: qwen
output_dir: saves/full
per_device_train_batch_size: 1
bf16: true
""",
    "go.sh": "CUDA_VISIBLE_DEVICES=0,1,2,3 FORCE_TORCHRUN=1 llamafactory-cli train full.yaml\n",
}
ZERO_2_OVERLAP = "CC-2024-0021"


def test_gradients_of_zero_2_are_overwritten(judge: Judge) -> None:
    judged = judge(OVERLAP, *A100)
    assert judged.exit_status == 1
    assert judged.affected[ZERO_2_OVERLAP] == "zero2.json:6"


def test_the_same_by_a_script(judge: Judge) -> None:
    files = {
        "requirements.txt": OVERLAP["requirements.txt"],
        "conf/zero2.json": ZERO_2,
        "sft.py": """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

settings = dict(output_dir="out", bf16=True, deepspeed="conf/zero2.json")
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
Trainer(model=model, args=TrainingArguments(**settings), train_dataset=rows).train()
""",
        "sft.sh": "deepspeed --num_gpus 8 sft.py\n",
    }
    assert judge(files, *A100).affected[ZERO_2_OVERLAP] == "conf/zero2.json:6"


OVERLAP_NEIGHBOURS: dict[str, dict[str, tuple[str, str]]] = {
    "no overlap": {"zero2.json": ('"overlap_comm": true', '"overlap_comm": false')},
    "one GPU": {"go.sh": ("0,1,2,3", "0")},
    "stage 3": {"zero2.json": ('"stage": 2', '"stage": 3')},
}


@pytest.mark.parametrize("neighbour", OVERLAP_NEIGHBOURS)
def test_gradients_of_zero_2_are_kept(judge: Judge, neighbour: str) -> None:
    judged = judge(OVERLAP, *A100, changes=OVERLAP_NEIGHBOURS[neighbour])
    assert ZERO_2_OVERLAP not in judged.affected


XTUNER: dict[str, str] = {
    "requirements.txt": "torch==2.3.1\ntransformers==4.41.2\ndeepspeed==0.14.2\nxtuner==0.1.23\n",
    "qwen_full.py": """\
from torch.optim import AdamW
from transformers import AutoModelForCausalLM, AutoTokenizer
from xtuner.engine.runner import TrainLoop
from xtuner.model import SupervisedFinetune

pretrained_model_name_or_path = "Qwen/Qwen1.5-7B"
batch_size = 1
accumulative_counts = 8
max_length = 2048
pack_to_max_length = True
lr = 1e-5
max_norm = 1
tokenizer = dict(type=AutoTokenizer.from_pretrained, pretrained_model_name_or_path=pretrained_model_name_or_path)
model = dict(
    type=SupervisedFinetune,
    llm=dict(type=AutoModelForCausalLM.from_pretrained, pretrained_model_name_or_path=pretrained_model_name_or_path),
)
optim_wrapper = dict(
    type="AmpOptimWrapper", optimizer=dict(type=AdamW, lr=lr), accumulative_counts=accumulative_counts, dtype="float16"
)
train_cfg = dict(type=TrainLoop, max_epochs=1)
train_dataloader = dict(batch_size=batch_size)
""",
    "run.sh": "NPROC_PER_NODE=4 xtuner train qwen_full.py --deepspeed deepspeed_zero2\n",
}


def test_preset_of_xtuner(judge: Judge) -> None:
    judged = judge(XTUNER, *A100)
    assert judged.affected[ZERO_2_OVERLAP] == "run.sh:1"
    assert judged.exit_status == 1


def test_other_preset_of_xtuner(judge: Judge) -> None:
    judged = judge(XTUNER, *A100, changes={"run.sh": ("deepspeed_zero2", "deepspeed_zero1")})
    assert ZERO_2_OVERLAP not in judged.affected


PADDED = {
    "requirements.txt": "torch==2.5.0\ntransformers==4.47.0\npeft==0.13.2\naccelerate==1.1.1\ndatasets==3.1.0\n",
    "lora.py": """\
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, DataCollatorForSeq2Seq, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("base", torch_dtype=torch.bfloat16)
model = get_peft_model(model, LoraConfig(r=8, target_modules=["query_key_value"]))
arguments = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=4,
    bf16=True,
)
collator = DataCollatorForSeq2Seq(AutoTokenizer.from_pretrained("base"), padding=True)
Trainer(model=model, args=arguments, train_dataset=rows, data_collator=collator).train()
""",
    "base/config.json": '{"model_type": "glm", "architectures": ["GlmForCausalLM"], "torch_dtype": "bfloat16"}',
    "go.sh": "CUDA_VISIBLE_DEVICES=0 python lora.py\n",
}
NAN_GRADIENTS = "CC-2024-0001"


def test_padding_under_torch_2_5_0(judge: Judge) -> None:
    judged = judge(PADDED, *A100)
    assert judged.exit_status == 1
    assert judged.affected[NAN_GRADIENTS].startswith("lora.py:")


PADDED_NEIGHBOURS: dict[str, dict[str, tuple[str, str]]] = {
    "the fixed torch": {"requirements.txt": ("torch==2.5.0", "torch==2.5.1")},
    "another attention": {"lora.py": ("torch_dtype=torch.bfloat16", 'attn_implementation="eager"')},
}


@pytest.mark.parametrize("neighbour", PADDED_NEIGHBOURS)
def test_padding_that_does_no_harm(judge: Judge, neighbour: str) -> None:
    judged = judge(PADDED, *A100, changes=PADDED_NEIGHBOURS[neighbour])
    assert NAN_GRADIENTS not in judged.affected


ASCEND = {
    "requirements.txt": "torch==2.1.0\ntorch-npu==2.1.0\ntransformers==4.50.3\nllamafactory==0.9.2\n",
    "sft.yaml": """\
model_name_or_path: Qwen/Qwen2.5-0.5B
stage: sft
do_train: true
finetuning_type: lora
dataset: chats
template: qwen
output_dir: out
bf16: true
""",
    "sft.sh": "ASCEND_RT_VISIBLE_DEVICES=0,1 llamafactory-cli train sft.yaml\n",
}
OLD_TORCH = "CC-2025-1653"


def test_newer_transformers_on_an_older_torch_npu(judge: Judge) -> None:
    judged = judge(ASCEND)
    assert judged.exit_status == 1
    assert judged.affected[OLD_TORCH].startswith("requirements.txt:")


def test_older_transformers_on_an_older_torch_npu(judge: Judge) -> None:
    judged = judge(ASCEND, changes={"requirements.txt": ("4.50.3", "4.49.0")})
    assert OLD_TORCH not in judged.affected
