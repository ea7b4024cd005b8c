"""`compatcheck formats`."""

from __future__ import annotations

import click

from compatcheck.language import gettext as _

EXAMPLES = (
    "compatcheck formats",
    "compatcheck formats | grep -i yaml",
)


@click.command()
def command() -> None:
    """List the project files that compatcheck reads.

    They are recognised by their content. `diagnose` also reads reports, logs, tracebacks and event files.
    """
    from compatcheck.project.sources import formats

    training, models, packages = formats()
    for heading, titles in ((_("training"), training), (_("models"), models), (_("packages"), packages)):
        click.echo(heading)
        for title in titles:
            click.echo(f"  {_(title)}")
