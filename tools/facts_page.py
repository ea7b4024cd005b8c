"""Write docs/reference/facts.md from the vocabulary: ``python -m tools.facts_page``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from compatcheck.environment.vocabulary import FACTS, Fact

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "facts.md"
_HEAD = """# Facts and the snapshot

The facts of an environment. `compatcheck env` prints them as a snapshot, a JSON object with
`schema_version` 1 that `--snapshot` reads back. `--assume` and the conditions of entries use the same dotted names,
such as `training.attention`. A missing fact is unknown; `null` means known to be absent. Other keys
are kept and ignored.

`*` is a name, `[]` the items of a list. Conditions on GPUs are written `gpu.…` (any GPU) or
`every_gpu.…` (all GPUs); `--assume gpu.…` sets every GPU. The conditions `traits` and `training.runs_on` are computed
from facts. Facts in bold are required if their section is present. The default applies to a DeepSpeed file without the
setting. `unknown` has reasons and `locations` a file and line, both by dotted name; `target` describes the interpreter.

`python -m tools.facts_page` generates this page.
"""


def page() -> str:
    """The page as Markdown: the facts that stand alone first, then each section."""
    sections: dict[str, list[Fact]] = {}
    for fact in FACTS:
        sections.setdefault(fact.path.partition(".")[0].removesuffix("[]"), []).append(fact)
    alone = [fact for facts in sections.values() if len(facts) == 1 for fact in facts]
    tables = {"General": alone} | {name: facts for name, facts in sections.items() if len(facts) > 1}
    return "\n".join([_HEAD, *(line for name, facts in tables.items() for line in _table(name, facts))])


def _table(name: str, facts: list[Fact]) -> Iterator[str]:
    columns: dict[str, Callable[[Fact], str]] = {
        "fact": lambda fact: f"**`{fact.path}`**" if fact.required else f"`{fact.path}`",
        "holds": lambda fact: fact.type.words,
        "compared as": lambda fact: fact.kind or f"not compared; read by {fact.used_by}",
    }
    if any(fact.deepspeed for fact in facts):
        columns["DeepSpeed file"] = lambda fact: fact.deepspeed and f"`{fact.deepspeed}`"
        columns["default there"] = lambda fact: "" if fact.default is None else f"`{str(fact.default).lower()}`"
    if any(fact.meaning for fact in facts):
        columns["meaning"] = lambda fact: fact.meaning
    yield f"## {name}\n"
    yield _row(columns)
    yield _row("---" for _ in columns)
    for fact in facts:
        yield _row(cell(fact) for cell in columns.values())
    yield ""


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
