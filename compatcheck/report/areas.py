"""What of a run was judged, area by area, and what it means that nothing was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.inferred import Judged
from compatcheck.language import comma_list, marked, ngettext
from compatcheck.language import gettext as _
from compatcheck.results.areas import INPUTS, Area, AreaName, Source, is_enough
from compatcheck.results.findings import Report
from compatcheck.terminal.lines import Line

NAMED_DISTRIBUTIONS = ("torch", "transformers", "deepspeed", "peft", "accelerate", "bitsandbytes")
INDENT = 15
_LABELS: Mapping[AreaName, str] = {
    "packages": marked("packages"),
    "gpu": marked("driver, GPU"),
    "training": marked("settings"),
    "model": marked("model files"),
    "imports": marked("imports"),
    "numerics": marked("numerics"),
}


def label(area: AreaName) -> str:
    return _(_LABELS[area])


def lines(report: Report, verbose: bool = False) -> Iterator[Line]:
    """A line for each area, with a tick where it was judged; ``verbose`` ones name more packages."""
    for area in report.areas:
        tick, style = ("✓", "green") if area.judged else ("-", "yellow")
        yield Line(text(area, report, verbose), "dim", f"{tick} {label(area.name)}", style, INDENT)


def text(area: Area, report: Report, verbose: bool = True) -> str:
    """Where its facts come from and what they are in short, or why it was not judged."""
    if not area.judged and area.name in INPUTS:
        return _("not judged: {why}").format(why=_(area.why)) if area.why else _("not given")
    if not area.judged:
        return _(area.why)
    sources = "" if _is_told(area, report.areas) else comma_list(map(_source, area.sources))
    return _(": ").join(filter(None, (sources, comma_list(_in_short(area.name, report, verbose)))))


def _is_told(area: Area, areas: tuple[Area, ...]) -> bool:
    """Whether it comes from the one file or snapshot that the packages come from."""
    above = [source.name for source in areas[0].sources]
    return area.name != "packages" and [source.name for source in area.sources] == above


def _source(source: Source) -> str:
    if source.pinned is not None and source.pinned == source.packages:
        return _("{file} ({count} pinned)").format(file=source.name, count=source.packages)
    if source.pinned is not None:
        text = _("{file} ({pinned} of {count} pinned)")
        return text.format(file=source.name, pinned=source.pinned, count=source.packages)
    if source.packages:
        text = ngettext("{name}, {count} package", "{name}, {count} packages", source.packages)
        return text.format(name=source.name, count=source.packages)
    return source.name


def _in_short(area: AreaName, report: Report, verbose: bool) -> Iterator[str]:
    if area == "packages":
        python = report.environment.facts.get("python")
        if python:
            yield f"Python {python}"
        yield from islice(named_packages(report.judged), None if verbose else 2)
    elif area == "gpu":
        yield from devices(report.environment)
    elif area == "training":
        yield from _settings(report.environment.section("training"))
    elif area == "model":
        model = report.environment.section("model")
        yield str(model.get("type") or next(iter(model.get("architectures") or ()), ""))
    elif area == "imports":
        failing = len(report.environment.facts.get("unresolved_imports") or ())
        yield ngettext("followed, {count} fails", "followed, {count} fail", failing).format(count=failing)
    else:
        ran = len({repr((each.probe_name, each.probe_request)) for each in report.findings if each.probe})
        counted = ngettext("{count} probe ran", "{count} probes ran", ran).format(count=ran)
        yield counted if ran else _("no probe applies")


def named_packages(judged: Judged) -> Iterator[str]:
    """The versions that most faults hang on, or the ranges that are asked for."""
    stated, ranges = judged.view.section("distributions"), judged.stated.section("distribution_ranges")
    for name in NAMED_DISTRIBUTIONS:
        if stated.get(name):
            shown = f"{name} {stated[name]}"
            is_inferred = f"distributions.{name}" in judged.inferred.facts
            yield _("{fact} (inferred)").format(fact=shown) if is_inferred else shown
        elif name in ranges:
            yield f"{name} {ranges[name] or _('of any version')}"


def devices(environment: Environment) -> Iterator[str]:
    """The driver and the GPUs, as far as they are known."""
    driver, gpus = environment.get("cuda.driver"), environment.get("gpus")
    if isinstance(driver, str):
        yield _("driver {version}").format(version=driver)
    if not isinstance(gpus, Unknown):
        counted = Counter((_gpu(gpu), bool(gpu.get("uncounted"))) for gpu in gpus or ())
        names = [name if uncounted else f"{count} x {name}" for (name, uncounted), count in counted.items()]
        yield comma_list(names) or _("no GPU")


def _gpu(gpu: Mapping[str, Any]) -> str:
    if gpu.get("name"):
        return str(gpu["name"])
    capability = gpu.get("compute_capability")
    return _("GPU of compute capability {number}").format(number=capability) if capability else "GPU"


def _settings(training: Mapping[str, Any]) -> Iterator[str]:
    stage = (training.get("deepspeed") or {}).get("zero_stage")
    settings = (training.get(key) for key in ("framework", "method", "dtype", "attention"))
    yield from (str(each) for each in (*settings, f"ZeRO-{stage}" if stage else None) if each)


def all_clear(report: Report) -> str:
    """What it means that no finding is certain: the words say how much was judged, and what was not."""
    inputs = [area for area in report.areas if area.name in INPUTS]
    counted = Counter(finding.status for finding in report.findings)
    enough = not report.areas or is_enough(report.areas)
    if counted["possible"]:
        certain, little = (
            _("in {areas}: {count} possible, none certain"),
            _("{count} possible, but too few facts to judge"),
        )
        words = certain if enough else little
    elif report.suppressed:
        words = _("nothing new in {areas}, {aside} suppressed")
    elif not enough:
        words = _("too few facts to judge: nothing known in {areas}")
    elif inputs and all(area.judged for area in inputs):
        words = _("judged, nothing known: {areas}")
    else:
        words = _("no known fault in {areas}")
    judged = _listed(inputs, judged=True) or _("what was given")
    shown = words.format(areas=judged, count=counted["possible"], aside=len(report.suppressed))
    missing = _listed(inputs, judged=False)
    return shown + (_("; not judged: {areas}").format(areas=missing) if missing else "")


def is_certain(report: Report) -> bool:
    """Whether nothing is possible, and enough was judged for that to say something."""
    enough = not report.areas or is_enough(report.areas)
    return enough and not any(finding.status == "possible" for finding in report.findings)


def _listed(areas: list[Area], *, judged: bool) -> str:
    names = [_("GPU") if each.name == "gpu" else label(each.name) for each in areas if each.judged is judged]
    return comma_list(names)
