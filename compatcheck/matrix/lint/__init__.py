"""Prove each entry by its own examples: that it says what it means, and no more.

A schema cannot see that a condition can never hold, or that a key does nothing; databases of rules rotted that way.
So every key, and every bound of a range, must change the verdict on some example, or on a neighbour of one, when it is
left out, and every remedy must clear the examples it is for without walking into another entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

from compatcheck.matrix._neighbours import neighbours
from compatcheck.matrix._traits import Table
from compatcheck.matrix.entry import Entry, WithdrawnEntry
from compatcheck.matrix.lint import _evidence, _examples, _form, _patterns, _remedies, _tables


class Fault(NamedTuple):
    """What is wrong with an entry; a stale one asks for a new look and is no error."""

    id: str
    text: str
    stale: bool = False


def lint(
    entries: Mapping[Path, Entry],
    table: Table,
    probes: Sequence[str],
    today: date,
    only: Sequence[str] = (),
    withdrawn: Mapping[Path, WithdrawnEntry] = {},
) -> list[Fault]:
    """Every fault of the entries ``only``, or of all, each beside the whole matrix. ``probes`` are those there are."""
    active = [_remedies.other(entry) for entry in entries.values()]
    spellings = _form.spellings(entries.values())
    patterns = _patterns.patterns(other.entry for other in active)
    faults: list[Fault] = []
    for path, entry in entries.items():
        if only and entry.id not in only:
            continue
        around = list(neighbours(entry, table))
        rules: tuple[Iterable[str], ...] = (
            _form.misplaced(path, entry),
            _form.long_title(entry.title),
            _form.unfinished(path, entry),
            _evidence.unsupported(entry),
            _evidence.unknown_frameworks(entry),
            _evidence.unreached_evidence(entry),
            _evidence.records_that_bear_nothing(path, entry),
            _form.unknown_probe(entry, probes),
            _form.unproved(entry, table),
            _form.unknown_symptoms(entry, table),
            _form.spelled_otherwise(entry, spellings),
            _form.unstated_words(entry),
            _patterns.false_patterns(entry),
            _patterns.patterns_by_name(entry),
            _patterns.messages_of_others(entry, patterns),
            _examples.false_examples(entry, around, table),
            _examples.false_neighbours(entry, around, table),
            _examples.idle_conditions(entry, around, table),
            _remedies.bad_remedies(entry, active, table),
            _form.words_in_code(entry),
            _form.unknown_variables(entry, table),
            _remedies.bad_remedies_beside(entry, around, table),
            _remedies.loose_pins(entry, table),
            _remedies.unreleased_pins(entry, table),
            _remedies.skipped_fixes(entry, active, table),
            _remedies.doubles(entry, active),
        )
        faults += [Fault(entry.id, text) for rule in rules for text in rule]
        faults += [Fault(entry.id, text, stale=True) for text in _form.stale(entry, today)]
    ids = {entry.id for entry in entries.values()}
    for path, gone in withdrawn.items():
        if not only or gone.id in only:
            texts = (*_form.withdrawn(path, gone, ids), *_form.long_title(gone.title))
            faults += [Fault(gone.id, text) for text in texts]
    if only:
        return faults
    faults += [Fault("tables/relevance.toml", text) for text in _tables.idle_relevance(table)]
    return faults + [Fault("tables/symptoms.toml", text) for text in _tables.ambiguous_symptoms(table)]
