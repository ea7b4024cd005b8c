"""`compatcheck matrix`: one verb a file. Those that extend the matrix are in a checkout, in tools/matrix/verbs/."""

from __future__ import annotations

import os
import sys

import click

from compatcheck.errors import InputError
from compatcheck.verbs._group import VerbGroup

UPKEEP = ("build", "diff", "new", "reproduce", "schema", "watch")


def _checkout() -> str | None:
    from compatcheck.matrix.loading import is_installed, source_folder

    return None if is_installed() else os.path.dirname(source_folder(None))


class _MatrixGroup(VerbGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted((*super().list_commands(ctx), *(UPKEEP if _checkout() else ())))

    def module(self, verb: str) -> str:
        root = _checkout()
        if verb not in UPKEEP or root is None:
            return super().module(verb)
        if root not in sys.path:
            sys.path.insert(0, root)
        return f"tools.matrix.verbs.{verb}"

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in UPKEEP and not _checkout():
            seen = "this installation has only the compiled matrix"
            raise InputError("running", f"matrix {cmd_name}", seen, "run this command in a clone of the repository")
        return super().get_command(ctx, cmd_name)


SECTION = "matrix"


@click.group(
    cls=_MatrixGroup,
    package=__name__,
    examples=("compatcheck matrix search deepspeed zero3 hang", "compatcheck matrix list --package peft"),
)
def command() -> None:
    """Search, export and update the entries."""
