"""`compatcheck matrix search`."""

from __future__ import annotations

import sys

import click

from compatcheck.verbs import _status


@click.command()
@click.argument("words", nargs=-1, required=True)
def command(words: tuple[str, ...]) -> None:
    """Search titles, summaries, symptoms and mechanisms for all of the words."""
    from compatcheck import matrix
    from compatcheck.report import explanation

    found = matrix.search(matrix.load(), words)
    click.echo(explanation.render_list(found), nl=False)
    sys.exit(_status.CLEAN if found else _status.FINDINGS)
