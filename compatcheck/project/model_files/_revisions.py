"""What changed between two revisions of a model: its code, settings, tokenizer, template, tensors and files."""

from __future__ import annotations

import ast
import difflib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from compatcheck.environment.paths import flatten
from compatcheck.errors import InputError
from compatcheck.files.json_text import read_json_object
from compatcheck.files.python_syntax import Function, parse_code
from compatcheck.files.secrets import excerpt
from compatcheck.project.model_files import _code, _folder, _tokenizer
from compatcheck.project.model_files._memory import consequences
from compatcheck.project.model_files._safetensors import HeaderError, Shard, read_shard

_SETTINGS = ("config.json", "generation_config.json", "tokenizer_config.json", "preprocessor_config.json")
_TOLD_ELSEWHERE = ("chat_template", "added_tokens_decoder")
_MOST_LINES = 40
_MOST_TENSORS = 20
_ABSENT = object()


def compare(old: str, new: str, weights: bool = False) -> dict[str, object]:
    """What differs between two folders, as plain values; with ``weights`` the weight files are hashed as well.

    ``memory`` says in words what the changes mean for memory. Raises `InputError` as `_folder.read` does.
    """
    sides = [_folder.read(folder, weights) for folder in (old, new)]
    models = [side.facts["model"] for side in sides]
    names = [_folder.file_names(folder) for folder in (old, new)]
    changes: dict[str, Any] = {
        "traits": _traits(models, [side.locations for side in sides]),
        "definitions": list(_definitions(old, new, names)),
        "settings": [],
        "tokens": [],
        "chat_template": None,
        "tensors": _tensors(old, new, names),
        "files": list(_files(models)),
    }
    unknown = [dict(side.reasons) for side in sides]
    for name, read in (("settings", _settings), ("tokens", _tokens), ("chat_template", _template)):
        try:
            changes[name] = read(old, new, names)
        except InputError as error:
            of_new = f" {os.path.join(new, '')}" in str(error)
            unknown[of_new][f"changes.{name}"] = str(error)
    return {
        "old": {"folder": old, **models[0]},
        "new": {"folder": new, **models[1]},
        "unknown": unknown,
        "changes": changes,
        "memory": consequences(changes, models[0], models[1], read_json_object(os.path.join(new, "config.json"))),
    }


def _traits(models: list[dict[str, Any]], locations: list[Mapping[str, Any]]) -> list[dict[str, object]]:
    """The traits that came or went; none where those of one side are unknown."""
    if not all("traits" in model for model in models):
        return []
    rows = []
    for change, here, there, places in (("gained", 1, 0, locations[1]), ("lost", 0, 1, locations[0])):
        for trait in sorted(set(models[here]["traits"]) - set(models[there]["traits"])):
            at = places.get(f"model.traits.{trait}")
            rows.append({"change": change, "trait": trait, "location": at._asdict() if at else None})
    return rows


def _definitions(old: str, new: str, names: list[list[str]]) -> Iterator[dict[str, object]]:
    """The classes, methods, functions and class attributes of code that were added, removed or changed."""
    code = sorted({name for side in names for name in side if name.endswith(".py")})
    for file in code:
        if not (file in names[0] and file in names[1]):
            yield {"file": file, "change": "added" if file in names[1] else "removed", "name": None, "line": None}
            continue
        before, after = (_defined(os.path.join(folder, file)) for folder in (old, new))
        if before is None or after is None:
            continue
        for name in dict.fromkeys((*before, *after)):
            if before.get(name, (0, ""))[1] != after.get(name, (0, ""))[1]:
                change = "added" if name not in before else "removed" if name not in after else "changed"
                line = (after if name in after else before)[name][0]
                yield {"file": file, "change": change, "name": name, "line": line}


def _defined(path: str) -> dict[str, tuple[int, str]] | None:
    """Each definition's line and its syntax, less documentation; None where the file cannot be parsed."""
    try:
        tree = parse_code(_code.read_code(path))
    except InputError:
        return None
    if tree is None:
        return None
    found: dict[str, tuple[int, str]] = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[node.name] = (node.lineno, _syntax(node))
        elif isinstance(node, ast.ClassDef):
            found[node.name] = (node.lineno, " ".join(ast.dump(base) for base in node.bases))
            found.update(_members(node))
    return found


