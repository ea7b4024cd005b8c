"""The steps of a remedy, spelled as the user's own files spell them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from compatcheck.environment import Environment, vocabulary
from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.results.findings import Remedy, Step, StepKind

_DEEPSPEED = "training.deepspeed."
_ARGUMENTS = "training.arguments."
_TRAINER_DTYPES = {
    "bfloat16": "bf16=True, fp16=False",
    "float16": "fp16=True, bf16=False",
    "float32": "bf16=False, fp16=False",
}


def steps(remedy: Remedy, environment: Environment) -> Iterator[Step]:
    """Each thing to do; a remedy without versions and settings explains itself."""
    if remedy.pins:
        kind: StepKind = "pin" if any(remedy.pins.values()) else "install"
        yield Step(kind, tuple(f"{name}{specifier}" for name, specifier in remedy.pins.items()))
    for path, value in remedy.config.items():
        yield setting(path, value, environment)
    for name, value in remedy.environ.items():
        yield Step("export", (f"export {name}={value}",))
    if remedy.code:
        yield Step("code", (remedy.code,))
    if remedy.action:
        yield Step("words", (remedy.action,))
    if not (remedy.pins or remedy.config or remedy.environ or remedy.code or remedy.action):
        yield Step("words", (remedy.why,))


def setting(path: str, value: object, environment: Environment) -> Step:
    """A setting of the snapshot as the file that it belongs to spells it, with that file where it is known."""
    fact = vocabulary.fact_at(path)
    if path.startswith(_DEEPSPEED):
        keys = fact.deepspeed if fact and fact.deepspeed else path.removeprefix(_DEEPSPEED)
        return Step("set", (_nested_json(keys, value),), _deepspeed_file(environment))
    if fact and fact.deepspeed and path in environment.locations:
        file = environment.locations[path].file
        if file.endswith(".json"):
            return Step("set", (_nested_json(fact.deepspeed, value),), file)
        return Step("set", (path.partition(".")[2],), file, json.dumps(value))
    if path.startswith(_ARGUMENTS) and path in environment.locations:
        return Step("set", (path.removeprefix(_ARGUMENTS),), environment.locations[path].file, json.dumps(value))
    if fact and fact.python:
        return Step("set", (fact.python.format(_python_line(path, value)),))
    return Step("words", (_("set {fact} to {value}").format(fact=path, value=json.dumps(value)),))


def _python_line(path: str, value: Any) -> str:
    if path == "training.dtype":
        return _TRAINER_DTYPES.get(value) or str(value)
    return str(value) if path == "training.load_dtype" else repr(value)


def _deepspeed_file(environment: Environment) -> str:
    """The one file that the DeepSpeed settings come from, or words for it."""
    files = {
        location.file
        for path, location in environment.locations.items()
        if path.startswith(_DEEPSPEED) and location.file.endswith(".json")
    }
    return files.pop() if len(files) == 1 else marked("the DeepSpeed JSON")


def _nested_json(keys: str, value: object) -> str:
    *sections, name = keys.split(".")
    text = f"{json.dumps(name)}: {json.dumps(value)}"
    for section in reversed(sections):
        text = f"{json.dumps(section)}: {{{text}}}"
    return text


def applied(environment: Environment, remedy: Remedy) -> Environment:
    """The environment with the settings and variables of a remedy."""
    variables = {f"environ.{name}": value for name, value in remedy.environ.items()}
    for path, value in {**remedy.config, **variables}.items():
        environment = environment.with_fact(path, value)
    return environment
