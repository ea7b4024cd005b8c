"""Functions for scripts and notebooks. They print nothing; a failure is a `CompatcheckError` that says what to do.

    import compatcheck

    verdict = compatcheck.check("train.yaml", "model/")
    if not verdict.ok:
        print(verdict)

``check`` returns the result of the command for the same paths. It checks the active environment, else the project's
``.venv``, else the pins in its requirements, and uses ``[tool.compatcheck]`` of the nearest ``pyproject.toml``.
Without paths, it checks the environment that the caller runs in.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Literal, NamedTuple

from compatcheck import matrix, probes
from compatcheck import settings as project_settings
from compatcheck.advice import search
from compatcheck.advice.model import Unsolvable
from compatcheck.environment import Target
from compatcheck.environment.assumptions import assumed_paths
from compatcheck.installed.target import own_target
from compatcheck.installed.trust import may_start
from compatcheck.language import gettext
from compatcheck.pipelines import pin as pinning
from compatcheck.pipelines import probe as probing
from compatcheck.pipelines.environment import Request, environments
from compatcheck.pipelines.projects import judge
from compatcheck.pipelines.verdict import Options, Probing
from compatcheck.pipelines.version_maps import with_maps
from compatcheck.report import pages, render
from compatcheck.report.document import Document, Exit
from compatcheck.report.subjects import check as verdicts
from compatcheck.report.subjects import pins as moves
from compatcheck.report.subjects import probes as measurements
from compatcheck.report.subjects import projects as several
from compatcheck.results.areas import Area, AreaName, Given, require_areas
from compatcheck.results.exit_status import REQUIRED_MISSING
from compatcheck.results.findings import Finding, ProbeResult, Report
from compatcheck.results.pins import PinReport

PathLike = str | os.PathLike[str]


class Verdict(NamedTuple):
    """The result of a check. When printed, it is the report of the command.

    ``report`` is the report of the worst project; ``projects`` has the report of each project by its folder.
    """

    report: Report
    exit_reason: str = ""
    exit_status: int = 0
    projects: tuple[tuple[str, Report], ...] = ()

    @property
    def areas(self) -> tuple[Area, ...]:
        """The areas (packages, gpu, training, model, imports, numerics), each with its sources or why not judged."""
        return self.report.areas

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, in each project in this order: confirmed, affected, possible, refuted."""
        return tuple(finding for _folder, report in self._reports for finding in report.findings)

    @property
    def ok(self) -> bool:
        """Whether no finding is confirmed or affected, and every required area was judged."""
        return not any(report.bad for _folder, report in self._reports) and self.exit_status != REQUIRED_MISSING

    @property
    def _reports(self) -> tuple[tuple[str, Report], ...]:
        return self.projects or (("", self.report),)

    def to(self, format_name: str) -> str:
        """The report as one of `compatcheck.report.FORMATS`, such as ``json``, ``sarif`` or ``html``."""
        return render(self._document(maps=format_name == "html"), format_name)

    def _document(self, *, maps: bool) -> Document:
        exit, known = Exit(self.exit_reason, self.exit_status), matrix.load()
        documents = [
            (folder, verdicts.document(with_maps(report, known) if maps else report, exit, refuted=True))
            for folder, report in self._reports
        ]
        return documents[0][1] if len(documents) == 1 else several.document(documents, exit)

    def __str__(self) -> str:
        return self.to("text")

    def __repr__(self) -> str:
        return self.to("text")

    def _repr_html_(self) -> str:
        return pages.fragment(self._document(maps=True))


class Measurements(NamedTuple):
    """The results of the probes that ran, in their order. When printed, they are the report of the command."""

    results: tuple[ProbeResult, ...]

    @property
    def ok(self) -> bool:
        """Whether at least one probe passed and none failed, crashed or ran out of time."""
        outcomes = {result.outcome for result in self.results}
        return bool(outcomes & {"pass", "watch"}) and not outcomes & {"fail", "crash", "timeout"}

    def __str__(self) -> str:
        return render(measurements.document(self.results), "text")

    def _repr_html_(self) -> str:
        return pages.fragment(measurements.document(self.results))


class Pins(NamedTuple):
    """Pins that fix all problems with status affected: the ``text`` of a file, and a ``report`` of the changes."""

    text: str
    report: PinReport

    @property
    def ok(self) -> bool:
        """Whether nothing is left to do, and no probe refuted the pins."""
        return not self.report.left and not self.report.refuted

    def __str__(self) -> str:
        return self.text + render(moves.document(self.report), "text")

    def _repr_html_(self) -> str:
        return pages.fragment(moves.document(self.report))


