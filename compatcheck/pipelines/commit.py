"""The pipeline of a commit: what its files bear on, judged from the files alone, one report for each project."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.environment.assumptions import assume_all
from compatcheck.errors import InputError, NothingInspectedError
from compatcheck.pipelines.check import check
from compatcheck.project.overlay import with_paths
from compatcheck.results.findings import BAD, STATUSES, Finding, Report, fingerprint

if TYPE_CHECKING:
    from compatcheck.project.commit import Change


class Judged(NamedTuple):
    """A project, and the findings of all that was judged in it; the environment is that of the first."""

    project: str
    report: Report


def judge(
    changes: Sequence[Change],
    known: matrix.Matrix,
    *,
    assume: Sequence[str] = (),
    select: Collection[str] = (),
    ignore: Collection[str] = (),
) -> tuple[Judged, ...]:
    """The reports of the projects that a commit bears on.

    Nothing of this machine counts: a commit is trained elsewhere, and what runs a hook is not what will train. Raises
    `InputError` where a file of the commit cannot be read.
    """
    reports: dict[str, list[Report]] = {}
    for change in changes:
        try:
            stated = with_paths(Environment({}), change.paths, pins="instead")
            report = check(assume_all(stated, assume), known, select=select, ignore=ignore)
        except NothingInspectedError:
            continue
        except InputError:
            if change.is_touched:
                raise
            continue
        reports.setdefault(change.project, []).append(report)
    return tuple(Judged(project, _joined(several)) for project, several in reports.items())


def _joined(reports: Sequence[Report]) -> Report:
    """One report with every finding once, as bad as it was anywhere; what is certain in one file is not doubted."""
    worst: dict[str, Finding] = {}
    for finding in (finding for report in reports for finding in report.findings):
        line = finding.location.line if finding.location else None
        same = worst.setdefault(f"{fingerprint(finding)}:{line}", finding)
        if STATUSES.index(finding.status) < STATUSES.index(same.status):
            worst[f"{fingerprint(finding)}:{line}"] = finding
    certain = {finding.id for finding in worst.values() if finding.status in BAD}
    told = [each for each in worst.values() if each.status in BAD or each.location or each.id not in certain]
    findings = sorted(told, key=lambda finding: (STATUSES.index(finding.status), finding.id))
    return reports[0]._replace(findings=tuple(findings))
