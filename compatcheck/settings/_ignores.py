"""Ignores: which findings they set aside, and which of them want a look."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import date

from compatcheck.errors import InputError
from compatcheck.results.findings import Finding, Remark, Report, Suppressed
from compatcheck.settings._model import Ignore, Settings


def set_aside(report: Report, settings: Settings, today: date | None = None) -> Report:
    """The report with what an ignore applies to among the suppressed; an expired ignore is only a remark.

    A finding that a probe has refuted counts nowhere and stays where it is. ``today`` is the local day.
    """
    now = today or date.today()
    current = [ignore for ignore in settings.ignores if now <= ignore.until]
    kept: list[Finding] = []
    suppressed: list[Suppressed] = []
    for finding in report.findings:
        by = next((each for each in current if _applies_to(each, finding, settings)), None)
        if by is None or finding.status == "refuted":
            kept.append(finding)
        else:
            suppressed.append(Suppressed(finding, "ignore", f"{by.reason} (until {by.until.isoformat()})"))
    expired = [
        Remark(f"the ignore of {each.id} ended on {each.until.isoformat()}: {each.reason}", each.at)
        for each in settings.ignores
        if each.until < now
    ]
    return report._replace(
        findings=tuple(kept),
        suppressed=(*report.suppressed, *suppressed),
        remarks=(*report.remarks, *expired),
    )


def ignored_everywhere(settings: Settings, today: date | None = None) -> tuple[Ignore, ...]:
    """The ignores that apply to every file, and whose day has not passed."""
    now = today or date.today()
    return tuple(each for each in settings.ignores if not each.paths and now <= each.until)


def unused(report: Report, settings: Settings, ruled_out: Callable[[Collection[str]], Mapping[str, bool]]) -> Report:
    """The report with a remark for each ignore that nothing needs, as far as this check could tell.

    An ignore of some paths is only told where one of them was read. ``ruled_out`` tells for each of some ids that an
    entry has whether it is known not to apply, for where facts are missing an ignore may be needed elsewhere. Raises
    `InputError` where it knows an ignore's id not at all.
    """
    findings = [*report.findings, *(each.finding for each in report.suppressed)]
    idle = [each for each in settings.ignores if not any(_applies_to(each, finding, settings) for finding in findings)]
    read = {at.file for at in report.environment.locations.values()}
    settled = ruled_out({each.id for each in idle}) if idle else {}
    for each in idle:
        if each.id not in settled:
            where = str(each.at or "the ignores")
            seen = f"{each.id} is ignored there, and the matrix has no such entry"
            raise InputError("reading settings from", where, seen, "see compatcheck matrix list")
    remarks = [
        Remark(
            (
                f"the ignore of {each.id} is no longer needed here; to remove it, run compatcheck ignore "
                f"{_removal(each)}"
            ),
            each.at,
        )
        for each in idle
        if settled[each.id] and (not each.paths or any(_within(file, each, settings) for file in read))
    ]
    return report._replace(remarks=(*report.remarks, *remarks))


def _removal(ignore: Ignore) -> str:
    import shlex

    return shlex.join([ignore.id, "--remove", *(part for path in ignore.paths for part in ("--path", path))])


def _applies_to(ignore: Ignore, finding: Finding, settings: Settings) -> bool:
    """Whether entry and place fit; a finding without a place is only met by an ignore without paths."""
    if ignore.id != finding.id:
        return False
    return not ignore.paths or (finding.location is not None and _within(finding.location.file, ignore, settings))


def _within(file: str, ignore: Ignore, settings: Settings) -> bool:
    folder = os.path.dirname(os.path.abspath(settings.file or ""))
    try:
        path = os.path.relpath(os.path.abspath(file), folder)
    except ValueError:  # another drive, on Windows
        return False
    return any_matches(ignore.paths, path.replace(os.sep, "/"))


def any_matches(patterns: Iterable[str], path: str) -> bool:
    """Whether a path with slashes fits one of the patterns: ``*`` stays in a folder, ``**`` does not, a folder is all
    that is in it.
    """
    return any(re.fullmatch(_regex(pattern), path) for pattern in patterns)


def _regex(pattern: str) -> str:
    plain = pattern.replace("\\", "/").removeprefix("./").rstrip("/")
    tokens = re.findall(r"\*\*/|\*\*|\*|\?|[^*?]+", plain)
    special = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(special.get(token) or re.escape(token) for token in tokens) + "(?:/.*)?"
