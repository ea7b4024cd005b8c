"""The language in which compatcheck speaks to people: English, or one that has a catalogue here.

Until `use` is called every text stands for itself, and nothing is loaded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from compatcheck.errors import CompatcheckError, InputError

if TYPE_CHECKING:
    from gettext import NullTranslations

    from compatcheck.language.composed import Template

ENGLISH = "en"
LANGUAGES = (ENGLISH, "zh")
VARIABLE = "COMPATCHECK_LANG"
"""What chooses the language where ``--lang`` does not."""

_LOCALES = ("LC_ALL", "LC_MESSAGES", "LANG")
_SIMPLIFIED = ("zh", "zh_cn", "zh_sg", "zh_hans")
_SAMPLES = {"zh": "显存"}
_FIRST_CHINESE, _LAST_CHINESE = "\u4e00", "\u9fff"
_WORD = re.compile(r"[A-Za-z]{2,}")
_LEAST_CHARACTERS = 8
_LEAST_SHARE = 0.15
"""Reports in Chinese hold logs in English; English ones hold names, and headings in both languages."""

_current = ENGLISH
_catalogue: NullTranslations | None = None


def gettext(text: str) -> str:
    """The text in the language in use, also one made from a template; in English where no catalogue has it."""
    if _catalogue is None or not text:
        return text
    told = _catalogue.gettext(text)
    return told if told != text or text.isidentifier() else _composed(text)


@lru_cache(maxsize=4096)
def _composed(text: str) -> str:
    from compatcheck.language import composed

    if _catalogue is None:
        return text
    return composed.translated(text, _templates(), _catalogue.gettext)


@cache
def _templates() -> list[Template]:
    from compatcheck.language import composed

    texts = vars(_catalogue).get("_catalog", {})
    return composed.templates(text for text in texts if isinstance(text, str))


def ngettext(one: str, many: str, count: int) -> str:
    """The form of a text that fits a count, in the language in use."""
    if _catalogue is None:
        return one if count == 1 else many
    return _catalogue.ngettext(one, many, count)


def comma_list(parts: Iterable[str]) -> str:
    """The names or values of a list, joined as the language in use joins them."""
    return gettext(", ").join(parts)


def clauses(*parts: str) -> str:
    """The statements of one line, joined as the language in use joins them."""
    return gettext("{before}, {after}").format(before="", after="").join(parts)


def marked(text: str) -> str:
    """The same text, for the catalogues: `gettext` is called where it is shown."""
    return text


def error_line(error: CompatcheckError) -> str:
    """The line of an error, in the language in use as far as its parts are known there."""
    parts = (error.doing, str(error.subject), error.seen, error.advice)
    doing, subject, seen, advice = map(gettext, parts)
    template = gettext("{doing} {subject}: {seen}; {advice}")
    return template.format(doing=doing, subject=subject, seen=seen, advice=advice)


def current() -> str:
    """The language in use, one of `LANGUAGES`."""
    return _current


def wanted(arguments: Sequence[str], environ: Mapping[str, str], *, on_terminal: bool) -> str:
    """The language that ``--lang`` asks for, else the variable, else the locale.

    The locale counts on a terminal only, so that what scripts read does not depend on who runs them. A value that
    ``--lang`` does not take is left to the parser of options. Raises InputError where the variable has another.
    """
    for argument, following in zip(arguments, (*arguments[1:], "")):
        value = following if argument == "--lang" else argument.removeprefix("--lang=")
        if argument.startswith("--lang") and value in LANGUAGES:
            return value
    stated = environ.get(VARIABLE, "")
    if stated and stated not in LANGUAGES:
        raise InputError(
            "reading", VARIABLE, f"there is no translation for {stated!r}", f"set it to {' or '.join(LANGUAGES)}"
        )
    if stated or not on_terminal:
        return stated or ENGLISH
    locale = next((environ[name] for name in _LOCALES if environ.get(name)), "")
    return "zh" if locale.partition(".")[0].partition("@")[0].lower() in _SIMPLIFIED else ENGLISH


def is_open(arguments: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether neither ``--lang`` nor the variable nor the locale chooses a language; C and POSIX choose none."""
    if environ.get(VARIABLE) or any(argument.partition("=")[0] == "--lang" for argument in arguments):
        return False
    locale = next((environ[name] for name in _LOCALES if environ.get(name)), "")
    return locale.partition(".")[0] in ("", "C", "POSIX")


def language_of(text: str) -> str:
    """The language of a text: Chinese where its share of Chinese characters is that of a report written in it."""
    if text.isascii():
        return ENGLISH
    characters = sum(_FIRST_CHINESE <= each <= _LAST_CHINESE for each in text)
    share = characters / (characters + len(_WORD.findall(text)) or 1)
    return "zh" if characters >= _LEAST_CHARACTERS and share >= _LEAST_SHARE else ENGLISH


def use(language: str, encoding: str | None) -> str | None:
    """Speak a language from now on; returns why English stays, None where it does not.

    ``encoding`` is that of the stream on which people read.
    """
    global _current, _catalogue
    try:
        _SAMPLES.get(language, "").encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return f"output encoded as {encoding} cannot show {language!r}: set PYTHONIOENCODING=utf-8"
    if language != ENGLISH:
        found = _read(language)
        if isinstance(found, str):
            return found
        _current, _catalogue = language, found
    return None


def _read(language: str) -> NullTranslations | str:
    """The catalogue as the wheel carries it, or from its source in a checkout; a reason where there is none."""
    from gettext import GNUTranslations

    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), language, "LC_MESSAGES", "compatcheck")
    try:
        with open(f"{path}.mo", "rb") as stream:
            return GNUTranslations(stream)
    except FileNotFoundError:
        from io import BytesIO

        from compatcheck.language import checkout

        try:
            return GNUTranslations(BytesIO(checkout.compiled(f"{path}.po")))
        except InputError as error:
            return str(error)
