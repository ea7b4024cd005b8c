"""What somebody meant by a word that does not exist."""

from __future__ import annotations

from collections.abc import Iterable

from compatcheck.language import comma_list
from compatcheck.language import gettext as _

_NEAR = 0.72
_MOST = 3


def nearest(word: str, known: Iterable[str], most: int = _MOST) -> list[str]:
    """The known words that are spelled like this one, best first."""
    from difflib import get_close_matches

    return get_close_matches(word, list(known), most, _NEAR)


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """The question whether a known word was meant, else the text that is given."""
    near = nearest(word, known)
    return _("did you mean {name}?").format(name=comma_list(near)) if near else otherwise
