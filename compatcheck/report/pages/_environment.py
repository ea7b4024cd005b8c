"""The environment at a glance, and everything that is known of it folded below."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from compatcheck.environment import Environment, Unknown
from compatcheck.environment.paths import flatten
from compatcheck.inference.inferred import Inferred, Judged
from compatcheck.language import comma_list, marked
from compatcheck.language import gettext as _
from compatcheck.report.areas import label, text
from compatcheck.report.pages.markup import Html, section, tag
from compatcheck.report.subjects import _unknown
from compatcheck.results.areas import Area
from compatcheck.results.findings import Report

_NAMED = (
    "torch",
    "transformers",
    "deepspeed",
    "peft",
    "accelerate",
    "trl",
    "bitsandbytes",
    "flash-attn",
    "vllm",
    "numpy",
)
_CUDA = (
    ("cuda.runtime", marked("torch built with CUDA")),
    ("cuda.driver", marked("driver")),
    ("cuda.driver_api", marked("CUDA supported by the driver")),
    ("cuda.toolkit", marked("toolkit (nvcc)")),
    ("cuda.cudnn", "cuDNN"),
    ("cuda.nccl", "NCCL"),
)
_FILES = {"training": marked("a training configuration"), "model": marked("a model folder")}
_MOST_REASONS = 12


def areas(report: Report) -> Html:
    """A row for each area: whether it was judged, and from where."""
    rows = [
        tag("tr", tag("th", _tick(area), " ", label(area.name), scope="row"), tag("td", text(area, report)))
        for area in report.areas
    ]
    return (
        section(_("What was checked"), tag("div", tag("table", tag("tbody", *rows)), class_="wide")) if rows else Html()
    )


def _tick(area: Area) -> Html:
    kind, symbol, meaning = ("good", "✓", _("judged")) if area.judged else ("none", "–", _("not judged"))
    return tag("span", symbol, class_=f"sign {kind}-sign", role="img", aria_label=meaning)


def glance(judged: Judged) -> Html:
    """What most faults hang on, in two rows: packages and machine, and the CUDA versions apart from one another."""
    environment = judged.stated
    facts = [(name, value) for name, value in _machine(environment) if value]
    cuda = [(_(words), _cuda_version(judged, path)) for path, words in _CUDA]
    return section(_("The environment"), _facts(facts), _facts(cuda))


def _cuda_version(judged: Judged, path: str) -> str:
    shown = _value_text(judged.view.get(path))
    return _("{version} (inferred)").format(version=shown) if path in judged.inferred.facts else shown


def _facts(rows: list[tuple[str, str]]) -> Html:
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in rows), class_="facts")


def _machine(environment: Environment) -> Iterator[tuple[str, str]]:
    facts = environment.facts
    versions = facts.get("distributions") or {}
    ranges = facts.get("distribution_ranges") or {}
    for name in _NAMED:
        if versions.get(name):
            yield name, str(versions[name])
        elif name in ranges:
            yield name, str(ranges[name] or _("any version"))
    yield "Python", str(facts.get("python") or _("not known"))
    platform = facts.get("platform") or {}
    yield _("System"), " ".join(str(platform[key]) for key in ("system", "machine", "libc") if platform.get(key))
    yield "GPU", _gpus(environment)
    model, training = facts.get("model") or {}, facts.get("training") or {}
    yield _("Model"), str(model.get("name") or model.get("type") or "") if isinstance(model, Mapping) else ""
    yield _("Training"), _training(training) if isinstance(training, Mapping) else ""


def _gpus(environment: Environment) -> str:
    gpus = environment.get("gpus")
    if isinstance(gpus, Unknown):
        return _("not known")
    counted = Counter((_gpu(gpu), bool(gpu.get("uncounted"))) for gpu in gpus or ())
    names = (name if uncounted else f"{count} × {name}" for (name, uncounted), count in counted.items())
    return comma_list(names) or _("none")


def _gpu(gpu: Mapping[str, Any]) -> str:
    details = [f"sm {gpu['compute_capability']}"] if gpu.get("compute_capability") else []
    details += [f"{gpu['memory_mib'] / 1024:.0f} GiB"] if gpu.get("memory_mib") else []
    return f"{gpu.get('name') or 'GPU'}" + (f" ({comma_list(details)})" if details else "")


def _training(training: Mapping[str, Any]) -> str:
    stage = (training.get("deepspeed") or {}).get("zero_stage")
    settings = [training.get(key) for key in ("framework", "method", "dtype", "attention")]
    return comma_list(str(each) for each in (*settings, f"ZeRO-{stage}" if stage else None) if each)


def _value_text(value: object) -> str:
    if isinstance(value, Unknown):
        return _("not known")
    return _("none") if value is None else str(value)


def everything(environment: Environment, inferred: Inferred) -> Html:
    """Every package, setting and model fact, and what follows from them, folded."""
    installed = environment.section("distributions")
    versions = [(name, str(version)) for name, version in sorted(installed.items()) if version]
    groups = [
        (_("Packages"), versions),
        (_("Training settings"), list(_rows(environment, "training"))),
        (_("Model"), list(_rows(environment, "model"))),
        (_("Environment variables"), list(_rows(environment, "environ"))),
        (_("Inferred"), [(path, f"{_json(each.value)} ({_(each.why)})") for path, each in inferred.facts.items()]),
    ]
    return section(_("Everything that was read"), *(_folded(name, rows) for name, rows in groups if rows))


def _folded(name: str, rows: list[tuple[str, str]]) -> Html:
    body = [tag("tr", tag("th", key, scope="row"), tag("td", value)) for key, value in rows]
    return tag(
        "details",
        tag("summary", f"{name} ({len(rows)})"),
        tag("div", tag("table", tag("tbody", *body)), class_="wide"),
    )


def _rows(environment: Environment, section: str) -> Iterator[tuple[str, str]]:
    """Each fact of a section with its value and the place it was read at."""
    for path, value in flatten(environment.section(section)):
        at = environment.locations.get(f"{section}.{path}")
        yield path, f"{_json(value)} ({at})" if at else _json(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, Mapping, bool)) else _value_text(value)


def unknown(environment: Environment) -> Html:
    """What nobody could tell, with the reason where it was looked for, and how to state it."""
    rows = [(path, _("not stated in any input")) for path in _unknown.without_reason(environment)]
    rows += [(comma_list(paths), reason) for reason, paths in _unknown.by_reason(environment).items()]
    rows += _unknown.problems(environment)
    if not rows:
        return Html()
    more = len(rows) - _MOST_REASONS
    left = _("{count} more, see compatcheck env").format(count=more) if more > 0 else None
    body = [
        tag("tr", tag("th", tag("code", path), scope="row"), tag("td", _(why))) for path, why in rows[:_MOST_REASONS]
    ]
    head = tag("thead", tag("tr", tag("th", _("Fact"), scope="col"), tag("th", _("Why it is unknown"), scope="col")))
    return section(
        _("Unknown"),
        tag("p", _advice(environment), tag("code", "--assume training.attention=sdpa"), "."),
        tag("div", tag("table", head, tag("tbody", *body)), class_="wide"),
        tag("p", left) if left else None,
    )


def _advice(environment: Environment) -> str:
    files = [_(words) for path, words in _FILES.items() if isinstance(environment.get(path), Unknown)]
    if not files:
        return _("Supply facts with ")
    return _("Pass {files}, or supply facts with ").format(files=_(" or ").join(files))
