"""What several files of one run say together: configuration, script, accelerate config, DeepSpeed JSON, adapter."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from compatcheck.environment import Environment, Unknown
from compatcheck.errors import InputError
from compatcheck.files.path_lists import listed, more_than_one
from compatcheck.project.training import reader_of, readers
from compatcheck.project.training._paths import File, existing, folders_of
from compatcheck.project.training.agreement import over_accelerate
from compatcheck.project.training.document import Configuration, Document, open_document
from compatcheck.project.training.formats import deepspeed
from compatcheck.project.training.presets import preset

_SECTIONS = ("deepspeed", "lora", "quantization", "fsdp")
_ALSO_DEEPSPEED = (
    "training.dtype",
    "training.gradient_accumulation_steps",
    "training.per_device_train_batch_size",
)


class Run(NamedTuple):
    """The files of one training that are known to belong together, by role; ``loose`` ones are only near by."""

    files: Mapping[str, File]
    loose: Mapping[str, tuple[File, ...]] = {}


class Joined(NamedTuple):
    """What a run says, the files it was read from, and the model it names with the folders a path may start from."""

    facts: Environment
    used: tuple[File, ...]
    model: str | None = None
    bases: tuple[str, ...] = ()


def join_run(run: Run) -> Joined:
    """The facts of one run, each file in its turn, as the launcher and the trainer take them.

    Flags of a script win over the configuration it names, both over the accelerate config; the DeepSpeed JSON takes
    what it leaves to the trainer from these. Raises `InputError` where a file cannot be read.
    """
    bases = folders_of(run.files.values())
    used: dict[File, None] = {}
    result = _own(run, bases, used)
    accelerate = _accelerate(run, result, bases)
    if accelerate:
        used[accelerate] = None
        result = over_accelerate(readers()["accelerate"].read(open_document(accelerate.path)), result)
    environment = result.facts
    environment = _add_deepspeed(run, environment, result, bases, used)
    environment = _add_adapter(run, environment, result.names, bases, used)
    return Joined(_add_section_places(environment), tuple(used), result.names.get("model"), bases)


def _own(run: Run, bases: tuple[str, ...], used: dict[File, None]) -> Configuration:
    """What configuration, program and launch script say; a launch script reads what it names itself."""
    result = Configuration(Environment({}))
    for role in ("config", "program", "script"):
        file = run.files.get(role)
        if file is None:
            continue
        used[file] = None
        further = [lambda path: _opened(path, bases, used)] if role == "script" else []
        over = readers()[file.reader].read(open_document(file.path), *further)
        facts = result.facts.overlay(over.facts)
        places = {**result.places, **over.places}
        result = Configuration(facts, {**result.names, **over.names}, {**result.inlined, **over.inlined}, places)
    return result


def _opened(path: str, bases: tuple[str, ...], used: dict[File, None]) -> tuple[str, Document] | None:
    """The file that a script names and its reader, if it has one, where exactly one file has that path."""
    found = existing(path, bases)
    if len(found) != 1 or not os.path.isfile(found[0]):
        return None
    document = open_document(found[0])
    name = reader_of(document) or ""
    if name:
        used[File(name, found[0])] = None
    return name, document


def _accelerate(run: Run, result: Configuration, bases: tuple[str, ...]) -> File | None:
    """The accelerate config of a run: named, or the only one near by where no script says how the run starts."""
    if "accelerate" in run.files:
        return run.files["accelerate"]
    if "accelerate" in result.names:
        found = existing(result.names["accelerate"], bases)
        return File("accelerate", found[0]) if len(found) == 1 else None
    loose = run.loose.get("accelerate", ())
    framework = result.facts.get("training.framework")
    takes_one = isinstance(framework, Unknown) or framework in ("transformers", "trl")
    return loose[0] if len(loose) == 1 and "script" not in run.files and takes_one else None


def _add_deepspeed(
    run: Run, environment: Environment, config: Configuration, bases: tuple[str, ...], used: dict[File, None]
) -> Environment:
    """The environment with the DeepSpeed configuration that is in use, where that can be told."""
    document: Document | None = None
    why: str | None = None
    if "deepspeed" in run.files:
        used[run.files["deepspeed"]] = None
        document = open_document(run.files["deepspeed"].path)
    elif "deepspeed" in config.inlined:
        document = config.inlined["deepspeed"]
    elif "deepspeed" in config.names:
        document, why = _named_deepspeed(config.names["deepspeed"], environment, bases, used)
    elif isinstance(environment.get("training.deepspeed"), Unknown):
        loose = run.loose.get("deepspeed", ())
        if len(loose) == 1:
            used[loose[0]] = None
            document = open_document(loose[0].path)
        elif loose:
            why = more_than_one([each.path for each in loose])
    if document is None:
        missing = config.names.get("deepspeed") if why else None
        stated = {"training": {"deepspeed_file": missing}} if missing else {}
        return environment.overlay(Environment(stated, {"training.deepspeed": why} if why else {}))
    facts = deepspeed.read(document, environment).facts
    if not os.path.exists(document.path):
        named = config.places.get("deepspeed")
        facts = facts._replace(locations={"training.deepspeed": named} if named else {})
    undecided = tuple(path for path in _ALSO_DEEPSPEED if path in facts.reasons)
    open_ones = {
        path: why for path, why in environment.reasons.items() if path in undecided and path != "training.dtype"
    }
    facts = facts._replace(reasons={**facts.reasons, **open_ones})
    result = environment.without(*undecided, "training.deepspeed").overlay(facts)
    same = {path: at for path, at in environment.locations.items() if _is_same(path, environment, result)}
    return result._replace(locations={**result.locations, **same})


def _is_same(path: str, before: Environment, after: Environment) -> bool:
    """A value that the DeepSpeed JSON only repeats stands where the trainer gives it."""
    value = before.get(path)
    return not isinstance(value, (Unknown, Mapping)) and value is not None and after.get(path) == value


def _named_deepspeed(
    name: str, environment: Environment, bases: tuple[str, ...], used: dict[File, None]
) -> tuple[Document | None, str | None]:
    found = [path for path in existing(name, bases) if not os.path.isdir(path)]
    if len(found) > 1:
        return None, f"{name} may be {listed(found, ' or ')}; pass the one in use"
    if found:
        document = open_document(found[0])
        if not isinstance(document.value, dict):
            seen = "the file is passed as the DeepSpeed configuration"
            raise InputError("reading", found[0], f"{seen}, but is not a JSON object", "pass a DeepSpeed JSON")
        used[File("deepspeed", found[0])] = None
        return document, None
    carried = preset(environment.get("training.framework"), name)
    return carried, None if carried else f"{name}, the DeepSpeed configuration, was not found"


def _add_adapter(
    run: Run, environment: Environment, names: Mapping[str, str], bases: tuple[str, ...], used: dict[File, None]
) -> Environment:
    """An adapter's own configuration fills in what the run leaves open about LoRA."""
    file = run.files.get("adapter")
    if file is None and "adapter" in names:
        found = [os.path.join(path, "adapter_config.json") for path in existing(names["adapter"], bases)]
        paths = [path for path in found if os.path.isfile(path)]
        file = File("peft_adapter", paths[0]) if len(paths) == 1 and "peft_adapter" in readers() else None
    if file is None and not run.files and len(run.loose.get("adapter", ())) == 1:
        file = run.loose["adapter"][0]
    if file is None:
        return environment
    used[file] = None
    adapter: Environment = readers()[file.reader].read(open_document(file.path)).facts
    return adapter.overlay(environment)


def _add_section_places(environment: Environment) -> Environment:
    """The environment with a place for every section, that of the first fact in it."""
    locations = dict(environment.locations)
    for section in _SECTIONS:
        path = f"training.{section}"
        inside = [at for fact, at in environment.locations.items() if fact.startswith(f"{path}.")]
        if path not in locations and inside and environment.get(path):
            locations[path] = min(inside, key=lambda at: (at.line is None, at.line or 0))
    return environment._replace(locations=locations)
