"""Catalogues as translators write them; read at build time, and at run time in a checkout alone."""

from __future__ import annotations

from datetime import datetime, timezone
from io import BytesIO
from os import PathLike
from typing import TYPE_CHECKING

from compatcheck.errors import InputError

if TYPE_CHECKING:
    from babel.messages.catalog import Catalog


def read(path: str | PathLike[str]) -> Catalog:
    """The catalogue in a ``.po`` file. Raises InputError where it is damaged, or where babel is not installed."""
    try:
        from babel.messages.pofile import PoFileError, read_po
    except ModuleNotFoundError:
        seen = "a checkout reads its translations with babel, and babel is not installed"
        raise InputError("reading", path, seen, "pip install babel") from None
    try:
        with open(path, "rb") as stream:
            return read_po(stream, abort_invalid=True)
    except (OSError, UnicodeDecodeError, PoFileError) as error:
        raise InputError("reading", path, str(error), "correct the catalogue") from None


def compiled(path: str | PathLike[str]) -> bytes:
    """A catalogue in the form that the standard library reads, the same at any hour; fuzzy texts are left out."""
    stream, catalogue = BytesIO(), read(path)
    from babel.messages.mofile import write_mo

    catalogue.creation_date = datetime.fromtimestamp(0, timezone.utc)
    write_mo(stream, catalogue)
    return stream.getvalue()


def texts(path: str | PathLike[str]) -> dict[str, str]:
    """The translations by their English text, without fuzzy and missing ones, of a catalogue without plural forms."""
    return {
        str(message.id): str(message.string)
        for message in read(path)
        if message.id and message.string and not message.fuzzy
    }
