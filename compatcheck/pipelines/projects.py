"""The pipeline of `compatcheck check`: a verdict for each project that is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from compatcheck import matrix
from compatcheck.environment import Location, Target
from compatcheck.errors import NothingInspectedError
from compatcheck.pipelines.environment import Subject, with_read_releases
from compatcheck.pipelines.verdict import Options, Probing, Verdict, compare, conclude
from compatcheck.results.findings import Report


class Verdicts(NamedTuple):
    """Each project by its folder, with its verdict, and those of which nothing is known."""

    judged: tuple[tuple[str, Verdict], ...]
    unjudged: tuple[NothingInspectedError, ...] = ()


def judge(
    subjects: Iterable[Subject],
    known: matrix.Matrix,
    options: Options,
    probing: Callable[[Target], Probing | None] | None = None,
) -> Verdicts:
    """Judge each subject. Raises as `verdict.judge` does; what nothing is known of is left out beside others."""
    every = tuple(subjects)
    judged: list[tuple[str, Verdict]] = []
    unjudged: list[NothingInspectedError] = []
    for subject in every:
        try:
            linked, remarks = with_read_releases(known, subject.target)
            report = compare(subject.environment, linked, options)
            report = report._replace(remarks=(*subject.remarks, *remarks))
        except NothingInspectedError as error:
            seen = ": ".join((error.seen, *(remark.text for remark in subject.remarks[:1])))
            unjudged.append(NothingInspectedError(error.doing, subject.folder or error.subject, seen, error.advice))
            continue
        alone = len(every) == 1
        asked = probing(subject.target) if probing and subject.target else None
        found = report if alone else _located(report, subject.folder)
        judged.append((subject.folder, conclude(found, known, options, asked, whole=alone)))
    if not judged:
        raise unjudged[0]
    return Verdicts(tuple(judged), tuple(unjudged))


def _located(report: Report, folder: str) -> Report:
    """With the project as the place of what no file states, so that the same finding of another is another one."""
    findings = (each if each.location else each._replace(location=Location(folder)) for each in report.findings)
    return report._replace(findings=tuple(findings))
