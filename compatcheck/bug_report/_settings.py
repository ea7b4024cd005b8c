"""Training configurations and launch commands that stand in a report, read by the readers of such files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim
from compatcheck.bug_report._surroundings import fence_manner
from compatcheck.environment import Environment
from compatcheck.errors import InputError
from compatcheck.packages.frameworks import frameworks
from compatcheck.project import training
from compatcheck.project.training.agreement import over_accelerate
from compatcheck.project.training.document import Configuration, Document, parse_document
from compatcheck.project.training.formats import deepspeed
from compatcheck.project.training.presets import preset

_MOST_CANDIDATES = 60
_MOST_LINES = 3_000
_FEWEST_KEYS = 3
_ENDINGS = {"json": ".json", "jsonc": ".json", "json5": ".json", "yaml": ".yaml", "yml": ".yaml", "python": ".py"}
_SHELLS = ("bash", "sh", "shell", "console", "zsh", "cmd")
_PAIR = re.compile(r"\s{0,12}(?:- )?[A-Za-z_][\w.-]{0,60}:(?:\s|\Z)")
_INSIDE = re.compile(r"\s{1,12}|#|- |\Z")
_COMMANDS = [command.name for framework in frameworks().values() for command in framework.commands]
_LAUNCH = re.compile(
    r"\s{0,8}(?:[$#>%!]\s)?(?:[A-Z_]{2,40}=\S{0,80}\s+){0,12}(?:nohup |srun |sudo )?"
    rf"(?:torchrun|deepspeed|accelerate launch|python3?|ray job submit|{'|'.join(map(re.escape, _COMMANDS))})\s"
)
_WINDOWS_PATH = re.compile(r"(?<=[\w:.])\\(?=\w)")
_CONTINUED = re.compile(r"\s[`^]\s{0,80}\Z")
_PROMPT = re.compile(r"\s{0,8}[$#>%!]\s(?=[A-Za-z])")
_PLACE, _AT = re.compile(r"\bthe text\.\w{2,4}:(\d+)"), r"line \1"
_BULLET = re.compile(r"\s{1,12}- ([a-z_]{2,60}:.*)")


class _Candidate(NamedTuple):
    """Lines that may be a configuration, and the ending of the file they would be."""

    lines: tuple[tuple[int, str], ...]
    ending: str


class _Part(NamedTuple):
    """A recognised document with the reader that it belongs to."""

    reader: str
    document: Document
    line: int


def claims(blocks: Sequence[Block]) -> Iterator[Claim]:
    """What the configurations of a report say of the training, each value with its line."""
    parts = [part for candidate in _candidates(blocks) if (part := _recognised(candidate))]
    distinct = {(part.reader, repr(part.document.value or part.document.text.strip())): part for part in parts[::-1]}
    by_role: dict[str, list[_Part]] = {}
    for part in sorted(distinct.values(), key=lambda part: part.line):
        by_role.setdefault(training.role_of(part.reader), []).append(part)
    own = [said for role in ("config", "script", "program") for part in by_role.get(role, ()) if (said := _read(part))]
    accelerate = [said for part in by_role.get("accelerate", ()) if (said := _read(part))]
    if len(own) == 1 and len(accelerate) == 1:
        own, accelerate = [(own[0][0], over_accelerate(accelerate[0][1], own[0][1]))], []
    for part, read in (*own, *accelerate):
        yield from _claims_of(read.facts, part.line)
        if read.names.get("model"):
            yield Claim("model.name", _model_name(read.names["model"]), part.line)
    trainer = _agreed(said.facts for _, said in own or accelerate)
    for part in (*by_role.get("deepspeed", ()), *_deepspeed_parts([*own, *accelerate], by_role)):
        found = _deepspeed(part, trainer)
        if found:
            yield from _claims_of(found.facts, part.line)
    for part in by_role.get("adapter", ()):
        if (adapter := _read(part)) is not None:
            yield from _claims_of(adapter[1].facts, part.line)


def _deepspeed_parts(own: Sequence[tuple[_Part, Configuration]], by_role: Mapping[str, object]) -> Iterator[_Part]:
    """The DeepSpeed configuration that a trainer names and its framework carries, or that stands in its own file."""
    if by_role.get("deepspeed"):
        return
    for part, said in own:
        framework = said.facts.get("training.framework")
        carried = preset(framework, said.names["deepspeed"]) if "deepspeed" in said.names else None
        document = said.inlined.get("deepspeed") or carried
        if document:
            yield _Part("deepspeed", document, part.line)


def _agreed(facts: Iterable[Environment]) -> Environment:
    """The facts of the one trainer; several are not told apart, and settle nothing that is left to them."""
    listed = list(facts)
    return listed[0] if len(listed) == 1 else Environment({})


def _model_name(path: str) -> str:
    """A hub's name as it is, of a folder its last part."""
    return path.rstrip("/\\").replace("\\", "/").rpartition("/")[2] if path[:1] in "/.~" or "\\" in path else path


