"""The catalogues against the texts that they translate."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compatcheck.language import LANGUAGES, po_files
from tools import catalogues

_PLACEHOLDER = re.compile(r"\{\w*\}")
_AS_PRINTED = re.compile(r'(?<=[ (])"[^"]{6,}"|\d+(?:\.\d+)*|\b[a-zA-Z]*_\w+|CC-[\d-]+|--[a-z-]+')
"""What no translator touches: quoted errors, numbers and versions, names in code, ids, options."""


def test_every_language_has_its_catalogues() -> None:
    others = [language for language in LANGUAGES if language != "en"]
    assert [path.parts[-3] for path in catalogues.INTERFACE] == others
    assert [path.stem for path in catalogues.ENTRIES] == others


@pytest.mark.parametrize("path", catalogues.INTERFACE, ids=lambda path: path.parts[-3])
def test_a_catalogue_holds_every_text_that_the_code_asks_for(path: Path) -> None:
    told = _told(path)
    missing = sorted(str(text) for text in catalogues.asked_for() if text not in told)
    assert not missing, "translate these in the .po after: python -m tools.catalogues"


@pytest.mark.parametrize("path", catalogues.INTERFACE, ids=lambda path: path.parts[-3])
def test_a_catalogue_keeps_up_with_errors_and_help(path: Path) -> None:
    """A new error or option is shown in English until somebody translates it; a few may wait or be left over."""
    texts, told = catalogues.interface(), _told(path)
    assert len(set(texts) - told) < 0.02 * len(texts), sorted(map(str, set(texts) - told))
    assert len(told - set(texts)) < 0.1 * len(texts), sorted(map(str, told - set(texts)))


@pytest.mark.parametrize("path", [*catalogues.INTERFACE, *catalogues.ENTRIES], ids=lambda path: path.name)
def test_nothing_in_a_catalogue_is_a_guess_or_out_of_use(path: Path) -> None:
    catalogue = po_files.read(path)
    assert not catalogue.obsolete
    assert not [message.id for message in catalogue if message.id and message.fuzzy]


def _told(path: Path) -> set[catalogues.Text]:
    return {message.id for message in po_files.read(path) if message.id and message.string and all(message.string)}


@pytest.mark.parametrize("path", catalogues.INTERFACE, ids=lambda path: path.parts[-3])
def test_translations_fill_in_the_same_placeholders(path: Path) -> None:
    for message in po_files.read(path):
        asked = message.id if isinstance(message.id, tuple) else (message.id,)
        told = message.string if isinstance(message.string, tuple) else (message.string,)
        for text in told if message.id else ():
            assert sorted(_PLACEHOLDER.findall(text)) == sorted(_PLACEHOLDER.findall(asked[-1])), message.id


@pytest.mark.parametrize("path", catalogues.ENTRIES, ids=lambda path: path.stem)
def test_what_entries_say_keeps_errors_versions_and_names_as_they_are_printed(path: Path) -> None:
    lost = {
        english[:60]: absent
        for english, told in po_files.texts(path).items()
        if (absent := [each for each in _AS_PRINTED.findall(english) if each not in told])
    }
    assert not lost


@pytest.mark.parametrize("path", catalogues.ENTRIES, ids=lambda path: path.stem)
def test_what_entries_say_is_translated_as_they_say_it_today(path: Path) -> None:
    """An entry that is new or was edited is told in English until somebody translates it; only most must be there."""
    told = po_files.texts(path)
    titles = [entry.title for entry in catalogues.matrix_entries()]
    untold = [title for title in titles if title not in told]
    assert len(untold) < 0.1 * len(titles), untold
