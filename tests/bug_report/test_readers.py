"""Small readers of a report: what each line gives, a table per fact."""

from __future__ import annotations

from typing import Any

import pytest

from compatcheck.bug_report import read_report

OLD_DRIVER = "RuntimeError: The NVIDIA driver on your system is too old (found version {}). Please update it."
ENGINE = "INFO 04-28 [llm_engine.py:243] Initializing a V0 LLM engine (v0.8.5) with config:"
REGISTRY = "763104351884.dkr.ecr.eu-west-1.amazonaws.com"
FACTS: list[tuple[str, str, Any]] = [
    (OLD_DRIVER.format(12040), "cuda.driver_api", "12.4"),
    (OLD_DRIVER.format(9010), "cuda.driver_api", "9.1"),
    ("seen with a CUDA 12.9 driver and torch 2.8.0", "cuda.driver_api", "12.9"),
    ("the CUDA 12.6 toolkit is there", "cuda.toolkit", "12.6"),
    ("Requirement already satisfied: numpy in /u/env/lib/python3.11/site-packages (1.26.4)", "python", "3.11"),
    ('File "/opt/conda/lib/python3.10/runpy.py", line 196, in _run', "python", "3.10"),
    (f"{REGISTRY}/pytorch-training:2.6.0-gpu-py312-cu126-ubuntu22.04-sagemaker", "python", "3.12"),
    (f"{REGISTRY}/pytorch-training:2.6.0-gpu-py312-cu126-ubuntu22.04-sagemaker", "distributions.torch", "2.6.0"),
    (
        f"{REGISTRY}/huggingface-pytorch-training:2.5.1-transformers4.49.0-gpu-py311-cu124-ubuntu22.04",
        "distributions.transformers",
        "4.49.0",
    ),
    ("CANN版本：8.0.RC3", "npu.cann", "8.0.rc3"),
    ("CANN 7.0.1 on the machine", "npu.cann", "7.0.1"),
    ("sh Ascend-cann-toolkit_8.0.RC2.2_linux-aarch64.run", "npu.cann", "8.0.rc2"),
    ('File "/usr/local/Ascend/ascend-toolkit/8.1.RC1/python/site-packages/tbe/dsl.py"', "npu.cann", "8.1.rc1"),
    ("FROM quay.io/ascend/cann:8.0.rc3-910b-ubuntu22.04-py3.10", "npu.cann", "8.0.rc3"),
    ("MI210, ROCm 6.2.4, torch from source", "rocm.version", "6.2.4"),
    ("hipcc: /opt/rocm-6.1.3/bin/hipcc", "rocm.version", "6.1.3"),
    ("FROM nvidia/cuda:12.6.0-devel-ubuntu22.04", "cuda.toolkit", "12.6"),
    ("FROM nvidia/cuda:12.6.0-devel-ubuntu22.04", "platform.libc", "glibc 2.35"),
    ("in nvidia/cuda:12.6.0-devel-ubuntu22.04 with torch 2.6.0", "distributions.torch", "2.6.0"),
    ("INFO 04-28 [api_server.py:1043] vLLM API server version 0.8.5.post1", "distributions.vllm", "0.8.5.post1"),
    (f"{ENGINE} model='acme/bar-7b', tensor_parallel_size=2, seed=0", "model.name", "acme/bar-7b"),
    (f"{ENGINE} model='acme/bar-7b', tensor_parallel_size=2, seed=0", "training.several_ranks", True),
    ("FROM rocm/pytorch:rocm6.2_ubuntu22.04_py3.10_pytorch_release_2.3.0", "torch_build.hip", "6.2"),
    ("FROM rocm/pytorch:rocm6.2_ubuntu22.04_py3.10_pytorch_release_2.3.0", "distributions.torch", "2.3.0"),
]
GPUS = [
    ("It hangs on an 8xH100 machine.", "H100", 8),
    ("8xA100, torch 2.4.0", "A100", 8),
    ("机器上有4张A100", "A100", 4),
    ("two 3090s in one box", "RTX 3090", 2),
    ("we have 4 3090s", "RTX 3090", 4),
    ("16 H100s on two nodes", "H100", 16),
    ("Ascend 910B3 x 8", "Ascend 910B3", 8),
    ("8张昇腾910B", "Ascend 910B", 8),
    ("4 x 310P3", "Ascend 310P3", 4),
    ("8x MI300X", "AMD Instinct MI300X", 8),
    ("4x Radeon AI PRO R9700", "Radeon AI PRO R9700", 4),
    ("用两张2080Ti跑", "RTX 2080 Ti", 2),
    ("two rx7900xtx cards, 2x RX 7900XTX", "AMD Radeon RX 7900 XTX", 2),
]


