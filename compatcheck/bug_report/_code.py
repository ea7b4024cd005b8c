"""The model and the trainer that code or a command names: ``from_pretrained("org/name")``, ``GRPOTrainer(...)``.

So too switches that only code has, as the one of torch that keeps attention from cuDNN's kernels, and what a Trainer of
the reporter's own overrides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from compatcheck.bug_report._blocks import Block
from compatcheck.bug_report._claims import Claim
from compatcheck.bug_report._names import TRAINERS
from compatcheck.bug_report._surroundings import fence_manner
from compatcheck.errors import InputError
from compatcheck.files.lazy_patterns import LazyPattern

_PART = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,100}[A-Za-z0-9_])?"
_HUB = rf"({_PART}/{_PART}(?![A-Za-z0-9_/\\-]))"
_PATH = r"((?:[A-Z]:[\\/]|~/|\.{0,2}/)[A-Za-z0-9_./\\@+-]{1,300})"
_NAME = rf"(?:{_HUB}|{_PATH})"
_CALL = r"\b(?:AutoModel\w{0,60}|\w{1,60}For[A-Z]\w{1,60}|Fast(?:Language|Vision)?Model)\.from_pretrained\(\s{0,20}"
_OPEN = LazyPattern(rf"{_CALL}\Z", marks=(".from_pretrained(",))
_LOADED = LazyPattern(
    rf"{_CALL}(?:pretrained_model_name_or_path\s?=\s?|model_name\s?=\s?)?['\"]{_NAME}['\"]",
    marks=(".from_pretrained(",),
)
_FIRST = re.compile(rf"\s{{0,60}}(?:\w{{1,40}}\s?=\s?)?['\"]{_HUB}['\"]")
_ASSIGNED = LazyPattern(
    rf"\b(?:base_?model|model_(?:id|name|path|name_or_path|id_or_path)|pretrained_model\w{{0,20}}|checkpoint)\s?=\s?"
    rf"['\"]{_NAME}['\"]",
    re.I,
    marks=(
        "model",
        "checkpoint",
    ),
)
_GIVEN = rf"(?:{_NAME}|([A-Za-z](?=[\w.-]{{0,60}}\d)[\w.-]{{1,60}}\w)(?![\w/\\-]))"
_FLAG = LazyPattern(
    rf"--(?:model|base_model|model[-_](?:id|name|path|name_or_path|id_or_path))[ =]{{1,2}}['\"]?{_GIVEN}",
    marks=("model",),
)
_SERVED = LazyPattern(rf"\bvllm serve ['\"]?{_GIVEN}", marks=("vllm serve ",))
_LISTED = LazyPattern(
    rf"(?:(?:base )?model(?: name| id)?|模型(?:名称)?)\s?[:=]\s{{0,3}}"
    rf"(?:{_NAME}|([A-Z]\w{{1,20}}-[\w.-]{{1,60}}))\s{{0,3}}\Z",
    re.I,
    marks=(
        "model",
        "模型",
    ),
)
_OF_SIZE = r"(?=[A-Za-z0-9_./-]{0,160}-\d{1,3}(?:\.\d)?b(?![A-Za-z0-9]))"
_TUNED = LazyPattern(
    r"(?:(?:模型|微调|使用|用)\s{0,2}|\b(?:fine-?tun(?:e|ed|ing)|train(?:ed|ing)?|model)\s{1,2})"
    rf"`?(?![A-Za-z0-9_.-]{{0,60}}\d[bm]/){_OF_SIZE}{_HUB}",
    re.I,
    marks=(
        "模型",
        "微调",
        "用",
        "fine",
        "train",
        "model",
    ),
)
"""A hub's name that ends in a size, so that no cards, versions or two models by a stroke are taken for one."""

_DOWNLOADED = LazyPattern(
    rf"[\\/](?:modelscope|modelscope/hub|modelscope/hub/models|modelscope/models)[\\/]{_OF_SIZE}(?!hub/|models/){_HUB}",
    re.I,
    marks=("modelscope",),
)
_CACHED = LazyPattern(rf"models--({_PART})(?=[/\\'\"\s]|\Z)", marks=("models--",))
_REMOTE = LazyPattern(
    r"[\\/]transformers_modules[\\/](?:(?:([\w.-]{1,60})[\\/])?(\w[\w.-]{1,100})[\\/])?(?:(?:[0-9a-f]{40}"
    r"|\.{3})[\\/])?\w{1,60}\.py\b",
    marks=("transformers_modules",),
)
"""A model in the folders into which ModelScope and the Hub download, and the code that comes with its files."""

