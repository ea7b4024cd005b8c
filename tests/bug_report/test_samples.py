"""Reports in the ways people really paste them: what each settles, and what it leaves open. The values are made up."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from compatcheck.bug_report import read_report
from compatcheck.environment import Unknown
from compatcheck.environment.snapshot import load_snapshot


class Sample(NamedTuple):
    name: str
    text: str
    known: dict[str, Any]
    open: tuple[str, ...] = ()


SAMPLES = [
    Sample(
        "a script that is pasted whole",
        """It dies at the first step:
```python
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

steps = 6
teacher = AutoModelForCausalLM.from_pretrained("acme/large")
model = AutoModelForCausalLM.from_pretrained("acme/small", torch_dtype=torch.float16, attn_implementation="eager")
model = get_peft_model(model, LoraConfig(r=4, target_modules=["q_proj"]))
torch.backends.cuda.enable_cudnn_sdp(False)
Trainer(model=model, args=TrainingArguments("out", fp16=True, gradient_accumulation_steps=steps)).train()
```
""",
        {
            "model.name": "acme/small",
            "training.framework": "transformers",
            "training.load_dtype": "float16",
            "training.attention": "eager",
            "training.gradient_accumulation_steps": 6,
            "training.lora.r": 4,
            "training.cudnn_sdp": False,
        },
    ),
    Sample(
        "trainer and adapter arguments in a piece of code",
        """I ran
```
args = GRPOConfig(
    use_vllm=True, vllm_mode="colocate",
    use_liger_kernel=True,
    max_grad_norm=0.3,
    gradient_checkpointing_kwargs={"use_reentrant": False},
)
config = LoraConfig(use_dora=True, use_rslora=False)
```
""",
        {
            "training.use_vllm": True,
            "training.use_liger_kernel": True,
            "training.max_grad_norm": 0.3,
            "training.gradient_checkpointing_kwargs.use_reentrant": False,
            "training.lora.use_dora": True,
        },
        ("training.lora.use_rslora",),
    ),
    Sample(
        "a full training whose log prints the switches of adapters",
        "```\nfinetuning_type: full\nuse_dora: False\npredict_with_generate: False\n```",
        {"training.predict_with_generate": False},
        ("training.lora",),
    ),
    Sample(
        "a trainer of the reporter's own",
        """My trainer:
```python
from transformers import Trainer

class CustomTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):
        return model(**inputs).loss
```
""",
        {"trainer.traits": ["compute-loss-lacks-num-items"]},
    ),
    Sample(
        "a trainer in one block and its arguments in another",
        """
```
from transformers import Trainer
class CustomTrainer(Trainer):
    def log(self, logs): print(logs)
```
and
```
from transformers import TrainingArguments
args = TrainingArguments("out", evaluation_strategy="no")
```
""",
        {"trainer.traits": ["evaluation-strategy-given", "trainer-log-lacks-start-time"]},
    ),
    Sample(
        "a trainer that takes what is handed over, and code that is no whole Python",
        """
```python
from transformers import Trainer
class CustomTrainer(Trainer):
    def compute_loss(self, model, inputs, **kwargs): ...
```
```
from transformers import Trainer
class CustomTrainer(Trainer):
    def log(self, logs):
  ...
```
""",
        {},
        ("trainer",),
    ),
    Sample(
        "packages that are called the latest",
        "It fails with the latest versions of `peft` and trl, DeepSpeed is the newest release. numpy (latest)",
        {f"report.newest.{name}": True for name in ("peft", "trl", "deepspeed", "numpy")},
    ),
    Sample(
        "packages that are called the latest in Chinese",
        "我用的是最新版的transformers\npeft 已经是最新版本",
        {"report.newest.transformers": True, "report.newest.peft": True},
    ),
    Sample(
        "a repository's head, and main as another word",
        "on the latest transformers from main\naxolotl (main branch)\nimage: vllm:main\n"
        "the torch main process\nthe main transformers problem\nbuilt deepspeed from source\n"
        "deepspeed: main.py\nvllm on master and worker nodes\nmerged into peft main.",
        {},
        ("report",),
    ),
    Sample(
        "what is called the latest and is no release that is there",
        "The latest peft needs torch 2.6.\nnot the latest trl\n"
        "不是最新的accelerate\nimage vllm:latest\nI took the latest transformers checkpoint\n"
        "I updated to the latest datasets\nI don't use the latest accelerate\nsee the latest peft PR\n别用最新的 trl",
        {},
        ("report",),
    ),
    Sample(
        "a model that a sentence in Chinese names",
        "用 THUDM/chatglm3-6b做 lora 微调，训练 and/or 推理都报错",
        {"model.name": "THUDM/chatglm3-6b"},
    ),
    Sample(
        "a model that a sentence names",
        "I am fine-tuning Qwen/Qwen2.5-7B with LoRA.",
        {"model.name": "Qwen/Qwen2.5-7B"},
    ),
    Sample("two cards", "使用 A100/H100 训练，用 torch2.5/cuda12，使用2080Ti/3090", {}, ("model.name",)),
    Sample("two models by a stroke", "I train Llama-2-7B/Llama-2-13B on it.", {}, ("model.name",)),
    Sample("a fraction of a training", "Training 3/4 of it, train and/or test v2/v3 of the data.", {}, ("model.name",)),
    Sample(
        "a name behind a call that loads something else",
        '```python\nAutoModelForCausalLM.from_pretrained(\n    path\n)\n"Qwen/Qwen2-7B"\n```',
        {},
        ("model.name",),
    ),
    Sample("several cards that nobody counts", "单机多卡训练，LoRA 卡住", {"training.several_ranks": True}),
    Sample("multi-GPU training", "Multi-GPU fine-tuning hangs at the first step.", {"training.several_ranks": True}),
    Sample("a count in words", "Fine-tuning on two A100 GPUs hangs.", {"training.world_size": 2}),
    Sample("a launcher's flag", "accelerate launch --multi_gpu hangs here.", {"training.several_ranks": True}),
    Sample("a kind of run", "DDP training, distributed_type MULTI_GPU", {"training.several_ranks": True}),
    Sample("flex attention", "Training with flex_attention is slow.", {"training.attention": "flex_attention"}),
    Sample("DDP", "SFT with DDP crashes.", {"training.several_ranks": True}),
    Sample("a size of tensor parallelism", "tensor parallel size of 4, fp8", {"training.several_ranks": True}),
    Sample("tensor parallelism", "It hangs with tensor parallelism.", {"training.several_ranks": True}),
    Sample(
        "no tensor parallelism",
        "I use --tensor-parallel-size 1 and tensor parallel 1.",
        {},
        ("training.several_ranks",),
    ),
    Sample("many cards that train nothing", "The machine has multiple GPUs.", {}, ("training.several_ranks",)),
    Sample(
        "a server over several cards",
        "```\nvllm serve Qwen/Qwen2-7B -tp 4\n```",
        {"training.several_ranks": True, "model.name": "Qwen/Qwen2-7B"},
    ),
    Sample("a server on one card", "```\nvllm serve Qwen/Qwen2-7B -tp 1\n```", {}, ("training.several_ranks",)),
    Sample(
        "a traceback through LLaMA-Factory and the trainers that it runs",
        """  File "/home/u/LLaMA-Factory/src/llamafactory/train/kto/workflow.py", line 80, in run_kto
    train_result = trainer.train()
  File "/opt/v/lib/python3.10/site-packages/trl/trainer/kto_trainer.py", line 1200, in compute_loss
  File "/opt/v/lib/python3.10/site-packages/transformers/trainer.py", line 2100, in train""",
        {"training.framework": "llama-factory", "training.objective": "kto"},
    ),
    Sample(
        "a traceback of TRL beside a command that starts the Trainer",
        """```bash
torchrun --nproc_per_node 2 train.py --output_dir out --per_device_train_batch_size 2 --learning_rate 1e-5
```

