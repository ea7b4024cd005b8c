"""What a project's settings make of a report: a step of every verdict that is given in the project's name."""

from __future__ import annotations

from collections.abc import Collection

from compatcheck import matrix, settings
from compatcheck.environment import Environment
from compatcheck.environment.assumptions import assume
from compatcheck.errors import InputError
from compatcheck.results.findings import Report


def settle(report: Report, known: matrix.Matrix, project: settings.Settings, *, whole: bool = True) -> Report:
    """The report with what the project ignores set aside, and remarks on ignores that want a look.

    It comes before the probes, as a fault that is ignored need not be tried. Of a part of the project, which is not the
    ``whole``, no ignore is said to be unneeded. Raises `InputError` where an ignore names no entry.
    """
    if not project.ignores:
        return report
    report = settings.set_aside(report, project)

    def ruled_out(ids: Collection[str]) -> dict[str, bool]:
        return {entry: out and whole for entry, out in matrix.ruled_out(known, report.environment, ids).items()}

    return settings.unused(report, project, ruled_out)


def selected(known: matrix.Matrix, named: tuple[str, ...], project: settings.Settings) -> tuple[str, ...]:
    """The entries to keep to: those named, else the project's. Raises `InputError` where an id is no entry's."""
    if named or not project.select:
        return matrix.require_ids(known, named)
    try:
        return matrix.require_ids(known, project.select)
    except InputError as error:
        seen = f"select names {', '.join(project.select)}: {error.seen}"
        raise InputError("reading settings from", project.file or "", seen, "see compatcheck matrix list") from None


def assumed(project: settings.Settings) -> tuple[str, ...]:
    """The facts that the project states. Raises `InputError`, naming its file, where one is none."""
    for statement in project.assume:
        try:
            assume(Environment({}), statement)
        except InputError as error:
            seen = f"assume holds {statement}: {error.seen}"
            raise InputError("reading settings from", project.file or "", seen, "see compatcheck env") from None
    return project.assume


def ignored_everywhere(known: matrix.Matrix, project: settings.Settings) -> tuple[str, ...]:
    """The entries that the project ignores in every file, as pins and clusters leave them alone.

    Raises `InputError` where an ignore names no entry.
    """
    for each in (ignores := settings.ignored_everywhere(project)):
        try:
            matrix.require_ids(known, [each.id])
        except InputError as error:
            seen = f"{each.id} is ignored there: {error.seen}"
            raise InputError("reading settings from", str(each.at), seen, "see compatcheck matrix list") from None
    return tuple(each.id for each in ignores)