def check(
    *paths: PathLike,
    python: PathLike | None = None,
    snapshot: PathLike | Mapping[str, object] | None = None,
    assume: Mapping[str, object] | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    baseline: PathLike | None = None,
    require: Sequence[AreaName] = (),
    settings: PathLike | None = None,
    isolated: bool = False,
    probe: bool | None = None,
    imports: bool | None = None,
    budget_seconds: float | None = None,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    fresh: bool = False,
) -> Verdict:
    """Judge an environment with the training configurations, requirements and model folders among ``paths``.

    ``snapshot`` is a file that ``compatcheck env`` wrote, or its content. ``assume`` states facts by dotted names, such
    as ``{"gpu.compute_capability": "9.0"}``; the value None states that the fact is absent. ``probe`` runs the probes
    of the findings in the judged interpreter; by default they run unless an untrusted folder contains the interpreter.
    ``imports`` follows every import of a training run. ``baseline`` is an earlier JSON report whose findings are
    suppressed. ``require`` names areas that must be judged, such as ``training``; otherwise the verdict is not ``ok``.
    ``settings`` is a file with ``[tool.compatcheck]``, by default the nearest ``pyproject.toml``; ``isolated`` ignores
    all such settings.

    Raises `CompatcheckError` if an input cannot be read, an id is unknown, or nothing could be inspected.
    """
    known = matrix.load()
    project = _settings(settings, isolated)
    recorded = snapshot if isinstance(snapshot, Mapping) else _name(snapshot)
    stated = (*(project.assume if recorded is None else ()), *_spell_facts(assume))
    judged_paths = _names(paths) or (project.paths if recorded is None else ())
    own = own_target(os.environ) if python is None and not judged_paths else None
    request = Request(_name(python), recorded, stated, imports=imports, target=own)
    subjects = tuple(environments(known, judged_paths, request))
    name = gettext("a recorded environment") if isinstance(snapshot, Mapping) else _name(snapshot) or ""
    options = Options(
        project,
        tuple(select),
        tuple(ignore),
        baseline=_name(baseline),
        require=require_areas(require),
        given=Given(name, assumed_paths(stated)),
        probes=(project.probe if probe is None else probe) is not False,
    )
    folders = [subject.folder for subject in subjects if subject.folder]
    where = probes.require_device(device)

    def probing(target: Target) -> Probing | None:
        starts = probe is True or target is own or may_start(target, folders, os.environ)
        return Probing(target, where, fresh, budget_seconds) if starts else None

    judged = judge(subjects, known, options, probing if options.probes else None).judged
    folder, worst = max(judged, key=lambda each: each[1].exit_status)
    reason = worst.reason if len(judged) == 1 else f"{folder}: {worst.reason}"
    return Verdict(worst.report, reason, worst.exit_status, tuple((each, found.report) for each, found in judged))


def probe(
    *names: str,
    python: PathLike | None = None,
    model: PathLike | None = None,
    training: PathLike | None = None,
    profile: Literal["smoke", "quick", "deep"] = "quick",
    device: Literal["auto", "cpu", "cuda"] = "auto",
    request: Mapping[str, Any] | None = None,
    trust_remote_code: bool = False,
    budget_seconds: float | None = None,
    fresh: bool = False,
) -> Measurements:
    """Run the named probes, or the probes of the profile, in the judged interpreter.

    ``model`` is a model folder, a ``config.json`` or a cached hub id; ``training`` is a configuration or a launch
    script. The probes then use this architecture and these settings. Raises `CompatcheckError` if no probe has a given
    name, or if an input cannot be read.
    """
    given = {"device": probes.require_device(device), "profile": profile, "trust_remote_code": trust_remote_code}
    context = probing.context(_name(model), _name(training))
    asked = {**given, **context, **(request or {})}
    chosen = probes.choose(names, profile, asked)
    where = _name(python) or sys.executable
    return Measurements(probing.probe(chosen, asked, where, budget_seconds=budget_seconds, fresh=fresh))


def pin(
    *paths: PathLike,
    python: PathLike | None = None,
    snapshot: PathLike | None = None,
    format_name: Literal["requirements", "constraints", "pylock", "pyproject"] = "requirements",
    assume: Mapping[str, object] | None = None,
    ignore: Sequence[str] = (),
    latest: bool = False,
    strict: bool = False,
    prefer: Literal["pins", "config"] | None = None,
    torch_backend: str | None = None,
    hashes: bool = False,
    verify: bool = False,
    offline: bool = False,
    build: bool = False,
    budget_seconds: float = 120.0,
) -> Pins:
    """Return the pins closest to the requirements or the environment that fix all problems with status affected.

    Nothing is written. ``build`` allows local projects to be built, which runs their code. ``verify`` builds the set
    in a temporary environment and re-runs the failed probes there. Raises `CompatcheckError` if the requirements
    contradict one another, if every set has a finding, or if the index does not answer.
    """
    known = matrix.load()
    subject = pinning.subject(
        known,
        _names(paths),
        python=None if snapshot else _name(python) or sys.executable,
        snapshot=_name(snapshot),
        assume=_spell_facts(assume),
        ignore=ignore,
        latest=latest,
        strict=strict,
        prefer=prefer,
        torch_backend=torch_backend,
        offline=offline,
        build=build,
    )
    deadline = time.monotonic() + budget_seconds
    planned = pinning.plan(subject.task, lambda: time.monotonic() > deadline)
    if isinstance(planned, search.Conflict):
        raise Unsolvable("pinning", subject.place, search.explain(planned), "change one of these")
    text = pinning.written(planned, format_name, None, hashes)
    if verify:
        quiet = nullcontext(lambda *_: None)
        planned = pinning.prove(planned, subject.installed, lambda: quiet, lambda: quiet)
    return Pins(text, planned.report)


def _settings(file: PathLike | None, isolated: bool) -> project_settings.Settings:
    if isolated:
        return project_settings.NONE
    return project_settings.find() if file is None else project_settings.read(os.fspath(file))


def _name(path: PathLike | None) -> str | None:
    return None if path is None else os.fspath(path)


def _names(paths: Sequence[PathLike]) -> tuple[str, ...]:
    return tuple(os.fspath(path) for path in paths)


def _spell_facts(assume: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Facts as the command line takes them: strings as they are, other values as JSON."""
    values = {path: value if isinstance(value, str) else json.dumps(value) for path, value in (assume or {}).items()}
    return tuple(f"{path}={value}" for path, value in values.items())
