"""`compatcheck matrix`: one verb a file."""

from __future__ import annotations

import click

from compatcheck.verbs._group import VerbGroup


@click.group(cls=VerbGroup, package=__name__)
def command() -> None:
    """Look at the matrix, prove it, and keep it."""
