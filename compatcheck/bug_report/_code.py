"""The model and the trainer that code or a command names: ``from_pretrained("org/name")``, ``GRPOTrainer(...)``.

So too switches that only code has, as the one of torch that keeps attention from cuDNN's kernels, and what a Trainer of
the reporter's own overrides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from compatcheck.bug_report._blocks import Block
from compatcheck.bug_report._claims import Claim
from compatcheck.bug_report._cues import ADVISED, advises, hypothetical
from compatcheck.bug_report._names import TRAINERS
from compatcheck.errors import InputError
from compatcheck.project import scripts

_HUB = r"([A-Za-z0-9][\w.-]{0,60}/[A-Za-z0-9][\w.-]{1,100})"
_CALL = r"\b(?:AutoModel\w{0,60}|\w{1,60}For[A-Z]\w{1,60}|Fast(?:Language|Vision)?Model)\.from_pretrained\(\s{0,20}"
_OPEN = re.compile(rf"{_CALL}\Z")
_LOADED = re.compile(rf"{_CALL}(?:pretrained_model_name_or_path\s?=\s?|model_name\s?=\s?)?['\"]{_HUB}['\"]")
_FIRST = re.compile(rf"\s{{0,60}}(?:\w{{1,40}}\s?=\s?)?['\"]{_HUB}['\"]")
_ASSIGNED = re.compile(
    rf"\b(?:base_?model|model_(?:id|name|path|name_or_path|id_or_path)|pretrained_model\w{{0,20}}|checkpoint)\s?=\s?"
    rf"['\"]{_HUB}['\"]",
    re.I,
)
_FLAG = re.compile(rf"--(?:model|base_model|model[-_](?:id|name|path|name_or_path|id_or_path))[ =]{{1,2}}['\"]?{_HUB}")
_SERVED = re.compile(rf"\bvllm serve ['\"]?{_HUB}")
_LISTED = re.compile(
    rf"(?:(?:base )?model(?: name| id)?|模型(?:名称)?)\s?[:=]\s{{0,3}}"
    rf"(?:{_HUB}|([A-Z]\w{{1,20}}-[\w.-]{{1,60}}))\s{{0,3}}\Z",
    re.I,
)
_TUNED = re.compile(
    r"(?:模型|微调|使用|用|\b(?:fine-?tun(?:e|ed|ing)|train(?:ed|ing)?|model))\s{0,2}`?(?![\w.-]{0,60}\d[bm]/)"
    rf"(?=[\w./-]{{0,120}}-\d{{1,3}}(?:\.\d)?b(?![a-z\d])){_HUB}",
    re.I | re.A,
)
"""A hub's name that ends in a size, so that no cards, versions or two models by a stroke are taken for one."""

_OF_TRL = re.compile(rf"=\s?({TRAINERS})Trainer\(")
_OF_TRANSFORMERS = re.compile(r"=\s?(?:Seq2Seq)?Trainer\(")
_SWITCHES = {
    "training.cudnn_sdp": re.compile(r"\benable_cudnn_sdp\((?:enabled\s?=\s?)?(True|False)\)"),
    "training.deterministic": re.compile(r"\buse_deterministic_algorithms\((?:mode\s?=\s?)?(True|False)\b"),
    "training.fill_uninitialized_memory": re.compile(r"\bfill_uninitialized_memory\s?=\s?(True|False)\b"),
    "training.model_accepts_loss_kwargs": re.compile(r"\bmodel_accepts_loss_kwargs\s?=\s?(True|False)\b"),
    "training.predict_with_generate": re.compile(r"\bmodel\.(?:generate|chat|stream_chat)\("),
    "training.several_ranks": re.compile(
        r"(?:--tensor[-_]parallel[-_]size|(?<!\S)--?tp(?:-size)?|\btensor_parallel_size)"
        r"\s?[ =]\s?(?:[2-9]|[1-9]\d)(?![\d.])"
    ),
    "training.deepspeed.leaf_modules": re.compile(r"\bset_z3_leaf_modules?\("),
}
"""What code alone decides: the value is the first group, or that the call is there."""

_READ_WHOLE = ("training.cudnn_sdp", "training.deterministic", "training.fill_uninitialized_memory")
"""What the reader of scripts takes from code that is pasted whole."""

_MARK = re.compile(r"[/=:(-]")
"""What every line that is read here has."""

_FILE = re.compile(r"\.(?:json|ya?ml|py|sh|bin|safetensors|txt|md|gguf|ipynb)\Z", re.I)
_FOLDERS = ("data", "models", "model", "checkpoints", "checkpoint", "output", "outputs", "path", "examples", "scripts")


def read(block: Block) -> Iterator[Claim]:
    """The name of each model that is loaded, served or trained, the trainer that is made; two settle nothing.

    A script that is pasted whole is left to its reader, but for what that does not state.
    """
    whole = block.fenced and _is_whole(block)
    yield from _switched(block, whole)
    if whole:
        return
    opened = False
    for line in block.short():
        if not _MARK.search(line.text):
            opened = False
            continue
        doubt = ADVISED if not block.fenced and hypothetical(line.plain) else None
        found = [pattern.search(line.text) for pattern in (_LOADED, _ASSIGNED, _FLAG, _SERVED, _TUNED)]
        found += [_LISTED.match(line.plain), _FIRST.match(line.text) if opened else None]
        opened = _OPEN.search(line.text) is not None
        for match in filter(None, found):
            name = match[1] or match[2]
            if not _FILE.search(name) and name.partition("/")[0].lower() not in _FOLDERS:
                yield Claim("model.name", name, line.number, doubt)
        if trainer := _OF_TRL.search(line.text):
            yield Claim("training.framework", "trl", line.number, doubt)
            yield Claim("training.objective", trainer[1].lower(), line.number, doubt)
        elif _OF_TRANSFORMERS.search(line.text):
            yield Claim("training.framework", "transformers", line.number, doubt)


def _switched(block: Block, whole: bool) -> Iterator[Claim]:
    for line in block.short():
        if not _MARK.search(line.text):
            continue
        doubt = ADVISED if not block.fenced and hypothetical(line.plain) else None
        for path, pattern in _SWITCHES.items():
            if (switched := pattern.search(line.text)) and not (whole and path in _READ_WHOLE):
                yield Claim(path, not pattern.groups or switched[1] == "True", line.number, doubt)


def _is_whole(block: Block) -> bool:
    """Whether a block is code that parses and trains."""
    try:
        return scripts.trains("the text.py", "\n".join(line.text for line in block.lines))
    except InputError:
        return False


def own_training(blocks: Iterable[Block]) -> Iterator[Claim]:
    """What pasted scripts have, all together; one without traits tells nothing, as part of it may be left out."""
    found: dict[str, int] = {}
    for block in blocks:
        if block.fenced and not advises(block.lead, block.tail, small=True):
            traits = scripts.traits_in("\n".join(line.text for line in block.lines)) or {}
            found = {**{trait: block.lines[line - 1].number for trait, line in traits.items()}, **found}
    if found:
        yield Claim("trainer.traits", sorted(found), min(found.values()))
