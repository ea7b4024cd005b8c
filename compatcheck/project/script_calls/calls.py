"""What a Python script calls, and with which arguments, as far as they are literals; nothing of it is run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from compatcheck.environment import Location


class Call(NamedTuple):
    """A call with the values of its arguments.

    ``callee`` is the imported name, as ``transformers.TrainingArguments`` or ``peft.LoraConfig``, of a class of the
    script's own that of its imported base; of a method of an object ``.gradient_checkpointing_enable``, with the
    ``owner``. A value is a str, int, float, bool, None, list or dict, a `Reference` to an imported name, the `Call`
    that made an object, or `Open` with the reason why it is not known. ``places`` has the line of each argument, by
    its name or position. ``gap`` says why there may be arguments that were not seen; ``doubt`` why the call may not
    happen.
    """

    callee: str
    at: Location
    positional: tuple[object, ...] = ()
    keywords: Mapping[str, object] = {}
    places: Mapping[int | str, Location] = {}
    owner: object = None
    gap: str = ""
    doubt: str = ""


class Assignment(NamedTuple):
    """An attribute that is set on an object after it was made, as ``tokenizer.padding_side = "left"``."""

    owner: object
    name: str
    value: object
    at: Location
    doubt: str = ""


class CommandLine(NamedTuple):
    """What a launch line gives to a script: flags by name with their values, words without a flag, and their places."""

    flags: Mapping[str, object]
    positional: tuple[object, ...] = ()
    places: Mapping[int | str, Location] = {}


class ScriptCalls(NamedTuple):
    """The calls and assignments of a script in the order in which they are run, and the modules it imports."""

    calls: tuple[Call, ...]
    assignments: tuple[Assignment, ...] = ()
    imports: frozenset[str] = frozenset()
