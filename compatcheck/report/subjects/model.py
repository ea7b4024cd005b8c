"""What a model's files hold, and what changed between two revisions of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from compatcheck.environment import Environment
from compatcheck.files.secrets import excerpt
from compatcheck.language import clauses, comma_list, marked, ngettext
from compatcheck.language import gettext as _
from compatcheck.report import traits
from compatcheck.report.document import STYLES, Document, rows
from compatcheck.report.shapes import finding_shape
from compatcheck.report.steps import step_text
from compatcheck.report.subjects import check
from compatcheck.results.findings import BAD, STATUSES, Finding, Report
from compatcheck.terminal.lines import Line

_MARGIN = 15
_MOST = 12
_SOURCES = {"huggingface-cache": marked("the Hugging Face cache"), "modelscope-cache": marked("the ModelScope cache")}


def document(report: Report) -> Document:
    title = Line(_title(report), STYLES["problem"] if _is_bad(report) else "bold green")
    body = tuple(_lines(_profile(report)))
    return Document(title, body, partial(_shape, report), report=report)


def document_of_comparison(comparison: Mapping[str, Any]) -> Document:
    title = Line(f"{comparison['old']['name']} -> {comparison['new']['name']}", "bold")
    return Document(title, tuple(_lines(_comparison(comparison))), lambda: comparison)


def failing(report: Report) -> Document:
    """A row for each damaged file and each finding that is affected."""
    problems = report.environment.facts["model"].get("file_problems") or ()
    damaged = (Line(each["problem"], "", f"{each['path']}: ") for each in problems)
    return rows((*damaged, *(line for line in check.failing(report, BAD).body if isinstance(line, Line))))


def _is_bad(report: Report) -> bool:
    return bool(report.bad or report.environment.facts["model"].get("file_problems"))


def _title(report: Report) -> str:
    counts = Counter(finding.status for finding in report.findings)
    parts = [f"{counts[status]} {_(status)}" for status in STATUSES if counts[status]]
    damaged = len(report.environment.facts["model"].get("file_problems") or ())
    if damaged:
        parts.append(ngettext("{count} damaged file", "{count} damaged files", damaged).format(count=damaged))
    return comma_list(parts) or _("nothing known about these model files")


def _shape(report: Report) -> Mapping[str, object]:
    environment = report.environment
    return {
        "model": environment.facts["model"],
        "unknown": dict(environment.reasons),
        "locations": {path: at._asdict() for path, at in environment.locations.items()},
        "findings": [finding_shape(finding) for finding in report.findings],
    }


def _lines(labelled: Iterable[tuple[str, str]]) -> Iterator[Line]:
    for label, text in labelled:
        yield Line(text, "", _(label), STYLES.get(label, "dim"), _MARGIN)


def _profile(report: Report) -> Iterator[tuple[str, str]]:
    environment = report.environment
    model = environment.facts["model"]
    yield from _identity(marked("model"), model)
    yield from _content(environment, model)
    yield from _rows(marked("noted"), [_trait(environment, trait) for trait in model.get("traits") or ()])
    problems = [f"{each['path']}: {each['problem']}" for each in model.get("file_problems") or ()]
    yield from _rows(marked("problems"), problems)
    yield from _rows(marked("note"), [f"{each['path']}: {each['note']}" for each in model.get("file_notes") or ()])
    yield from _rows(marked("not known"), [f"{path} ({reason})" for path, reason in environment.reasons.items()])
    yield "", ""
    for finding in report.findings:
        yield from _finding(finding)
    if not report.findings:
        yield "", _("the matrix has no entry about these files")
    place = environment.locations.get("model")
    if place:
        command = f"compatcheck check {place.file}"
        yield marked("next"), _("with the target environment: {command}").format(command=command)


def _identity(label: str, model: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    refs = f" ({comma_list(model['refs'])})" if model.get("refs") else ""
    revision = _(", revision {revision}").format(revision=f"{model['revision']}{refs}") if model.get("revision") else ""
    source = _(_SOURCES.get(model["source"], marked("a folder")))
    yield label, _("{name}{revision}, from {source}").format(name=model["name"], revision=revision, source=source)


def _content(environment: Environment, model: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    stated = [_("type {name}").format(name=model["type"])] if model.get("type") else []
    stated += model.get("architectures") or []
    stated += [f"dtype {model['torch_dtype']}"] if model.get("torch_dtype") else []
    if model.get("transformers_version"):
        stated.append(_("written by transformers {version}").format(version=model["transformers_version"]))
    yield marked("configuration"), comma_list(stated) or _("has no type")
    code = sorted(name for name in model.get("files") or {} if name.endswith(".py"))
    elsewhere = [_("code of {name}, not read").format(name=name) for name in model.get("code_from") or ()]
    needed = _("needed (trust_remote_code)") if model.get("remote_code") else _("none")
    yield marked("remote code"), comma_list([needed, *code, *elsewhere])
    yield from _weights(model.get("weights") or {})
    yield from _tokenizer(model.get("tokenizer"))


def _weights(weights: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "elements" in weights:
        dtypes = comma_list(f"{dtype} {count / 1e9:.2f} GB" for dtype, count in weights["bytes_by_dtype"].items())
        billions = f"{weights['elements'] / 1e9:.2f}"
        count = _("{count} billion parameters").format(count=billions) if weights["elements"] else _("no parameters")
        yield (
            marked("weights"),
            clauses(f"{weights['files']} safetensors", count, f"{weights['bytes'] / 1e9:.2f} GB: {dtypes}"),
        )
    listed = weights.get("listed") or ()
    for each in listed[:_MOST]:
        stated = comma_list(f"{key} {value}" for key, value in (each.get("stated") or {}).items())
        size = _(", {count} tensors").format(count=each["tensors"]) if "tensors" in each else ""
        size += f", {each['bytes'] / 1e9:.2f} GB" if "bytes" in each else ""
        about = f"{each['path']}: {each['kind']}{size}{', ' + stated if stated else ''}"
        yield marked("weights"), _("{file}, listed and not loaded").format(file=about)
    if len(listed) > _MOST:
        yield "", _("and {count} more").format(count=len(listed) - _MOST)


def _tokenizer(tokenizer: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    if tokenizer is None:
        return
    yield marked("tokenizer"), tokenizer.get("class") or _("class not stated")
    template = tokenizer.get("chat_template")
    if template:
        tokens = (
            _(", writes the tokens {tokens}").format(tokens=" ".join(template["tokens"])) if template["tokens"] else ""
        )
        yield marked("chat template"), f"{template['source']}, sha256 {template['sha256'][:12]}{tokens}"
    elif "chat_template" in tokenizer:
        yield marked("chat template"), _("none in these files")


def _trait(environment: Environment, trait: str) -> str:
    at = environment.locations.get(f"model.traits.{trait}")
    shown = traits.in_words(trait)
    return f"{shown}  {at}" if at else shown


def _rows(label: str, texts: list[str]) -> Iterator[tuple[str, str]]:
    for number, text in enumerate(texts[:_MOST]):
        yield ("" if number else label), text
    if len(texts) > _MOST:
        yield "", _("and {count} more").format(count=len(texts) - _MOST)


def _finding(finding: Finding) -> Iterator[tuple[str, str]]:
    yield finding.status, f"{finding.id}  {finding.title}"
    if finding.missing:
        yield "", _("missing: {facts}").format(facts=comma_list(dict.fromkeys(finding.missing)))
    else:
        steps = finding.remedies[0].steps if finding.remedies else ()
        yield from (("", _("fix: {steps}").format(steps=step_text(step))) for step in steps[:1])


def _comparison(comparison: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    changes = comparison["changes"]
    yield from _identity(marked("old"), comparison["old"])
    yield from _identity(marked("new"), comparison["new"])
    yield "", ""
    yield from _rows(marked("means"), comparison["memory"])
    yield from _rows(marked("noted"), [_trait_change(each) for each in changes["traits"]])
    yield from _rows(marked("code"), [_definition(each) for each in changes["definitions"]])
    yield from _rows(marked("settings"), [_setting(each) for each in changes["settings"]])
    yield from _rows(marked("tokens"), [_token(each) for each in changes["tokens"]])
    yield from _template(changes["chat_template"])
    yield from _tensors(changes["tensors"])
    yield from _rows(marked("files"), [f"{each['file']} {_(each['change'])}" for each in changes["files"]])
    for side, reasons in zip(("old", "new"), comparison["unknown"]):
        yield from _rows(marked("not known"), [f"{_(side)}: {path} ({reason})" for path, reason in reasons.items()])
        problems = comparison[side].get("file_problems") or ()
        yield from _rows(marked("problems"), [f"{_(side)}: {each['path']}: {each['problem']}" for each in problems])
    if not any(changes[key] for key in ("traits", "definitions", "settings", "tokens", "chat_template", "files")):
        yield "", _("no difference in anything that compatcheck reads")


def _trait_change(each: Mapping[str, Any]) -> str:
    at = each["location"]
    place = f"  {at['file']}:{at['line']}" if at else ""
    return f"{_(each['change'])}: {traits.in_words(each['trait'])}{place}"


def _definition(each: Mapping[str, Any]) -> str:
    return f"{_(each['change'])} {each['file']}" + (f":{each['line']} {each['name']}" if each["name"] else "")


def _setting(each: Mapping[str, object]) -> str:
    old, new = (
        excerpt(json.dumps(each[side], ensure_ascii=False), 60) if side in each else _("not set")
        for side in ("old", "new")
    )
    return f"{each['file']} {each['key']}: {old} -> {new}"


def _token(each: Mapping[str, object]) -> str:
    old, new = (_("none") if each[side] is None else each[side] for side in ("old", "new"))
    return f"{each['role']}: {old} -> {new}"


def _template(change: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    if change is None:
        return
    sources = " -> ".join(f"{side['source']} {side['sha256'][:12]}" if side else _("none") for side in _sides(change))
    yield marked("chat template"), f"{_(change['change'])}: {sources}"
    old, new = (set(side["tokens"]) if side else set() for side in _sides(change))
    for label, tokens in ((_("no longer writes"), old - new), (_("now writes"), new - old)):
        if tokens:
            yield "", f"{label} {' '.join(sorted(tokens))}"


def _sides(change: Mapping[str, Any]) -> tuple[Any, Any]:
    return change["old"], change["new"]


def _tensors(tensors: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if not tensors["compared"]:
        yield marked("tensors"), _("not compared: both models need safetensors with readable headers")
    elif not any(tensors["counts"].values()):
        yield marked("tensors"), _("the same names, shapes and dtypes")
    else:
        yield "tensors", comma_list(f"{count} {_(change)}" for change, count in tensors["counts"].items() if count)
        yield from _rows("", [f"{each['name']}: {each['old']} -> {each['new']}" for each in tensors["changed"]])
