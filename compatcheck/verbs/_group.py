"""A group of verbs that are the modules of a package, each loaded when it is called."""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click

from compatcheck.language import ENGLISH, current, marked
from compatcheck.language import gettext as _
from compatcheck.language.suggestion import nearest
from compatcheck.terminal.help_formatter import Context
from compatcheck.verbs import _help

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

SECTIONS = {
    "judge": marked("Check"),
    "fix": marked("Fix"),
    "understand": marked("Understand"),
    "fleet": marked("Many machines"),
    "matrix": marked("The matrix"),
}
_OTHERS = marked("Commands")


class VerbGroup(click.Group):
    """The verbs of ``package``; ``default`` is the one to use where none is named.

    A verb's module may hold ``EXAMPLES``, command lines that end its help, and ``SECTION``, one of `SECTIONS`, under
    which the group lists it.
    """

    context_class = Context

    def __init__(
        self, *args: Any, package: str, default: str | None = None, examples: Sequence[str] = (), **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.package = package
        self.default = default
        self.examples = examples
        self.params.append(_help.language_option())

    def list_commands(self, ctx: click.Context) -> list[str]:
        folders = importlib.import_module(self.package).__path__
        names = (name.removesuffix(".py") for folder in folders for name in os.listdir(folder))
        return sorted(name for name in names if not name.startswith("_"))

    def module(self, verb: str) -> str:
        """The module whose ``command`` is the verb."""
        return f"{self.package}.{verb}"

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(self.module(cmd_name))
        command: click.Command = module.command
        command.name = cmd_name
        if isinstance(command, _help.Verb):
            command.examples = module.EXAMPLES
        if "lang" not in (parameter.name for parameter in command.params):
            command.params.append(_help.language_option())
        if ctx.resilient_parsing:
            from compatcheck.verbs._completion import offer

            return offer(_translate(command))
        return _translate(command)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*self.params, _help.help_option(has_more=False)]

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _help.write_usage(self, ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands: dict[str, list[tuple[str, click.Command]]] = {each: [] for each in (*SECTIONS.values(), _OTHERS)}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                module = importlib.import_module(self.module(name))
                commands[SECTIONS.get(getattr(module, "SECTION", ""), _OTHERS)].append((name, command))
        _help.write_commands([(_(heading), rows) for heading, rows in commands.items()], formatter)
        _help.write_options(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _help.write_examples(self.examples, formatter)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The verbs, and what the default one takes; files come first, as bash offers them where nothing else fits."""
        own = super().shell_complete(ctx, incomplete)
        default = self.get_command(ctx, self.default) if self.default is not None else None
        if default is None:
            return own
        below = click.Context(default, ctx, resilient_parsing=True)
        argument = next(each for each in default.params if isinstance(each, click.Argument))
        takes = default if incomplete.startswith("-") else argument
        known = {item.value for item in own}
        return [*(item for item in takes.shell_complete(below, incomplete) if item.value not in known), *own]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        _translate(self)
        before, args = _split_language(args)
        named = args and (args[0] in self.list_commands(ctx) or args[0] in ("--help", "-h", "--version"))
        completing_the_verb = ctx.resilient_parsing and not args
        if self.default is not None and not named and not completing_the_verb:
            self._refuse_misspelt(ctx, args)
            args = [self.default, *args]
        return super().parse_args(ctx, [*before, *args])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-") and not ctx.resilient_parsing:
            self._refuse(ctx, args[0], nearest(args[0], self.list_commands(ctx), 1))
        return super().resolve_command(ctx, args)

    def _refuse_misspelt(self, ctx: click.Context, args: list[str]) -> None:
        """Fail with the verb that a word is close to, unless a file has that name."""
        if not args or not args[0].isalpha() or ctx.resilient_parsing or os.path.lexists(args[0]):
            return
        near = nearest(args[0], self.list_commands(ctx), 1)
        if near:
            self._refuse(ctx, args[0], near)

    def _refuse(self, ctx: click.Context, word: str, near: Sequence[str]) -> NoReturn:
        text = _("no command {word}; did you mean {verb}?") if near else _("no command {word}")
        if near and self.default is not None:
            text = _("no command or file named {word}; did you mean {verb}?")
        ctx.fail(text.format(word=word, verb="".join(near)))


def _split_language(args: list[str]) -> tuple[list[str], list[str]]:
    """What stands of ``--lang`` ahead of the verb, and the rest."""
    words = 2 if args[:1] == ["--lang"] else int(bool(args) and args[0].startswith("--lang="))
    return args[:words], args[words:]


def _translate(command: click.Command) -> click.Command:
    """The same command, its help in the language in use."""
    if current() != ENGLISH:
        command.help = command.help and _(inspect.cleandoc(command.help))
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                parameter.help = parameter.help and _(parameter.help)
    return command
