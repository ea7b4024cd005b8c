"""The steps of a remedy in the reader's language, with what is to be copied apart from the words around it."""

from __future__ import annotations

from compatcheck.language import gettext as _
from compatcheck.results.findings import Remedy, Step


def step_text(step: Step) -> str:
    """The step as one line."""
    what = (f"'{each}'" for each in step.what) if step.kind in ("pin", "install") else (to_copy(step),)
    return f"{lead(step)} {' '.join(what)}".lstrip()


def step_texts(remedy: Remedy) -> tuple[str, ...]:
    return tuple(map(step_text, remedy.steps))


def lead(step: Step) -> str:
    """The words before what is to be copied; empty where that stands for itself."""
    if step.value:
        return _("in {file} set {name} to").format(file=_(step.file), name=step.what[0])
    if step.kind == "set":
        return _("in {file} set").format(file=_(step.file)) if step.file else _("set")
    return {"pin": _("pin"), "install": _("install")}.get(step.kind, "")


def to_copy(step: Step) -> str:
    """What is to be copied: requirements in a line each, a setting, a command, code, or only a value."""
    return step.value or "\n".join(step.what)


def explains_more(remedy: Remedy) -> bool:
    """Whether the remedy's reason is not already one of its steps."""
    return (remedy.why,) not in [step.what for step in remedy.steps]
