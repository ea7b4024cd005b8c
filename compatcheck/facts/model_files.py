"""A model's folder: what its configuration says, which files it has, and traits of its own code."""

from __future__ import annotations

import os
import re
from typing import Any

from compatcheck.errors import InputError
from compatcheck.facts._text import read_json_object, read_text
from compatcheck.facts._weights import safetensors_problem, sha256_of
from compatcheck.model import Facts, Location

_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
_IDENTIFYING = (".py", ".json", ".model", ".txt", ".jinja")
_MOST_FILES = 2000
_LARGEST_CODE = 8 << 20
_LARGEST_SMALL_FILE = 256 << 20
_SNAPSHOT = re.compile(r"models--([^/\\]+)[/\\]snapshots[/\\]([0-9a-f]{40})\Z")


def recognises(folder: str) -> bool:
    """Whether a folder holds a model: a ``config.json`` that names its type or its classes."""
    path = os.path.join(folder, "config.json")
    if not os.path.isfile(path):
        return False
    config = read_json_object(path)
    return "model_type" in config or "architectures" in config or "auto_map" in config


def read(folder: str, weights: bool = False) -> Facts:
    """The facts under ``model``; with ``weights`` the weight files are hashed as well.

    Raises `InputError` where the configuration is missing, too large or not JSON, or where a
    safetensors header is hostile.
    """
    config_file = os.path.join(folder, "config.json")
    config = read_json_object(config_file)
    name, revision = _identity(folder, config)
    model: dict[str, Any] = {"name": name, "revision": revision}
    model.update(_stated(config, config_file))
    reasons: dict[str, str] = {}
    names = _file_names(folder)
    model["remote_code"] = "auto_map" in config or any(each.startswith("modeling_") for each in names)
    model["files"] = _files(folder, names, weights, reasons)
    problems = _weight_problems(folder, names)
    if problems:
        model["file_problems"] = problems
    traits = _traits(folder, names, config, reasons)
    if traits is not None:
        model["traits"] = traits
    return Facts({"model": model}, reasons, _locations(folder, config_file, model))


def _stated(config: dict[str, Any], path: str) -> dict[str, Any]:
    """What the configuration itself states; keys it lacks are left out."""
    stated: dict[str, Any] = {}
    for fact, key, kind in (("type", "model_type", str), ("architectures", "architectures", list)):
        value = config.get(key)
        if isinstance(value, kind):
            stated[fact] = value
        elif value is not None:
            raise InputError("reading", path, f"{key} is {value!r:.40}", "give a folder that transformers can load")
    dtype = config.get("dtype", config.get("torch_dtype"))
    if isinstance(dtype, str):
        stated["torch_dtype"] = dtype.removeprefix("torch.")
    return stated


def _identity(folder: str, config: dict[str, Any]) -> tuple[str, str | None]:
    """Name and revision by the Hugging Face cache, else by the configuration or the folder's name."""
    absolute = os.path.abspath(folder)
    cached = _SNAPSHOT.search(absolute)
    if cached:
        return cached[1].replace("--", "/"), cached[2]
    named = config.get("_name_or_path")
    if isinstance(named, str) and named and not os.path.isabs(named) and not named.startswith("."):
        return named, None
    return os.path.basename(absolute), None


def _file_names(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if _is_file(entry))
    except OSError as error:
        raise InputError("reading the model folder", folder, error.strerror or str(error), "make it readable") from None
    if len(names) > _MOST_FILES:
        seen = f"it holds {len(names)} files"
        raise InputError("reading the model folder", folder, seen, "give the folder of one model")
    return names


def _is_file(entry: os.DirEntry[str]) -> bool:
    """A loop of links is no file."""
    try:
        return entry.is_file()
    except OSError:
        return False


def _files(folder: str, names: list[str], weights: bool, reasons: dict[str, str]) -> dict[str, Any]:
    endings = (*_IDENTIFYING, *_WEIGHTS) if weights else _IDENTIFYING
    files: dict[str, Any] = {}
    for name in names:
        if not name.endswith(endings):
            continue
        path = os.path.join(folder, name)
        try:
            size = os.path.getsize(path)
            small = size <= _LARGEST_SMALL_FILE or name.endswith(_WEIGHTS)
            files[name] = {"sha256": sha256_of(path), "size": size} if small else {"size": size}
        except OSError as error:
            reasons[f"model.files.{name}"] = f"{path} cannot be read: {error.strerror or error}"
    return files


def _weight_problems(folder: str, names: list[str]) -> list[dict[str, str]]:
    problems = []
    for name in names:
        if name.endswith(".safetensors"):
            try:
                problem = safetensors_problem(os.path.join(folder, name))
            except OSError as error:
                problem = f"cannot be read: {error.strerror or error}"
            if problem:
                problems.append({"path": name, "problem": problem})
    return problems


def _traits(folder: str, names: list[str], config: dict[str, Any], reasons: dict[str, str]) -> list[str] | None:
    """The traits of the code in the folder; ``None``, with a reason, where some of it cannot be judged."""
    from compatcheck.facts._model_code import parse_code, traits_of

    elsewhere = _code_elsewhere(config)
    if elsewhere:
        reasons["model.traits"] = f"the model's code lies in another repository, {elsewhere}"
        return None
    found: set[str] = set()
    for name in names:
        if not name.endswith(".py") or not name.startswith(("modeling_", "tokenization_")):
            continue
        path = os.path.join(folder, name)
        try:
            tree = parse_code(read_text(path, _LARGEST_CODE))
        except InputError as error:
            reasons["model.traits"] = str(error)
            return None
        if tree is None:
            reasons["model.traits"] = f"{path} is not Python that can be parsed"
            return None
        found.update(traits_of(name, tree))
    return sorted(found)


def _code_elsewhere(config: dict[str, Any]) -> str | None:
    mapped = config.get("auto_map")
    values = mapped.values() if isinstance(mapped, dict) else ()
    named = (value.partition("--") for value in values if isinstance(value, str))
    return next((repository for repository, marked, _ in named if marked), None)


def _locations(folder: str, config_file: str, model: dict[str, Any]) -> dict[str, Location]:
    places = {f"model.{key}": Location(config_file) for key in ("type", "architectures", "torch_dtype") if key in model}
    return {**places, "model": Location(folder)}
