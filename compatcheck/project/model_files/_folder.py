"""A model's folder: what its configuration says, which files it has, and traits of its own code."""

from __future__ import annotations

import os
from typing import Any, NoReturn

from compatcheck.environment import Environment, Location
from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.json_text import read_json_object
from compatcheck.files.secrets import excerpt
from compatcheck.project.model_files import _code, _tokenizer, _weights
from compatcheck.project.model_files._repository import as_fact, blob_identity, origin_of
from compatcheck.project.model_files.file_traits._files import Files, traits_of

_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
_IDENTIFYING = (".py", ".json", ".model", ".txt", ".jinja")
_WORTH_SHOWING = 1 << 28
_BITSANDBYTES = {"load_in_4bit": 4, "load_in_8bit": 8}


def recognises(folder: str) -> bool:
    """Whether a folder holds a model: a ``config.json`` that names its type or its classes."""
    path = os.path.join(folder, "config.json")
    if not os.path.isfile(path):
        return False
    config = read_json_object(path)
    return "model_type" in config or "architectures" in config or "auto_map" in config


def read(folder: str, weights: bool = False) -> Environment:
    """The facts under ``model``, and how weights that are stored so are quantised; ``weights`` are hashed if asked for.

    What is wrong with a file of weights is a fact, ``model.file_problems``. Raises `InputError` where the
    configuration is missing, too large or not JSON.
    """
    config_file = os.path.join(folder, "config.json")
    names = file_names(folder)
    if not os.path.lexists(config_file):
        _raise_without_config(folder, names)
    config = read_json_object(config_file)
    origin = origin_of(folder)
    reasons: dict[str, str] = {}
    model: dict[str, Any] = {"name": origin.name or _name(folder, config), **as_fact(origin)}
    model.update(_config_facts(config, config_file))
    model["remote_code"] = "auto_map" in config or any(each.startswith("modeling_") for each in names)
    if asked := config.get("_attn_implementation") or config.get("attn_implementation"):
        model["attn_implementation"] = str(asked)
    model["files"] = _files(folder, names, weights, reasons)
    model.update(_weights.read(folder, names))
    model.update(_tokenizer.read(folder, names, reasons))
    code = _code.read(folder, names, config, reasons)
    model.update(code.facts)
    places = {**_locations(folder, config_file, model), **code.locations}
    if "traits" in model:
        in_files = traits_of(Files(folder, names, config, model))
        model["traits"] = sorted({*model["traits"], *in_files})
        places |= {
            f"model.traits.{trait}": Location(os.path.join(folder, file)) for trait, file in in_files.items() if file
        }
    quantization = _quantization(config)
    if not quantization:
        return Environment({"model": model}, reasons, places)
    places["training.quantization"] = Location(config_file)
    return Environment({"model": model, "training": {"quantization": quantization}}, reasons, places)


def _raise_without_config(folder: str, names: list[str]) -> NoReturn:
    """A folder without ``config.json`` in one line: what it is instead."""
    doing, advice = "reading the model folder", "pass a folder with config.json"
    if "adapter_config.json" in names:
        base = read_json_object(os.path.join(folder, "adapter_config.json")).get("base_model_name_or_path")
        seen = f"this is an adapter of {excerpt(str(base), 200)} without its own config.json"
        raise InputError(doing, folder, seen, "pass the folder of that model")
    if "model_index.json" in names:
        raise InputError(doing, folder, "this is a diffusers pipeline, not a language model", advice)
    if any(name.endswith(".gguf") for name in names):
        raise InputError(
            doing,
            folder,
            "the folder contains GGUF files but no config.json",
            "pass the model that the GGUF files were made from",
        )
    raise InputError(doing, folder, "there is no config.json in the folder", "pass a model as transformers saves it")


def code_files(folder: str) -> tuple[str, ...]:
    """The paths of the model's own code: what the configuration names, and what that imports of the folder.

    Raises `InputError` where the configuration or the code cannot be read.
    """
    config = read_json_object(os.path.join(folder, "config.json"))
    return tuple(os.path.join(folder, name) for name in _code.names(folder, file_names(folder), config))


