"""`--fix` of the verbs that judge files: a diff or the files written, and what came of each finding."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.results import exit_status
from compatcheck.terminal.messages import lines, say
from compatcheck.verbs import _help
from compatcheck.verbs._output import write

if TYPE_CHECKING:
    from compatcheck.matrix import Matrix
    from compatcheck.pipelines.fix import Outcome
    from compatcheck.results.findings import Report

_WHY = {
    "no edit": marked("no remedy consists of an edit to these files"),
    "unsafe": marked("the remedy may change results, memory or cost; allow it with --unsafe-fixes"),
    "did not help": marked("no edit fixes the finding without causing a new one"),
}


def options(command: Any) -> Any:
    for option in reversed(
        [
            _help.option(
                "--fix", is_flag=True, help="Print the edits that fix findings, as a diff; --write applies them."
            ),
            _help.option("--write", "write_files", is_flag=True, rare=True, help="With --fix: write the edits."),
            _help.option(
                "--unsafe-fixes",
                is_flag=True,
                rare=True,
                help="With --fix: also apply remedies that may change results, memory or cost.",
            ),
        ]
    ):
        command = option(command)
    return command


def require_consistent(*, fix: bool, write_files: bool, unsafe_fixes: bool) -> None:
    if not fix and (write_files or unsafe_fixes):
        option = "--write" if write_files else "--unsafe-fixes"
        raise click.UsageError(_("{option} requires --fix").format(option=option))


def apply(judge: Callable[[], Sequence[Report]], known: Matrix, *, write_files: bool, unsafe_fixes: bool) -> None:
    """Write the fixes, or print them as a diff and exit with 1 if there was anything to fix."""
    from compatcheck.advice.fixes import Known
    from compatcheck.interfaces.history import Interfaces
    from compatcheck.pipelines import fix

    history, companions = known.table("release-history"), known.table("torch-companions")
    packages = Known(history["releases"], companions["releases"], Interfaces(known.table))
    made = fix.fix(judge, packages, unsafe=unsafe_fixes)
    if write_files:
        fix.write(made)
    else:
        difference = fix.difference(made)
        shown = lines(difference)
        write(shown, None)
    for each in made.outcomes:
        say(_outcome(each))
    if write_files:
        return
    if made.fixed:
        say(_("nothing is written; add --write to apply the diff"))
    if shown != difference:
        say(_("the diff hides credentials or spells out control characters, so `git apply` rejects it; use --write"))
    sys.exit(exit_status.FINDINGS if made.outcomes else exit_status.CLEAN)


def _outcome(outcome: Outcome) -> str:
    from compatcheck.report.steps import step_texts

    finding = outcome.finding
    name = f"{finding.id} ({finding.location})" if finding.location else finding.id
    if outcome.remedy is None:
        return _("not fixed: {finding}: {why}").format(finding=name, why=_(_WHY[outcome.why or "no edit"]))
    return _("fixed: {finding}: {remedy}").format(finding=name, remedy="; ".join(step_texts(outcome.remedy)))
