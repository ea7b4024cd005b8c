"""The file that a plan becomes, and what is not in it."""

from __future__ import annotations

from typing import Literal

from compatcheck.advice import formats, resolver, torch_builds
from compatcheck.pipelines.pin._plan import Plan


def written(planned: Plan, format_name: str, previous: str | None, hashes: bool, command: str = "") -> str:
    """The text of a file with the plan's versions; see `compatcheck.advice.formats.render`."""
    task, demands = planned.task, planned.demands
    locked = None
    if hashes or formats.holds_hashes(format_name, task.wanted, previous):
        kind: Literal["requirements.txt", "pylock.toml"] = (
            "pylock.toml" if format_name == "pylock" else "requirements.txt"
        )
        locked = resolver.lock(task.wanted, planned.solution, demands, task.place, kind)
    notes: tuple[str, ...] = ()
    left = planned.report.left
    if left:
        notes += (f"NOT CLEAN, fix this by hand: {', '.join(f'{each.id} {each.title}' for each in left)}",)
    backend = demands.torch_backend or task.unreached
    if backend and "torch" in planned.solution.versions:
        notes += (
            f"torch is the {backend} build: pip install --extra-index-url {torch_builds.index_of(backend)} ..., or "
            f"uv pip install --torch-backend {backend} ...",
        )
    return formats.render(format_name, task.wanted, planned.solution, planned.moves, locked, previous, notes, command)


def left_out(planned: Plan, format_name: str, previous: str | None, text: str) -> tuple[str, ...]:
    """What is not in that text, or is there unjudged, a line for each."""
    kept = (
        (f"{line.where}: {line.name or 'this line'} is {line.kept}; the line is left unchanged and unchecked")
        for line in planned.task.wanted.lines
        if line.kept and line.at
    )
    unbuilt = (
        f"{name} stays at {planned.solution.versions.get(name, 'any version')}: {reason}"
        for name, reason in planned.solution.kept.items()
    )
    return (*formats.left_out(format_name, planned.task.wanted, previous, text), *kept, *unbuilt)