def _config_facts(config: dict[str, Any], path: str) -> dict[str, Any]:
    """What the configuration itself states; keys it lacks are left out."""
    stated: dict[str, object] = {}
    for fact, key, fits in (("type", "model_type", _is_text), ("architectures", "architectures", _is_texts)):
        value = config.get(key)
        if fits(value):
            stated[fact] = value
        elif value is not None:
            raise InputError(
                "reading", path, f"{key} is {excerpt(repr(value), 40)}", "pass a folder that transformers can load"
            )
    dtype = config.get("dtype", config.get("torch_dtype"))
    if isinstance(dtype, str):
        stated["torch_dtype"] = dtype.removeprefix("torch.")
    if isinstance(config.get("transformers_version"), str):
        stated["transformers_version"] = config["transformers_version"]
    return stated


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _quantization(config: dict[str, Any]) -> dict[str, object]:
    """How the stored weights are quantised, which goes before what a training asks for; nothing where they are not.

    https://github.com/huggingface/transformers/blob/v4.57.6/src/transformers/quantizers/auto.py
    """
    section = config.get("quantization_config") or config.get("compression_config")
    if not isinstance(section, dict):
        return {}
    loaded = next((bits for key, bits in _BITSANDBYTES.items() if section.get(key) is True), None)
    method, bits = "bitsandbytes" if loaded else section.get("quant_method"), loaded or section.get("bits")
    if not isinstance(method, str):
        return {}
    return {"method": method, "bits": bits} if type(bits) is int else {"method": method}


def _name(folder: str, config: dict[str, object]) -> str:
    """The name that the configuration states, else the folder's."""
    named = config.get("_name_or_path")
    if isinstance(named, str) and named and not os.path.isabs(named) and not named.startswith("."):
        return named
    return os.path.basename(os.path.abspath(folder))


def file_names(folder: str) -> list[str]:
    """The files of a folder, in order; raises `InputError` where it cannot be read or is no model's."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if _is_file(entry))
    except OSError as error:
        raise InputError("reading the model folder", folder, error.strerror or str(error), "make it readable") from None
    if len(names) > limits.MODEL_FILES:
        seen = f"the folder contains {len(names)} files"
        raise InputError("reading the model folder", folder, seen, "pass the folder of one model")
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
    unhashed: dict[str, str] = {}
    for name in (each for each in names if each.endswith(endings)):
        path = os.path.join(folder, name)
        try:
            size = os.path.getsize(path)
        except OSError as error:
            reasons[f"model.files.{name}"] = f"{path} cannot be read: {error.strerror or error}"
            continue
        files[name] = {**blob_identity(path), "size": size}
        if "sha256" not in files[name] and (size <= limits.HASHED_BYTES or name.endswith(_WEIGHTS)):
            unhashed[path] = name
    _hash(files, unhashed, reasons)
    return files


def _hash(files: dict[str, Any], unhashed: dict[str, str], reasons: dict[str, str]) -> None:
    """Add the hashes of files to what is known of them."""
    from compatcheck.project.model_files._hashing import hash_files
    from compatcheck.terminal.progress import bytes_progress

    total = sum(files[name]["size"] for name in unhashed.values())
    if total < _WORTH_SHOWING:
        hashes = hash_files(unhashed)
    else:
        with bytes_progress(f"hashing {len(unhashed)} files", total) as advance:
            hashes = hash_files(unhashed, advance)
    for path, digest in hashes.known.items():
        files[unhashed[path]]["sha256"] = digest
    for path, error in hashes.errors.items():
        del files[unhashed[path]]
        reasons[f"model.files.{unhashed[path]}"] = f"{path} cannot be read: {error.strerror or error}"


def _locations(folder: str, config_file: str, model: dict[str, object]) -> dict[str, Location]:
    places = {f"model.{key}": Location(config_file) for key in ("type", "architectures", "torch_dtype") if key in model}
    return {**places, "model": Location(folder)}
