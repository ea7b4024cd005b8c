"""What the units of `settings` are given: the calls of one script, and what became of the objects that they made."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property

from compatcheck.environment import Environment, Location
from compatcheck.files import limits
from compatcheck.project.script_calls.calls import Assignment, Call, ScriptCalls
from compatcheck.project.training.agreement import agreed_configuration
from compatcheck.project.training.document import Configuration, Document, Keys

NOTHING = Configuration(Environment())
_TRAINER = re.compile(r"(?:transformers|trl|unsloth|sentence_transformers|setfit)\.(?:[\w.]+\.)?(\w*Trainer)")
_LIGHTNING = re.compile(r"(?:pytorch_lightning|lightning(?:\.pytorch)?)\.(?:[\w.]+\.)?Trainer")
_OF_IMAGES = "DDPO|AlignProp"
"""These train a pipeline of diffusers that they are given, by arguments of their own."""
ARGUMENTS = (
    r"(?:transformers|sentence_transformers|unsloth)\.(?:[\w.]+\.)?\w*TrainingArguments"
    rf"|trl\.(?:[\w.]+\.)?(?!Model|Peft|Script|{_OF_IMAGES})[A-Z]\w*Config"
)
"""The arguments that a Trainer is given."""
LOADS = re.compile(r"(?:[\w.]+\.)?(?!Fast|Peft|AutoPeft)(?:AutoModel\w*|\w+For[A-Z]\w*|\w+Model)\.from_pretrained")
FAST_MODEL = re.compile(r"unsloth\.(?:[\w.]+\.)?Fast\w*Model\.from_pretrained")
_MODEL_FIRST = ("model", "base_model")
_FRAMEWORKS = {"sentence_transformers": "sentence-transformers", "unsloth": "trl"}
CALL: Keys = ("",)


class Program:
    """The calls of one script, by what they call."""

    def __init__(self, path: str, script: ScriptCalls) -> None:
        self.path = path
        self.script = script

    def calls(self, pattern: str) -> tuple[Call, ...]:
        """The calls whose callee is matched as a whole, in their order."""
        matches = re.compile(pattern).fullmatch
        return tuple(call for call in self.script.calls if matches(call.callee))

    def methods(self, *names: str) -> tuple[Call, ...]:
        """The calls of methods of these names on objects that the script has."""
        return tuple(call for call in self.script.calls if call.callee[:1] == "." and last_name(call) in names)

    def last_assignment(self, name: str) -> tuple[Call, ...]:
        """The last assignment to an attribute of this name, as `as_call` has it; empty where there is none."""
        found = [each for each in self.script.assignments if each.name.rpartition(".")[2] == name]
        return tuple(as_call(each, name) for each in found[-1:])

    def imports(self, *libraries: str) -> bool:
        """Whether it imports one of these packages."""
        return any(module.partition(".")[0] in libraries for module in self.script.imports)

    @cached_property
    def trainers(self) -> tuple[Call, ...]:
        """The Trainers of transformers and what builds on it that the script makes."""
        return tuple(call for call in self.script.calls if _TRAINER.fullmatch(call.callee))

    @cached_property
    def lightning(self) -> tuple[Call, ...]:
        return tuple(call for call in self.script.calls if _LIGHTNING.fullmatch(call.callee))

    @cached_property
    def loads(self) -> tuple[Call, ...]:
        """The calls that load the model in training; all loads of models where that is not to be told."""
        if self.trainers and all(re.match(_OF_IMAGES, last_name(each)) for each in self.trainers):
            return ()
        every = [
            call for call in self.script.calls if LOADS.fullmatch(call.callee) or FAST_MODEL.fullmatch(call.callee)
        ]
        given = [argument(trainer, "model", 0) for trainer in self.trainers]
        given += [argument(call, "model", 0) for call in self.methods("prepare")]
        used = [load for value in given if (load := loaded(value)) is not None]
        return tuple(call for call in every if any(call is load or call == load for load in used)) or tuple(every)

    @cached_property
    def is_traced(self) -> bool:
        """Whether every Trainer is given a model whose load is seen, or that the Trainer itself loads by its name."""
        models = [argument(trainer, "model", 0) for trainer in self.trainers]
        return bool(models) and all(isinstance(each, str) or loaded(each) is not None for each in models)


def last_name(call: Call) -> str:
    """The name of the class or function that is called, without its module."""
    return call.callee.rpartition(".")[2]


def library(call: Call) -> str:
    """The package whose name is called."""
    return call.callee.partition(".")[0]


def framework(call: Call) -> str:
    """The framework whose Trainer or arguments are made."""
    return _FRAMEWORKS.get(library(call), library(call))


def as_call(assignment: Assignment, name: str) -> Call:
    """An assignment as a call with one argument of this name."""
    at = assignment.at
    return Call("", at, (), {name: assignment.value}, {name: at}, doubt=assignment.doubt)


def argument(call: Call, name: str, position: int | None = None) -> object:
    """The value of an argument by its name or place, or None."""
    if name in call.keywords:
        return call.keywords[name]
    return call.positional[position] if position is not None and position < len(call.positional) else None


def document(call: Call, *positional: str) -> Document:
    """The arguments of a call as a document, each with its place; a gap in them makes it only a part.

    `CALL` are the keys of the call itself.
    """
    origins: dict[Keys, Location] = {(name,): at for name, at in call.places.items() if isinstance(name, str)}
    origins |= {(name,): call.places[number] for number, name in enumerate(positional) if number in call.places}
    gap = call.gap
    if not gap and len(call.positional) > len(positional):
        gap = f"line {call.at.line}: the call has positional arguments"
    return Document(
        call.at.file,
        "",
        {**dict(zip(positional, call.positional)), **call.keywords},
        {},
        {**origins, CALL: call.at},
        partial=gap,
    )


def loaded(value: object) -> Call | None:
    """The call that loaded the model which a value is, through what wraps it."""
    for _ in range(limits.ARGUMENTS_DEPTH):
        if not isinstance(value, Call):
            return None
        if LOADS.fullmatch(value.callee) or FAST_MODEL.fullmatch(value.callee):
            return value
        if value.callee.startswith("."):
            value = value.owner
        else:
            value = next((value.keywords[name] for name in _MODEL_FIRST if name in value.keywords), None) or (
                value.positional[0] if value.positional else None
            )
    return None


def read_each(calls: Sequence[Call], read: Callable[[Call], Configuration], needed: bool = False) -> Configuration:
    """What these calls say together: what differs between them is unknown, and what a call says that may not happen.

    ``needed`` says that one of them does happen, so what all of them say holds.
    """
    said = [read(call) for call in calls]
    sure = needed and len(said) > 1
    said = [each if not call.doubt or sure else doubted(each, call.doubt) for call, each in zip(calls, said)]
    if not said:
        return NOTHING
    lines = ", ".join(str(line) for line in dict.fromkeys(call.at.line for call in calls))
    return agreed_configuration(said, f"the calls at lines {lines:.80} of {calls[0].at.file} set different values")


def doubted(said: Configuration, why: str) -> Configuration:
    """What a call would say, unknown for the reason why it may not happen."""
    reasons = dict.fromkeys(said.facts.flat(), why)
    return Configuration(Environment({}, {**said.facts.reasons, **reasons}))
