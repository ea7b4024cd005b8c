"""`compatcheck matrix schema`."""

from __future__ import annotations

from compatcheck.verbs import _help, _options
from compatcheck.verbs._output import write

EXAMPLES = (
    "compatcheck matrix schema",
    "compatcheck matrix schema -o matrix/entry.schema.json",
)


@_help.verb()
@_options.output
def command(output: str | None) -> None:
    """Print the JSON Schema of an entry, for editors."""
    import json

    from tools.matrix.schema import schema

    write(json.dumps(schema(), indent=2, ensure_ascii=False) + "\n", output)
