"""A labelled report as the environment and the training that it gives."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Mapping
from typing import Any

from compatcheck.bug_report import _issue, read_report
from compatcheck.bug_report._gpus import Gpus, gpus_in
from compatcheck.bug_report._names import distribution, spoken_in
from compatcheck.bug_report._platform import platform_claims
from compatcheck.environment import Environment
from compatcheck.packages.container_images import contents_of, mentioned
from compatcheck.packages.names import normalised
from tools.labelled.settings import ATTENTION, DTYPES, fact_of, put, version_of

_FRAMEWORKS = {
    "llama-factory": r"llama-?factory",
    "ms-swift": r"ms-swift|\bswift\b",
    "axolotl": r"axolotl",
    "xtuner": r"xtuner",
    "torchtune": r"torchtune",
    "trl": r"\btrl\b|sfttrainer|grpotrainer|open-r1",
    "accelerate": r"accelerate launch",
    "diffusers": r"diffusers",
    "verl": r"\bverl\b",
    "openrlhf": r"openrlhf",
    "alpaca-lora": r"alpaca-lora",
    "lightning": r"pytorch-lightning",
    "setfit": r"\bsetfit\b",
    "sentence-transformers": r"sentence-transformers",
    "lm-eval": r"\blm[-_]eval\b",
    "transformers": r"transformers|\btrainer\b|fastchat|llava|lmflow|glm-?[34] finetune_demo|qwen-vl finetune|qlora",
    "deepspeed": r"deepspeed",
}
_SWITCHES = {"unsloth": "unsloth", "vllm": "use_vllm", "liger-kernel": "use_liger_kernel"}
_SEVERAL = re.compile(r",\s+|\s+(?:/|and|or)\s+|、|;\s*")
"""Between the models of a report that was seen with each of them: it is judged by the first."""
_NEWEST = re.compile(r"(?:the )?(?:latest|newest)(?: (?:version|release|stable)\b.*)?\Z")
_METHODS = ("full", "lora", "qlora", "dora", "freeze", "oft")
_OBJECTIVES = ("grpo", "pretrain", "dpo", "sft", "ppo", "kto", "orpo", "rloo", "gkd", "reward")


def snapshot(case: Mapping[str, Any], *, reported: bool = True) -> Environment:
    """The environment and the training of a case; what it gives in no usable form stays unknown.

    A case that was ``reported`` has a day and mostly a repository.
    """
    env, context = case["env"], case.get("context") or {}
    known: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    versions: dict[str, str | None] = {}
    newest: dict[str, bool] = {}
    for name, version in (env.get("packages") or {}).items():
        if version_of(str(version)):
            versions[normalised(name)] = str(version)
        elif version in ("absent", "not installed"):
            versions[normalised(name)] = None
        elif _NEWEST.match(str(version)):
            newest[normalised(name)] = True
        elif re.match(r"[<>=!~]", str(version)):
            known.setdefault("distribution_ranges", {})[normalised(name)] = str(version)
        else:
            reasons[f"distributions.{normalised(name)}"] = f"given as {version}"
    known["distributions"] = versions | _labelled(versions, env, context)
    framework = (context.get("framework") or "").lower()
    for named in re.findall(rf"(?<![\w-])(?:{spoken_in(framework)})(?![\w-])", framework):
        if (used := distribution(named)) and used not in (*versions, *known.get("distribution_ranges", {})):
            known.setdefault("distribution_ranges", {})[used] = ""
    if reported:
        filed = _issue.report_facts(_day(case.get("date") or ""), _repository(case.get("source") or ""))
        newest |= read_report(str(context.get("other")), "other").facts.get("report", {}).get("newest", {})
        known["report"] = filed["report"] | ({"newest": newest} if newest else {})
        ranges = {**filed.get("distribution_ranges", {}), **known.get("distribution_ranges", {})}
        known["distribution_ranges"] = {name: asked for name, asked in ranges.items() if name not in versions}
    if env.get("python"):
        known["python"] = re.sub(r"\.x$", "", env["python"])
    if env.get("os"):
        known["platform"] = {claim.path[9:]: claim.value for claim in platform_claims(env["os"], 1)}
        images = [found for found in map(contents_of, mentioned(env["os"])) if found.image]
        known |= {"image": {"name": images[0].image, "release": images[0].release}} if len(images) == 1 else {}
    cuda = _cuda(env, context, versions.get("torch") or "")
    for library in ("cudnn", "nccl"):
        found = [version for name, version in versions.items() if re.fullmatch(rf"nvidia-{library}-cu\d+", name)]
        cuda |= {library: found[0]} if len(found) == 1 else {}
    if cuda:
        known["cuda"] = cuda
    gpus = _gpus(env, context)
    if gpus:
        known["gpus"] = gpus
    training = _training(context)
    if training:
        known["training"] = training
    if context.get("model"):
        known["model"] = {"name": _SEVERAL.split(context["model"])[0]}
    return Environment(known, reasons)


def _labelled(versions: Mapping[str, str | None], env: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, str]:
    """The label of a flash-attn wheel of which the C++ interface is told apart from its version."""
    told = re.search(r"cxx11abi(TRUE|FALSE)", str(context.get("other")))
    release, torch = versions.get("flash-attn") or "+", version_of(versions.get("torch") or "")
    cuda = (env.get("cuda_runtime") or "").replace(".", "")
    if told is None or "+" in release or torch is None or not cuda:
        return {}
    return {"flash-attn": f"{release}+cu{cuda}torch{torch.major}.{torch.minor}{told[0]}"}


def _day(written: str) -> str:
    """The day, and of a month that alone is given the last."""
    if not (month := re.fullmatch(r"(\d{4})-(\d\d)", written)):
        return written
    return f"{written}-{monthrange(int(month[1]), int(month[2]))[1]}"


def _repository(source: str) -> str | None:
    place = re.match(r"https://github\.com/([\w.-]+/[\w.-]+)/", source)
    return place[1] if place else None


def _cuda(env: Mapping[str, Any], context: Mapping[str, Any], torch: str) -> dict[str, Any]:
    """The label of torch's version decides the runtime; a number of three parts is nvcc's own."""
    found: dict[str, Any] = {}
    runtime, driver = env.get("cuda_runtime") or "", env.get("cuda_driver") or ""
    numbers = re.fullmatch(r"(\d{1,2}\.\d)(\.\d+)?", runtime)
    labelled = re.search(r"\+(cu\d|cpu|rocm)", torch)
    if numbers and numbers[2]:
        found["toolkit"] = numbers[1]
    elif numbers and not labelled:
        found["runtime"] = numbers[1]
    if re.fullmatch(r"\d{3}(\.\d+)+", driver):
        found["driver"] = driver
    elif level := re.search(r"CUDA (\d{1,2}\.\d)", driver):
        found["driver_api"] = level[1]
    other = context.get("other")
    if isinstance(other, dict) and other.get("cuda_toolkit"):
        found["toolkit"] = other["cuda_toolkit"]
    return found


def _gpus(env: Mapping[str, Any], context: Mapping[str, Any]) -> list[dict[str, Any]]:
    other = context.get("other")
    count = other.get("gpu_count") if isinstance(other, dict) else None
    found = [gpus_in(name, context=True) or Gpus((name,)) for name in env.get("gpus") or ()]
    if len(found) == 1:
        return found[0]._replace(number=count or found[0].number).value()
    return [each._replace(number=1).value()[0] for each in found]


def _training(context: Mapping[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    method = (context.get("method") or "").lower()
    if method in _METHODS:
        said["method"] = method
    elif prompted := re.fullmatch(r"(prompt|prefix|p)[-_ ]tuning", method):
        said["method"] = f"{prompted[1]}_tuning"
    elif method == "inference" and context.get("model"):
        said["predict_with_generate"] = True
    elif method in _OBJECTIVES:
        said["objective"] = method
    framework = (context.get("framework") or "").lower()
    name = next((each for each, pattern in _FRAMEWORKS.items() if re.search(pattern, framework)), None)
    if trainer := re.search(r"\b(sft|dpo|kto|orpo|cpo|grpo|ppo|rloo|reward)trainer\b", framework):
        said.setdefault("objective", trainer[1])
    if name and method != "inference":
        said["framework"] = name
    said |= {switch: True for word, switch in _SWITCHES.items() if re.search(rf"\b{word}\b", framework)}
    dtypes = {full for word, full in DTYPES.items() if word in re.split(r"\W+", (context.get("dtype") or "").lower())}
    if len(dtypes) == 1:
        said["dtype"] = dtypes.pop()
    attention = (context.get("attn") or "").lower()
    if chosen := next((value for word, value in ATTENTION.items() if attention.startswith(word)), None):
        said["attention"] = chosen
    if context.get("batch_size"):
        said["per_device_train_batch_size"] = context["batch_size"]
    if context.get("zero_stage") is not None:
        said["deepspeed"] = {"zero_stage": context["zero_stage"]}
    if quantization := _quantization((context.get("quantization") or "").lower()):
        said["quantization"] = quantization
    for sharded in ("fsdp", "deepspeed"):
        if re.search(rf"\b{sharded}", framework) and method != "inference":
            said.setdefault(sharded, {})
    if re.search(r"\bddp\b", framework):
        said["several_ranks"] = True
    other = context.get("other")
    if isinstance(other, dict):
        _put_others(said, other)
    if isinstance(other, str):
        told = read_report(other if method == "inference" else f"training, {other}", "other")
        return dict(told.overlay(Environment({"training": said})).facts["training"])
    return said


def _put_others(said: dict[str, Any], other: Mapping[str, Any]) -> None:
    for key, value in other.items():
        if fact := fact_of(key, value):
            put(said, *fact)
    if other.get("fsdp"):
        said.setdefault("fsdp", {})


def _quantization(text: str) -> dict[str, Any]:
    said: dict[str, Any] = {}
    bits = re.search(r"(\d)[ -]?bit|int(\d)|in_(\d)bit", text)
    if bits:
        said["bits"] = int(next(filter(None, bits.groups())))
    for method, words in (
        ("gptq", "gptq"),
        ("awq", "awq"),
        ("bitsandbytes", r"bnb|bitsandbytes|load_in"),
        ("fp8", "fp8"),
        ("compressed-tensors", "compressed-tensors"),
    ):
        if re.search(words, text):
            said["method"] = method
    return said
