"""Training configurations, launch commands and scripts that stand in a report, read as `check` reads such files.

The pieces of a report belong to one run: a piece is the file that a command names where only one can be it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from compatcheck.bug_report import _pieces
from compatcheck.bug_report._blocks import Block
from compatcheck.bug_report._claims import Claim
from compatcheck.bug_report._pieces import Piece
from compatcheck.environment import Environment, Unknown
from compatcheck.errors import InputError
from compatcheck.packages.frameworks import frameworks
from compatcheck.project import training
from compatcheck.project.training.agreement import given, over_accelerate
from compatcheck.project.training.document import Configuration, Document, parse_document
from compatcheck.project.training.presets import preset

_PLACE, _AT = re.compile(r"\bthe text\.\w{2,4}:(\d+)"), r"line \1"
_NAME_OF_TEXT = re.compile(r"\bthe text\.\w{2,4}")
_CONFIG_FILE = re.compile(r"--config_file[ =]['\"]?([^\s'\"]{1,300})")
_ENDINGS = {".yml": ".yaml", ".yaml": ".yaml", ".json": ".json", ".py": ".py"}
_ONLY_PART = "the report shows only a part of the file"


class _Part(NamedTuple):
    """A recognised document with the reader that it belongs to, its first line, and what announces it.

    ``numbers`` are those of its lines where several have one, as the lines of a page that is one line of HTML.
    """

    reader: str
    document: Document
    line: int
    title: str = ""
    numbers: tuple[int, ...] = ()

    def place(self, line: int | None) -> int:
        """The line of the report at a line of the document, by default its first."""
        if line is None:
            return self.line
        return self.numbers[min(line - self.line, len(self.numbers) - 1)] if self.numbers else line


class _Said(NamedTuple):
    part: _Part
    configuration: Configuration


def claims(blocks: Sequence[Block]) -> Iterator[Claim]:
    """What the configurations of a report say of the training, each value with its line."""
    by_role = _parts_by_role(blocks)
    own, used = _own(by_role)
    accelerate = [said for part in by_role.get("accelerate", ()) if part not in used and (said := _read(part))]
    if len(own) == 1 and len(accelerate) == 1:
        joined = over_accelerate(accelerate[0].configuration, own[0].configuration)
        own, accelerate = [own[0]._replace(configuration=joined)], []
    for part, read in (*own, *accelerate):
        yield from _claims_of(read.facts, part)
        if name := _model_name(read.names.get("model", "")):
            yield Claim("model.name", name, part.line)
    trainer = _agreed(said.configuration.facts for said in own or accelerate)
    for part in (*by_role.get("deepspeed", ()), *_deepspeed_parts([*own, *accelerate], by_role)):
        found = _deepspeed(part, trainer)
        if found:
            yield from _claims_of(found.facts, part)
    yield from _named_deepspeed([*own, *accelerate], by_role)
    for part in by_role.get("adapter", ()):
        if (adapter := _read(part)) is not None:
            yield from _claims_of(adapter.configuration.facts, part)


def _parts_by_role(blocks: Sequence[Block]) -> dict[str, list[_Part]]:
    """Each different piece once, in the order of the text."""
    parts = [part for piece in _pieces.pieces(blocks) if (part := _recognised(piece))]
    distinct = {(part.reader, repr(part.document.value or part.document.text.strip())): part for part in parts[::-1]}
    by_role: dict[str, list[_Part]] = {}
    for part in sorted(distinct.values(), key=lambda part: part.line):
        by_role.setdefault(training.role_of(part.reader), []).append(part)
    return by_role


def _own(by_role: Mapping[str, Sequence[_Part]]) -> tuple[list[_Said], list[_Part]]:
    """What each training of the report says, a command together with the pieces it names; and these pieces.

    Where commands name some configuration, another one that stands there is not of the run.
    """
    used: list[_Part] = []
    own: list[_Said] = []
    for part in by_role.get("script", ()):
        from compatcheck.project.training.formats import launch_script

        opener = _Opener(part.document.text, by_role)
        try:
            read = launch_script.read_pasted(part.document, opener)
        except InputError:
            continue
        if read:
            own.append(_Said(part, _without_defaults(read) if part.document.partial else read))
            used += opener.used
    named = {training.role_of(part.reader) for part in used}
    others = (part for role in ("config", "program") if role not in named for part in by_role.get(role, ()))
    own += [said for part in others if (said := _read(part))]
    return sorted(own, key=lambda said: said.part.line), used


class _Opener:
    """Gives a command the piece of the report that is the file it names, where only one can be it."""

    def __init__(self, command: str, by_role: Mapping[str, Sequence[_Part]]) -> None:
        self.used: list[_Part] = []
        self._by_role = by_role
        self._of_accelerate = {os.path.basename(name) for name in _CONFIG_FILE.findall(command)}

    def __call__(self, path: str) -> tuple[str, Document] | None:
        name, ending = os.path.basename(path), _ENDINGS.get(os.path.splitext(path)[1].lower(), ".py")
        roles = ("program",) if ending == ".py" else ("accelerate",) if name in self._of_accelerate else ("config",)
        fitting = [part for role in roles for part in self._by_role.get(role, ()) if _ending(part) == ending]
        titled = [part for part in fitting if name in part.title]
        chosen = titled or fitting
        if len(chosen) != 1:
            return None
        self.used += chosen
        return chosen[0].reader, chosen[0].document


def _ending(part: _Part) -> str:
    return os.path.splitext(part.document.path)[1]


def _deepspeed_parts(own: Sequence[_Said], by_role: Mapping[str, object]) -> Iterator[_Part]:
    """The DeepSpeed configuration that a trainer names and its framework carries, or that stands in its own file."""
    if by_role.get("deepspeed"):
        return
    for part, said in own:
        framework = said.facts.get("training.framework")
        carried = preset(framework, said.names["deepspeed"]) if "deepspeed" in said.names else None
        document = said.inlined.get("deepspeed") or carried
        if document:
            yield part._replace(reader="deepspeed", document=document)


def _named_deepspeed(own: Sequence[_Said], by_role: Mapping[str, object]) -> Iterator[Claim]:
    """The name of a DeepSpeed configuration that the report does not show: it may tell the stage."""
    for part, said in () if by_role.get("deepspeed") else own:
        named = said.names.get("deepspeed")
        if named and "deepspeed" not in said.inlined and not preset(said.facts.get("training.framework"), named):
            at = said.places.get("deepspeed")
            yield Claim("training.deepspeed_file", named, (at.line if at else None) or part.line)


def _agreed(facts: Iterable[Environment]) -> Environment:
    """The facts of the one trainer; several are not told apart, and settle nothing that is left to them."""
    listed = list(facts)
    return listed[0] if len(listed) == 1 else Environment({})


def _model_name(path: str) -> str:
    """A hub's name as it is, of a folder its last part."""
    is_folder = path[:1] in ("/", ".", "~") or "\\" in path or path.count("/") > 1
    return path.rstrip("/\\").replace("\\", "/").rpartition("/")[2] if is_folder else path


