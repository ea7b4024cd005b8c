"""Reports: a subject turns a value into a document of neutral blocks, a format renders the blocks of any document.

Each file in ``formats`` is a format: a module with ``render(document, screen)``. Those in ``formats/findings`` hold
findings alone, those in ``formats/entries`` entries of the matrix. Nothing is registered.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from compatcheck.files.secrets import masked
from compatcheck.report.document import Document
from compatcheck.terminal.messages import without_commands
from compatcheck.terminal.screen import PLAIN, Screen


def _names(folder: str) -> tuple[str, ...]:
    path = [f"{parent}/{folder}" for parent in __path__]
    return tuple(sorted(unit.name for unit in iter_modules(path) if not (unit.ispkg or unit.name.startswith("_"))))


PAGE_FORMATS = _names("formats")
"""The formats of every document."""

FORMATS = (*PAGE_FORMATS, *_names("formats/findings"))
"""The formats of a document with findings."""


def render(document: Document, format_name: str, screen: Screen = PLAIN) -> str:
    """The document in a format, ending in a newline; a screen matters to text alone.

    Without credentials and without a stranger's commands to a runner; the format ``github`` has only its own.
    """
    folder = "formats" if format_name in PAGE_FORMATS else "formats.findings"
    text: str = import_module(f"compatcheck.report.{folder}.{format_name}").render(document, screen)
    text = masked(text)
    return text if format_name == "github" else without_commands(text, _SPELLED.get(format_name, "\\x{:02x}"))


_SPELLED = {"html": "&#{:d};", "junit": "&#{:d};", "json": "\\u{:04x}", "sarif": "\\u{:04x}", "gitlab": "\\u{:04x}"}
