"""What looks like a fact and is none: a table per kind, each with what the text does settle."""

from __future__ import annotations

from typing import Any

import pytest

from compatcheck.bug_report import read_report

PACKAGES = [
    ("- Driver: `565.57.01`\n- torch: 2.6.0", {"torch": "2.6.0"}),
    ("- Server: 1.20.3\n- torch: 2.6.0", {"torch": "2.6.0"}),
    ("- Observer: 3.1\n- torch version: 2.6.0", {"torch": "2.6.0"}),
    ("- Firmware version: 7.1.0\n- torch version: 2.6.0", {"torch": "2.6.0"}),
    ("run.py 1.2.3\ntorch 2.6.0\npeft 0.15.0", {"torch": "2.6.0", "peft": "0.15.0"}),
    ("the log is in torch2.6.log and the notes in peft-0.15.0.md", None),
    ("see https://example.org/torch-2.6.0/peft-0.15.0/index", None),
    ("[the notes](https://example.org/peft-0.15.0) of torch 2.6.0", {"torch": "2.6.0"}),
    ("- torch_version: 2.6.0\n- PeftVersion: 0.15.0", {"torch": "2.6.0", "peft": "0.15.0"}),
]
MODELS = [
    ("trl sft --model /data/models/Foo-7B", "Foo-7B"),
    ("vllm serve /models/bar-7b --port 80", "bar-7b"),
    ("docker run -v /mnt/models/Foo-13B:/foo vllm/vllm-openai:v0.8.5", None),
    ("docker run -v /mnt/models/Foo-13B:/Foo-13B vllm/vllm-openai:v0.8.5 --model /Foo-13B", "Foo-13B"),
    ("It lies in /home/u/modelscope/acme/bar-13b", "acme/bar-13b"),
    ("loads /root/.cache/modelscope/hub/models/acme/bar2___5-7B-Chat/config.json", None),
    ("loads /root/.cache/modelscope/hub/models/acme/bar2___5-7B-Chat", "acme/bar2.5-7B-Chat"),
    ("File '/root/.cache/huggingface/hub/models--acme--bar-7b/snapshots/12ab/modeling.py'", "acme/bar-7b"),
    ("model_inference/model_path/Bar-3-8b is loaded", None),
    ("the weights of models/bar-7b", None),
    ("--model_name_or_path ./output/checkpoint-500", None),
    ('AutoModelForCausalLM.from_pretrained("/mnt/llm/bar-7b")', "bar-7b"),
    ('model_path = "/mnt/llm/models"', None),
]
GPUS = [
    ("在V100和Ascend910A微调", None),
    ("用Ascend910A微调", ["Ascend 910A"]),
    ("This was found by benchmarking on 1x A100.\nGPU: RTX 4090", ["RTX 4090"]),
    ("see https://example.org/rtx-3090-review and the card is a V100", ["V100"]),
    ("it takes 3090s per epoch", None),
]


@pytest.mark.parametrize(("text", "packages"), PACKAGES)
def test_a_package_is_a_whole_word_and_no_file_or_link(text: str, packages: dict[str, str] | None) -> None:
    assert read_report(text, "report").facts.get("distributions") == packages


@pytest.mark.parametrize(("text", "name"), MODELS)
def test_a_model_is_what_is_loaded_and_no_folder(text: str, name: str | None) -> None:
    assert read_report(text, "report").facts.get("model", {}).get("name") == name


@pytest.mark.parametrize(("text", "names"), GPUS)
def test_a_gpu_is_the_reporters_own(text: str, names: list[str] | None) -> None:
    gpus: list[dict[str, Any]] | None = read_report(text, "report").facts.get("gpus")
    assert (gpus and [gpu["name"] for gpu in gpus]) == names
