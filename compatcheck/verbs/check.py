"""`compatcheck check`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import click

from compatcheck.pipelines.environment import Request, environments
from compatcheck.terminal.stopwatch import stage
from compatcheck.verbs import _options
from compatcheck.verbs._output import progress
from compatcheck.verbs._verdict import judge_each_and_exit, options_of, view_of

if TYPE_CHECKING:
    from compatcheck.environment import Target
    from compatcheck.results.areas import AreaName

EXAMPLES = (
    "compatcheck check train.yaml requirements.txt",
    "compatcheck check --snapshot node.json --report sarif=findings.sarif",
)


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@_options.python
@_options.snapshot
@_options.assume
@_options.verdict
@_options.baseline
@_options.project
@_options.imports
@click.option(
    "--probe/--no-probe",
    default=None,
    help="Run the probes of the findings in the target's interpreter. Default: run them.",
)
@click.option(
    "--resolve",
    is_flag=True,
    help="Ask uv and the package index whether the requirements can be installed. Default: judge them offline.",
)
@_options.require
@click.option(
    "--require-probe", is_flag=True, help="The same as --require numerics: exit with 4 if a probe could not run."
)
@_options.device
@_options.fresh
@click.option(
    "--budget",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Start no probe after this many seconds. Default: no limit.",
)
def command(
    paths: tuple[str, ...],
    python: str | None,
    snapshot: str | None,
    assume: tuple[str, ...],
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
    Dockerfile or model folder. In a folder, each folder that lists packages is a project, judged with its own files.

    The environment is the active one, else the project's .venv or venv; pinned requirements override what is installed
    there. With --python, what is installed counts. With no environment, the requirements stand for it.

    Defaults come from [tool.compatcheck] in the nearest pyproject.toml. Its `paths` and `assume` are ignored with
    --snapshot.
    """
    from compatcheck import matrix
    from compatcheck.environment.assumptions import assumed_paths
    from compatcheck.pipelines.verdict import Probing
    from compatcheck.results.areas import Given

    view = view_of(options)
    project = _options.settings_of(settings_file, isolated)
    if snapshot is None:
        paths, assume = paths or project.paths, (*project.assume, *assume)
    with stage("matrix"):
        known = matrix.load()
    with stage("facts"):
        subjects = tuple(environments(known, paths, Request(python, snapshot, assume, imports=imports)))
    if resolve:
        from compatcheck.pipelines.resolution import with_resolutions

        with stage("resolution"):
            subjects = with_resolutions(subjects)
    probe = (project.probe if probe is None else probe) is not False
    chosen = options_of(options)._replace(
        project=project,
        baseline=baseline,
        require=(*require, "numerics") if require_probe else require,
        given=Given("standard input" if snapshot == "-" else snapshot or "", assumed_paths(assume)),
        probes=probe,
    )

    def probing(target: Target) -> Probing:
        return Probing(target, device, fresh, budget, progress)

    judge_each_and_exit(subjects, known, chosen, probing if probe else None, view)