```
  File "C:\\v\\Lib\\site-packages\\trl\\trainer\\dpo_trainer.py", line 1200, in compute_loss
```""",
        {"training.framework": "trl", "training.objective": "dpo", "training.world_size": 2},
    ),
    Sample(
        "a framework that a sentence trains with",
        "I fine-tune Qwen/Qwen2.5-7B with LLaMA-Factory.",
        {"training.framework": "llama-factory", "model.name": "Qwen/Qwen2.5-7B"},
    ),
    Sample(
        "frameworks in Chinese, of which one is not used",
        "使用ms-swift微调，loss 为 0。不用 xtuner 训练没有这个问题。",
        {"training.framework": "ms-swift"},
    ),
    Sample(
        "a framework of which only the version is told",
        "torch 2.5.0, with axolotl 0.6.0 installed. Training works with LLaMA-Factory/src only.",
        {"distributions.axolotl": "0.6.0"},
        ("training.framework",),
    ),
    Sample(
        "environment variables",
        """```bash
export VLLM_ROCM_USE_AITER=1
  export NCCL_P2P_DISABLE="1"  # consumer cards
export HF_ACCESS_TOKEN=abc
export CUDA_HOME=$HOME/cuda
VLLM_USE_V1=0 NCCL_ALGO=Ring vllm serve acme/seven-b
```

```python
os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
```""",
        {
            "environ.VLLM_ROCM_USE_AITER": "1",
            "environ.NCCL_P2P_DISABLE": "1",
            "environ.VLLM_USE_V1": "0",
            "environ.NCCL_ALGO": "Ring",
            "environ.PYTORCH_ALLOC_CONF": "expandable_segments:True",
        },
        ("environ.HF_ACCESS_TOKEN", "environ.CUDA_HOME"),
    ),
    Sample("prompt tuning", "Prompt tuning of Llama with peft gives nonsense.", {"training.method": "prompt_tuning"}),
    Sample("P-Tuning", "用 p-tuning 训练", {"training.method": "p_tuning"}),
    Sample("ChatGLM's own P-Tuning v2", "ChatGLM-6B P-Tuning v2 报错", {}, ("training.method",)),
    Sample(
        "a strategy of Lightning",
        'I train with PyTorch Lightning and strategy="deepspeed_stage_3".',
        {"training.framework": "lightning", "training.deepspeed.zero_stage": 3},
    ),
    Sample(
        "a stage of LLaMA-Factory",
        "I run `--stage rm` and stage: 3 of ZeRO",
        {"training.objective": "reward"},
    ),
    Sample(
        "a command without DeepSpeed beside two stages of ZeRO",
        "llamafactory-cli train `\nZero-2 has this error, but Zero-3 is OK.",
        {"training.framework": "llama-factory", "training.deepspeed.zero_stage": 2},
    ),
    Sample(
        "settings of FSDP",
        "My config has `fsdp_cpu_ram_efficient_loading: true` and fsdp_offload_params: false in it",
        {"training.fsdp.cpu_ram_efficient_loading": True, "training.fsdp.offload": False},
    ),
    Sample(
        "variables that somebody advises",
        "I tried this, and it helped:\n\n```\nexport NCCL_P2P_DISABLE=1\n```",
        {},
        ("environ.NCCL_P2P_DISABLE",),
    ),
    Sample(
        "a variable that two lines set differently",
        "```\nexport VLLM_USE_V1=1\nVLLM_USE_V1=0 python serve.py\n```",
        {},
        ("environ.VLLM_USE_V1",),
    ),
    Sample(
        "a job of Ray",
        """```
ray job submit --address="http://127.0.0.1:8265" \\
   -- python3 -m openrlhf.cli.train_ppo_ray \\
   --actor_num_nodes 1 --actor_num_gpus_per_node 8 --vllm_num_engines 2
```""",
        {"training.framework": "openrlhf", "training.world_size": 8, "training.use_vllm": True},
    ),
    Sample(
        "a traceback of Ray workers",
        """(TaskRunner pid=71) ray.exceptions.RayTaskError: ray::TaskRunner.run()
(TaskRunner pid=71)   File "/opt/verl/verl/trainer/ppo/ray_trainer.py", line 912, in fit
(WorkerDict pid=93)   File "/opt/verl/verl/workers/fsdp_workers.py", line 540, in generate_sequences""",
        {"training.framework": "verl"},
        ("training.objective",),
    ),
    Sample(
        "a trainer that builds on another",
        """  File "/v/lib/python3.11/site-packages/trl/trainer/gkd_trainer.py", line 90, in __init__
  File "/v/lib/python3.11/site-packages/trl/trainer/sft_trainer.py", line 300, in __init__""",
        {"training.framework": "trl"},
        ("training.objective",),
    ),
    Sample(
        "a traceback of an import",
        """  File "/v/lib/python3.11/site-packages/trl/trainer/sft_trainer.py", line 40, in <module>
  File "/v/lib/python3.11/site-packages/transformers/trainer.py", line 60, in <module>""",
        {"python": "3.11"},
        ("training.framework", "training.objective"),
    ),
    Sample(
        "trainers of which neither runs the other",
        """  File "/v/lib/python3.11/site-packages/pytorch_lightning/trainer/trainer.py", line 40, in fit

And here it starts:

