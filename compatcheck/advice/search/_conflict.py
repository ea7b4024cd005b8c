"""Why no set of versions is free of everything known to be bad."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from compatcheck.advice.model import Solution
from compatcheck.advice.search._clauses import Clause, spell
from compatcheck.language import gettext as _

_MOST = 8
"""How many lines a person reads before the rest is only counted."""


class Conflict(NamedTuple):
    """No set of versions clears every entry; ``best`` is the one with the fewest left, ``clauses`` are the proof."""

    clauses: tuple[Clause, ...]
    best: Solution
    resolutions: int


def explain(conflict: Conflict) -> str:
    """The conflict as lines of text: what would clear each entry, then why the resolver refuses that."""
    lines = list(dict.fromkeys((*_findings(conflict.clauses), *_refusals(conflict.clauses))))
    if len(lines) > _MOST:
        lines[_MOST:] = [_("and {count} more of this kind").format(count=len(lines) - _MOST)]
    return "".join(line + "\n" for line in lines)


def _findings(clauses: Iterable[Clause]) -> Iterator[str]:
    for clause in clauses:
        if clause.id:
            text = _("{entry} cannot be fixed; that would require {ways}")
            entry = f"{clause.id} ({clause.title})" if clause.title else clause.id
            yield text.format(entry=entry, ways=spell(clause.ways) or _("another environment"))


def _refusals(clauses: Iterable[Clause]) -> Iterator[str]:
    for clause in clauses:
        if clause.why and not clause.held:
            yield f"  {clause.why}"
