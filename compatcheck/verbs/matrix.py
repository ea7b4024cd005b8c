"""`compatcheck matrix`."""

from __future__ import annotations

import sys

import click

from compatcheck.verbs import _status


@click.group()
def command() -> None:
    """List, search, lint or build the matrix."""


@command.command("list")
@click.option("--package", metavar="NAME", help="Only entries about this distribution.")
def list_entries(package: str | None) -> None:
    """List the entries."""
    from compatcheck import matrix
    from compatcheck.report import explanation

    entries = matrix.all_entries(matrix.load())
    click.echo(explanation.render_list(e for e in entries if package in (None, *e["packages"])), nl=False)


@command.command()
@click.argument("words", nargs=-1, required=True)
def search(words: tuple[str, ...]) -> None:
    """Search titles, summaries, symptoms and mechanisms for all of the words."""
    from compatcheck import matrix
    from compatcheck.report import explanation

    found = matrix.search(matrix.load(), words)
    click.echo(explanation.render_list(found), nl=False)
    sys.exit(_status.CLEAN if found else _status.FINDINGS)


@command.command()
@click.argument("folder", required=False)
def lint(folder: str | None) -> None:
    """Prove every entry of a matrix FOLDER by its own examples."""
    from compatcheck import matrix, probes

    faults, entries = matrix.lint_folder(folder, probes.names())
    for fault in faults:
        click.echo(f"{fault.id}: {'stale: ' if fault.stale else ''}{fault.text}")
    errors = sum(not fault.stale for fault in faults)
    click.echo(f"{entries} entries, {errors} faults", err=True)
    sys.exit(_status.FINDINGS if errors else _status.CLEAN)


@command.command()
@click.argument("folder")
@click.argument("destination")
def build(folder: str, destination: str) -> None:
    """Compile the matrix FOLDER into DESTINATION, in the form a wheel carries."""
    from compatcheck import matrix

    index = matrix.compile_folder(folder, destination)
    click.echo(f"{index['entries']} entries, revision {index['revision']}", err=True)
