"""What a model's files say, and what changed between two revisions of them, as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from compatcheck.environment import Environment
from compatcheck.report.json import finding_shape, finite
from compatcheck.report.steps import step_text
from compatcheck.report.text import render_failing as render_findings
from compatcheck.results.findings import BAD, Finding, Report
from compatcheck.terminal.lines import Line, unfolded, written
from compatcheck.terminal.screen import PLAIN, Screen

SCHEMA_VERSION = 1
_MARGIN = 15
_STYLES = {"problems": "bold red", "confirmed": "bold red", "affected": "bold red", "possible": "yellow"}
_MOST = 12
_SOURCES = {"huggingface-cache": "the Hugging Face cache", "modelscope-cache": "the ModelScope cache"}


def render(report: Report, format_name: str, screen: Screen = PLAIN) -> str:
    if format_name == "text":
        return _drawn(_profile(report), screen)
    environment = report.environment
    return _json(
        {
            "schema_version": SCHEMA_VERSION,
            "model": environment.facts["model"],
            "unknown": dict(environment.reasons),
            "locations": {path: at._asdict() for path, at in environment.locations.items()},
            "findings": [finding_shape(finding) for finding in report.findings],
        }
    )


def render_comparison(comparison: Mapping[str, Any], format_name: str, screen: Screen = PLAIN) -> str:
    if format_name == "text":
        return _drawn(_comparison(comparison), screen)
    return _json({"schema_version": SCHEMA_VERSION, **comparison})


def _json(shape: Mapping[str, Any]) -> str:
    return json.dumps(finite(shape), indent=2, ensure_ascii=False) + "\n"


def _drawn(rows: Iterator[tuple[str, str]], screen: Screen) -> str:
    return written((Line(text, "", label, _STYLES.get(label, "dim"), _MARGIN) for label, text in rows), screen)


def render_failing(report: Report, screen: Screen = PLAIN) -> str:
    """A row for each damaged file and each finding that is affected, and nothing else."""
    problems = report.environment.facts["model"].get("file_problems") or ()
    damaged = (Line(each["problem"], "", f"{each['path']}: ") for each in problems)
    return written(damaged, unfolded(screen)) + render_findings(report, BAD, screen)


def _profile(report: Report) -> Iterator[tuple[str, str]]:
    environment = report.environment
    model = environment.facts["model"]
    yield from _identity("model", model)
    yield from _content(environment, model)
    yield from _rows("traits", [_trait(environment, trait) for trait in model.get("traits") or ()])
    problems = [f"{each['path']}: {each['problem']}" for each in model.get("file_problems") or ()]
    yield from _rows("problems", problems)
    yield from _rows("note", [f"{each['path']}: {each['note']}" for each in model.get("file_notes") or ()])
    yield from _rows("not known", [f"{path} ({reason})" for path, reason in environment.reasons.items()])
    yield "", ""
    for finding in report.findings:
        yield from _finding(finding)
    if not report.findings:
        yield "", "the matrix has nothing on these files"
    place = environment.locations.get("model")
    if place:
        yield "next", f"with the environment it will run in: compatcheck check {place.file}"


def _identity(label: str, model: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    refs = f" ({', '.join(model['refs'])})" if model.get("refs") else ""
    revision = f", revision {model['revision']}{refs}" if model.get("revision") else ""
    yield label, f"{model['name']}{revision}, from {_SOURCES.get(model['source'], 'a folder')}"


def _content(environment: Environment, model: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    stated = [f"type {model['type']}"] if model.get("type") else []
    stated += model.get("architectures") or []
    stated += [f"dtype {model['torch_dtype']}"] if model.get("torch_dtype") else []
    if model.get("transformers_version"):
        stated.append(f"written by transformers {model['transformers_version']}")
    yield "configuration", ", ".join(stated) or "states no type"
    code = sorted(name for name in model.get("files") or {} if name.endswith(".py"))
    elsewhere = [f"code of {name}, not read" for name in model.get("code_from") or ()]
    needed = "needed (trust_remote_code)" if model.get("remote_code") else "none"
    yield "remote code", ", ".join([needed, *code, *elsewhere])
    yield from _weights(model.get("weights") or {})
    yield from _tokenizer(model.get("tokenizer"))


def _weights(weights: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "elements" in weights:
        dtypes = ", ".join(f"{dtype} {count / 1e9:.2f} GB" for dtype, count in weights["bytes_by_dtype"].items())
        count = f"{weights['elements'] / 1e9:.2f} billion numbers" if weights["elements"] else "no numbers"
        yield "weights", f"{weights['files']} safetensors, {count}, {weights['bytes'] / 1e9:.2f} GB: {dtypes}"
    listed = weights.get("listed") or ()
    for each in listed[:_MOST]:
        stated = ", ".join(f"{key} {value}" for key, value in (each.get("stated") or {}).items())
        size = f", {each['tensors']} tensors" if "tensors" in each else ""
        size += f", {each['bytes'] / 1e9:.2f} GB" if "bytes" in each else ""
        yield "weights", f"{each['path']}: {each['kind']}{size}{', ' + stated if stated else ''}, listed and not loaded"
    if len(listed) > _MOST:
        yield "", f"and {len(listed) - _MOST} more"


def _tokenizer(tokenizer: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    if tokenizer is None:
        return
    yield "tokenizer", tokenizer.get("class") or "class not stated"
    template = tokenizer.get("chat_template")
    if template:
        tokens = f", writes {' '.join(template['tokens'])}" if template["tokens"] else ""
        yield "chat template", f"{template['source']}, sha256 {template['sha256'][:12]}{tokens}"
    elif "chat_template" in tokenizer:
        yield "chat template", "none in these files"


def _trait(environment: Environment, trait: str) -> str:
    at = environment.locations.get(f"model.traits.{trait}")
    return f"{trait}  {at}" if at else trait


def _rows(label: str, texts: list[str]) -> Iterator[tuple[str, str]]:
    for number, text in enumerate(texts[:_MOST]):
        yield ("" if number else label), text
    if len(texts) > _MOST:
        yield "", f"and {len(texts) - _MOST} more"


def _finding(finding: Finding) -> Iterator[tuple[str, str]]:
    yield finding.status, f"{finding.id}  {finding.title}"
    if finding.missing:
        yield "", f"missing: {', '.join(dict.fromkeys(finding.missing))}"
    else:
        steps = finding.remedies[0].steps if finding.remedies else ()
        yield from (("", f"fix: {step_text(step)}") for step in steps[:1])


def _comparison(comparison: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    changes = comparison["changes"]
    yield from _identity("old", comparison["old"])
    yield from _identity("new", comparison["new"])
    yield "", ""
    yield from _rows("means", comparison["memory"])
    yield from _rows("traits", [_trait_change(each) for each in changes["traits"]])
    yield from _rows("code", [_definition(each) for each in changes["definitions"]])
    yield from _rows("settings", [_setting(each) for each in changes["settings"]])
    yield from _rows("tokens", [_token(each) for each in changes["tokens"]])
    yield from _template(changes["chat_template"])
    yield from _tensors(changes["tensors"])
    yield from _rows("files", [f"{each['file']} {each['change']}" for each in changes["files"]])
    for side, reasons in zip(("old", "new"), comparison["unknown"]):
        yield from _rows("not known", [f"{side}: {path} ({reason})" for path, reason in reasons.items()])
        problems = comparison[side].get("file_problems") or ()
        yield from _rows("problems", [f"{side}: {each['path']}: {each['problem']}" for each in problems])
    if not any(changes[key] for key in ("traits", "definitions", "settings", "tokens", "chat_template", "files")):
        yield "", "nothing that compatcheck reads differs"


def _trait_change(each: Mapping[str, Any]) -> str:
    at = each["location"]
    return f"{each['change']} {each['trait']}{'  ' + at['file'] + ':' + str(at['line']) if at else ''}"


def _definition(each: Mapping[str, Any]) -> str:
    return f"{each['change']} {each['file']}" + (f":{each['line']} {each['name']}" if each["name"] else "")


def _setting(each: Mapping[str, Any]) -> str:
    old, new = (
        json.dumps(each[side], ensure_ascii=False)[:60] if side in each else "not set" for side in ("old", "new")
    )
    return f"{each['file']} {each['key']}: {old} -> {new}"


def _token(each: Mapping[str, Any]) -> str:
    old, new = ("none" if each[side] is None else each[side] for side in ("old", "new"))
    return f"{each['role']}: {old} -> {new}"


def _template(change: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    if change is None:
        return
    sources = " -> ".join(f"{side['source']} {side['sha256'][:12]}" if side else "none" for side in _sides(change))
    yield "chat template", f"{change['change']}: {sources}"
    old, new = (set(side["tokens"]) if side else set() for side in _sides(change))
    for label, tokens in (("no longer writes", old - new), ("now writes", new - old)):
        if tokens:
            yield "", f"{label} {' '.join(sorted(tokens))}"


def _sides(change: Mapping[str, Any]) -> tuple[Any, Any]:
    return change["old"], change["new"]


def _tensors(tensors: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if not tensors["compared"]:
        yield "tensors", "not compared: not both have safetensors whose headers can be read"
    elif not any(tensors["counts"].values()):
        yield "tensors", "the same names, shapes and dtypes"
    else:
        yield "tensors", ", ".join(f"{count} {change}" for change, count in tensors["counts"].items() if count)
        yield from _rows("", [f"{each['name']}: {each['old']} -> {each['new']}" for each in tensors["changed"]])
