"""`compatcheck check`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NoReturn

import click

from compatcheck.installed.trust import may_start
from compatcheck.language import gettext as _
from compatcheck.pipelines.environment import Request, environments
from compatcheck.terminal.messages import say
from compatcheck.terminal.stopwatch import stage
from compatcheck.verbs import _fix, _help, _options
from compatcheck.verbs._output import progress
from compatcheck.verbs._verdict import judge_each_and_exit, options_of, view_of

if TYPE_CHECKING:
    from compatcheck.environment import Target
    from compatcheck.results.areas import AreaName
    from compatcheck.results.findings import Report

SECTION = "judge"
EXAMPLES = (
    "compatcheck check train.yaml requirements.txt",
    "compatcheck check --snapshot node.json --report sarif=findings.sarif",
    "compatcheck check . --fix --write",
)


@_help.verb()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@_fix.options
@_options.python
@_options.snapshot("Check the environment recorded in this file; - is standard input.")
@_options.assume
@_options.config("PATH")
@_options.verdict
@_options.baseline
@_options.project
@_options.imports
@_options.trust
@_options.probe(
    "Run the probes of the findings in the checked interpreter. Default: yes, unless the interpreter is in this folder."
)
@_help.option(
    "--resolve",
    is_flag=True,
    rare=True,
    help="Check with uv and the package index whether the requirements can be installed. Default: check offline.",
)
@_options.require
@_options.require_probe
@_options.device
@_options.fresh
@_options.budget("Start no probe after this many seconds. Default: no limit.", rare=True)
def command(
    paths: tuple[str, ...],
    fix: bool,
    write_files: bool,
    unsafe_fixes: bool,
    python: str | None,
    snapshot: str | None,
    assume: tuple[str, ...],
    configs: tuple[str, ...],
    imports: bool | None,
    probe: bool | None,
    resolve: bool,
    require: tuple[AreaName, ...],
    require_probe: bool,
    budget: float | None,
    device: str,
    fresh: bool,
    baseline: str | None,
    settings_file: str | None,
    isolated: bool,
    **options: object,
) -> NoReturn:
    """Report known-bad combinations in an environment.

    PATH is a file or folder of the project: a training configuration, launch script, requirements, lock file,
    Dockerfile or model folder. In a folder, each folder that lists packages is a project, checked with its own files.

    The environment is the active one, else the project's .venv or venv; pinned requirements override the versions
    installed there. With --python, the installed versions are used. Without an environment, the requirements are used.

    Defaults come from [tool.compatcheck] in the nearest pyproject.toml. Its `paths` and `assume` are ignored with
    --snapshot.
    """
    from compatcheck import matrix
    from compatcheck.environment.assumptions import assumed_paths
    from compatcheck.pipelines import projects
    from compatcheck.pipelines.verdict import Probing
    from compatcheck.results.areas import Given

    _fix.require_consistent(fix=fix, write_files=write_files, unsafe_fixes=unsafe_fixes)
    if fix and snapshot is not None:
        raise click.UsageError(_("--fix and --snapshot exclude each other"))
    if fix and not write_files and options["format_name"] != "text":
        raise click.UsageError(_("--fix prints a diff; --format requires --fix --write"))
    view, paths = view_of(options), (*paths, *configs)
    project = _options.settings_of(settings_file, isolated)
    if snapshot is None:
        paths, assume = paths or project.paths, (*project.assume, *assume)
    with stage("matrix"):
        known = matrix.load()
    request = Request(python, snapshot, assume, imports=imports)
    if fix:
        judging = options_of(options)._replace(project=project, baseline=baseline)

        def judge() -> list[Report]:
            judged = projects.judge(environments(known, paths, request), known, judging).judged
            return [verdict.report for _folder, verdict in judged]

        _fix.apply(judge, known, write_files=write_files, unsafe_fixes=unsafe_fixes)
    with stage("facts"):
        subjects = tuple(environments(known, paths, request))
    if resolve:
        from compatcheck.pipelines.resolution import with_resolutions

        with stage("resolution"):
            subjects = with_resolutions(subjects)
    is_asked_to_probe = probe is True
    probe = (project.probe if probe is None else probe) is not False
    chosen = options_of(options)._replace(
        project=project,
        baseline=baseline,
        require=(*require, "numerics") if require_probe else require,
        given=Given(_("standard input") if snapshot == "-" else snapshot or "", assumed_paths(assume)),
        probes=probe,
    )

    def probing(target: Target) -> Probing | None:
        """None for an interpreter in the folder that is judged, unless that is asked for: it may be a stranger's."""
        folders = [subject.folder for subject in subjects if subject.folder]
        if not is_asked_to_probe and not may_start(target, folders, os.environ):
            said = _(
                "probes did not run: {prefix} is in this folder; pass --probe to start its interpreter "
                "once, or --trust to always allow it"
            )
            say(said.format(prefix=target.prefix))
            return None
        return Probing(target, device, fresh, budget, progress)

    judge_each_and_exit(subjects, known, chosen, probing if probe else None, view)
