"""What click says of a wrong command line, in the language in use."""

from __future__ import annotations

import click

from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.terminal.messages import lines

_OF_CLICK = (
    marked("Invalid value: {message}"),
    marked("Invalid value for {param_hint}: {message}"),
    marked("Missing argument {name}."),
    marked("Missing option {name}."),
    marked("No such option {name}."),
    marked("No such option: {name}"),
    marked("No such command {name}."),
    marked("Option {name} requires an argument."),
    marked("Option {name} does not take a value."),
    marked("Got unexpected extra argument ({name})"),
    marked("Got unexpected extra arguments ({name})"),
    marked("{value} is not one of {choices}."),
    marked("{value} is not a valid {number_type}."),
    marked("{value} is not in the range {range}."),
    marked("File {name} does not exist."),
    marked("Directory {name} does not exist."),
    marked("Path {name} does not exist."),
)
"""Templates of click's messages, which `gettext` finds by what stands between their placeholders."""


def show(error: click.ClickException) -> None:
    """Print the error, with how the command is used, to standard error."""
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    if ctx is not None:
        hint = _("Try '{command}' for help.").format(command=f"{ctx.command_path} --help")
        click.echo(f"{ctx.get_usage()}\n{hint}\n", err=True)
    click.echo(lines(_("Error: {message}").format(message=_(error.format_message()))), err=True)