def _members(node: ast.ClassDef) -> Iterator[tuple[str, tuple[int, str]]]:
    for item in node.body:
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{node.name}.{item.name}", (item.lineno, _syntax(item))
        elif isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name):
            yield f"{node.name}.{item.targets[0].id}", (item.lineno, ast.dump(item.value))


def _syntax(function: Function) -> str:
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return ast.dump(function.args) + "".join(map(ast.dump, (*function.decorator_list, *body)))


def _settings(old: str, new: str, names: list[list[str]]) -> list[dict[str, object]]:
    rows = []
    for file in _SETTINGS:
        before, after = (
            dict(flatten(read_json_object(os.path.join(folder, file)))) if file in side else {}
            for folder, side in zip((old, new), names)
        )
        for key in sorted({*before, *after}):
            one, other = before.get(key, _ABSENT), after.get(key, _ABSENT)
            if one != other and not key.startswith(_TOLD_ELSEWHERE):
                stated = {side: value for side, value in (("old", one), ("new", other)) if value is not _ABSENT}
                rows.append({"file": file, "key": key, **stated})
    return rows


def _tokens(old: str, new: str, names: list[list[str]]) -> list[dict[str, Any]]:
    before, after = (_tokenizer.special_tokens(folder, side) for folder, side in zip((old, new), names))
    return [
        {"role": role, "old": before.get(role), "new": after.get(role)}
        for role in sorted({*before, *after})
        if before.get(role) != after.get(role)
    ]


def _template(old: str, new: str, names: list[list[str]]) -> dict[str, object] | None:
    """How the chat template that is used by default changed: sources, tokens and the differing lines."""
    sides = [next(_tokenizer.templates(folder, side), None) for folder, side in zip((old, new), names)]
    before, after = sides
    if (before.text if before else None) == (after.text if after else None):
        return None
    one, other = (side.text.splitlines() if side else [] for side in sides)
    lines = list(difflib.unified_diff(one, other, "old", "new", n=1, lineterm=""))
    return {
        "change": "changed" if before and after else "added" if after else "removed",
        "old": before and {"source": before.source, "sha256": before.sha256, "tokens": before.tokens},
        "new": after and {"source": after.source, "sha256": after.sha256, "tokens": after.tokens},
        "diff": [excerpt(line, 200) for line in lines[2:][:_MOST_LINES]],
        "diff_lines": max(len(lines) - 2, 0),
    }


def _tensors(old: str, new: str, names: list[list[str]]) -> dict[str, object]:
    """The tensors that differ by name, shape or dtype, as far as safetensors headers tell."""
    before, after = (_named_tensors(folder, side) for folder, side in zip((old, new), names))
    if before is None or after is None:
        return {"compared": False}
    added, removed = sorted(set(after) - set(before)), sorted(set(before) - set(after))
    changed = [name for name in sorted(set(before) & set(after)) if before[name] != after[name]]
    shown = [{"name": name, "old": before[name], "new": after[name]} for name in changed[:_MOST_TENSORS]]
    counts = {"added": len(added), "removed": len(removed), "changed": len(changed)}
    return {
        "compared": True,
        "counts": counts,
        "added": added[:_MOST_TENSORS],
        "removed": removed[:_MOST_TENSORS],
        "changed": shown,
    }


def _named_tensors(folder: str, names: list[str]) -> dict[str, str] | None:
    shards: dict[str, Shard] = {}
    for name in (each for each in names if each.endswith(".safetensors")):
        try:
            shards[name] = read_shard(os.path.join(folder, name))
        except (HeaderError, OSError):
            return None
    if not shards:
        return None
    return {
        name: f"{tensor.dtype} {list(tensor.shape)}"
        for shard in shards.values()
        for name, tensor in shard.tensors.items()
    }


def _files(models: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The files that came, went or have another hash."""
    before, after = (model["files"] for model in models)
    for name in sorted({*before, *after}):
        one, other = before.get(name), after.get(name)
        if one is None or other is None:
            yield {"file": name, "change": "removed" if other is None else "added"}
        elif one.get("sha256") != other.get("sha256"):
            yield {"file": name, "change": "changed", "old": one.get("sha256"), "new": other.get("sha256")}
