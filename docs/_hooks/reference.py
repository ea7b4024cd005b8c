"""Pages that are made from the code while mkdocs builds, so that they cannot be older than it."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parents[2]))  # tools is in no wheel

from compatcheck import probes
from compatcheck.cli import cli
from compatcheck.probes import _units
from tools.matrix.schema import schema

_SEPARATE = "\n\n"
_ENTRY = """# The form of an entry

One TOML file, `matrix/<package>/CC-YYYY-NNNN.toml`. [How to write one](../how-to/entry.md) shows the way from
an issue to an entry. Fields in bold must be there. `compatcheck matrix schema` prints the same as JSON Schema."""
_COMMANDS = """# Commands

What `compatcheck VERB --help` says. `check` is the default command. [Exit statuses](exit-status.md) have
a page of their own."""
_PROBES = """# Probes

What `compatcheck explain PROBE` says: what is measured, the bound and where it comes from, what a failure means, and
what can be asked for with `--request`. [How a probe decides](../explanation/numerics.md) says it for all of them.
Seconds are those of two CPU cores once torch is imported."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those that lie in the folder."""
    for name, text in pages().items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def pages() -> dict[str, str]:
    """Markdown of each generated page by its name."""
    return {
        "commands": _SEPARATE.join([_COMMANDS, *_commands(cli, "compatcheck")]) + "\n",
        "entry": _SEPARATE.join([_ENTRY, *_schema(schema(), "An entry")]) + "\n",
        "probes": _SEPARATE.join([_PROBES, _overview(), *map(_probe, probes.names())]) + "\n",
    }


def _commands(group: click.Group, path: str) -> Iterator[str]:
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _commands(command, f"{path} {name}")
        else:
            yield _command(command, f"{path} {name}")


def _command(command: click.Command, path: str) -> str:
    context = click.Context(command, info_name=path)
    usage = " ".join(command.collect_usage_pieces(context))
    records = (each.get_help_record(context) for each in command.get_params(context))
    rows = [record for record in records if record and record[1]]
    return "\n".join(
        [
            f"## {path}",
            "",
            f"```text\n{path} {usage}\n```",
            "",
            _SEPARATE.join(map(_paragraph, inspect.cleandoc(command.help or "").split("\n\n"))),
            "",
            "| option | |",
            "|---|---|",
            *(f"| `{_cell(option)}` | {_told(_cell(told))} |" for option, told in rows),
        ]
    )


def _schema(shape: Mapping[str, Any], title: str) -> Iterator[str]:
    """A table of the fields of each object of a JSON Schema, the whole first."""
    kinds = shape.get("$defs", {})
    whole = _fields(shape, kinds) if "properties" in shape else f"It is {_kind(shape, kinds)}."
    yield f"## {title}\n\n{whole}"
    for name, part in kinds.items():
        if "properties" in part:
            yield f"## {name}\n\n{_fields(part, kinds)}"


def _fields(shape: Mapping[str, Any], kinds: Mapping[str, Any]) -> str:
    required = shape.get("required", ())
    described = any(told.get("description") for told in shape["properties"].values())
    rows = []
    for name, told in shape["properties"].items():
        shown = f"**`{name}`**" if name in required else f"`{name}`"
        meaning = told.get("description", "").replace("|", "\\|")
        rows.append(f"| {shown} | {_kind(told, kinds)} |" + (f" {meaning} |" if described else ""))
    head = ["| field | holds | |", "|---|---|---|"] if described else ["| field | holds |", "|---|---|"]
    return "\n".join([*head, *rows])


def _kind(told: Mapping[str, Any], kinds: Mapping[str, Any]) -> str:
    """What a field may hold, in words, with links to the tables of objects."""
    if "$ref" in told:
        name = told["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})" if "properties" in kinds[name] else _kind(kinds[name], kinds)
    if choices := told.get("anyOf", told.get("oneOf")):
        held = [_kind(each, kinds) for each in choices if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(held))
    if "enum" in told:
        return ", ".join(f"`{word}`" for word in told["enum"])
    if "const" in told:
        return f"`{json.dumps(told['const'])}`"
    if told.get("type") == "array":
        return f"list of {_kind(told.get('items', {}), kinds)}"
    if told.get("type") == "object":
        held = told.get("additionalProperties")
        return f"table of {_kind(held, kinds)}" if isinstance(held, dict) else "table"
    names = {"string": "text", "integer": "whole number", "boolean": "true or false"}
    return names.get(told.get("type", ""), told.get("type", "any value"))


def _overview() -> str:
    rows = []
    for name in probes.names():
        unit, (title, _) = _units.unit(name), probes.describe(name)
        rows.append(f"| [`{name}`](#{name}) | {_escaped(title.rstrip('.'))} | {unit.PROFILE} | {unit.SECONDS:g} |")
    return "\n".join(["| probe | tries | in | seconds |", "|---|---|---|---|", *rows])


def _probe(name: str) -> str:
    unit, (title, text) = _units.unit(name), probes.describe(name)
    needs = ", ".join(f"`{package}{wanted}`" for package, wanted in getattr(unit, "NEEDS", {}).items())
    facts = f"Runs in the {unit.PROFILE} profile, typically {unit.SECONDS:g} s, at most {unit.TIMEOUT:g} s."
    if needs:
        facts += f" Needs {needs}."
    return f"## {name}\n\n**{_escaped(title)}**\n\n{facts}\n\n```text\n{text.strip()}\n```"


def _paragraph(text: str) -> str:
    """A paragraph of help; one that click is told to leave as it stands does so here."""
    head, left, lines = text.partition("\b\n")
    return f"```text\n{lines}\n```" if left and not head else _told(text)


def _told(text: str) -> str:
    """Plain help as Markdown, with the options and tables that it names as code."""
    parts = re.split(r"(?<!\w)(--[a-z][a-z-]+|\[tool\.compatcheck\])", text)
    return "".join(f"`{part}`" if place % 2 else _escaped(part) for place, part in enumerate(parts))


def _escaped(text: str) -> str:
    """As running text of Markdown."""
    for sign in "\\*_<>[]|`":
        text = text.replace(sign, f"\\{sign}")
    return text


def _cell(text: str) -> str:
    return " ".join(text.split())
