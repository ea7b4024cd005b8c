"""`compatcheck triage`: the older name of `compatcheck diagnose`."""

from __future__ import annotations

from typing import Any

import click

from compatcheck.language import gettext as _
from compatcheck.verbs import diagnose

EXAMPLES = (
    "compatcheck triage issue.md train.log",
    "gh issue view 35 --json title,body,createdAt,comments | compatcheck triage -",
)


class _Alias(click.Command):
    def invoke(self, ctx: click.Context) -> Any:
        click.echo(_("compatcheck: `triage` is the older name of `diagnose`"), err=True)
        return super().invoke(ctx)


command = _Alias(
    "triage",
    callback=diagnose.command.callback,
    params=list(diagnose.command.params),
    help=diagnose.command.help,
    short_help="The same as diagnose, by its older name.",
)
