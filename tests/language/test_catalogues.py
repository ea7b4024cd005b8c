"""The catalogues against the texts that they translate."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compatcheck.language import LANGUAGES, _source
from tests.language import catalogues

_PLACEHOLDER = re.compile(r"\{\w*\}")
_AS_PRINTED = re.compile(r'(?<=[ (])"[^"]{6,}"|\d+(?:\.\d+)*|\b[a-zA-Z]*_\w+|CC-[\d-]+|--[a-z-]+')
"""What no translator touches: quoted errors, numbers and versions, names in code, ids, options."""


def test_every_language_has_its_catalogues() -> None:
    others = [language for language in LANGUAGES if language != "en"]
    assert [path.parts[-3] for path in catalogues.INTERFACE] == others
    assert [path.stem for path in catalogues.ENTRIES] == others


@pytest.mark.parametrize("path", catalogues.INTERFACE, ids=lambda path: path.parts[-3])
def test_a_catalogue_holds_every_text_of_the_interface_and_no_other(path: Path) -> None:
    texts = catalogues.interface()
    catalogue = _source.read(path)
    told = {message.id for message in catalogue if message.id and all(message.string) and not message.fuzzy}
    missing = sorted(str(text) for text in set(texts) - told)
    assert not missing, "translate these in the .po after: python -m tests.language.catalogues"
    assert not [message.id for message in catalogue if message.id and message.id not in texts]
    assert not catalogue.obsolete


@pytest.mark.parametrize("path", catalogues.INTERFACE, ids=lambda path: path.parts[-3])
def test_translations_fill_in_the_same_placeholders(path: Path) -> None:
    for message in _source.read(path):
        asked = message.id if isinstance(message.id, tuple) else (message.id,)
        told = message.string if isinstance(message.string, tuple) else (message.string,)
        for text in told if message.id else ():
            assert sorted(_PLACEHOLDER.findall(text)) == sorted(_PLACEHOLDER.findall(asked[-1])), message.id


@pytest.mark.parametrize("path", catalogues.ENTRIES, ids=lambda path: path.stem)
def test_what_entries_say_keeps_errors_versions_and_names_as_they_are_printed(path: Path) -> None:
    lost = {
        english[:60]: absent
        for english, told in _source.texts(path).items()
        if (absent := [each for each in _AS_PRINTED.findall(english) if each not in told])
    }
    assert not lost


@pytest.mark.parametrize("path", catalogues.ENTRIES, ids=lambda path: path.stem)
def test_what_entries_say_is_translated_as_they_say_it_today(path: Path) -> None:
    """An entry that is new or was edited is told in English until somebody translates it; only most must be there."""
    told = _source.texts(path)
    titles = [entry.title for entry in catalogues.matrix_entries()]
    untold = [title for title in titles if title not in told]
    assert len(untold) < 0.1 * len(titles), untold
