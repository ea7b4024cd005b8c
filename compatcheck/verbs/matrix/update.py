"""`compatcheck matrix update`."""

from __future__ import annotations

import os

import click

from compatcheck.verbs import _help

EXAMPLES = (
    "compatcheck matrix update",
    "compatcheck matrix update --url https://mirror.example/compatcheck --root root.json",
)


@_help.verb()
@_help.option(
    "--url", metavar="URL", help="Repository URL. Default: $COMPATCHECK_MATRIX_URL, then the URL of the last update."
)
@_help.option(
    "--root",
    metavar="FILE",
    help="Root of trust. Default: $COMPATCHECK_MATRIX_ROOT, then the root that is already trusted.",
)
def command(url: str | None, root: str | None) -> None:
    """Fetch a newer matrix, verified by The Update Framework.

    Needs compatcheck[update]. A matrix that is tampered with, older, expired or truncated is refused with exit
    status 5; an unreachable server gives 2. In both cases the current matrix stays in use.
    """
    from compatcheck.pipelines import update

    done = update.update(url, root, os.environ)
    about, bundled = done.adopted.about, done.adopted.bundled
    state = "now in use" if done.adopted.changed else "already in use"
    if not done.adopted.used:
        state = "the same as" if about == bundled else f"older than {bundled.revision} of {bundled.date}, which is"
        state += " the bundled matrix, which stays in use"
    click.echo(f"matrix {about.revision} of {about.date}, {about.entries} entries, from {done.url}: {state}")
