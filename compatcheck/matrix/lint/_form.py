"""An entry by itself: its file, what is unfinished, the names it uses, and its age."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import date
from pathlib import Path
from typing import Any

from compatcheck.environment.paths import variable_of
from compatcheck.environment.vocabulary import fact_at
from compatcheck.matrix._traits import Table
from compatcheck.matrix.entry import Entry, WithdrawnEntry

REVIEW_DAYS = 180
TITLE_LENGTH = 80


_STATED_WORDS: Mapping[str, tuple[str, ...]] = {
    "training.method": (
        *("full", "freeze", "lora", "qlora", "dora", "adalora", "ia3"),
        *("prompt_tuning", "prefix_tuning", "p_tuning"),
    ),
    "training.mixed_precision": ("no", "fp16", "bf16", "fp8"),
    "training.objective": (
        *("sft", "pretrain", "reward", "dpo", "online_dpo", "kto", "orpo", "cpo", "simpo", "bco"),
        *("grpo", "ppo", "rloo", "gkd", "xpo", "nash_md", "prm", "iterative_sft"),
    ),
    "training.packing_strategy": ("bfd", "bfd_split", "bfd-requeue", "ffd", "wrapped"),
}
"""Every word that readers state for a fact that may hold any string."""


_QUIET_IMPACTS = ("silent-wrong", "divergence", "hang", "oom")


_NOT_WORDS = re.compile(r"(?:^|\s)#\s.*|\"[^\"]*\"|'[^']*'|\([^()]*\)")


_SENTENCE = re.compile(
    r"(?<![\w./'-])(?:the|an?|of|in|with|without|or|before|after|into"
    r"|its|which|where|that|from|then|than|instead)(?=[ ,;])"
)


def misplaced(path: Path, entry: Entry) -> Iterator[str]:
    if path.stem != entry.id:
        yield f"the file is named {path.name}, not {entry.id}.toml"
    if path.parent.name not in entry.distributions:
        yield (
            f"the file is in {path.parent.name}/, which is not one of the packages of the entry: "
            f"{', '.join(entry.distributions)}"
        )


def withdrawn(path: Path, entry: WithdrawnEntry, ids: Set[str]) -> Iterator[str]:
    if path.stem != entry.id:
        yield f"the file is named {path.name}, not {entry.id}.toml"
    yield from (
        f"the successor {each} is not an active entry" for each in entry.withdrawn.successors if each not in ids
    )


def long_title(title: str) -> Iterator[str]:
    if len(title) > TITLE_LENGTH:
        yield f"the title has {len(title)} characters; shorten it to at most {TITLE_LENGTH}"


def unfinished(path: Path, entry: Entry) -> Iterator[str]:
    """What a draft leaves to be filled in, and what it asks in comments."""
    texts = {"title": [entry.title], "summary": [entry.summary], "mechanism": [entry.mechanism]}
    texts |= {f"remedies.{n}": [each.why, each.action or ""] for n, each in enumerate(entry.remedies, 1)}
    yield from (f"{part} is still to be written" for part, parts in texts.items() if any("TODO" in t for t in parts))
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    notes = (line.strip() for line in lines if line.lstrip().startswith("# TODO"))
    yield from (f"resolve and remove the comment {note!r}" for note in notes)


def words_in_code(entry: Entry) -> Iterator[str]:
    """A copy button copies ``code``: what reads as a sentence belongs into ``action``."""
    for number, remedy in enumerate(entry.remedies, 1):
        if remedy.code and not _is_python(remedy.code) and _SENTENCE.search(_NOT_WORDS.sub("", remedy.code)):
            yield f"remedies.{number}: {remedy.code!r} has words around the code; write this remedy as `action`"


def _is_python(code: str) -> bool:
    elided = re.sub(r", \.\.\.\)", ")", code)
    try:
        body = ast.parse(elided).body
    except SyntaxError:
        return False
    return not any(isinstance(each, ast.Assign) and isinstance(each.value, (ast.Compare, ast.BoolOp)) for each in body)


def unknown_probe(entry: Entry, probes: Sequence[str]) -> Iterator[str]:
    if entry.probe and entry.probe.name not in probes:
        yield f"there is no probe {entry.probe.name!r}"
    if entry.reproduce and not entry.probe:
        yield "the entry has [reproduce] but names no probe"


def unproved(entry: Entry, table: Table) -> Iterator[str]:
    """A fault that a log does not show names the probe that does, or why none can."""
    if entry.unprobed and entry.probe:
        yield "the entry names a probe, but `unprobed` says that no probe can show the fault"
    elif entry.unprobed and entry.unprobed not in table("unprobed")["reasons"]:
        yield f"tables/unprobed.toml has no reason {entry.unprobed!r}"
    elif entry.impact in _QUIET_IMPACTS and not (entry.unprobed or entry.probe):
        yield f"the impact is {entry.impact}: name a probe, or say in `unprobed` why no probe can show the fault"


def spellings(entries: Iterable[Entry]) -> Mapping[str, str]:
    """How the entries spell each objective most often, by its letters."""
    counts = Counter(value for entry in entries for value in _names(entry))
    return {_letters(value): value for value, _ in reversed(counts.most_common())}


def spelled_otherwise(entry: Entry, usual: Mapping[str, str]) -> Iterator[str]:
    """Readers state one spelling of an objective, so that a condition on another never holds."""
    for value in sorted(set(_names(entry))):
        if (other := usual[_letters(value)]) != value:
            yield f"{value!r} is spelled {other!r} in other entries"


def _names(entry: Entry) -> Iterator[str]:
    for conditions in entry.affected:
        value = conditions.get("training.objective", ())
        yield from (value,) if isinstance(value, str) else value


def _letters(value: str) -> str:
    return value.replace("-", "").replace("_", "")


def unstated_words(entry: Entry) -> Iterator[str]:
    """A condition on a word that no reader states never holds."""
    found = {(path, each) for table in entry.affected for path in table for each in _unstated(path, table[path])}
    for path, word in sorted(found):
        yield f"no reader states {word!r} for {path}"


def _unstated(path: str, condition: object) -> Iterator[str]:
    fact = fact_at(path)
    words = _STATED_WORDS.get(path) or (fact and fact.type.schema.get("enum"))
    for each in condition if isinstance(condition, list) else [condition]:
        if words and each not in ("present", "absent", *words):
            yield str(each)


def unknown_symptoms(entry: Entry, table: Table) -> Iterator[str]:
    known = table("symptoms")["symptoms"]
    better = {word: name for name, symptom in known.items() for word in symptom.get("replaces", ())}
    for word in entry.symptoms:
        if word in better:
            yield f"the symptom {word!r} is called {better[word]!r}"
        elif word not in known:
            yield f"there is no symptom {word!r} in tables/symptoms.toml"


def stale(entry: Entry, today: date) -> Iterator[str]:
    age = (today - entry.reviewed).days
    if age > REVIEW_DAYS and any(_is_open(conditions) for conditions in entry.affected):
        yield f"a range is open to newer releases and was last reviewed {age} days ago"


def _is_open(conditions: Mapping[str, Any]) -> bool:
    ranges = [value for path, value in conditions.items() if path.startswith("distributions.")]
    return bool(ranges) and not any("<" in value or "==" in value for value in ranges)


def unknown_variables(entry: Entry, table: Table) -> Iterator[str]:
    """A variable that must be absent and has no row that says which of its values act like an unset variable."""
    known = table("environment-variables")
    absent = [variable_of(path) for each in entry.affected for path, value in each.items() if value == "absent"]
    for name in sorted({name for name in absent if name} - {*known["effective"], *known["default"]}):
        yield f"tables/environment-variables.toml has no row for {name}: list its values that act like an unset one"
