"""Where a report goes, and how the progress of long work is shown beside it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from compatcheck.errors import InputError
from compatcheck.files import storage
from compatcheck.terminal.screen import PLAIN, Screen, is_live, screen

if TYPE_CHECKING:
    from compatcheck.report.document import Document


def screen_of(output: str | None) -> Screen:
    """What the report is drawn on: standard output, unless it goes to a file."""
    return PLAIN if output is not None else screen(sys.stdout)


def write(text: str, output: str | None) -> None:
    if output is not None:
        storage.write(output, text)
        return
    if sys.stdout is None:
        raise InputError("writing", "standard output", "the stream is closed", "use -o")
    try:
        click.echo(text, sys.stdout, nl=False, color=True)  # the text is made for what shows it
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(
            "writing", "standard output", error.strerror or str(error), "free some space, or use -o"
        ) from None


def write_reports(document: Document, reports: Iterable[tuple[str, str]]) -> None:
    """Write the document to each file in the format that ``--report`` names."""
    from compatcheck.report import render

    for format_name, file in reports:
        write(render(document, format_name), file)


def write_page(text: str) -> None:
    """Write to standard output, through the pager of PAGER where it is a terminal that the text is too long for.

    As with git, an empty PAGER or cat means no pager; less keeps colours and leaves the page on the screen.
    """
    from shutil import get_terminal_size

    is_long = text.count("\n") >= get_terminal_size().lines
    if is_long and is_live(sys.stdout) and os.environ.get("PAGER") not in ("", "cat"):
        os.environ.setdefault("LESS", "FRX")
        click.echo_via_pager(text)
    else:
        write(text, None)


def make_folder(path: str) -> None:
    """Make the folder where it is missing: before long work rather than after."""
    storage.require_inside("making the folder", path)
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        seen = error.strerror or str(error)
        raise InputError("making the folder", path, seen, "choose a folder you can write to") from None


def progress() -> Any:
    """Progress of probes; a request to stop, however it comes, ends the probe's process as well."""
    import signal

    from compatcheck.terminal.progress import probe_progress

    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda number, _: sys.exit(128 + number))
    return probe_progress()
