"""`compatcheck triage`: the older name of `compatcheck diagnose`."""

from __future__ import annotations

from typing import Any

import click

from compatcheck.language import gettext as _
from compatcheck.terminal.messages import say
from compatcheck.verbs import _help, diagnose

EXAMPLES = (
    "compatcheck triage issue.md train.log",
    "gh issue view 35 --json title,body,createdAt,comments | compatcheck triage -",
)


class _Alias(_help.Verb):
    def invoke(self, ctx: click.Context) -> Any:
        say(_("`triage` is the older name of `diagnose`"))
        return super().invoke(ctx)


command = _Alias(
    "triage",
    callback=diagnose.command.callback,
    params=list(diagnose.command.params),
    help=diagnose.command.help,
    hidden=True,
)