@pytest.mark.parametrize(("text", "path", "value"), FACTS)
def test_a_line_gives_its_fact(text: str, path: str, value: Any) -> None:
    found = read_report(text, "report")
    assert found.get(path) == value
    assert found.locations[path].line == 1


@pytest.mark.parametrize(("text", "name", "count"), GPUS)
def test_gpus_are_counted_as_people_count_them(text: str, name: str, count: int) -> None:
    assert [gpu["name"] for gpu in read_report(text, "report").facts["gpus"]] == [name] * count


MODELS = [
    ("用ChatGLM3-6B微调，loss 是 0", "ChatGLM3-6B"),
    ("Full fine-tuning of Baichuan2-7B-Base stops", "Baichuan2-7B-Base"),
    ("Llama 3.1 8B Instruct gives nan", "Llama 3.1 8B Instruct"),
    ("GLM-4 in short; the weights are zai-org/glm-4-9b-chat", "zai-org/glm-4-9b-chat"),
    ("a T5-11B run diverges", "T5-11B"),
    ("Qwen1.5 works, Qwen2-7B gives nan", "Qwen2-7B"),
    ("Gemma 7B fails. Then phi-3.5-mini-instruct fails.", None),
    ("KeyError: 'qwen2'", None),
    ("Qwen2Tokenizer has no attribute x, see run_llama-7b.py and /models/llama-7b/x", None),
    ("torch 2.5.1 and sdpa2 on a V100", None),
]
SYSTEMS = [
    ("Python 3.10.0 [MSC v.1929 64 bit (AMD64)] on win32", {"system": "Windows", "machine": "AMD64"}),
    ("(env) PS D:\\work> python train.py", {"system": "Windows"}),
    ('  File "D:\\work\\train.py", line 3, in <module>', {"system": "Windows"}),
    ("both on macOS (arm64) and Linux (x86_64)", None),
]


@pytest.mark.parametrize(("text", "name"), MODELS)
def test_a_model_is_known_by_the_name_of_its_family(text: str, name: str | None) -> None:
    assert read_report(text, "report").facts.get("model", {}).get("name") == name


@pytest.mark.parametrize(("text", "platform"), SYSTEMS)
def test_a_system_shows_in_prompts_and_paths(text: str, platform: dict[str, str] | None) -> None:
    assert read_report(text, "report").facts.get("platform") == platform


NPU_SMI = """+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.rc2                 Version: 24.1.rc2                                             |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B4               | OK            | 82.1        41                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          2890 / 32768         |
| 1     910B4               | OK            | 80.7        40                0    / 0             |
| 0                         | 0000:01:00.0  | 0           0    / 0          2890 / 32768         |
+---------------------------+---------------+----------------------------------------------------+
"""
CANN_FILE = "package_name=Ascend-cann-toolkit\nversion=8.0.RC1\ninnerversion=V100R001C17SPC001B238\narch=aarch64\n"


def test_the_table_of_npu_smi_gives_chips_memory_and_driver() -> None:
    found = read_report(NPU_SMI, "report").facts
    chip = {"name": "Ascend 910B4", "compute_capability": None, "memory_mib": 32768}
    assert found["gpus"] == [chip, chip] and found["npu"] == {"driver": "24.1.rc2"}


