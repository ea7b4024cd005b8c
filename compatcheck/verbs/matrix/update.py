"""`compatcheck matrix update`."""

from __future__ import annotations

import os

import click

from compatcheck.language import gettext as _
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
    state = _("now in use") if done.adopted.changed else _("already in use")
    if not done.adopted.used and about == bundled:
        state = _("the same as the bundled matrix, which stays in use")
    elif not done.adopted.used:
        state = _("older than the bundled matrix {revision} of {date}, which stays in use")
        state = state.format(revision=bundled.revision, date=bundled.date)
    text = _("matrix {revision} of {date}, {entries} entries, from {url}: {state}")
    revision, date, entries = about.revision, about.date, about.entries
    click.echo(text.format(revision=revision, date=date, entries=entries, url=done.url, state=state))
