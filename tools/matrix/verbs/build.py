"""`compatcheck matrix build`."""

from __future__ import annotations

import click

from compatcheck.verbs import _help

EXAMPLES = (
    "compatcheck matrix build matrix/ compiled/",
    "compatcheck matrix build ~/matrix compatcheck/matrix/data",
)


@_help.verb()
@click.argument("folder")
@click.argument("destination")
def command(folder: str, destination: str) -> None:
    """Compile the matrix FOLDER into DESTINATION, in the form a wheel carries."""
    from pathlib import Path

    from compatcheck.matrix.compile import write_compiled
    from compatcheck.matrix.loading import source_folder

    index = write_compiled(Path(source_folder(folder)), Path(destination))
    click.echo(f"{index['entries']} entries, revision {index['revision']}", err=True)
