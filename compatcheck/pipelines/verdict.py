"""The verdict chain: compare, apply the project's ignores, run probes, subtract the baseline, draw maps, decide.

The command line, the API, the commit hook and the Trainer callback all go through here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from compatcheck import matrix, settings
from compatcheck.environment import Environment, Target
from compatcheck.errors import InputError
from compatcheck.language import gettext as _
from compatcheck.language import marked, ngettext
from compatcheck.pipelines.areas import areas_of, with_assumed
from compatcheck.pipelines.check import OnProbe, check, confirm
from compatcheck.report.areas import label
from compatcheck.results import exit_status
from compatcheck.results.areas import AreaName, Given
from compatcheck.results.findings import Remark, Report, failing
from compatcheck.settings import Settings
from compatcheck.terminal.stopwatch import stage

_TO_GIVE: dict[AreaName, str] = {
    "packages": marked("pass requirements, a lock file or --python"),
    "gpu": marked("supply it with --assume gpu.compute_capability=8.0"),
    "training": marked("pass the training script, its configuration or the launch script"),
    "model": marked("pass the model folder"),
    "imports": marked("check an installed environment with --imports"),
    "numerics": marked("check an installed environment, without --no-probe"),
}


class Options(NamedTuple):
    """How to judge; where ``fail_on``, ``select`` or ``baseline`` is not given, the project's own counts.

    ``require`` names areas that must be judged, besides those that the project requires. ``given`` says where what is
    judged comes from, and ``probes`` that they are to run. ``maps`` draws version maps, which only pages show.
    """

    project: Settings = settings.NONE
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: str | None = None
    baseline: str | None = None
    require: tuple[AreaName, ...] = ()
    given: Given = Given()
    probes: bool = True
    maps: bool = False


class Probing(NamedTuple):
    """Where and how to run the probes that findings name."""

    target: Target
    device: str = "auto"
    fresh: bool = False
    budget_seconds: float | None = None
    progress: Callable[[], AbstractContextManager[OnProbe | None]] = nullcontext


class Verdict(NamedTuple):
    """A report, the lowest status that fails, and what it comes to: the exit status and its reason."""

    report: Report
    fail_on: str
    exit_status: int
    reason: str


def judge(
    environment: Environment,
    known: matrix.Matrix,
    options: Options,
    probing: Probing | None = None,
    remarks: tuple[Remark, ...] = (),
) -> Verdict:
    """Judge an environment; probes run only where ``probing`` says how.

    Raises `InputError` for an id that no entry has and for a baseline that cannot be read, `NothingInspectedError`
    where nothing is known of the environment.
    """
    with stage("matrix"):
        report = compare(environment, known, options)._replace(remarks=remarks)
    return conclude(report, known, options, probing)


def compare(environment: Environment, known: matrix.Matrix, options: Options) -> Report:
    """The chain's first step: what the selected entries of the matrix say of the environment."""
    ignore = matrix.require_ids(known, options.ignore)
    report = check(environment, known, select=_selected(known, options), ignore=ignore)
    return with_assumed(report, options.given) if options.given.assumed else report


def conclude(
    report: Report, known: matrix.Matrix, options: Options, probing: Probing | None = None, *, whole: bool = True
) -> Verdict:
    """The rest of the chain. Only a report of the ``whole`` project can show that an ignore is unneeded."""
    with stage("matrix"):
        report = _settled(report, known, options.project, whole)
    if probing is not None and any(finding.probe_name for finding in report.findings):
        with probing.progress() as show, stage("probes"):
            report = confirm(
                report,
                probing.target,
                budget_seconds=probing.budget_seconds,
                on_probe=show,
                device=probing.device,
                fresh=probing.fresh,
            )
    baseline = options.baseline or options.project.baseline
    if baseline:
        report = settings.hold_against(report, baseline)
    if options.maps:
        from compatcheck.pipelines.version_maps import with_maps

        report = with_maps(report, known)
    report = report._replace(areas=areas_of(report, options.given, known.guards, probes=options.probes))
    fail_on = options.fail_on or options.project.fail_on or "affected"
    return Verdict(report, fail_on, *_decide(report, fail_on, (*options.project.require, *options.require)))


def ignored_everywhere(known: matrix.Matrix, project: Settings) -> tuple[str, ...]:
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


def _selected(known: matrix.Matrix, options: Options) -> tuple[str, ...]:
    project = options.project
    if options.select or not project.select:
        return matrix.require_ids(known, options.select)
    try:
        return matrix.require_ids(known, project.select)
    except InputError as error:
        seen = f"select names {', '.join(project.select)}: {error.seen}"
        raise InputError("reading settings from", project.file or "", seen, "see compatcheck matrix list") from None


def _settled(report: Report, known: matrix.Matrix, project: Settings, whole: bool) -> Report:
    """The report without what the project ignores, so that no probe is run for it, and remarks on idle ignores."""
    if not project.ignores:
        return report
    report = settings.set_aside(report, project)

    def ruled_out(ids: Collection[str]) -> dict[str, bool]:
        return {entry: out and whole for entry, out in matrix.ruled_out(known, report.judged, ids).items()}

    return settings.unused(report, project, ruled_out)


def _decide(report: Report, fail_on: str, require: Collection[str]) -> tuple[int, str]:
    """The exit status, and the reason for it in words."""
    if any(finding.probe and finding.probe.interrupted for finding in report.findings):
        return exit_status.INTERRUPTED, _("interrupted while probes ran")
    missing = next((area for area in report.areas if area.name in require and not area.judged), None)
    if missing:
        text = _("{area} required: {why}; {advice}")
        why = missing.why or _("not given")
        reason = text.format(area=label(missing.name), why=why, advice=_(_TO_GIVE[missing.name]))
        return exit_status.REQUIRED_MISSING, reason
    count = sum(finding.status in failing(fail_on) for finding in report.findings)
    if count:
        text = ngettext("{count} finding at or above {status}", "{count} findings at or above {status}", count)
        return exit_status.FINDINGS, text.format(count=count, status=fail_on)
    if fail_on == "never":
        return exit_status.CLEAN, "--fail-on never"
    return exit_status.CLEAN, _("no finding at or above {status}").format(status=fail_on)
