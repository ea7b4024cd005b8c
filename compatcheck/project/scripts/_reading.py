"""Which files train with the transformers Trainer, and the traits that the rules of this folder find there."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, cast

from compatcheck.environment import Environment, Location
from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.path_lists import listed
from compatcheck.files.python_syntax import parse_code
from compatcheck.files.reading import read_text
from compatcheck.files.units import trait_name, units
from compatcheck.project._asks import asks
from compatcheck.project.script_calls.calls import CommandLine
from compatcheck.project.script_calls.reader import parse_script, read_calls_in
from compatcheck.project.scripts import _settings
from compatcheck.project.scripts._script import ARGUMENTS, TRAINERS, TRL_CONFIGS, Script, script_of
from compatcheck.project.training.document import Configuration

KIND = "python_script"
_IMPORTS = re.compile(r"^\s{0,80}(?:from|import)\s{1,8}(?:transformers|trl)\b", re.M)
_LIBRARIES = re.compile(
    r"\b(?:from|import)\s[^\n]{0,200}?\b(?:transformers|trl|peft|unsloth|accelerate|deepspeed|torch|lightning|pytorch_lightning"
    r"|sentence_transformers|datasets|diffusers|evaluate|huggingface_hub|tokenizers|bitsandbytes|optimum)\b"
)
_CLASSES = re.compile(rf"\b(?:{'|'.join((*TRAINERS, *ARGUMENTS, *TRL_CONFIGS))})\b")


class Rule(Protocol):
    READS: Literal["trainers", "calls"]

    def find(self, script: Script) -> int | None: ...


@functools.cache
def rules() -> Mapping[str, Rule]:
    """Each rule by its trait."""
    return {trait_name(name): cast(Rule, rule) for name, rule in units("compatcheck.project.scripts.rules").items()}


_calls = functools.lru_cache(maxsize=32)(read_calls_in)


def recognises(path: str, text: str) -> bool:
    """Whether Python trains, or has a Trainer of its own."""
    return (path.endswith(".py") and _script(text) is not None) or trains(path, text)


def imports_library(text: str) -> bool:
    """Whether Python imports a library that training uses."""
    return _LIBRARIES.search(text) is not None


def trains(path: str, text: str) -> bool:
    """Whether Python makes what a training needs."""
    may_train = path.endswith(".ipynb") or _LIBRARIES.search(text)
    return may_train is not None and _settings.trains(_calls(text, path))


def read_settings(path: str, text: str, command: CommandLine | None = None) -> Configuration:
    """What the calls of a script that trains decide, with what a launch line gives to it."""
    return _settings.read_settings(path, _calls(text, path) if command is None else read_calls_in(text, path, command))


def traits_in(text: str) -> dict[str, int] | None:
    """The traits of a piece of code, each with its line; None where it does not train or cannot be parsed."""
    script = _script(text)
    if script is None:
        return None
    return {trait: line for trait, rule in rules().items() if (line := rule.find(script)) is not None}


@functools.lru_cache(maxsize=32)
def _script(text: str) -> Script | None:
    tree = _tree(text)
    return script_of(tree) if tree else None


def _tree(text: str) -> ast.Module | None:
    return parse_code(text) if _CLASSES.search(text) and _IMPORTS.search(text) else None


def _any_tree(path: str, texts: Mapping[str, str]) -> ast.Module | None:
    """The syntax tree of a script or notebook; None of what cannot be read."""
    if path in texts:
        return parse_code(texts[path])
    try:
        return parse_script(path)
    except InputError:
        return None


def read(paths: Sequence[str]) -> Environment:
    """``trainer.traits`` with the line of each, ``trainer.suspected``, and the ``trainer.asks``.

    What only some of several scripts have is suspected. A script that has no Trainer of its own, or makes none, leaves
    it to the others. Raises `InputError` where a file cannot be read.
    """
    texts = {path: read_text(path, limits.SCRIPT_BYTES) for path in paths if path.endswith(".py")}
    scripts = {path: script for path, text in texts.items() if (script := _script(text))}
    asked = [each for path in paths if (tree := _any_tree(path, texts)) for each in asks(tree, path)]
    if not scripts and not asked:
        return Environment({})
    known: dict[str, list[object]] = {"traits": [], "suspected": []} if scripts else {}
    locations: dict[str, Location] = {}
    for trait, rule in rules().items():
        lines = {path: rule.find(script) for path, script in scripts.items() if getattr(script, rule.READS)}
        shown = [Location(path, line) for path, line in lines.items() if line is not None]
        if shown:
            known["traits" if len(shown) == len(lines) else "suspected"].append(trait)
            locations[f"trainer.traits.{trait}"] = shown[0]
    known = {fact: found for fact, found in known.items() if found or fact == "traits"}
    known["asks"] = [*asked]
    if len(scripts) < 2:
        return Environment({"trainer": known}, {}, locations)
    why = f"there are {len(scripts)} training scripts, pass one of them: {listed(list(scripts))}"
    return Environment({"trainer": known}, {"trainer.script": why}, locations)
