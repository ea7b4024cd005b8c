"""The pipeline of a commit: one verdict for each project that its files affect, judged from the files alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.environment.assumptions import assume_all, assumed_paths
from compatcheck.errors import InputError, NothingInspectedError
from compatcheck.language import gettext as _
from compatcheck.pipelines.verdict import Options, Verdict, compare, conclude
from compatcheck.project.overlay import over
from compatcheck.project.reading import read_paths
from compatcheck.results.areas import Given
from compatcheck.results.findings import BAD, STATUSES, Finding, Report, fingerprint
from compatcheck.terminal.progress import late_progress

if TYPE_CHECKING:
    from compatcheck.project.commit import Change


def judge(
    changes: Sequence[Change], known: matrix.Matrix, options: Options, assume: Sequence[str] = ()
) -> tuple[Verdict, ...]:
    """One verdict for each project whose configurations a commit affects; its environment is that of the first.

    Nothing of this machine counts: a commit is trained elsewhere, and what runs a hook is not what will train. So what
    the project requires of imports and probes does not count either. Raises `InputError` where a file of the commit
    cannot be read.
    """
    named = tuple(area for area in options.project.require if area not in ("imports", "numerics"))
    project = options.project._replace(require=named)
    options = options._replace(project=project, given=Given("", assumed_paths(assume)))
    reports: dict[str, list[Report]] = {}
    with late_progress(_("checking the commit"), len(changes)) as advance:
        for change in changes:
            report = _compare(change, known, options, assume)
            if report is not None:
                reports.setdefault(change.project, []).append(report)
            advance(1)
    return tuple(conclude(_join(several), known, options, whole=False) for several in reports.values())


def _compare(change: Change, known: matrix.Matrix, options: Options, assume: Sequence[str]) -> Report | None:
    """What the matrix says of one change; None where nothing can be read that the commit itself does not touch."""
    try:
        reading = read_paths(change.paths)
        stated = over(Environment({}), reading, "instead")
        return compare(assume_all(stated, assume), known, options)._replace(remarks=reading.remarks)
    except NothingInspectedError:
        return None
    except InputError:
        if change.is_touched:
            raise
        return None


def _join(reports: Sequence[Report]) -> Report:
    """One report with every finding once, as bad as it was anywhere; what is certain in one file is not doubted."""
    worst: dict[str, Finding] = {}
    for finding in (finding for report in reports for finding in report.findings):
        line = finding.location.line if finding.location else None
        same = worst.setdefault(f"{fingerprint(finding)}:{line}", finding)
        if STATUSES.index(finding.status) < STATUSES.index(same.status):
            worst[f"{fingerprint(finding)}:{line}"] = finding
    certain = {finding.id for finding in worst.values() if finding.status in BAD}
    kept = [each for each in worst.values() if each.status in BAD or each.location or each.id not in certain]
    findings = sorted(kept, key=lambda finding: (STATUSES.index(finding.status), finding.id))
    remarks = dict.fromkeys(remark for report in reports for remark in report.remarks)
    return reports[0]._replace(findings=tuple(findings), remarks=tuple(remarks))
