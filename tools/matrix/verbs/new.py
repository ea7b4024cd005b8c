"""`compatcheck matrix new`."""

from __future__ import annotations

import click

from compatcheck.language import gettext as _
from compatcheck.verbs import _help

EXAMPLES = (
    "compatcheck matrix new --package peft --title 'peft 0.14 drops the bias'",
    "gh issue view 35 --json body,title,url | compatcheck matrix new --from-issue -",
)


@_help.verb()
@_help.option(
    "--from-issue", "issue", metavar="FILE", help="Issue written with the issue form; `-` reads standard input."
)
@_help.option("--package", metavar="NAME", help="Package at fault, by its name on PyPI.")
@_help.option("--title", metavar="TEXT", help="The fault in one line.")
@_help.option("-o", "--output", "folder", metavar="FOLDER", help="Matrix folder. Default: the folder of this checkout.")
def command(issue: str | None, package: str | None, title: str | None, folder: str | None) -> None:
    """Draft a new entry from an issue, or an empty one for --package.

    FILE contains the issue's Markdown body, or the JSON of `gh issue view N --json body,title,url`. The draft gets the
    next free number of the year and never overwrites a file.
    """
    from datetime import datetime, timezone

    from tools.matrix import draft

    today = datetime.now(timezone.utc).date()
    if issue is not None:
        made = draft.from_issue(issue, today, package, title)
    elif package is not None:
        made = draft.skeleton(package, title, today)
    else:
        raise click.UsageError(_("give an issue with --from-issue, or a package with --package"))
    written = draft.write(made, folder, today)
    click.echo(written.path)
    for each in written.open:
        click.echo(_("  to do  {text}").format(text=each), err=True)
    where = f" {folder}" if folder else ""
    click.echo(_("next: fill these in, then run"), err=True)
    click.echo(f"  compatcheck matrix lint{where} --select {written.id}", err=True)
    click.echo(f"  compatcheck matrix diff --base main{where}", err=True)
    click.echo(f"  compatcheck matrix reproduce {written.id}", err=True)
