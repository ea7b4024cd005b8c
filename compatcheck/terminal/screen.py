"""What the stream that is written to can show: its width, colours and hyperlinks, and the letters of its encoding."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple, TextIO

WIDEST = 100
_NARROWEST = 20
_OFF = ("", "0", "false")
_LINKING_PROGRAMS = ("iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "mintty", "Tabby", "rio", "zed")
_LINKING_TERMS = ("xterm-kitty", "xterm-ghostty", "alacritty", "foot", "wezterm", "contour")
_FIRST_VTE_THAT_LINKS = 5001
_IN_ASCII = {
    **dict(zip("▁▂▃▄▅▆▇█", "_.-:=+*#")),
    **dict(zip("×–—‘’“”•·≤≥", ("x", "-", "-", "'", "'", '"', '"', "*", ".", "<=", ">="))),
    **dict(zip("✓", "+")),
    **dict(zip("→←…─│√²", ("->", "<-", "...", "-", "|", "sqrt ", "^2"))),
    **dict(zip("，。；：！？（）、《》", (", ", ". ", "; ", ": ", "! ", "? ", "(", ")", ", ", "<", ">"))),
}


class Screen(NamedTuple):
    """Where a text is drawn; as it stands, a pipe or a file: plain, and of the same width everywhere."""

    width: int = WIDEST
    is_terminal: bool = False
    colour: bool = False
    links: bool = False


PLAIN = Screen()


def screen(stream: TextIO | None, environ: Mapping[str, str] = os.environ) -> Screen:
    """What the stream shows; NO_COLOR counts over FORCE_COLOR and CLICOLOR_FORCE, and these over what it is.

    https://no-color.org, https://force-color.org, https://bixense.com/clicolors/
    """
    terminal = stream is not None and stream.isatty()
    dumb = environ.get("TERM") == "dumb"
    colour = terminal and not dumb and environ.get("CLICOLOR") != "0"
    if environ.get("FORCE_COLOR"):
        colour = environ["FORCE_COLOR"].lower() not in _OFF
    elif environ.get("CLICOLOR_FORCE", "0") not in _OFF:
        colour = True
    colour = colour and not environ.get("NO_COLOR")
    width = min(WIDEST, _columns(stream, environ)) if terminal else WIDEST
    return Screen(width, terminal, colour, terminal and not dumb and _links(environ))


def is_live(stream: TextIO | None, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether what was drawn can be drawn over: a terminal, and not a dumb one."""
    return stream is not None and stream.isatty() and environ.get("TERM") != "dumb"


def write_readably() -> None:
    """Let standard output and error write what their encoding lacks as the nearest that it has, or as ``?``."""
    import codecs

    codecs.register_error("compatcheck", _nearest)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="compatcheck")


def _nearest(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_IN_ASCII.get(letter, "?") for letter in lacking), error.end


def _columns(stream: TextIO | None, environ: Mapping[str, str]) -> int:
    stated = environ.get("COLUMNS", "")
    columns = int(stated) if stated.isdecimal() else 0
    if not columns and stream is not None:
        try:
            columns = os.get_terminal_size(stream.fileno()).columns
        except OSError:
            columns = 0
    return max(columns or 80, _NARROWEST)


def _links(environ: Mapping[str, str]) -> bool:
    """Whether the terminal follows hyperlinks, as far as it says which it is.

    https://github.com/Alhadis/OSC8-Adoption lists them. VTE 0.50.0 crashed on them.
    """
    if "FORCE_HYPERLINK" in environ:
        return environ["FORCE_HYPERLINK"].lower() not in _OFF
    vte = environ.get("VTE_VERSION", "")
    return (
        any(environ.get(name) for name in ("WT_SESSION", "KITTY_WINDOW_ID", "KONSOLE_VERSION", "DOMTERM"))
        or environ.get("TERM_PROGRAM") in _LINKING_PROGRAMS
        or environ.get("TERM", "").startswith(_LINKING_TERMS)
        or (vte.isdecimal() and int(vte) >= _FIRST_VTE_THAT_LINKS)
    )