_OF_TRL = LazyPattern(rf"=\s?({TRAINERS})Trainer\(", marks=("trainer(",))
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
_FOLDERS = (
    *("data", "models", "model", "checkpoints", "checkpoint", "ckpt", "output", "outputs", "path", "examples"),
    *("scripts", "save", "saves", "workspace", "mnt", "root", "home", "src", "tmp", "runs"),
    *("model_path", "model_inference"),
)
_LIKE_A_MODEL = re.compile(r"(?!checkpoint|step|epoch|global|output|run|\d)(?=.{0,100}\d)[A-Za-z].{2,100}\Z", re.I)


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
        found = [pattern.search(line.text) for pattern in (_LOADED, _ASSIGNED, _FLAG, _SERVED, _TUNED, _DOWNLOADED)]
        found += [_LISTED.match(line.plain), _FIRST.match(line.text) if opened else None]
        opened = _OPEN.search(line.text) is not None
        names = {_model_name(*match.groups()) for match in filter(None, found)}
        names |= {match[1].replace("--", "/", 1) for match in _CACHED.finditer(line.text) if "--" in match[1]}
        if remote := _REMOTE.search(line.text):
            yield Claim("model.remote_code", True, line.number)
            names.add(_name_of_code(remote[1], remote[2]))
        full = [name for name in sorted(filter(None, names)) if not any(_ends_in(other, name) for other in names)]
        yield from (Claim("model.name", name, line.number) for name in full)
        if trainer := _OF_TRL.search(line.text):
            yield Claim("training.framework", "trl", line.number)
            yield Claim("training.objective", trainer[1].lower(), line.number)
        elif _OF_TRANSFORMERS.search(line.text):
            yield Claim("training.framework", "transformers", line.number)


def _name_of_code(owner: str | None, name: str | None) -> str | None:
    """The model whose code a path belongs to, as transformers writes its name into folders."""
    if not name or not _LIKE_A_MODEL.match(name) or name.startswith("."):
        return None
    plain = name.replace("_hyphen_", "-").replace("_dot_", ".")
    return f"{owner}/{plain}" if owner and owner.strip(".") else plain


def _ends_in(whole: str | None, part: str) -> bool:
    return whole is not None and whole.endswith(f"/{part}")


def _model_name(hub: str | None, path: str | None = None, bare: str | None = None) -> str | None:
    """The name on a hub, or the last part of a path that looks like one; None for what is a file or any folder."""
    if name := hub or bare:
        is_file = _FILE.search(name) or name.partition("/")[0].lower() in _FOLDERS
        return None if is_file else name.replace("___", ".")
    parts = [part for part in re.split(r"[\\/]", path or "") if part]
    if not parts or "models--" in (path or ""):
        return None
    last = parts[-1].rstrip(".,").replace("___", ".")
    return last if _LIKE_A_MODEL.match(last) and not _FILE.search(last) else None


def _switched(block: Block, whole: bool) -> Iterator[Claim]:
    for line in block.short():
        if not _MARK.search(line.text):
            continue
        for path, pattern in _SWITCHES.items():
            if (switched := pattern.search(line.text)) and not (whole and path in _READ_WHOLE):
                yield Claim(path, not pattern.groups or switched[1] == "True", line.number)


def _is_whole(block: Block) -> bool:
    """Whether a block is code that parses and trains."""
    from compatcheck.project import scripts

    try:
        return scripts.trains("the text.py", "\n".join(line.text for line in block.lines))
    except InputError:
        return False


def own_training(blocks: Iterable[Block]) -> Iterator[Claim]:
    """What pasted scripts have, all together; one without traits tells nothing, as part of it may be left out."""
    own = [block for block in blocks if block.fenced and fence_manner(block) is None]
    if not own:
        return
    from compatcheck.project import scripts

    found: dict[str, int] = {}
    for block in own:
        traits = scripts.traits_in("\n".join(line.text for line in block.lines)) or {}
        found = {**{trait: block.lines[line - 1].number for trait, line in traits.items()}, **found}
    if found:
        yield Claim("trainer.traits", sorted(found), min(found.values()))
