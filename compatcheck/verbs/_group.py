"""A group of verbs that are the modules of a package, each loaded when it is called."""

from __future__ import annotations

import importlib
import os
from typing import Any

import click


class VerbGroup(click.Group):
    """The verbs of ``package``; ``default`` is the one that is meant where none is named."""

    def __init__(self, *args: Any, package: str, default: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.package = package
        self.default = default

    def list_commands(self, ctx: click.Context) -> list[str]:
        folders = importlib.import_module(self.package).__path__
        names = (name.removesuffix(".py") for folder in folders for name in os.listdir(folder))
        return sorted(name for name in names if not name.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"{self.package}.{cmd_name}").command
        command.name = cmd_name
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = args and (args[0] in self.list_commands(ctx) or args[0] in ("--help", "-h", "--version"))
        if self.default is not None and not named:
            args = [self.default, *args]
        return super().parse_args(ctx, args)
