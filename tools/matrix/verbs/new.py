"""`compatcheck matrix new`."""

from __future__ import annotations

import click

from compatcheck.verbs import _help

EXAMPLES = (
    "compatcheck matrix new --package peft --title 'peft 0.14 drops the bias'",
    "gh issue view 35 --json body,title,url | compatcheck matrix new --from-issue -",
)


@_help.verb()
@_help.option("--from-issue", "issue", metavar="FILE", help="An issue made with the form; - is standard input.")
@_help.option("--package", metavar="NAME", help="The distribution at fault, as the index has it.")
@_help.option("--title", metavar="TEXT", help="The fault in one line.")
@_help.option("-o", "--output", "folder", metavar="FOLDER", help="A matrix folder; else the checkout's.")
def command(issue: str | None, package: str | None, title: str | None, folder: str | None) -> None:
    """Draft a new entry from an issue, or an empty one for --package.

    FILE holds the issue's Markdown body, or the JSON of `gh issue view N --json body,title,url`. The draft takes the
    next free number of the year and never the place of another file.
    """
    from datetime import datetime, timezone

    from tools.matrix import draft

    today = datetime.now(timezone.utc).date()
    if issue is not None:
        made = draft.from_issue(issue, today, package, title)
    elif package is not None:
        made = draft.skeleton(package, title, today)
    else:
        raise click.UsageError("name an issue with --from-issue, or a package with --package")
    written = draft.write(made, folder, today)
    click.echo(written.path)
    for told in written.open:
        click.echo(f"  to do  {told}", err=True)
    where = f" {folder}" if folder else ""
    click.echo(f"next: fill these in, then compatcheck matrix lint{where} --only {written.id}", err=True)
    click.echo(
        f"      compatcheck matrix diff --base main{where}: no known-good environment may get affected", err=True
    )
    click.echo(f"      compatcheck matrix reproduce {written.id}: where [reproduce] and [probe] are there", err=True)