def _claims_of(facts: Environment, start: int) -> Iterator[Claim]:
    for path, value in facts.flat().items():
        if "." not in path and isinstance(value, Mapping):
            continue
        at = facts.locations.get(path)
        yield Claim(path, value, (at.line if at else None) or start, stands=bool(at and at.line))
    for path, why in facts.reasons.items():
        yield Claim(path, None, start, f": {_PLACE.sub(_AT, why)}")


def _recognised(candidate: _Candidate) -> _Part | None:
    first = candidate.lines[0][0]
    body = dict(candidate.lines)
    text = "\n" * (first - 1) + "\n".join(body.get(number, "") for number in range(first, candidate.lines[-1][0] + 1))
    try:
        document = parse_document(f"the text{candidate.ending}", text)
        reader = training.reader_of(document)
    except InputError:
        return None
    return _Part(reader, document, first) if reader else None


def _read(part: _Part) -> tuple[_Part, Configuration] | None:
    try:
        return part, training.readers()[part.reader].read(part.document)
    except InputError:
        return None


def _deepspeed(part: _Part, trainer: Environment) -> Configuration | None:
    try:
        return deepspeed.read(part.document, trainer)
    except InputError:
        return None


def _candidates(blocks: Sequence[Block]) -> list[_Candidate]:
    found: list[_Candidate] = []
    loose: list[Line] = []
    for block in blocks:
        if not block.fenced:
            loose += block.lines
        elif fence_manner(block) is None:
            found += _fence_candidates(block)
    found += [*_runs(loose), *_braced(loose), *_commands(loose)]
    return [each for each in found if len(each.lines) <= _MOST_LINES][:_MOST_CANDIDATES]


def _fence_candidates(block: Block) -> Iterator[_Candidate]:
    lines = tuple((line.number, line.text) for line in block.lines)
    first = next((text for _, text in lines if text.strip()), "").lstrip()
    if block.language in _ENDINGS:
        yield _Candidate(lines, _ENDINGS[block.language])
    elif first.startswith("{"):
        yield _Candidate(lines, ".json")
    elif block.language in _SHELLS or any(_LAUNCH.match(text) for _, text in lines):
        yield _Candidate(tuple((number, _shell_line(text)) for number, text in lines), ".sh")
    else:
        yield from _runs(block.lines)
        yield from _braced(block.lines)


def _runs(lines: Sequence[Line]) -> Iterator[_Candidate]:
    """Stretches of ``key: value`` lines, and of those that `accelerate env` sets behind a dash."""
    run: list[Line] = []
    for line in (*lines, Line(0, "\0", "")):
        if line.number and (_PAIR.match(line.text) or (run and _INSIDE.match(line.text))):
            run.append(line)
            continue
        yield from _yaml_candidates(run)
        run = []


def _yaml_candidates(run: Sequence[Line]) -> Iterator[_Candidate]:
    bullets = [(line.number, match[1]) for line in run if (match := _BULLET.match(line.text))]
    if len(bullets) >= _FEWEST_KEYS:
        yield _Candidate(tuple(bullets), ".yaml")
    pairs = [line for line in run if _PAIR.match(line.text) and not line.text.lstrip().startswith("- ")]
    if len(pairs) >= _FEWEST_KEYS:
        own = (line for line in run if line.number >= pairs[0].number)
        yield _Candidate(tuple((line.number, line.text) for line in own), ".yaml")


def _braced(lines: Sequence[Line]) -> Iterator[_Candidate]:
    """JSON objects that begin and end on lines of their own."""
    inside: list[tuple[int, str]] = []
    depth = 0
    for line in lines:
        if inside or line.text.strip() == "{":
            inside.append((line.number, line.text))
            depth += line.text.count("{") - line.text.count("}")
            if depth <= 0:
                yield _Candidate(tuple(inside), ".json")
                inside, depth = [], 0


def _commands(lines: Sequence[Line]) -> Iterator[_Candidate]:
    """A launch command with the lines that a backslash, or what PowerShell and cmd have for it, continues."""
    command: list[tuple[int, str]] = []
    continued = False
    for line in (*lines, Line(0, "", "")):
        if continued or (line.number and _LAUNCH.match(line.text)):
            text = _shell_line(line.text)
            command.append((line.number, text))
            continued = text.rstrip().endswith("\\")
            if continued and line.number:
                continue
        if command:
            kept = tuple(each for each in command if each[0])
            yield _Candidate(kept, ".sh")
            command, continued = [], False


def _shell_line(text: str) -> str:
    """The line without its prompt, as a POSIX shell would have it where PowerShell or cmd wrote it."""
    posix = _WINDOWS_PATH.sub(r"\\\\", _PROMPT.sub("", text))
    return _CONTINUED.sub(r" \\", posix)
