"""How well the matrix explains labelled bug reports, and how quiet it is on environments that are known to work.

    python tests/score_cases.py REPORTS.jsonl CLEAN.jsonl          the four figures, and the reports left unsolved
    python tests/score_cases.py REPORTS.jsonl CLEAN.jsonl --pasted the pasted text of each report against its snapshot

A report is *solved* where a finding that is affected or confirmed speaks of a package of the cause or of the fix, one
of its remedies agrees with the known fix, and it is gone once that fix is applied; *helped* where a possible finding
does all of that. An *alarm* is a working environment with an affected or confirmed finding; *noise* is the number of
possible findings for each of them.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from compatcheck import facts, matrix
from compatcheck._requirement import normalised
from compatcheck._torch_build import minor
from compatcheck.errors import NothingInspectedError
from compatcheck.facts._image import contents_of, mentioned
from compatcheck.facts.reports._gpus import Gpus, gpus_in
from compatcheck.facts.reports._names import SPOKEN, distribution
from compatcheck.facts.reports._platform import platform_claims
from compatcheck.matrix._keys import keys
from compatcheck.model import Environment, Facts, Finding, Remedy, lookup
from compatcheck.pipelines.check import check

BAD = ("affected", "confirmed")
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
    "transformers": r"transformers|\btrainer\b|fastchat|llava|lmflow|glm-4 finetune_demo|qwen-vl finetune",
    "deepspeed": r"deepspeed",
}
_SWITCHES = {"unsloth": "unsloth", "vllm": "use_vllm", "liger-kernel": "use_liger_kernel"}
_DTYPES = {
    "bf16": "bfloat16",
    "bfloat16": "bfloat16",
    "fp16": "float16",
    "float16": "float16",
    "half": "float16",
    "fp32": "float32",
    "float32": "float32",
}
_ATTENTION = {"flash": "flash_attention_2", "sdpa": "sdpa", "eager": "eager", "xformers": "xformers"}
_NAMES = {
    "attn_implementation": "attention",
    "flash_attn": "attention",
    "optim": "optimizer",
    "compile": "torch_compile",
    "max_seq_length": "max_length",
    "batch_size": "per_device_train_batch_size",
    "gpu_count": "world_size",
}
"""Settings whose fact has another name."""
_SEVERAL = re.compile(r",\s+|\s+(?:/|and|or)\s+|、|;\s*")
"""Between the models of a report that was seen with each of them: it is judged by the first."""
_METHODS = ("full", "lora", "qlora", "dora", "freeze", "oft")
_OBJECTIVES = {"grpo": "grpo", "pretrain": "pretrain", "dpo": "dpo", "sft": "sft", "ppo": "ppo"}


class Score(NamedTuple):
    """What became of one report: the finding that explains it, and what was tried on the way."""

    id: str
    status: str | None
    finding: str | None = None
    near: str = ""


def snapshot(case: Mapping[str, Any]) -> Environment:
    """The environment and the training of a case; what it gives in no usable form stays unknown."""
    env, context = case["env"], case.get("context") or {}
    known: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    versions = {}
    for name, version in (env.get("packages") or {}).items():
        if _version(str(version)):
            versions[normalised(name)] = str(version)
        elif re.match(r"[<>=!~]", str(version)):
            known.setdefault("distribution_ranges", {})[normalised(name)] = str(version)
        else:
            reasons[f"distributions.{normalised(name)}"] = f"given as {version}"
    known["distributions"] = versions
    for named in re.findall(rf"(?<![\w-])(?:{SPOKEN})(?![\w-])", (context.get("framework") or "").lower()):
        if (used := distribution(named)) and used not in (*versions, *known.get("distribution_ranges", {})):
            known.setdefault("distribution_ranges", {})[used] = ""
    if env.get("python"):
        known["python"] = re.sub(r"\.x$", "", env["python"])
    if env.get("os"):
        known["platform"] = {claim.path[9:]: claim.value for claim in platform_claims(env["os"], 1)}
        images = [found for found in map(contents_of, mentioned(env["os"])) if found.image]
        known |= {"image": {"name": images[0].image, "release": images[0].release}} if len(images) == 1 else {}
    cuda = _cuda(env, context, versions.get("torch", ""))
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


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


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
    elif method in _OBJECTIVES:
        said["objective"] = _OBJECTIVES[method]
    framework = (context.get("framework") or "").lower()
    name = next((each for each, pattern in _FRAMEWORKS.items() if re.search(pattern, framework)), None)
    if trainer := re.search(r"\b(sft|dpo|kto|orpo|cpo|grpo|ppo|rloo|reward)trainer\b", framework):
        said.setdefault("objective", trainer[1])
    if name and method != "inference":
        said["framework"] = name
    said |= {switch: True for word, switch in _SWITCHES.items() if re.search(rf"\b{word}\b", framework)}
    dtypes = {full for word, full in _DTYPES.items() if word in re.split(r"\W+", (context.get("dtype") or "").lower())}
    if len(dtypes) == 1:
        said["dtype"] = dtypes.pop()
    attention = (context.get("attn") or "").lower()
    if chosen := next((value for word, value in _ATTENTION.items() if attention.startswith(word)), None):
        said["attention"] = chosen
    if context.get("batch_size"):
        said["per_device_train_batch_size"] = context["batch_size"]
    if context.get("zero_stage") is not None:
        said["deepspeed"] = {"zero_stage": context["zero_stage"]}
    if quantization := _quantization((context.get("quantization") or "").lower()):
        said["quantization"] = quantization
    if "fsdp" in framework:
        said["fsdp"] = {}
    other = context.get("other")
    if isinstance(other, dict):
        said.update(_others(other))
    if isinstance(other, str):
        told = facts.read_report(other if method == "inference" else f"training, {other}", "other")
        return dict(facts.overlay(told, Facts({"training": said})).facts["training"])
    return said


def _others(other: Mapping[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for key, value in other.items():
        if fact := _fact_of(key, value):
            _put(said, *fact)
    if other.get("fsdp"):
        said["fsdp"] = {}
    return said


def _fact_of(setting: str, value: Any) -> tuple[tuple[str, ...], Any] | None:
    """Where the fact stands below ``training`` that a setting gives, and its value; ``None`` where none is meant.

    The last part of the setting's name tells, as ``use_reentrant`` in ``gradient_checkpointing_kwargs.use_reentrant``,
    where one fact alone ends in it, or one that stands right below.
    """
    last = setting.lower().rpartition(".")[2]
    last = _NAMES.get(last, last)
    paths = {tuple(path.split(".")[1:]): kind for path, kind in keys().items() if path.startswith("training.")}
    ending = [path for path in paths if path[-1] == last]
    where = (last,) if (last,) in paths else ending[0] if len(ending) == 1 else None
    if where is None:
        return None
    if value is None or any(path[: len(where)] == where != path for path in paths):
        return None if value else (where, None)
    typed = {
        "flag": value if isinstance(value, bool) else None,
        "number": value if isinstance(value, (int, float)) and not isinstance(value, bool) else None,
        "labels": value if isinstance(value, list) else None,
        "text": value.lower() if isinstance(value, str) else None,
    }[paths[where]]
    if last == "attention":
        typed = _ATTENTION.get(str(typed).partition("_")[0], typed)
    return None if typed is None else (where, typed)


def _put(said: dict[str, Any], where: tuple[str, ...], value: Any) -> None:
    for part in where[:-1]:
        said = said.setdefault(part, {})
    said[where[-1]] = value


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
    ):
        if re.search(words, text):
            said["method"] = method
    return said


def findings_of(known: matrix.Matrix, environment: Environment) -> tuple[Finding, ...]:
    """What `check` finds, or nothing where there is nothing to judge."""
    try:
        return check(environment, known).findings
    except NothingInspectedError:
        return ()


def score(known: matrix.Matrix, case: Mapping[str, Any]) -> Score:
    environment = snapshot(case)
    found = findings_of(known, environment)
    fixed = {
        (finding.id, finding.packages)
        for finding in findings_of(known, applied(environment, case["fix"], known))
        if finding.status in BAD
    }
    open_still = {
        (finding.id, finding.packages): finding.status
        for finding in findings_of(known, applied(environment, case["fix"], known))
    }
    near = ""
    for finding in found:
        speaks, agrees = speaks_of(finding, case), any(agrees_with(remedy, case["fix"]) for remedy in finding.remedies)
        gone = (finding.id, finding.packages) not in (fixed if finding.status in BAD else open_still)
        if speaks and agrees and gone and finding.status in (*BAD, "possible"):
            return Score(case["id"], finding.status, finding.id)
        if speaks:
            near = near or f"{finding.id} {finding.status}" + ("" if agrees else ", another remedy") + (
                "" if gone else ", not gone after the fix"
            )
    return Score(case["id"], None, near=near)


def speaks_of(finding: Finding, case: Mapping[str, Any]) -> bool:
    """Whether a finding is about a package of the cause or of the fix."""
    named = {normalised(name) for name in (*case["cause"]["packages"], *case["fix"]["packages"])}
    return bool(named & {normalised(name) for name in finding.packages})


def agrees_with(remedy: Remedy, fix: Mapping[str, Any]) -> bool:
    """Whether a way out is the known one: a pin that a version of the fix satisfies, or the same setting."""
    for name, pinned in fix["packages"].items():
        wanted = {normalised(each): specifier for each, specifier in remedy.pins.items()}.get(normalised(name))
        if wanted is not None and _overlap(wanted, str(pinned)):
            return True
    words = " ".join(
        (
            remedy.kind,
            *_flat_words(remedy.config),
            *_flat_words(remedy.environ),
            *([remedy.code] if remedy.code else []),
            *remedy.steps,
            *([remedy.why] if remedy.kind == "rebuild" else []),
        )
    ).lower()
    return any(_same_setting(key, value, words) for key, value in fix["config"].items())


def _flat_words(settings: Mapping[str, Any]) -> Iterator[str]:
    return (f"{key}={value}" for key, value in settings.items())


def _same_setting(key: str, value: Any, words: str) -> bool:
    """Whether a remedy names the setting that the fix changes, with its value where that is a plain word."""
    last = key.lower().rpartition(".")[2]
    spelled = {
        "bf16": ("bf16", "dtype"),
        "fp16": ("fp16", "dtype"),
        "torch_dtype": ("dtype",),
        "attn_implementation": ("attention", "attn_implementation"),
        "precision": ("dtype", "bf16"),
        "amp_dtype": ("dtype",),
        "nvidia_driver": ("driver",),
        "cuda_toolkit": ("toolkit", "nvcc"),
        "wheel_tag": ("wheel",),
        "model_file": ("model's",),
        "model_revision": ("model's",),
    }.get(last, (last, _NAMES.get(last, last)))
    named = any(re.search(rf"(?<![a-z0-9]){re.escape(name)}", words) for name in spelled)
    if not named or isinstance(value, (dict, list)):
        return named
    options = [option.strip().lower() for option in re.split(r"\bor\b|/", str(value))]
    names = [*options, *(_DTYPES[option] for option in options if option in _DTYPES)]
    if last in ("bf16", "fp16") and isinstance(value, bool):
        kept = {_DTYPES[last]} if value else {"float16", "bfloat16", "float32"} - {_DTYPES[last]}
        return any(re.search(rf"(?<![a-z]){name}", words) for name in kept)
    return any(name in words for name in names) or not re.fullmatch(r"[\w.]+( or [\w.]+)*", str(value))


def _overlap(wanted: str, pinned: str) -> bool:
    """Whether a version of the fix lies in the range of the remedy: the bounds of both are tried on both."""
    try:
        ours, theirs = SpecifierSet(wanted, prereleases=True), SpecifierSet(_specifier(pinned), prereleases=True)
    except InvalidSpecifier:
        return False
    bounds = [Version(each.version.removesuffix(".*")) for each in (*ours, *theirs)]
    trials = [
        *bounds,
        *(Version(f"{'.'.join(map(str, each.release))}.99") for each in bounds),
        *(_below(each) for each in bounds),
    ]
    return any(ours.contains(each) and theirs.contains(each) for each in trials)


def _specifier(text: str) -> str:
    return text if text[:1] in "<>=!~" else f"=={text}"


def _below(version: Version) -> Version:
    """A release shortly before another: 4.43.99 for 4.44."""
    release = list(version.release)
    while release and release[-1] == 0:
        release.pop()
    if not release:
        return version
    return Version(".".join(map(str, [*release[:-1], release[-1] - 1, 99])))


def applied(environment: Environment, fix: Mapping[str, Any], matrix_in_use: matrix.Matrix) -> Environment:
    """The environment once the fix is in place: pinned versions, settings and variables.

    A torch of another release is the build for the same CUDA where there is one, else what the index serves.
    """
    known: dict[str, Any] = {}
    versions: dict[str, str] = {}
    installed = environment.facts.get("distributions") or {}
    for name, pinned in fix["packages"].items():
        now = environment.facts.get("python") if name == "python" else installed.get(normalised(name))
        if moved := moved_to(str(pinned), now, _published(normalised(name), matrix_in_use)):
            versions[normalised(name)] = moved
    if "python" in versions:
        known["python"] = versions.pop("python")
    if "torch" in installed and "torch" not in versions:
        versions |= _torch_of(versions, installed["torch"], matrix_in_use)
    if versions:
        known["distributions"] = versions
    for key, value in fix["config"].items():
        _set(known, key, value)
        _rebuild(known, installed, key, str(value))
        if key == "cuda_toolkit":
            runtime = re.sub(r".*\+cu(\d+)(\d)\Z|.*", r"\1.\2", installed.get("torch", "")).strip(".")
            known["cuda"] = {"toolkit": runtime or lookup(environment, "cuda.runtime")}
    if gpus := gpus_in(str(fix["config"].get("gpu", "")), context=True):
        known["gpus"] = gpus.value()
    left = dict(environment.facts)
    if "torch" in versions:
        left.pop("torch_build", None)
        if not _has_build(versions["torch"], environment, matrix_in_use):
            versions["torch"] = versions["torch"].partition("+")[0]
            left["cuda"] = {key: value for key, value in (left.get("cuda") or {}).items() if key != "runtime"}
    return facts.overlay(environment._replace(facts=left), Facts(known))


def _torch_of(moved: Mapping[str, str], torch: str, matrix_in_use: matrix.Matrix) -> dict[str, str]:
    """The torch that a moved package demands with ``==``, as pip then installs it, for the same CUDA."""
    public, plus, label = torch.partition("+")
    for name, runs in matrix_in_use.table("built-for-torch")["declared"].items():
        for first, last, demanded in runs:
            if name in moved and Version(first) <= Version(moved[name].partition("+")[0]) <= Version(last):
                return {} if demanded == public else {"torch": f"{demanded}{plus}{label}"}
    return {}


def _has_build(torch: str, environment: Environment, matrix_in_use: matrix.Matrix) -> bool:
    """Whether a release of torch may be there for the CUDA runtime of the environment; unless known, it may."""
    label = re.search(r"\+cu(\d+)(\d)$", torch)
    runtime = f"{label[1]}.{label[2]}" if label else lookup(environment, "cuda.runtime")
    builds = matrix_in_use.table("torch-cuda-builds")["builds"].get(minor(torch))
    return builds is None or not isinstance(runtime, str) or runtime in builds


def _published(name: str, matrix_in_use: matrix.Matrix) -> tuple[str, ...]:
    return tuple(matrix_in_use.table("release-history")["releases"].get(name, ()))


def moved_to(pinned: str, installed: str | None, published: tuple[str, ...] = ()) -> str | None:
    """The version that a pin leads to: the installed one where it fits, else the nearest release that does.

    Where it is not known what was published, the nearest number stands for it.
    """
    try:
        allowed = SpecifierSet(_specifier(pinned), prereleases=True)
    except InvalidSpecifier:
        return None
    now = _version(installed.partition("+")[0]) if installed else None
    if now is not None and allowed.contains(now):
        return installed
    label = f"+{installed.partition('+')[2]}" if installed and "+" in installed else ""
    if fitting := sorted(filter(allowed.contains, published), key=Version):
        newer = [each for each in fitting if now is None or Version(each) > now]
        capped = now is None and any(each.operator.startswith("<") for each in allowed)
        return f"{newer[0] if newer and not capped else fitting[-1]}{label}"
    for each in allowed:
        bound = Version(each.version.removesuffix(".*"))
        near = {"<": _below(bound), ">": _next(bound), "!=": _next(bound)}.get(each.operator, bound)
        choice = _below(bound) if each.version.endswith(".*") and each.operator == "!=" else near
        if allowed.contains(choice):
            return str(choice) if "+" in str(choice) else f"{choice}{label}"
    return None


def _next(version: Version) -> Version:
    """The patch release behind a version: 0.19.4 for 0.19.3."""
    release = [*version.release, 0, 0][: max(3, len(version.release))]
    return Version(".".join(map(str, [*release[:-1], release[-1] + 1])))


def _set(known: dict[str, Any], key: str, value: Any) -> None:
    training = known.setdefault("training", {})
    low, word = key.lower(), str(value).lower()
    if re.fullmatch(r"[A-Z][A-Z0-9_]+", key):
        known.setdefault("environ", {})[key] = str(value)
    elif low in ("bf16", "fp16") and isinstance(value, bool):
        full = _DTYPES[low]
        if value:
            training["dtype"] = full
        else:
            training.setdefault("dtype", "float32")
    elif low in ("dtype", "torch_dtype", "amp_dtype", "precision") and word.split("/")[0] in _DTYPES:
        training["dtype"] = training["load_dtype"] = _DTYPES[word.split("/")[0]]
    elif low == "bf16.enabled" and value is False:
        training["dtype"] = "float32"
    elif low in ("load_in_4bit", "load_in_8bit") and value is True:
        training["quantization"] = {"bits": int(low[8]), "method": "bitsandbytes"}
    elif low == "nvidia_driver" and (level := re.search(r"CUDA (\d{1,2}\.\d)", str(value))):
        known["cuda"] = {"driver_api": level[1], "driver": "999.0"}
    elif low in ("model_file", "model_revision"):
        known["model"] = {"traits": []}
    elif fact := _fact_of(key, re.split(r"\s+or\s+", value)[0] if isinstance(value, str) else value):
        _put(training, *fact)
    if not training:
        del known["training"]


def _rebuild(known: dict[str, Any], installed: Mapping[str, str], key: str, value: str) -> None:
    """Another build of the same version: torch from another index, a wheel for the other C++ ABI."""
    versions = {**installed, **known.get("distributions", {})}
    if key.endswith("index") and re.fullmatch(r"cu\d+|cpu", value) and versions.get("torch"):
        known.setdefault("distributions", {})["torch"] = f"{versions['torch'].partition('+')[0]}+{value}"
    if value in ("cxx11abiFALSE", "cxx11abiTRUE") and "cxx11abi" in versions.get("flash-attn", ""):
        other = re.sub(r"cxx11abi(true|false)", value, versions["flash-attn"], flags=re.IGNORECASE)
        known.setdefault("distributions", {})["flash-attn"] = other


class Difference(NamedTuple):
    """One fact or finding that the pasted text and the snapshot of a case do not share."""

    id: str
    what: str
    pasted: str
    given: str
    explained: str


def compared(known: matrix.Matrix, case: Mapping[str, Any]) -> tuple[list[Difference], bool]:
    """How the pasted text differs from the snapshot on the facts that both can hold, and whether findings agree."""
    given = snapshot(case)
    pasted = facts.read_report(case["env_block"], "env_block")
    differences = list(_facts_compared(case, given, pasted))
    training = Facts({key: given.facts[key] for key in ("training", "model") if key in given.facts})
    shared = _restricted(given, pasted)
    ours = _statuses(findings_of(known, facts.overlay(pasted, training)))
    theirs = _statuses(findings_of(known, facts.overlay(shared, training)))
    for found in sorted(ours.keys() | theirs.keys()):
        if ours.get(found) != theirs.get(found):
            differences.append(Difference(case["id"], found, ours.get(found, "-"), theirs.get(found, "-"), "finding"))
    return differences, ours == theirs


def _statuses(found: tuple[Finding, ...]) -> dict[str, str]:
    return {finding.id: finding.status for finding in found}


def _facts_compared(case: Mapping[str, Any], given: Environment, pasted: Environment) -> Iterator[Difference]:
    for path, value in _flat({key: each for key, each in given.facts.items() if key not in ("training", "model")}):
        ours = lookup(pasted, path) if path != "gpus" else pasted.facts.get("gpus")
        if path == "gpus":
            names = [each.get("name", "").lower() for each in ours or ()]
            if not names and not any(
                word in case["env_block"].lower() for word in value[0]["name"].lower().split()[-2:]
            ):
                continue
            if not names or not _alike(names[0], value[0]["name"].lower()):
                yield Difference(case["id"], path, str(names), str(value), pasted.reasons.get(path, ""))
            continue
        if isinstance(ours, (str, int)) and _same_version(str(ours), str(value)):
            continue
        if not isinstance(ours, (str, int)):
            if not _stands_in(str(value), case["env_block"]):
                continue
            yield Difference(case["id"], path, "unknown", str(value), pasted.reasons.get(path, ""))
        else:
            yield Difference(case["id"], path, str(ours), str(value), "")


def _alike(one: str, other: str) -> bool:
    words = [
        set(re.findall(r"[a-z]+\d+[a-z]*|\d+|[a-z]+", each)) - {"nvidia", "geforce", "tesla"} for each in (one, other)
    ]
    return words[0] <= words[1] or words[1] <= words[0]


def _same_version(one: str, other: str) -> bool:
    bare = [each.partition("+")[0].lower() for each in (one, other)]
    return bare[0] == bare[1] or bare[0].startswith(f"{bare[1]}.") or bare[1].startswith(f"{bare[0]}.")


def _stands_in(value: str, text: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(value.partition('+')[0])}(?![\w]*\.?\d)", text, re.I) is not None


def _flat(known: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in known.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _restricted(given: Environment, pasted: Environment) -> Environment:
    """The snapshot on the facts that the pasted text holds, which may be more exact, with what only the text holds."""
    kept: dict[str, Any] = {}
    for section, value in pasted.facts.items():
        theirs = given.facts.get(section)
        if isinstance(value, Mapping) and isinstance(theirs, Mapping):
            kept[section] = {key: theirs.get(key, each) for key, each in value.items()}
            kept[section] |= {key: each for key, each in value.items() if _more_exact(each, theirs.get(key))}
        elif section == "python":
            kept[section] = value if _more_exact(value, theirs) else theirs or value
        elif section == "gpus" and theirs and _alike(value[0]["name"].lower(), theirs[0]["name"].lower()):
            kept[section] = value
        else:
            kept[section] = theirs or value
    return Environment(kept, given.reasons)


def _more_exact(ours: Any, theirs: Any) -> bool:
    return isinstance(ours, str) and isinstance(theirs, str) and _same_version(ours, theirs)


def read_cases(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def figures(known: matrix.Matrix, reports: list[dict[str, Any]], clean: list[dict[str, Any]]) -> dict[str, Any]:
    """The four figures, over all reports and over those whose cause their own environment shows."""
    scores = {case["id"]: score(known, case) for case in reports}
    shown = [case["id"] for case in reports if case["detectable_from_env"] and case["confirmed_by"] != "unclear"]
    quiet = {case["id"]: findings_of(known, snapshot(case)) for case in clean}
    counted: dict[str, Any] = {"scores": scores, "clean": quiet}
    for label, ids in (("all", list(scores)), ("detectable", shown)):
        solved = sum(scores[each].status in BAD for each in ids)
        helped = sum(scores[each].status is not None for each in ids)
        counted[label] = (solved, helped, len(ids))
    counted["alarms"] = [each for each, found in quiet.items() if any(f.status in BAD for f in found)]
    counted["noise"] = sum(f.status == "possible" for found in quiet.values() for f in found) / max(len(quiet), 1)
    return counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", type=Path)
    parser.add_argument("clean", type=Path)
    parser.add_argument("--pasted", action="store_true", help="compare pasted text with snapshots instead")
    arguments = parser.parse_args()
    known, reports, clean = matrix.load(), read_cases(arguments.reports), read_cases(arguments.clean)
    if arguments.pasted:
        _print_pasted(known, [case for case in reports if case.get("env_block")])
        return
    counted = figures(known, reports, clean)
    for label in ("all", "detectable"):
        solved, helped, total = counted[label]
        print(
            f"{label:<11} solved {solved}/{total} ({solved / total:.0%})"
            f"  helped {helped}/{total} ({helped / total:.0%})"
        )
    print(f"{'clean':<11} alarms {len(counted['alarms'])}/{len(clean)}  noise {counted['noise']:.2f} per environment")
    for alarm in counted["alarms"]:
        bad = [f.id for f in counted["clean"][alarm] if f.status in BAD]
        print(f"  alarm  {alarm}: {', '.join(bad)}")
    print("\nunsolved")
    for case in reports:
        result = counted["scores"][case["id"]]
        if result.status not in BAD:
            fix = {**case["fix"]["packages"], **case["fix"]["config"]}
            mark = "helped" if result.status else "" if case["detectable_from_env"] else "not detectable"
            print(f"  {case['id']}  [{mark or result.near or 'nothing'}]")
            print(f"      cause  {', '.join(case['cause']['packages'])}: {case['cause']['summary']}")
            print(f"      fix    {json.dumps(fix, ensure_ascii=False)}")


def _print_pasted(known: matrix.Matrix, reports: list[dict[str, Any]]) -> None:
    agreeing = 0
    for case in reports:
        differences, same = compared(known, case)
        agreeing += same
        for each in differences:
            why = f"  ({each.explained})" if each.explained else ""
            print(f"{each.id}  {each.what}: pasted {each.pasted}, given {each.given}{why}")
    print(f"\n{agreeing} of {len(reports)} pasted texts give the findings of their snapshot")


if __name__ == "__main__":
    main()
