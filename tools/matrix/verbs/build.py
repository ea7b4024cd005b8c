"""`compatcheck matrix build`."""

from __future__ import annotations

import click

from compatcheck.language import gettext as _
from compatcheck.verbs import _help

EXAMPLES = (
    "compatcheck matrix build matrix/ compiled/",
    "compatcheck matrix build ~/matrix compatcheck/matrix/data",
)


@_help.verb()
@click.argument("folder")
@click.argument("destination")
def command(folder: str, destination: str) -> None:
    """Compile the matrix in FOLDER and write it to DESTINATION.

    The wheel contains the matrix in this compiled form.
    """
    from pathlib import Path

    from compatcheck.matrix.compile import write_compiled
    from compatcheck.matrix.loading import source_folder

    index = write_compiled(Path(source_folder(folder)), Path(destination))
    text = _("{entries} entries, revision {revision}")
    click.echo(text.format(entries=index["entries"], revision=index["revision"]), err=True)
