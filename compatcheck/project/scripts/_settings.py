"""What a training script decides: its units together, and what follows from several of them."""

from __future__ import annotations

import functools

from compatcheck.environment import Environment, Unknown
from compatcheck.files.units import units
from compatcheck.project.script_calls.calls import Call, ScriptCalls
from compatcheck.project.scripts._program import ARGUMENTS, LOADS, NOTHING, Program, last_name, library
from compatcheck.project.training.document import Configuration

_MEANS = rf"{ARGUMENTS}|accelerate\.(?:[\w.]+\.)?Accelerator|deepspeed\.(?:[\w.]+\.)?initialize"
_WITH_DEFAULTS = (
    r"(?:transformers|trl|peft|accelerate|sentence_transformers)\.(?:[\w.]+\.)?"
    r"(?:[A-Z]\w*(?:Arguments|Config)|get_peft_model)"
)
_POSITIONAL = {"from_pretrained": ("pretrained_model_name_or_path",), "get_peft_model": ("model", "peft_config")}


def trains(script: ScriptCalls) -> bool:
    """Whether a script makes what a training needs: a Trainer, its arguments, or the means of a loop of its own.

    A Trainer that only evaluates or predicts trains nothing.
    """
    program = Program("", script)
    if program.trainers:
        called = program.methods("train", "evaluate", "predict")
        return not called or any(call.callee == ".train" for call in called)
    return bool(program.lightning or program.calls(_MEANS) or program.methods("backward"))


def read_settings(path: str, script: ScriptCalls) -> Configuration:
    """The facts of a script that trains, with the files it names; of another nothing."""
    if not trains(script):
        return NOTHING
    program = Program(path, script)
    modules = units("compatcheck.project.scripts.settings").values()
    ordered = sorted(modules, key=lambda unit: getattr(unit, "LAYER", 1))
    said = functools.reduce(Configuration.overlay, (unit.read(program) for unit in ordered), NOTHING)
    return said._replace(facts=_with_calls(_with_method(said.facts), program))


def _with_method(facts: Environment) -> Environment:
    """LoRA over four bits is QLoRA."""
    quantization = facts.get("training.quantization")
    if not facts.section("training.lora") or facts.states("training.method") or isinstance(quantization, Unknown):
        return facts
    at = next((at for fact, at in facts.locations.items() if fact.startswith("training.lora.")), None)
    is_qlora = facts.get("training.quantization.bits") == 4
    return facts.with_fact("training.method", "qlora" if is_qlora else "lora", at)


def _with_calls(facts: Environment, program: Program) -> Environment:
    """With the names of the arguments of each call that was seen whole, for which defaults can follow."""
    by_class: dict[str, list[Call]] = {}
    for call in program.calls(_WITH_DEFAULTS):
        by_class.setdefault(f"{library(call)}.{last_name(call)}", []).append(call)
    loads = [call for call in program.loads if LOADS.fullmatch(call.callee)]
    if loads:
        by_class["transformers.from_pretrained"] = loads
    for name, calls in by_class.items():
        given = {frozenset(_names(call)) for call in calls}
        if len(given) == 1 and not any(call.gap for call in calls) and (len(calls) > 1 or not calls[0].doubt):
            facts = facts.with_fact(f"training.calls.{name}", sorted(given.pop()), calls[0].at)
    return facts


def _names(call: Call) -> set[str]:
    """The names of the arguments; None is what ``from_pretrained`` takes for one that is missing."""
    names = {name for name, value in call.keywords.items() if value is not None or not LOADS.fullmatch(call.callee)}
    known = _POSITIONAL.get(last_name(call), ("output_dir",))
    return names | set(known[: len(call.positional)])
