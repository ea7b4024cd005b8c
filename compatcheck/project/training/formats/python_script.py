"""A Python script or notebook that trains, read from its syntax tree; nothing of it is run."""

from __future__ import annotations

from compatcheck.project import scripts
from compatcheck.project.script_calls.calls import CommandLine
from compatcheck.project.training.document import Configuration, Document

TITLE = "a Python script that trains"
SUFFIXES = (".py", ".ipynb")
ROLE = "program"
MARKS = ("Trainer", "TrainingArguments", "Accelerator", "deepspeed", "backward", "Config(")
GENERAL = True


def recognises(document: Document) -> bool:
    """Whether it trains, or has a Trainer of its own."""
    return scripts.recognises(document.path, document.text)


def recognises_named(document: Document) -> bool:
    """Whether it imports a library: what it asks of that is judged if the user named the file."""
    return scripts.imports_library(document.text)


def trains(document: Document) -> bool:
    """Whether it makes what a training needs."""
    return scripts.trains(document.path, document.text)


def read(document: Document, command: CommandLine | None = None) -> Configuration:
    """What its calls decide, with what a launch line gives to it."""
    return scripts.read_settings(document.path, document.text, command)
