"""`compatcheck matrix build`."""

from __future__ import annotations

import click


@click.command()
@click.argument("folder")
@click.argument("destination")
def command(folder: str, destination: str) -> None:
    """Compile the matrix FOLDER into DESTINATION, in the form a wheel carries."""
    from compatcheck import matrix

    index = matrix.compile_folder(folder, destination)
    click.echo(f"{index['entries']} entries, revision {index['revision']}", err=True)
