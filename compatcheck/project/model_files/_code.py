"""The code that a model brings with it: which files it is, and the traits that its rules find there."""

from __future__ import annotations

import ast
import os
from typing import Any

from compatcheck.environment import Environment, Location
from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.json_text import read_json_object
from compatcheck.files.python_syntax import attributes_set, parse_code
from compatcheck.files.reading import read_text
from compatcheck.project._asks import asks
from compatcheck.project.model_files import _rope, _tokenizer
from compatcheck.project.model_files.traits._code import Code, Kind
from compatcheck.project.model_files.traits._rules import traits_of

_KINDS: tuple[tuple[Kind, str], ...] = (
    ("model", "modeling"),
    ("model", "configuration"),
    ("model", "hf_prefixlm"),
    ("tokenizer", "tokenization"),
)


def read(folder: str, names: list[str], config: dict[str, Any], reasons: dict[str, str]) -> Environment:
    """``code_from``, and ``traits`` and ``asks`` with the line of each.

    Both stay unknown where some of the code does.
    """
    mapped = _auto_classes(folder, names, config)
    elsewhere = sorted({value.partition("--")[0] for value in mapped.values() if "--" in value})
    known: dict[str, Any] = {"code_from": elsewhere} if elsewhere else {}
    if any("--" in value for value in _auto_map(config).values()):
        reasons["model.traits"] = f"the model's code is in another repository, {elsewhere[0]}"
        return Environment(known)
    traits: dict[str, Location] = {}
    asked: list[dict[str, Any]] = []
    try:
        files = codes(folder, names, config)
        for code in files:
            path = os.path.join(folder, code.name)
            for trait, line in traits_of(code):
                traits.setdefault(trait, Location(path, line))
            asked += asks(code.tree, path, loaded=True)
    except InputError as error:
        reasons["model.traits"] = str(error)
        return Environment(known)
    known["traits"] = sorted(traits)
    if files:
        known["asks"] = asked
    locations = {f"model.traits.{trait}": at for trait, at in traits.items()}
    imported = {
        f"model.asks.{each['target']}.{each.get('name', '')}": Location(each["file"], each["line"])
        for each in reversed(asked)
        if each["kind"] == "import"
    }
    return Environment(known, {}, {**locations, **imported})


def codes(folder: str, names: list[str], config: dict[str, Any]) -> list[Code]:
    """The files that the rules read, parsed; raises `InputError` where one cannot be read or parsed."""
    mapped = _auto_classes(folder, names, config)
    entry_points = {value.rpartition(".")[2] for value in mapped.values()}
    architectures = config.get("architectures")
    entry_points |= (
        {each for each in architectures or () if isinstance(each, str)} if _is_list(architectures) else set()
    )
    configurations = [name for name in names if name.startswith("configuration_") and name.endswith(".py")]
    configured = frozenset(each for name in configurations for each in attributes_set(_parse(folder, name)))
    wanted = dict.fromkeys(
        (kind, name) for kind, prefix in _KINDS for name in _files_by_kind(folder, names, mapped, kind, prefix)
    )
    named = any(kind == "tokenizer" for kind, _ in wanted) and _tokenizer.names_special_tokens(folder, names)
    shared = frozenset(entry_points), configured, named, _rope.scales(config)
    return [Code(name, kind, _parse(folder, name), *shared) for kind, name in wanted]


def names(folder: str, names: list[str], config: dict[str, Any]) -> list[str]:
    """The names of all files of the model's own code that are in the folder."""
    mapped = _auto_classes(folder, names, config)
    started = {module for value in mapped.values() if (module := _module(value)) in names}
    for _, prefix in _KINDS:
        started |= {name for name in names if name.startswith(f"{prefix}_") and name.endswith(".py")}
    return _closure(folder, names, started)


def _files_by_kind(folder: str, names: list[str], mapped: dict[str, str], kind: Kind, prefix: str) -> list[str]:
    """The files of a kind: those named for it that the configuration leads to, or all where it names none."""
    auto = "AutoTokenizer" if kind == "tokenizer" else "AutoModel"
    entries = {_module(value) for key, value in mapped.items() if key.startswith(auto) and "--" not in value}
    here = {each for each in entries if each in names}
    named = [name for name in names if name.startswith(f"{prefix}_") and name.endswith(".py")]
    if not here:
        return named
    reached = set(_closure(folder, names, here))
    return sorted(here | {name for name in named if name in reached})


def _closure(folder: str, names: list[str], started: set[str]) -> list[str]:
    """The files and those of the folder that they import."""
    found, waiting = set(started), sorted(started)
    while waiting:
        for node in ast.walk(_parse(folder, waiting.pop())):
            if isinstance(node, ast.ImportFrom) and node.level:
                imported = [node.module.partition(".")[0]] if node.module else [each.name for each in node.names]
                new = {f"{each}.py" for each in imported} & set(names) - found
                found |= new
                waiting.extend(sorted(new))
    return sorted(found)


def _parse(folder: str, name: str) -> ast.Module:
    path = os.path.join(folder, name)
    tree = parse_code(read_code(path))
    if tree is None:
        raise InputError("reading", path, "the file is not valid Python", "fetch it again")
    return tree


def read_code(path: str) -> str:
    """The text of a file of code; raises `InputError` where it is too large or not UTF-8."""
    return read_text(path, limits.MODEL_CODE_BYTES)


def _auto_classes(folder: str, names: list[str], config: dict[str, object]) -> dict[str, str]:
    """What ``auto_map`` of the configuration and of the tokenizer's names, by auto class."""
    mapped = _auto_map(config)
    if "tokenizer_config.json" in names:
        try:
            mapped = {**_auto_map(read_json_object(os.path.join(folder, "tokenizer_config.json"))), **mapped}
        except InputError:
            return mapped
    return mapped


def _auto_map(config: dict[str, Any]) -> dict[str, str]:
    """One reference for each auto class; of a tokenizer's pair of slow and fast, the first that is given."""
    stated = config.get("auto_map")
    if _is_list(stated):
        stated = {"AutoTokenizer": stated}
    mapped: dict[str, str] = {}
    for key, value in stated.items() if isinstance(stated, dict) else ():
        each = next((one for one in value if isinstance(one, str)), None) if _is_list(value) else value
        if isinstance(each, str):
            mapped[str(key)] = each
    return mapped


def _module(reference: str) -> str:
    """``modeling_a.py`` of ``modeling_a.AModel``."""
    return f"{reference.rpartition('--')[2].partition('.')[0]}.py"


def _is_list(value: object) -> bool:
    return isinstance(value, (list, tuple))
