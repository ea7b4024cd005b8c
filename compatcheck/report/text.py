"""The text report: the verdict a person reads, coloured on a terminal and plain in a pipe."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from compatcheck import __version__
from compatcheck.model import Environment, Finding, Remedy, Report, Status, Unknown, lookup

WIDTH = 100
_STYLES: dict[Status, str] = {"confirmed": "bold red", "affected": "bold red", "possible": "yellow", "refuted": "green"}
_NAMED_DISTRIBUTIONS = ("torch", "transformers", "deepspeed", "peft", "accelerate", "bitsandbytes")
_STATED = ("gpus", "cuda.driver", "training", "model")

Segment = tuple[str, str]
Line = list[Segment]


def render(report: Report, *, exit_reason: str, colour: bool = False, refuted: bool = False) -> str:
    lines = list(_lines(report, refuted))
    return _coloured(lines) if colour else "".join(_plain(line) + "\n" for line in lines)


def _plain(line: Line) -> str:
    return "".join(text for text, _ in line).rstrip()


def _coloured(lines: list[Line]) -> str:
    from io import StringIO

    from rich.console import Console
    from rich.text import Text

    stream = StringIO()
    console = Console(file=stream, force_terminal=True, soft_wrap=True, highlight=False)
    for line in lines:
        console.print(Text.assemble(*line))
    return stream.getvalue()


def _lines(report: Report, refuted: bool) -> Iterator[Line]:
    yield [(f"compatcheck {__version__}, matrix {report.matrix_revision}, {report.matrix_entries} entries", "dim")]
    for text in _environment(report.environment):
        yield [(text, "dim")]
    bad = [finding for finding in report.findings if finding.status in ("confirmed", "affected")]
    for above, finding in zip([None, *bad], bad):
        if above is None or (above.id, above.status) != (finding.id, finding.status):
            yield []
            yield from _in_full(finding)
        else:
            yield from _again(finding)
    yield from _in_brief(report, "possible", "would apply if the facts named here are as it needs them")
    if refuted:
        yield from _in_brief(report, "refuted", "matched, but the probe passed on this machine")
    yield []
    yield from _verdict(report)


def _environment(environment: Environment) -> Iterator[str]:
    target = environment.facts.get("target") or {}
    if target:
        yield f"environment  {target['prefix']} ({target['selected_by']})"
    platform = environment.facts.get("platform") or {}
    host = " ".join(str(platform[key]) for key in ("system", "machine", "libc") if platform.get(key))
    python = environment.facts.get("python")
    yield "host         " + ", ".join(
        part for part in (python and f"Python {python}", host, *_devices(environment)) if part
    )
    distributions = environment.facts.get("distributions") or {}
    named = [f"{name} {distributions[name]}" for name in _NAMED_DISTRIBUTIONS if name in distributions]
    others = len(distributions) - len(named)
    if others or not named:
        named.append(f"{others} more" if named else f"{others} distributions")
    yield "packages     " + ", ".join(named)


def _devices(environment: Environment) -> Iterator[str]:
    driver, gpus = lookup(environment, "cuda.driver"), lookup(environment, "gpus")
    if isinstance(driver, str):
        yield f"driver {driver}"
    if not isinstance(gpus, Unknown):
        counted = Counter(gpu.get("name", "GPU") for gpu in gpus or ())
        yield ", ".join(f"{count} x {name}" for name, count in counted.items()) or "no GPU"


def _in_full(finding: Finding) -> Iterator[Line]:
    yield [(f"{finding.status:<10}", _STYLES[finding.status]), (f"{finding.id}  {finding.title}", "bold")]
    place = f", {_place(finding)}" if finding.location else ""
    yield [(f"{'':10}{finding.impact}, {finding.confidence}, {' '.join(finding.packages)}{place}", "dim")]
    yield from ([(text, "")] for text in _wrapped(finding.summary, indent=10))
    for number, remedy in enumerate(finding.remedies):
        for text in _remedy("or" if number else "fix", remedy):
            yield [(text, "green" if not number else "")]
    if finding.probe:
        text = f"{finding.probe.probe}: {finding.probe.outcome}, {finding.probe.why}"
        yield from ([(line, "")] for line in _wrapped(text, "probe"))


def _again(finding: Finding) -> Iterator[Line]:
    """One more place where the entry above applies: what is seen there, and its own way out."""
    yield from ([(text, "")] for text in _wrapped(finding.summary, indent=10))
    for step in finding.remedies[0].steps:
        yield from ([(text, "green")] for text in _wrapped(step, "fix"))


def _place(finding: Finding) -> str:
    location = finding.location
    return "" if location is None else location.file + (f":{location.line}" if location.line else "")


def _remedy(label: str, remedy: Remedy) -> Iterator[str]:
    for number, step in enumerate(remedy.steps):
        yield from _wrapped(step, label if not number else "and")
    if remedy.why not in remedy.steps:
        yield from _wrapped(remedy.why, "")


def _wrapped(text: str, label: str = "", indent: int = 17) -> list[str]:
    """The text in lines of at most `WIDTH`, indented, with the label in the margin of the first."""
    first = f"{'':10}{label}".ljust(indent)
    return textwrap.wrap(
        " ".join(text.split()),
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _in_brief(report: Report, status: Status, meaning: str) -> Iterator[Line]:
    findings = [finding for finding in report.findings if finding.status == status]
    if findings:
        yield []
        yield [(f"{status:<10}", _STYLES[status]), (meaning, "dim")]
    for finding in findings:
        yield [(f"{'':10}{finding.id}  {finding.title}", "")]
        detail = finding.probe.why if finding.probe and status == "refuted" else _missing(finding)
        if finding.probe and finding.probe.outcome == "fail":
            detail += f"; the fault itself is live here ({finding.probe.probe} fails)"
        yield from ([(text, "dim")] for text in _wrapped(detail, indent=24))


def _missing(finding: Finding) -> str:
    return "needs " + ", ".join(dict.fromkeys(finding.missing)) if finding.missing else "needs a probe"


def _verdict(report: Report) -> Iterator[Line]:
    counted = Counter(finding.status for finding in report.findings)
    bad = counted["confirmed"] + counted["affected"]
    summary = ", ".join(f"{counted[status]} {status}" for status in _STYLES if counted[status])
    if bad:
        yield [(summary, "bold red")]
        yield [("next: compatcheck pin -o requirements.txt, compatcheck explain ID", "dim")]
    else:
        yield [("no known fault" + (f" ({summary})" if summary else ""), "bold green")]
    unknown = list(_unknown(report.environment))
    if unknown:
        yield [("not known: " + "; ".join(unknown), "dim")]


def _unknown(environment: Environment) -> Iterator[str]:
    """Facts that many entries ask for and nobody could tell, each with its reason."""
    for path in _STATED:
        value: Any = lookup(environment, path)
        if isinstance(value, Unknown):
            yield f"{path} ({value.reason})" if value.reason else path
    for problem in environment.facts.get("distribution_problems") or ():
        if isinstance(problem, Mapping):
            yield f"{problem['path']} ({problem['problem']})"
