"""One verdict for many machines: group their snapshots, compare the groups, and judge each by the matrix."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Collection

from compatcheck import cluster, matrix, probes
from compatcheck.environment.snapshot import read_snapshot
from compatcheck.errors import InputError, NothingInspectedError
from compatcheck.files import storage
from compatcheck.files.json_text import written_json
from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.pipelines.check import check
from compatcheck.pipelines.cluster._live import Live, Trials, follow, lead
from compatcheck.pipelines.cluster._present import Presented, here, present
from compatcheck.results.cluster import ClusterReport, Failure, Group
from compatcheck.results.findings import Finding
from compatcheck.terminal.progress import late_progress

__all__ = ["Trials", "choose", "judge", "record", "recorded", "take_part"]

_RECORD_ANEW = marked("record the snapshots again with compatcheck cluster --record FOLDER")
_ON_EVERY_RANK = marked("no rank could be judged")


def choose(named: Collection[str]) -> tuple[str, ...]:
    """Those of the probes for many machines that are named, in their order; all where none is.

    Raises InputError for a name that none of them has.
    """
    unknown = next((name for name in named if name not in probes.JOINT), None)
    if unknown is not None:
        advice = f"choose from {', '.join(probes.JOINT)}"
        raise InputError("running the probe", unknown, "not a probe for many machines", advice)
    return tuple(name for name in probes.JOINT if name in named or not named)


def recorded(
    folder: str, known: matrix.Matrix, *, select: Collection[str] = (), ignore: Collection[str] = ()
) -> ClusterReport:
    """The verdict on the machines whose snapshots lie in a folder."""
    gathered = cluster.gather(folder, read_snapshot)
    world = sum(len(members) for members in gathered.members.values()) + len(gathered.failures)
    return judge(gathered, known, f"snapshots in {folder}", world, select=select, ignore=ignore)


def take_part(
    launch: cluster.Launch,
    known: matrix.Matrix,
    paths: tuple[str, ...],
    trials: Trials,
    publish: Callable[[ClusterReport], int],
    *,
    python: str | None = None,
    hash_weights: bool = False,
    select: Collection[str] = (),
    ignore: Collection[str] = (),
) -> int:
    """One rank of a run, from its snapshot to the exit status; rank 0 has ``publish`` say the verdict.

    Raises CompatcheckError where rank 0 cannot be reached in time.
    """

    def look() -> Presented:
        return present(known, paths, python, hash_weights)

    if launch.rank:
        return follow(launch, look, trials.seconds)

    def verdict(live: Live) -> int:
        report = judge(
            live.gathered, known, launch.launcher, launch.world, select=select, ignore=ignore, advice=_ON_EVERY_RANK
        )
        return publish(
            report._replace(trials=live.results, links=live.links, limits=live.limits, cut_short=live.cut_short)
        )

    return lead(launch, look, trials, verdict)


def record(
    folder: str, known: matrix.Matrix, paths: tuple[str, ...], python: str | None = None, hash_weights: bool = False
) -> str:
    """Write this machine's snapshot into the folder, for machines that cannot talk; gives the file's path."""
    try:
        launch = cluster.launch(os.environ)
        node = {"name": launch.node, "rank": launch.rank}
    except InputError:
        node = {"name": socket.gethostname()}
    found = here(known, paths, python, hash_weights)[0]
    name = ".".join(str(part) for part in node.values())
    path = os.path.join(folder, f"{name}.json")
    text = written_json({**found.dump(), "node": node})
    storage.write(path, text)
    return path


def judge(
    gathered: cluster.Gathered,
    known: matrix.Matrix,
    launcher: str,
    world: int,
    *,
    select: Collection[str] = (),
    ignore: Collection[str] = (),
    advice: str = _RECORD_ANEW,
) -> ClusterReport:
    """What all share, where they differ, and what the matrix says of each group; ``advice`` is for where none is.

    Raises NothingInspectedError where no group has anything that the matrix could speak of.
    """
    groups, failures = [], list(gathered.failures)
    refused: NothingInspectedError | None = None
    different = cluster.grouped(gathered.members, gathered.environments)
    with late_progress(_("judging the snapshots"), len(different)) as advance:
        for group in different:
            advance(1)
            try:
                groups.append(_judge_group(group, known, select, ignore))
            except NothingInspectedError as error:
                refused = error
                failures.append(Failure("unread", group.members, error.seen))
                groups.append(group)
    if refused is not None and all(not group.environment.facts.get("distributions") for group in groups):
        raise refused
    if not groups:
        seen = failures[0].what if failures else "no snapshot arrived"
        raise NothingInspectedError("judging", launcher, seen, advice)
    shared = _marks_in_all(groups)
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


def _judge_group(group: Group, known: matrix.Matrix, select: Collection[str], ignore: Collection[str]) -> Group:
    report = check(group.environment, known, select=select, ignore=ignore)
    return group._replace(inferred=report.inferred, findings=report.findings)


def _marks_in_all(groups: list[Group]) -> set[tuple[str, str, str]]:
    marks = [{_mark(finding) for finding in group.findings} for group in groups]
    return set.intersection(*marks)


def _mark(finding: Finding) -> tuple[str, str, str]:
    return finding.id, finding.status, finding.summary
