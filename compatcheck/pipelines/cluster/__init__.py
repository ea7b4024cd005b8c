"""One verdict for many machines: group their snapshots, compare the groups, and judge each by the matrix."""

from __future__ import annotations

from collections.abc import Collection

from compatcheck import cluster, facts, matrix
from compatcheck.errors import NothingInspectedError
from compatcheck.fleet import ClusterReport, Failure, Group
from compatcheck.model import Environment, Finding
from compatcheck.pipelines.check import check


def recorded(
    folder: str, known: matrix.Matrix, *, select: Collection[str] = (), ignore: Collection[str] = ()
) -> ClusterReport:
    """The verdict on the machines whose snapshots lie in a folder."""
    gathered = cluster.gather(folder, facts.load_file)
    world = sum(len(members) for members in gathered.members.values()) + len(gathered.failures)
    return judge(gathered, known, f"snapshots in {folder}", world, select=select, ignore=ignore)


def judge(
    gathered: cluster.Gathered,
    known: matrix.Matrix,
    launcher: str,
    world: int,
    *,
    select: Collection[str] = (),
    ignore: Collection[str] = (),
) -> ClusterReport:
    """What all share, where they differ, and what the matrix says of each group.

    Raises NothingInspectedError where no group has anything that the matrix could speak of.
    """
    groups, failures = [], list(gathered.failures)
    refused: NothingInspectedError | None = None
    for group in cluster.grouped(gathered.members, gathered.environments):
        try:
            groups.append(_judged(group, known, select, ignore))
        except NothingInspectedError as error:
            refused = error
            failures.append(Failure("unread", group.members, error.seen))
            groups.append(group)
    if refused is not None and all(not group.environment.facts.get("distributions") for group in groups):
        raise refused
    if not groups:
        seen = failures[0].what if failures else "no snapshot came"
        raise NothingInspectedError("judging", launcher, seen, "write the snapshots anew with compatcheck env")
    shared = _in_all(groups)
    return ClusterReport(
        launcher,
        world,
        tuple(group._replace(findings=tuple(f for f in group.findings if _mark(f) not in shared)) for group in groups),
        cluster.differences(tuple(groups), gathered.snapshots),
        tuple(finding for finding in groups[0].findings if _mark(finding) in shared),
        tuple(failures),
        known.revision,
        known.entries,
        known.date,
        matrix.is_stale(known, None),
    )


def _judged(group: Group, known: matrix.Matrix, select: Collection[str], ignore: Collection[str]) -> Group:
    report = check(group.environment, known, select=select, ignore=ignore)
    return group._replace(environment=Environment(*report.environment), findings=report.findings)


def _in_all(groups: list[Group]) -> set[tuple[str, str, str]]:
    marks = [{_mark(finding) for finding in group.findings} for group in groups]
    return set.intersection(*marks)


def _mark(finding: Finding) -> tuple[str, str, str]:
    return finding.id, finding.status, finding.summary
