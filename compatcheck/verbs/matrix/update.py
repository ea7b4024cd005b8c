"""`compatcheck matrix update`."""

from __future__ import annotations

import os

import click


@click.command()
@click.option("--url", metavar="URL", help="The repository; else COMPATCHECK_MATRIX_URL, or that of the last update.")
@click.option(
    "--root", metavar="FILE", help="The root of trust; else COMPATCHECK_MATRIX_ROOT, or the one trusted there."
)
def command(url: str | None, root: str | None) -> None:
    """Fetch a newer matrix, verified by The Update Framework.

    What is tampered with, older than before, expired or cut short is refused (exit status 5), and the matrix in use
    stays. So it does where the server cannot be reached (exit status 2).
    """
    from compatcheck.pipelines import update

    done = update.update(url, root, os.environ)
    about, bundled = done.adopted.about, done.adopted.bundled
    state = "now in use" if done.adopted.changed else "already in use"
    if not done.adopted.used:
        state = "the same as" if about == bundled else f"older than {bundled.revision} of {bundled.date}, which is"
        state += " the one that came with compatcheck and stays in use"
    click.echo(f"matrix {about.revision} of {about.date}, {about.entries} entries, from {done.url}: {state}")