def test_the_file_of_cann_gives_its_release_beside_a_shorter_name_of_the_chip() -> None:
    found = read_report(f"{NPU_SMI}\n{CANN_FILE}\nIt is a 910B.", "report")
    assert found.get("npu.cann") == "8.0.rc1" and len(found.facts["gpus"]) == 2


@pytest.mark.parametrize("text", ["CANN 8.0.RC1.alpha002", "I can 8.0 times", "cannot 7.0", "version=8.0.RC1"])
def test_what_is_no_release_of_cann_states_none(text: str) -> None:
    assert "npu" not in read_report(text, "report").facts


ROCMINFO = """*******
Agent 1
*******
  Name:                    AMD Ryzen 9 7950X 16-Core Processor
  Marketing Name:          AMD Ryzen 9 7950X 16-Core Processor
*******
Agent 2
*******
  Name:                    gfx1100
  Marketing Name:          AMD Radeon RX 7900 XTX
  ISA 1
      Name:                    amdgcn-amd-amdhsa--gfx1100
"""
ROCM_SMI = "GPU[0]\t\t: Card series: \t\tAMD Instinct MI250X\nGPU[0]\t\t: GFX Version: \t\tgfx90a\n"
CONFIGURED = "ROCM used to build PyTorch: 6.2.4\nGPU models and configuration: AMD Instinct MI250X (gfx90a:sramecc+)"


@pytest.mark.parametrize(
    ("text", "name", "gfx"),
    [
        (ROCMINFO, "AMD Radeon RX 7900 XTX", "gfx1100"),
        (ROCM_SMI, "AMD Instinct MI250X", "gfx90a"),
        (CONFIGURED, "AMD Instinct MI250X", "gfx90a"),
    ],
)
def test_tools_of_rocm_give_the_gpus(text: str, name: str, gfx: str) -> None:
    assert read_report(text, "report").facts["gpus"] == [{"name": name, "compute_capability": None, "gfx": gfx}]


RANK = "#   Rank  {0} Pid   77 on    node1 device  {0} [0x1{0}] NVIDIA GeForce RTX 2080 Ti"


def test_ranks_of_nccl_tests_are_gpus() -> None:
    found = read_report("# nThread 1 nGpus 3\n" + "\n".join(map(RANK.format, range(3))), "report")
    assert [gpu["name"] for gpu in found.facts["gpus"]] == ["NVIDIA GeForce RTX 2080 Ti"] * 3


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (
            f"/root/.cache/huggingface/modules/transformers_modules/acme/bar-7b/{'0a' * 20}/modeling_bar.py",
            "acme/bar-7b",
        ),
        (".../transformers_modules/bar_hyphen_7b/tokenization_bar.py", "bar-7b"),
        ("~/.cache/huggingface/modules/transformers_modules/.../tokenization_bar.py", None),
    ],
)
def test_code_from_the_hub_names_its_model(path: str, name: str | None) -> None:
    found = read_report(f'  File "{path}", line 3, in forward', "report").facts["model"]
    assert found["remote_code"] is True and found.get("name") == name


PRINTED = """print("PyTorch", torch.__version__)
print("CUDA version:", torch.version.cuda)
print(f"card = {torch.cuda.get_device_name(0)}")
PyTorch: 2.9.1
CUDA version: 12.8
card = NVIDIA L4
"""


def test_code_that_prints_says_what_its_output_means() -> None:
    found = read_report(PRINTED, "report")
    assert found.get("cuda.runtime") == "12.8" and found.get("distributions.torch") == "2.9.1"
    assert found.facts["gpus"] == [{"name": "NVIDIA L4"}] and found.reasons == {}


def test_a_version_of_cuda_that_nobody_explains_stays_open() -> None:
    assert "cuda.runtime" in read_report("CUDA version: 12.8", "report").reasons