def _claims_of(facts: Environment, part: _Part) -> Iterator[Claim]:
    for path, value in facts.flat().items():
        if "." not in path and isinstance(value, Mapping):
            continue
        at = facts.locations.get(path)
        yield Claim(path, value, part.place(at.line if at else None), stands=bool(at and at.line))
    for path, why in facts.reasons.items():
        yield Claim(path, None, part.line, f": {_NAME_OF_TEXT.sub('the report', _PLACE.sub(_AT, why))}")


def _recognised(given_piece: Piece) -> _Part | None:
    piece = given_piece if given_piece.ending == ".py" else given_piece.without_dots()
    try:
        document = parse_document(f"the text{piece.ending}", _text_of(piece))
        reader = _reader_of(document)
    except InputError:
        return None
    if reader is None:
        return None
    known = document.value is None or training.readers()[reader].recognises(document)
    partial = piece is not given_piece and not (known and given_piece.whole)
    document = document._replace(partial=_ONLY_PART) if partial else document
    numbers = tuple(number for number, _ in piece.lines)
    shared = numbers if len(set(numbers)) < len(numbers) else ()
    return _Part(reader, document, numbers[0], piece.title, shared)


def _reader_of(document: Document) -> str | None:
    """The reader of a whole file, else the one whose own words a part of one has, or which starts a run."""
    if document.value is None:
        from compatcheck.project.training.formats import launch_script

        commands = launch_script.read_pasted(document, lambda path: None)
        return "launch_script" if commands else None
    reader = training.reader_of(document)
    if reader is None and isinstance(document.value, dict):
        reader = next((name for name, keys in _PARTIAL.items() if keys <= document.value.keys()), None)
    return reader


_PARTIAL = {
    **{
        framework.reader: frozenset(framework.own_flags)
        for framework in frameworks().values()
        if framework.reader and framework.own_flags
    },
    "accelerate": frozenset(("distributed_type", "num_processes")),
}
"""Readers by the keys that are their own alone."""


def _text_of(piece: Piece) -> str:
    """The piece with empty lines before it, so that its lines have the numbers of the report."""
    first = piece.lines[0][0]
    body = dict(piece.lines)
    if len(body) < len(piece.lines):
        return "\n" * (first - 1) + "\n".join(text for _, text in piece.lines)
    return "\n" * (first - 1) + "\n".join(body.get(number, "") for number in range(first, piece.lines[-1][0] + 1))


def _read(part: _Part) -> _Said | None:
    try:
        said: Configuration = training.readers()[part.reader].read(part.document)
    except InputError:
        return None
    return _Said(part, _without_defaults(said) if part.document.partial else said)


def _without_defaults(said: Configuration) -> Configuration:
    """What a part of a configuration gives in so many words, and whose it is."""
    facts, framework = given(said.facts), said.facts.get("training.framework")
    kept = {path: why for path, why in facts.reasons.items() if why != _ONLY_PART}
    facts = facts if isinstance(framework, Unknown) else facts.with_fact("training.framework", framework)
    return said._replace(facts=facts._replace(reasons=kept))


def _deepspeed(part: _Part, trainer: Environment) -> Configuration | None:
    from compatcheck.project.training.formats import deepspeed

    try:
        return deepspeed.read(part.document, trainer)
    except InputError:
        return None