```python
trainer = Trainer(model)
```""",
        {"python": "3.11"},
        ("training.framework",),
    ),
    Sample(
        "a traceback through generate()",
        """  File "/opt/v/lib/python3.10/site-packages/transformers/generation/utils.py", line 1989, in generate
    result = self._sample(""",
        {"training.predict_with_generate": True, "python": "3.10"},
    ),
    Sample(
        "a script that switches what no configuration does",
        """```python
torch.backends.cuda.enable_cudnn_sdp(False)
torch.use_deterministic_algorithms(True, warn_only=True)
torch.utils.deterministic.fill_uninitialized_memory = False
trainer.model_accepts_loss_kwargs = False
deepspeed.utils.set_z3_leaf_modules(model, [MixtralSparseMoeBlock])
answer, history = model.chat(tokenizer, "Hello")
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", attn_implementation="sdpa")
```""",
        {
            "training.cudnn_sdp": False,
            "training.attention": "sdpa",
            "training.deterministic": True,
            "training.fill_uninitialized_memory": False,
            "training.model_accepts_loss_kwargs": False,
            "training.deepspeed.leaf_modules": True,
            "training.predict_with_generate": True,
        },
    ),
    Sample(
        "a configuration under headings, behind the lines of llamafactory-cli env",
        """- `llamafactory` version: 0.9.2
- PyTorch version: 2.5.1+cu124 (GPU)
- DeepSpeed version: 0.14.4

### Reproduction

### model
model_name_or_path: /data/Qwen2.5-7B

### method
stage: sft
do_train: true
finetuning_type: lora
deepspeed: examples/deepspeed/ds_z3_config.json

### dataset
template: qwen

### train
per_device_train_batch_size: 1
gradient_accumulation_steps: 2
learning_rate: 1.0e-4
cutoff_len: 2048
bf16: true
""",
        {"training.method": "lora", "training.dtype": "bfloat16", "training.max_length": 2048},
        ("training.deepspeed.zero_stage",),
    ),
    Sample(
        "a command that PowerShell continues by backticks",
        """### Reproduction

llamafactory-cli train `
    --stage sft `
    --model_name_or_path D:\\models\\qwen-7b `
    --finetuning_type lora `
    --per_device_train_batch_size 2 `
    --gradient_accumulation_steps 6 `
    --fp16 True
""",
        {
            "training.method": "lora",
            "training.per_device_train_batch_size": 2,
            "training.gradient_accumulation_steps": 6,
            "training.dtype": "float16",
            "model.name": "qwen-7b",
        },
    ),
    Sample(
        "transformers env of 2024",
        """### System Info

- `transformers` version: 4.48.0
- Platform: Linux-5.15.0-107-generic-x86_64-with-glibc2.31
- Python version: 3.10.14
- Huggingface_hub version: 0.27.1
- Safetensors version: 0.5.2
- Accelerate version: 1.2.1
- Accelerate config:    not found
- PyTorch version (GPU?): 2.5.0+cu118 (True)
- Tensorflow version (GPU?): not installed (NA)
- Jax version: not installed
- Using distributed or parallel set-up in script?: <fill in>
- Using GPU in script?: <fill in>
- GPU type: NVIDIA A100-SXM4-80GB
""",
        {
            "distributions.transformers": "4.48.0",
            "distributions.torch": "2.5.0+cu118",
            "distributions.huggingface-hub": "0.27.1",
            "distributions.tensorflow": None,
            "distributions.jax": None,
            "python": "3.10.14",
            "platform.libc": "glibc 2.31",
            "platform.machine": "x86_64",
            "gpus": ["NVIDIA A100-SXM4-80GB"],
        },
        ("cuda.runtime", "cuda.toolkit", "cuda.driver_api"),
    ),
    Sample(
        "transformers env of 2026",
        """```
- `transformers` version: 5.2.0
- Platform: Linux-6.8.0-1015-aws-x86_64-with-glibc2.39
- Python version: 3.12.3
- Safetensors version: 0.7.0
- Accelerate version: 1.13.0
- DeepSpeed version: not installed
- PyTorch version (accelerator?): 2.11.0+cu130 (CUDA)
- Using distributed or parallel set-up in script?: no
- GPU type: NVIDIA H100 80GB HBM3
```""",
        {"distributions.torch": "2.11.0+cu130", "distributions.deepspeed": None, "gpus": ["NVIDIA H100 80GB HBM3"]},
    ),
    Sample(
        "transformers env on Windows",
        """- `transformers` version: 4.41.2
- Platform: Windows-10-10.0.22631-SP0
- Python version: 3.11.9
- PyTorch version (GPU?): 2.3.0+cpu (False)
""",
        {"platform.system": "Windows", "distributions.torch": "2.3.0+cpu"},
        ("platform.libc", "gpus"),
    ),
    Sample(
        "transformers env on a Mac",
        """- `transformers` version: 4.44.2
- Platform: macOS-14.6.1-arm64-arm-64bit
- Python version: 3.12.4
- PyTorch version (GPU?): 2.4.0 (False)
""",
        {"platform.system": "Darwin", "platform.machine": "arm64", "distributions.torch": "2.4.0"},
        ("cuda.runtime", "gpus"),
    ),
    Sample(
        "llamafactory env with an Ascend card",
        """- `llamafactory` version: 0.9.1.dev0
- Platform: Linux-5.4.241
- Python version: 3.9.16
- PyTorch version: 2.1.0+cpu (NPU)
- Transformers version: 4.45.0.dev0
- PEFT version: 0.12.0
- TRL version: 0.9.6
- NPU type: Ascend910B2C
- CANN version: 8.0.RC2
- DeepSpeed version: 0.14.0
""",
        {"distributions.torch": "2.1.0+cpu", "distributions.deepspeed": "0.14.0", "platform.system": "Linux"},
        ("cuda.runtime", "cuda.driver", "distributions.cann"),
    ),
    Sample(
        "llamafactory env with eight cards",
        """- `llamafactory` version: 0.9.4.dev0
- Platform: Linux-6.11.0-29-generic-x86_64-with-glibc2.39
- Python version: 3.12.12
- PyTorch version: 2.9.0+cu128 (GPU)
- Transformers version: 4.57.1
- GPU type: NVIDIA B200
- GPU number: 8
- GPU memory: 178.36GB
- Git commit: e8a18c17e99ecfd36fa59893b4f1b4086be3149b
""",
        {"gpus": ["NVIDIA B200"] * 8, "distributions.llamafactory": "0.9.4.dev0"},
    ),
    Sample(
        "accelerate env",
        """```Shell
- `Accelerate` version: 1.0.0
- Platform: Linux-6.8.0-47-generic-x86_64-with-glibc2.35
- `accelerate` bash location: /home/user/anaconda3/envs/multi/bin/accelerate
- Python version: 3.11.0
- Numpy version: 1.23.5
- PyTorch version (GPU?): 2.1.0+cu121 (True)
- PyTorch XPU available: False
- System RAM: 62.55 GB
- GPU type: NVIDIA GeForce RTX 4090
- `Accelerate` default config:
        Not found
```""",
        {"distributions.accelerate": "1.0.0", "distributions.numpy": "1.23.5", "gpus": ["NVIDIA GeForce RTX 4090"]},
        ("cuda.runtime",),
    ),
    Sample(
        "collect_env",
        """<details><summary>versions</summary>

```
Collecting environment information...
PyTorch version: 2.5.0+cu124
Is debug build: False
CUDA used to build PyTorch: 12.4
ROCM used to build PyTorch: N/A

OS: Ubuntu 22.04.5 LTS (x86_64)
GCC version: (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0
Libc version: glibc-2.35

Python version: 3.10.12 (main, Sep 11 2024, 15:47:36) [GCC 11.4.0] (64-bit runtime)
Python platform: Linux-5.15.0-122-generic-x86_64-with-glibc2.35
Is CUDA available: True
CUDA runtime version: 11.8.89
CUDA_MODULE_LOADING set to: LAZY
GPU models and configuration:
GPU 0: NVIDIA A100-SXM4-80GB
GPU 1: NVIDIA A100-SXM4-80GB

Nvidia driver version: 535.183.01
cuDNN version: Probably one of the following:
/usr/lib/x86_64-linux-gnu/libcudnn.so.8.9.2
HIP runtime version: N/A

Versions of relevant libraries:
[pip3] numpy==1.26.4
[pip3] nvidia-cudnn-cu12==9.1.0.70
[pip3] nvidia-nccl-cu12==2.21.5
[pip3] torch==2.5.0+cu124
[conda] Could not collect
```
</details>""",
        {
            "cuda.runtime": "12.4",
            "cuda.toolkit": "11.8",
            "cuda.driver": "535.183.01",
            "cuda.cudnn": "9.1.0.70",
            "cuda.nccl": "2.21.5",
            "gpus": ["NVIDIA A100-SXM4-80GB"] * 2,
            "python": "3.10.12",
            "platform.libc": "glibc 2.35",
            "distributions.numpy": "1.26.4",
        },
        ("cuda.driver_api",),
    ),
    Sample(
        "collect_env on ROCm",
        """PyTorch version: 2.4.0+rocm6.1
CUDA used to build PyTorch: N/A
ROCM used to build PyTorch: 6.1.40091-a8dbc0c19
OS: Ubuntu 22.04.4 LTS (x86_64)
CUDA runtime version: Could not collect
GPU models and configuration: AMD Instinct MI250X (gfx90a)
Nvidia driver version: Could not collect
HIP runtime version: 6.1.40091
[pip3] pytorch-triton-rocm==3.0.0
""",
        {"torch_build.hip": "6.1.40091", "cuda.runtime": None, "distributions.torch": "2.4.0+rocm6.1"},
        ("cuda.toolkit", "cuda.driver"),
    ),
    Sample(
        "collect_env of vLLM",
        """==============================
        System Info
==============================
OS                           : Ubuntu 22.04.4 LTS (x86_64)
Libc version                 : glibc-2.35
==============================
       PyTorch Info
==============================
PyTorch version              : 2.7.0+cu126
CUDA used to build PyTorch   : 12.6
==============================
      Python Environment
==============================
Python version               : 3.12.10 (main, Apr  9 2025, 04:03:51) [Clang 20.1.0 ] (64-bit runtime)
CUDA runtime version         : 12.4.131
GPU models and configuration :
GPU 0: NVIDIA L20
GPU 1: NVIDIA L20
Nvidia driver version        : 550.144.03
vLLM Version                 : 0.9.0.1
NCCL_P2P_DISABLE=1
LD_LIBRARY_PATH=/usr/local/cuda/lib64
""",
        {
            "distributions.vllm": "0.9.0.1",
            "cuda.runtime": "12.6",
            "cuda.toolkit": "12.4",
            "environ.NCCL_P2P_DISABLE": "1",
            "gpus": ["NVIDIA L20"] * 2,
        },
    ),
    Sample(
        "ds_report",
        """**ds_report output**
```
--------------------------------------------------
DeepSpeed C++/CUDA extension op report
--------------------------------------------------
ninja .................. [OKAY]
cpu_adam ............... [NO] ....... [OKAY]
DeepSpeed general environment info:
torch install path ............... ['/home/u/venv/lib/python3.11/site-packages/torch']
torch version .................... 2.3.0+cu121
deepspeed install path ........... ['/home/u/venv/lib/python3.11/site-packages/deepspeed']
deepspeed info ................... 0.14.2+unknown, unknown, unknown
torch cuda version ............... 12.1
torch hip version ................ None
nvcc version ..................... 12.0
deepspeed wheel compiled w. ...... torch 0.0, cuda 0.0
shared memory (/dev/shm) size .... 125.77 GB
```""",
        {
            "distributions.torch": "2.3.0+cu121",
            "distributions.deepspeed": "0.14.2+unknown",
            "cuda.runtime": "12.1",
            "cuda.toolkit": "12.0",
            "python": "3.11",
        },
    ),
    Sample(
        "nvidia-smi",
        """```
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 470.182.03   Driver Version: 470.182.03   CUDA Version: 11.4     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
|===============================+======================+======================|
|   0  Tesla V100-SXM2...  On   | 00000000:17:00.0 Off |                    0 |
| N/A  39C    P8    39W / 300W |      7MiB / 32510MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
|    0   N/A  N/A      1234      C   python                           1000MiB |
```""",
        {"cuda.driver": "470.182.03", "cuda.driver_api": "11.4"},
        ("gpus", "cuda.runtime", "cuda.toolkit"),
    ),
    Sample(
        "nvidia-smi of a newer driver",
        """| NVIDIA-SMI 535.104.05             Driver Version: 535.104.05   CUDA Version: 12.2     |
|   0  NVIDIA A800-SXM4-80GB          On  | 00000000:1C:00.0 Off |                    0 |
| N/A   30C    P0              61W / 400W |      4MiB / 81920MiB |      0%      Default |
|   1  NVIDIA A800-SXM4-80GB          On  | 00000000:4C:00.0 Off |                    0 |
| N/A   30C    P0              61W / 400W |      4MiB / 81920MiB |      0%      Default |
""",
        {"cuda.driver": "535.104.05", "gpus": ["NVIDIA A800-SXM4-80GB"] * 2},
    ),
    Sample(
        "nvcc",
        """nvcc: NVIDIA (R) Cuda compiler driver
Copyright (c) 2005-2021 NVIDIA Corporation
Cuda compilation tools, release 11.3, V11.3.109
Build cuda_11.3.r11.3/compiler.29920130_0
My environment is `pytorch==1.12.1+cu113` and `deepspeed==0.9.0`""",
        {"cuda.toolkit": "11.3", "distributions.torch": "1.12.1+cu113", "distributions.deepspeed": "0.9.0"},
    ),
    Sample(
        "rows of pip list",
        """### System Info / 系統信息

torch                     2.3.0
nvidia-cublas-cu12        12.1.3.1
nvidia-cudnn-cu12         8.9.2.26
nvidia-nccl-cu12          2.20.5
deepspeed                 0.14.4
bitsandbytes              0.43.1
transformers              4.42.4

### Information / 问题信息

- [X] The official example scripts / 官方的示例脚本
""",
        {"distributions.torch": "2.3.0", "distributions.transformers": "4.42.4", "cuda.nccl": "2.20.5"},
        ("distributions_complete", "distributions.peft"),
    ),
    Sample(
        "pip list in one's own words",
        "cuda  11.8\naccelerate         1.9.0\naiohttp            3.12.14\ndeepspeed          0.16.5\npeft    0.16.0\n",
        {"distributions.deepspeed": "0.16.5", "distributions.aiohttp": "3.12.14"},
        ("cuda.runtime", "distributions.cuda"),
    ),
    Sample(
        "pip freeze with locations",
        """```
accelerate==1.6.0
-e git+https://github.com/hiyouga/LLaMA-Factory.git@cae47379#egg=llamafactory
flash-attn @ file:///home/me/flash_attn-2.7.4.post1+cu12torch2.5cxx11abiFALSE-cp310-cp310-linux_x86_64.whl#sha256=ab
torch==2.5.1+cu121
transformers @ git+https://github.com/huggingface/transformers.git@ac946aac257cadfa8264fa4a284cd0ea1061c5b5
-e file:///app
trl==0.15.0 ; python_version >= "3.9"
```""",
        {
            "distributions.torch": "2.5.1+cu121",
            "distributions.flash-attn": "2.7.4.post1+cu12torch2.5cxx11abiFALSE",
            "distributions.trl": "0.15.0",
        },
        ("distributions.transformers", "distributions.llamafactory"),
    ),
    Sample(
        "conda list",
        """# packages in environment at /home/u/miniconda3/envs/x:
#
# Name                    Version                   Build  Channel
_libgcc_mutex             0.1                        main
python                    3.9.18               h955ad1f_0
pytorch                   2.0.1           py3.9_cuda11.8_cudnn8.7.0_0    pytorch
pytorch-cuda              11.8                 h7e8668a_5    pytorch
transformers              4.30.2                   pypi_0    pypi
numpy                     1.26.4           py39h5f9d8c6_0
""",
        {
            "python": "3.9.18",
            "distributions.torch": "2.0.1",
            "distributions.transformers": "4.30.2",
            "cuda.runtime": "11.8",
        },
        ("cuda.toolkit", "distributions.pytorch"),
    ),
    Sample(
        "a log of pip",
        """Found existing installation: torch 2.4.1
    Uninstalling torch-2.4.1:
      Successfully uninstalled torch-2.4.1
ERROR: pip's dependency resolver does not currently take into account all the packages that are installed.
torchvision 0.19.1 requires torch==2.4.1, but you have torch 2.5.1 which is incompatible.
Successfully installed nvidia-nccl-cu12-2.21.5 torch-2.5.1 triton-3.1.0 xformers-0.0.28.post3
""",
        {
            "distributions.torch": "2.5.1",
            "distributions.torchvision": "0.19.1",
            "distributions.xformers": "0.0.28.post3",
        },
    ),
    Sample(
        "a version check that failed",
        "ImportError: transformers>=4.41.2,<=4.45.0 is required for a normal functioning of this module, but found "
        "transformers==4.46.0.",
        {"distributions.transformers": "4.46.0"},
    ),
    Sample(
        "Unsloth's banner",
        r"""==((====))==  Unsloth 2025.3.9: Fast Qwen2 patching. Transformers: 4.49.0. vLLM: 0.7.3.
   \\   /|    NVIDIA GeForce GTX 1070. Num GPUs = 1. Max memory: 7.909 GB. Platform: Linux.
O^O/ \_/ \    Torch: 2.5.1+cu124. CUDA: 6.1. CUDA Toolkit: 12.4. Triton: 3.1.0
\        /    Bfloat16 = FALSE. FA [Xformers = 0.0.28.post3. FA2 = False]
""",
        {
            "distributions.unsloth": "2025.3.9",
            "distributions.torch": "2.5.1+cu124",
            "distributions.triton": "3.1.0",
            "distributions.xformers": "0.0.28.post3",
            "distributions.transformers": "4.49.0",
            "distributions.vllm": "0.7.3",
            "training.unsloth": True,
            "cuda.runtime": "12.4",
            "gpus": ["NVIDIA GeForce GTX 1070"],
        },
        ("cuda.toolkit",),
    ),
    Sample(
        "a traceback",
        """Traceback (most recent call last):
  File "/usr/local/lib/python3.10/dist-packages/transformers/trainer.py", line 3579, in training_step
    loss = self.compute_loss(model, inputs)
  File "/usr/local/lib/python3.10/dist-packages/torch/nn/modules/module.py", line 1736, in _wrapped_call_impl
RuntimeError: CUDA error: no kernel image is available for execution on the device
""",
        {"python": "3.10"},
        ("distributions.torch", "distributions.transformers", "training.unsloth"),
    ),
    Sample(
        "a traceback through what unsloth has compiled",
        """Traceback (most recent call last):
  File "/content/unsloth_compiled_cache/UnslothSFTTrainer.py", line 757, in __init__
    super().__init__(
  File "/usr/local/lib/python3.12/dist-packages/trl/trainer/sft_trainer.py", line 512, in __init__
""",
        {"python": "3.12", "training.unsloth": True},
    ),
    Sample(
        "a traceback of another Python than the one stated",
        """python==3.10
torch==2.3.0+cu118

  File "/home/me/miniconda3/envs/qwen/lib/python3.11/site-packages/transformers/trainer.py", line 1553, in train
""",
        {"distributions.torch": "2.3.0+cu118"},
        ("python",),
    ),
    Sample(
        "Chinese, in a row",
        "环境：cuda11.8, torch2.5.0, transformers4.44.2，显卡3090 24G×4",
        {"distributions.torch": "2.5.0", "distributions.transformers": "4.44.2", "gpus": ["RTX 3090 24G"] * 4},
        ("cuda.runtime",),
    ),
    Sample(
        "Chinese, by keys",
        "系统：Ubuntu 20.04\n显卡：A100 80GB * 8\ntorch 版本 2.1.2\nPython版本：3.10.13\ndeepspeed版本是0.14.2\n",
        {
            "platform.system": "Linux",
            "gpus": ["A100 80GB"] * 8,
            "distributions.torch": "2.1.2",
            "python": "3.10.13",
            "distributions.deepspeed": "0.14.2",
        },
    ),
    Sample(
        "Chinese, what helped",
        "transformers==4.37.2 就可以\n降级到 peft 0.6.2 后正常\n把 torch 升级到 2.5.1 解决了",
        {},
        ("distributions.transformers", "distributions.peft", "distributions.torch"),
    ),
    Sample(
        "Chinese, what fails and what works",
        "transformers 版本为 4.46.0 时报错。换成 4.44.0 没问题。torch 2.4.0 不支持这个算子",
        {"distributions.transformers": "4.46.0", "distributions.torch": "2.4.0"},
    ),
    Sample(
        "English, joined by plus signs",
        "8*Tesla V100 32G\npython3.10+cuda11.6+torch2.0.0+transformers4.28.0.dev0",
        {
            "gpus": ["Tesla V100"] * 8,
            "python": "3.10",
            "distributions.torch": "2.0.0",
            "distributions.transformers": "4.28.0.dev0",
        },
        ("cuda.runtime",),
    ),
    Sample(
        "English, torch with its CUDA",
        "same problem on `torch 2.1.0+cuda 12.1`",
        {"distributions.torch": "2.1.0", "cuda.runtime": "12.1"},
    ),
    Sample(
        "English, a sentence",
        "I'm fine-tuning on 4 x A6000 (48GB) with PyTorch 2.4.1, DeepSpeed 0.15.1 and transformers v4.45.2.",
        {
            "gpus": ["RTX A6000"] * 4,
            "distributions.torch": "2.4.1",
            "distributions.deepspeed": "0.15.1",
            "distributions.transformers": "4.45.2",
        },
    ),
    Sample(
        "English, by keys with emphasis",
        """* **Platform:** Google Colab
* **GPU:** Tesla T4
* **PyTorch Version:** Tested `2.7.0+cu126` and forced `2.2.0+cu121`
* **Unsloth Version:** `[Your Unsloth Version - e.g., 2025.4]` (please check)
* **Triton Version:** 3.3.0
""",
        {"gpus": ["Tesla T4"], "platform.system": "Linux", "distributions.triton": "3.3.0"},
        ("distributions.torch", "distributions.unsloth"),
    ),
    Sample(
        "English, by keys in capitals",
        "My environment is as follows:\n- OS: Red Hat Enterprise Linux 8.4\n- Python: 3.11.7\n- PyTorch: 2.3.1+cu121\n"
        "- CUDA: 12.2\n- flash-attn: 2.5.9.post1\n",
        {
            "platform.system": "Linux",
            "python": "3.11.7",
            "distributions.torch": "2.3.1+cu121",
            "distributions.flash-attn": "2.5.9.post1",
        },
        ("cuda.toolkit", "cuda.driver_api"),
    ),
    Sample(
        "English, what helped",
        "Ok, downgrading transformers from 5.0 to 4.41.2 seems to work.\nWith torch 2.6.0 it works.\nTry peft==0.6.2.\n"
        "This needs accelerate >= 0.26.0. Fixed in deepspeed 0.15.2. The bug exists since trl 0.12.0.",
        {"distributions.transformers": "5.0"},
        (
            "distributions.torch",
            "distributions.peft",
            "distributions.accelerate",
            "distributions.deepspeed",
            "distributions.trl",
        ),
    ),
    Sample(
        "English, what was tried",
        "I tried torch 2.4 and 2.5, same result. transformers 4.46.0 or 4.46.1, peft 0.13 -> 0.14.",
        {},
        ("distributions.torch", "distributions.transformers", "distributions.peft"),
    ),
    Sample(
        "English, what does not work",
        "It does not work with transformers 4.47.1 and never worked. Torch 2.5.1 doesn't support this.",
        {"distributions.torch": "2.5.1", "distributions.transformers": "4.47.1"},
    ),
    Sample(
        "two users",
        "- `transformers` version: 4.44.0\n- Python version: 3.10.12\n- PyTorch version (GPU?): 2.4.0 (True)\n\n"
        "> same here\n\n- `transformers` version: 4.46.1\n- Python version: 3.10.12\n- PyTorch version (GPU?): 2.4.0\n",
        {"python": "3.10.12", "distributions.torch": "2.4.0"},
        ("distributions.transformers",),
    ),
    Sample(
        "a maintainer's advice in a fence",
        "torch 2.4.0 here.\n\nPlease use these versions:\n```\ntransformers==4.37.2\npeft==0.8.2\n```\n",
        {"distributions.torch": "2.4.0"},
        ("distributions.transformers", "distributions.peft"),
    ),
    Sample(
        "what the template says in comments",
        "<!-- e.g. torch 2.1.0, transformers 4.36.0\n  peft==0.5.0 -->\ntorch 2.5.1\n",
        {"distributions.torch": "2.5.1"},
        ("distributions.transformers", "distributions.peft"),
    ),
    Sample(
        "the configuration of a model",
        '{\n  "architectures": ["LlamaForCausalLM"],\n  "transformers_version": "4.36.0",\n  "torch_dtype": "half"\n}',
        {},
        ("distributions.transformers",),
    ),
    Sample(
        "links, paths and steps",
        "see https://github.com/huggingface/transformers/v4.44.0/src and /envs/torch2.1.0/bin, step 3090, loss 4.090\n"
        "Qwen/Qwen2.5-7B-Instruct trained 2.5 epochs",
        {},
        ("distributions.transformers", "distributions.torch", "gpus"),
    ),
    Sample(
        "a table",
        "| Package | Version |\n|---|---|\n| torch | 2.5.1 |\n| vllm | 0.6.4 |\n| flash_attn | 2.7.0.post2 |\n",
        {"distributions.torch": "2.5.1", "distributions.vllm": "0.6.4", "distributions.flash-attn": "2.7.0.post2"},
    ),
    Sample(
        "images",
        "docker pytorch/pytorch:2.5.0-cuda12.4-cudnn9-devel\nDriver 550.107.02\nNVIDIA A800 80GB PCIe x4",
        {
            "distributions.torch": "2.5.0",
            "cuda.runtime": "12.4",
            "cuda.toolkit": "12.4",
            "cuda.driver": "550.107.02",
            "gpus": ["NVIDIA A800 80GB PCIe"] * 4,
        },
    ),
    Sample(
        "NVIDIA's container",
        "nvcr.io/nvidia/pytorch:23.10-py3\nflash_attn-2.5.3+cu122torch2.1cxx11abiFALSE-cp310-cp310-linux_x86_64.whl",
        {
            "distributions.flash-attn": "2.5.3+cu122torch2.1cxx11abifalse",
            "python": "3.10",
            "platform.system": "Linux",
            "image.name": "nvcr.io/nvidia/pytorch",
            "image.release": "23.10",
        },
        ("distributions.torch", "cuda.runtime"),
    ),
    Sample(
        "two of NVIDIA's containers",
        "works in nvcr.io/nvidia/pytorch:23.04-py3, hangs in nvcr.io/nvidia/pytorch:23.10-py3",
        {"image.name": "nvcr.io/nvidia/pytorch"},
        ("image.release",),
    ),
    Sample(
        "a container that is advised",
        "You could try\n```\ndocker run nvcr.io/nvidia/pytorch:23.10-py3\n```\ninstead",
        {},
        ("image.release",),
    ),
    Sample(
        "xFormers' warning",
        """xFormers was built for:
    PyTorch 2.4.1+cu124 with CUDA 1204 (you have 2.5.0+cu124)
    Python  3.11.9 (you have 3.11.9)
xformers version: 0.0.28.post1""",
        {"distributions.torch": "2.5.0+cu124", "python": "3.11.9", "distributions.xformers": "0.0.28.post1"},
    ),
    Sample(
        "one-liners at a prompt",
        """```
>>> import torch
>>> print(torch.__version__)
2.1.2+cu118
>>> print(torch.version.cuda)
11.8
$ python -c "import transformers; print(transformers.__version__)"
4.36.2
```""",
        {"distributions.torch": "2.1.2+cu118", "cuda.runtime": "11.8", "distributions.transformers": "4.36.2"},
    ),
    Sample(
        "not a version",
        "- `transformers` version: main\n- Python version: 3.10.1\n- PyTorch version (GPU?): nightly (True)\n"
        "- Peft version: 0.12.x\n",
        {"python": "3.10.1"},
        ("distributions.transformers", "distributions.torch", "distributions.peft"),
    ),
    Sample(
        "other accelerators",
        "GPU: Apple M2 Max, torch 2.4.0",
        {"distributions.torch": "2.4.0", "gpus": ["Apple M2 Max"]},
    ),
    Sample(
        "several kinds of GPU",
        "GPU: A100 and T4\ntorch 2.3.1",
        {"distributions.torch": "2.3.1"},
        ("gpus",),
    ),
    Sample(
        "Ascend in Chinese",
        "昇腾910B 8卡，torch 2.1.0，torch_npu 2.1.0.post8",
        {"distributions.torch": "2.1.0", "distributions.torch-npu": "2.1.0.post8"},
        ("cuda.runtime",),
    ),
    Sample(
        "WSL",
        "Windows 11 WSL2 Ubuntu 22.04, RTX 4090, driver 551.23, torch 2.2.1+cu121",
        {
            "platform.system": "Linux",
            "gpus": ["RTX 4090"],
            "cuda.driver": "551.23",
            "distributions.torch": "2.2.1+cu121",
        },
    ),
    Sample(
        "a LLaMA-Factory configuration under headings, and the DeepSpeed JSON",
        """Python 3.10.12, deepspeed 0.14.4

model_name_or_path:  glm-4-9b-chat

### method
stage: sft
do_train: true
finetuning_type: full

### train
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
bf16: true

my ds config
```json
{
  "zero_optimization": {"stage": 2, "overlap_comm": true},
  "train_micro_batch_size_per_gpu": "auto"
}
```""",
        {
            "model.name": "glm-4-9b-chat",
            "training.framework": "llama-factory",
            "training.method": "full",
            "training.per_device_train_batch_size": 2,
            "training.gradient_accumulation_steps": 4,
            "training.dtype": "bfloat16",
            "training.deepspeed.zero_stage": 2,
            "training.deepspeed.overlap_comm": True,
        },
    ),
    Sample(
        "two DeepSpeed JSONs",
        """first
```json
{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}
```
then
```json
{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}
```
torch 2.4.0""",
        {"training.dtype": "bfloat16", "distributions.torch": "2.4.0"},
        ("training.deepspeed.zero_stage",),
    ),
    Sample(
        "a configuration that is advised",
        """torch 2.4.0

You should use this config instead:
```json
{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}
```""",
        {"distributions.torch": "2.4.0"},
        ("training.deepspeed.zero_stage", "training.dtype"),
    ),
    Sample(
        "a launch command",
        """```bash
CUDA_VISIBLE_DEVICES=0,1 swift sft \\
    --model Qwen/Qwen2-7B \\
    --train_type lora \\
    --torch_dtype bfloat16 \\
    --per_device_train_batch_size 2 \\
    --gradient_accumulation_steps 8
```""",
        {
            "training.framework": "ms-swift",
            "training.method": "lora",
            "training.dtype": "bfloat16",
            "training.per_device_train_batch_size": 2,
            "training.gradient_accumulation_steps": 8,
            "model.name": "Qwen/Qwen2-7B",
        },
    ),
    Sample(
        "the default configuration in accelerate env",
        """- `Accelerate` version: 0.34.2
- Python version: 3.11.9
- PyTorch version (GPU?): 2.4.1 (True)
- `Accelerate` default config:
\t- compute_environment: LOCAL_MACHINE
\t- distributed_type: DEEPSPEED
\t- mixed_precision: bf16
\t- num_processes: 4
\t- num_machines: 1
\t- deepspeed_config: {'gradient_accumulation_steps': 4, 'zero3_init_flag': False, 'zero_stage': 2}
""",
        {
            "training.world_size": 4,
            "training.dtype": "bfloat16",
            "training.deepspeed.zero_stage": 2,
            "distributions.accelerate": "0.34.2",
        },
    ),
    Sample(
        "settings in Python",
        """```python
bnb_config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16)
model = AutoModelForCausalLM.from_pretrained(name, torch_dtype=torch.float16, attn_implementation="sdpa")
lora = LoraConfig(r=16, target_modules=["q_proj", "v_proj"], modules_to_save=["embed_tokens"])
args = TrainingArguments(
    per_device_train_batch_size=2,
    gradient_accumulation_steps=steps,
    # fp16=True,
    bf16=True,
    optim="paged_adamw_8bit",
)

def train(batch, packing=True, gradient_checkpointing: bool = True):
    pass
```
torch 2.4.0""",
        {
            "training.quantization.bits": 4,
            "training.quantization.type": "nf4",
            "training.quantization.compute_dtype": "bfloat16",
            "training.load_dtype": "float16",
            "training.attention": "sdpa",
            "training.lora.target_modules": ["q_proj", "v_proj"],
            "training.lora.modules_to_save": ["embed_tokens"],
            "training.per_device_train_batch_size": 2,
            "training.dtype": "bfloat16",
            "training.optimizer": "paged_adamw_8bit",
        },
        ("training.gradient_accumulation_steps", "training.packing", "training.gradient_checkpointing"),
    ),
    Sample(
        "settings in words on what was tried",
        "bf16=True works, with fp16=True the loss is nan; setting packing=False fixed it.\ntorch 2.4.0",
        {"distributions.torch": "2.4.0", "training.dtype": "float16"},
        ("training.packing",),
    ),
    Sample(
        "the head of a training log",
        """[2024-09-27 09:05:40,449] [INFO] [log_dist] [Rank 0] DeepSpeed info: version=0.15.1, git-hash=unknown
[INFO|trainer.py:2134] >>   Instantaneous batch size per device = 2
[INFO|trainer.py:2140] >>   Gradient Accumulation steps = 4
node1:55888:63342 [0] NCCL INFO NCCL version 2.20.5+cuda12.4
""",
        {
            "distributions.deepspeed": "0.15.1",
            "training.per_device_train_batch_size": 2,
            "training.gradient_accumulation_steps": 4,
            "cuda.nccl": "2.20.5",
        },
        ("cuda.runtime",),
    ),
    Sample(
        "MMEngine's log",
        """System environment:
    sys.platform: linux
    Python: 3.10.11 (main, May 16 2023, 00:28:57) [GCC 11.2.0]
    CUDA available: True
    numpy_random_seed: 2147483648
    GPU 0,1: NVIDIA RTX A6000
    CUDA_HOME: /usr/local/cuda
    NVCC: Cuda compilation tools, release 11.7, V11.7.99
    PyTorch: 2.1.0+cu118
    PyTorch compiling details: PyTorch built with:
  - C++ Version: 201703
  - CUDA Runtime 11.8
  - CuDNN 8.7
    TorchVision: 0.16.0+cu118
""",
        {
            "distributions.torch": "2.1.0+cu118",
            "python": "3.10.11",
            "cuda.runtime": "11.8",
            "cuda.toolkit": "11.7",
            "gpus": ["NVIDIA RTX A6000"] * 2,
        },
        ("cuda.cudnn",),
    ),
    Sample(
        "pip show",
        "Name: torch\nVersion: 2.5.1+cu124\nSummary: Tensors\n---\nName: peft\nVersion: 0.13.2\nRequires: torch>=1.9",
        {"distributions.torch": "2.5.1+cu124", "distributions.peft": "0.13.2"},
    ),
    Sample(
        "trl env with four cards",
        "- Platform: Linux-5.15.0-125-generic-x86_64-with-glibc2.31\n- PyTorch version: 2.5.1\n"
        "- CUDA device(s): NVIDIA A800 80GB PCIe, NVIDIA A800 80GB PCIe\n- LLM-Blender version: not installed\n"
        "- TRL version: 0.13.0\n",
        {"gpus": ["NVIDIA A800 80GB PCIe"] * 2, "distributions.llm-blender": None, "distributions.trl": "0.13.0"},
    ),
    Sample(
        "versions in brackets and behind signs",
        "accelerate (0.33.0), peft (v0.12.0); trl, version 0.9.6\ndeepspeed @ 0.15.0\nvllm@0.6.3\ndatasets-2.20.0 used",
        {
            "distributions.accelerate": "0.33.0",
            "distributions.peft": "0.12.0",
            "distributions.trl": "0.9.6",
            "distributions.deepspeed": "0.15.0",
            "distributions.vllm": "0.6.3",
            "distributions.datasets": "2.20.0",
        },
    ),
    Sample(
        "what could help, in a list",
        "loss is nan with torch 2.4.0\nbut 2 ways below could solve the problem\n1. deepspeed==0.10.2\n2. less memory",
        {"distributions.torch": "2.4.0"},
        ("distributions.deepspeed",),
    ),
    Sample(
        "two builds of one version",
        "torch 2.5.0+cu118\ntorch 2.5.0+cu124\n",
        {},
        ("distributions.torch",),
    ),
    Sample(
        "a build and the CUDA of another",
        "torch 2.5.0+cu118\ntorch.version.cuda: 12.1\nCUDA 12.4",
        {"distributions.torch": "2.5.0+cu118"},
        ("cuda.runtime",),
    ),
    Sample(
        "commands that were run, and one that is advised",
        "conda install pytorch==2.0.1 torchvision==0.15.2 pytorch-cuda=11.8 -c pytorch -c nvidia\n\n\n\n"
        "you should be able to run it after\npip install transformers==4.44.0\n",
        {"distributions.torch": "2.0.1", "distributions.torchvision": "0.15.2", "cuda.runtime": "11.8"},
        ("distributions.transformers",),
    ),
    Sample(
        "values that are more than one version",
        "- Python version: 3.10.12\n- Transformers version: 4.46.0 -> 4.47.0\n- PEFT version: 0.13.2 (0.12.0 before)\n"
        "- TRL version: 0.12.0\n",
        {"distributions.trl": "0.12.0"},
        ("distributions.transformers", "distributions.peft"),
    ),
    Sample(
        "how many cards",
        "单卡 4090 24G 训练, torch 2.3.1",
        {"gpus": ["RTX 4090 24G"], "distributions.torch": "2.3.1"},
    ),
    Sample(
        "a driver by hand, and what could help",
        "cuda 12.4, driver 560.35, torch 2.4.0. deepseed==0.10.2 could solve it",
        {"cuda.driver": "560.35", "distributions.torch": "2.4.0"},
        ("cuda.driver_api", "distributions.deepseed"),
    ),
    Sample(
        "huggingface-cli env, and what was done before",
        "- huggingface_hub version: 0.27.1\n- Python version: 3.10.12\n- FastAI: N/A\n- Torch: 2.4.1\n"
        "- Tensorflow: N/A\n"
        "- HF_HUB_DOWNLOAD_TIMEOUT: 10\n\nAfter upgrading from Transformers 4.47.1 to 4.48.0 the loss increased",
        {
            "distributions.torch": "2.4.1",
            "distributions.huggingface-hub": "0.27.1",
            "distributions.transformers": "4.48.0",
        },
        ("distributions.tensorflow",),
    ),
    Sample(
        "Chinese, three versions of CUDA",
        "两块2080Ti，nvidia-smi显示12.2， nvcc -V显示11.7，我用的pytorch2.0+cuda11.7",
        {
            "gpus": ["RTX 2080 Ti"] * 2,
            "cuda.driver_api": "12.2",
            "cuda.toolkit": "11.7",
            "cuda.runtime": "11.7",
            "distributions.torch": "2.0",
        },
    ),
    Sample(
        "a platform that names its GPU",
        "- Platform: Kaggle Notebook (T4 GPU)\n- Torch version: 2.3.0+cu124\n"
        "- Unsloth version: latest (`pip install unsloth`)\n",
        {"platform.system": "Linux", "gpus": ["T4"], "distributions.torch": "2.3.0+cu124"},
        ("distributions.unsloth",),
    ),
    Sample(
        "one version that fails and one that does not",
        "when I use peft==0.9.0, loss is always NAN, when I use peft==0.3.0, loss is normal.\ntorch == 2.1.0+cu118",
        {"distributions.torch": "2.1.0+cu118", "distributions.peft": "0.9.0"},
    ),
    Sample(
        "a model that code loads over two lines, beside its tokenizer and an adapter",
        """```python
tokenizer = AutoTokenizer.from_pretrained("google/gemma-2-9b")
model = AutoModelForCausalLM.from_pretrained(
    "google/gemma-2-9b-it",
    attn_implementation="sdpa",
)
model = PeftModel.from_pretrained(model, "someone/adapter")
trainer = SFTTrainer(model=model)
```""",
        {
            "model.name": "google/gemma-2-9b-it",
            "training.attention": "sdpa",
            "training.framework": "trl",
            "training.objective": "sft",
        },
    ),
    Sample(
        "a model that is served", "$ vllm serve Qwen/Qwen2-VL-7B-Instruct", {"model.name": "Qwen/Qwen2-VL-7B-Instruct"}
    ),
    Sample(
        "the script of alpaca-lora",
        "I finetuned a LoRA with alpaca-lora/finetune.py on one GPU.",
        {"training.framework": "alpaca-lora", "training.method": "lora"},
    ),
    Sample("an adapter of alpaca-lora", "Merging tloen/alpaca-lora-7b after finetuning.", {}, ("training.framework",)),
    Sample("the trainer of transformers", "    trainer = Trainer(model=model)", {"training.framework": "transformers"}),
    Sample("a model of a list", "- Model: Llama-2-70B\n- CUDA: 11.8", {"model.name": "Llama-2-70B"}),
    Sample(
        "two models, and one in a folder",
        'ref = AutoModelForCausalLM.from_pretrained("a/b1")\nmodel = LlamaForCausalLM.from_pretrained("a/b2")\n'
        'AutoModel.from_pretrained("models/own")',
        {},
        ("model.name",),
    ),
    Sample(
        "a model that was advised",
        "You could try --model_name_or_path Qwen/Qwen2-7B instead",
        {},
        ("model.name",),
    ),
    Sample(
        "a training in one English sentence",
        "I'm training Llama 3 with LoRA and gradient checkpointing on 2 A100 GPUs, batch size 1, "
        "gradient accumulation 16, ZeRO-3 offload.",
        {
            "training.method": "lora",
            "training.gradient_checkpointing": True,
            "training.per_device_train_batch_size": 1,
            "training.gradient_accumulation_steps": 16,
            "training.deepspeed.zero_stage": 3,
            "training.deepspeed.offload_optimizer_device": "cpu",
            "training.world_size": 2,
        },
        ("training.dtype",),
    ),
    Sample("FSDP, in some version", "Full fine-tuning with FSDP hangs.", {"training.fsdp": {}}),
    Sample("FSDP 2", "SFT with FSDP2 hangs.\nWe train with FSDP.", {"training.fsdp.version": 2}),
    Sample("DeepSpeed without a stage", "I fine-tune using DeepSpeed in fp16.", {"training.deepspeed": {}}),
    Sample(
        "DeepSpeed and its stage",
        "I train with DeepSpeed.\nIt is ZeRO-2 over all cards.",
        {"training.deepspeed.zero_stage": 2},
        ("training.deepspeed.offload_optimizer_device",),
    ),
    Sample(
        "DeepSpeed that is no more than named",
        "DeepSpeed fails to import after training.\nTraining needs torch, deepspeed and peft.\n"
        "I have an issue with deepspeed in training.\nIt came with deepspeed.",
        {},
        ("training.deepspeed",),
    ),
    Sample("no DeepSpeed", "I train on one card, not using DeepSpeed.", {"training.deepspeed": None}),
    Sample(
        "DeepSpeed as a package, and FSDP that somebody asks for",
        "Training with deepspeed==0.14.2 and deepspeed 0.15 fails. Should I train with FSDP?",
        {},
        ("training.deepspeed", "training.fsdp"),
    ),
    Sample(
        "an offload to disk",
        "We train with ZeRO-3 offload to nvme.",
        {"training.deepspeed.zero_stage": 3},
        ("training.deepspeed.offload_optimizer_device",),
    ),
    Sample(
        "a training in Chinese",
        "8卡H200，使用deepspeed-zero2，qwen32b全量微调，bf16，梯度累积 4，出现oom现象",
        {
            "training.method": "full",
            "training.deepspeed.zero_stage": 2,
            "training.dtype": "bfloat16",
            "training.gradient_accumulation_steps": 4,
            "training.world_size": 8,
        },
    ),
    Sample(
        "trainers by their classes, and what is off",
        "GRPOTrainer with colocated vLLM on 4 GPUs, DDP training.\nNo gradient checkpointing, overlap_comm is off.",
        {
            "training.framework": "trl",
            "training.objective": "grpo",
            "training.use_vllm": True,
            "training.world_size": 4,
            "training.deepspeed.overlap_comm": False,
        },
    ),
    Sample(
        "a training of which each sentence says another thing",
        "LoRA fine-tuning fails with ZeRO-2 in bf16.\nThe same fine-tuning fails with ZeRO-3 in fp16.",
        {"training.method": "lora"},
        ("training.deepspeed.zero_stage", "training.dtype"),
    ),
    Sample(
        "no DeepSpeed, and a configuration of it that offloads nothing",
        'fine-tuning, not using DeepSpeed\n```json\n{"zero_optimization": {"stage": 3}}\n```',
        {},
        ("training.deepspeed.zero_stage", "training.deepspeed.offload"),
    ),
    Sample(
        "what was tried, asked for, or is not of this training",
        "Zero-2 has this error, but Zero-3 is OK.\nDoes LoRA support this?\nneither fp16 nor bf16 is set for training\n"
        "The model was trained in bf16\nFine-tuning on 2 nodes with 8 GPUs each, batch size 64\nzero3_init_flag is on",
        {"training.deepspeed.zero_stage": 2},
        (
            "training.method",
            "training.dtype",
            "training.world_size",
            "training.per_device_train_batch_size",
        ),
    ),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_report_settles_what_it_says_and_no_more(sample: Sample) -> None:
    environment = read_report(sample.text, "report")
    for path, expected in sample.known.items():
        value = environment.get(path)
        if path == "gpus":
            assert not isinstance(value, Unknown), environment.reasons
            value = [gpu["name"] for gpu in value]
        assert value == expected, (path, environment.reasons)
    for path in sample.open:
        assert isinstance(environment.get(path), Unknown), path


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_every_fact_has_its_line_and_is_a_snapshot(sample: Sample) -> None:
    import json

    environment = read_report(sample.text, "report")
    assert load_snapshot(json.dumps(environment.dump()), "report") == environment
    lines = sample.text.split("\n")
    for path, at in environment.locations.items():
        assert at.file == "report" and at.line is not None and 1 <= at.line <= len(lines), path
        value = environment.get(path)
        if path.startswith("distributions.") and value is not None:
            assert str(value).lower()[:3] in lines[at.line - 1].lower(), path


def pip_list(names: list[str]) -> str:
    rows = "".join(f"{name:<25} 1.{number}.0\n" for number, name in enumerate(names))
    return f"```\n{'Package':<25} Version\n{'-' * 25} -------\n{rows}```"


WHOLE = sorted(
    [*(f"{letter}lib{number}" for letter in "abcdefghijklmnoqrstuvwxyz" for number in (1, 2)), "pip", "torch"]
)


def test_a_whole_pip_list_tells_what_is_absent() -> None:
    environment = read_report(pip_list(WHOLE), "report")
    assert environment.facts["distributions_complete"] is True
    assert environment.get("distributions.peft") is None


@pytest.mark.parametrize(
    "names",
    [WHOLE[:20], WHOLE[12:], WHOLE[:40], [name for name in WHOLE if name != "pip"], [*WHOLE[:1], *WHOLE[:0:-1], "zz"]],
    ids=["short", "beginning cut off", "end cut off", "without pip", "in another order"],
)
def test_a_part_of_a_pip_list_does_not(names: list[str]) -> None:
    assert "distributions_complete" not in read_report(pip_list(names), "report").facts


def test_a_pip_list_with_dots_for_what_was_left_out_is_not_whole() -> None:
    text = pip_list(WHOLE).replace("clib1", "...\nclib1")
    assert "distributions_complete" not in read_report(text, "report").facts


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("GPU: 3090", ["RTX 3090"]),
        ("RTX3090x2", ["RTX 3090"] * 2),
        ("8*A100 80G", ["A100 80G"] * 8),
        ("A100-80G * 8", ["A100-80G"] * 8),
        ("V100 32GB ×8", ["V100 32GB"] * 8),
        ("2 x 4090", ["RTX 4090"] * 2),
        ("H800 8卡", ["H800"] * 8),
        ("NVIDIA GeForce RTX 2080 Ti", ["NVIDIA GeForce RTX 2080 Ti"]),
        ("显卡2080Ti", ["RTX 2080 Ti"]),
        ("A6000*2", ["RTX A6000"] * 2),
        ("Colab T4", ["T4"]),
        ("eight A100", ["A100"] * 8),
        ("step 3090 of 4090", None),
        ("loss 4.3090, lr 1e-4", None),
        ("figure A2, table T4, section L4", None),
        ("cuda:0 and 11.8", None),
        ("model-a100-v2, /data/a100/x, h100.py", None),
    ],
)
def test_gpus_are_known_by_the_names_people_write(text: str, names: list[str] | None) -> None:
    known = read_report(text, "report").facts.get("gpus")
    assert (known and [gpu["name"] for gpu in known]) == names


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("GPU: 3090", "8.6"),
        ("A6000*2", "8.6"),
        ("A100-80G", "8.0"),
        ("V100S", "7.0"),
        ("2080Ti 显卡", "7.5"),
        ("GPU: L20", "8.9"),
    ],
)
def test_what_people_write_is_in_the_table_of_capabilities(name: str, capability: str | None) -> None:
    from compatcheck import matrix

    environment = matrix.infer(matrix.load(), read_report(f"torch 2.3.1\n{name}", "report")).view
    assert environment.facts["gpus"][0].get("compute_capability") == capability


@pytest.mark.parametrize(
    ("name", "gpus"),
    [
        ("Unsloth's banner", [{"name": "NVIDIA GeForce GTX 1070", "compute_capability": "6.1"}]),
        ("other accelerators", [{"name": "Apple M2 Max", "compute_capability": None, "uncounted": True}]),
        ("transformers env of 2024", [{"name": "NVIDIA A100-SXM4-80GB", "uncounted": True}]),
        ("llamafactory env with eight cards", [{"name": "NVIDIA B200", "memory_mib": 182641}] * 8),
        ("nvidia-smi of a newer driver", [{"name": "NVIDIA A800-SXM4-80GB", "memory_mib": 81920}] * 2),
    ],
)
def test_a_gpu_is_told_as_far_as_the_report_tells_it(name: str, gpus: list[dict[str, Any]]) -> None:
    text = next(sample.text for sample in SAMPLES if sample.name == name)
    assert read_report(text, "report").facts["gpus"] == gpus


def test_a_report_that_does_not_count_its_gpus_leaves_open_how_many_there_are() -> None:
    from compatcheck import matrix

    text = "deepspeed 0.14.4\n```json\n{'zero_optimization': {'stage': 2, 'overlap_comm': true}}\n```\nGPU: {} A100"
    known = matrix.load()
    found = {
        count: {
            each.id
            for each in matrix.judge(known, read_report(text.replace("'", '"').replace("{}", count), "r")).findings
        }
        for count in ("", "1 x")
    }
    assert "CC-2024-0021" in found[""] and "CC-2024-0021" not in found["1 x"]
