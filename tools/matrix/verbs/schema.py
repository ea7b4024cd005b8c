"""`compatcheck matrix schema`."""

from __future__ import annotations

import click

from compatcheck.verbs import _options
from compatcheck.verbs._output import write


@click.command()
@_options.output
def command(output: str | None) -> None:
    """Print the JSON Schema of an entry, by which editors complete and check the file."""
    import json

    from tools.matrix.schema import schema

    write(json.dumps(schema(), indent=2, ensure_ascii=False) + "\n", output)
