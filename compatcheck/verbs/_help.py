"""Help of a verb: its own options first, the common ones after them, the rare ones under ``--help-all``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import click

from compatcheck.language import LANGUAGES, VARIABLE, marked
from compatcheck.language import gettext as _
from compatcheck.language.suggestion import did_you_mean
from compatcheck.terminal.help_formatter import Context

MOST_SHOWN = 12
"""How many options ``--help`` lists; a verb with more marks the others as rare."""

_PIECES = (marked("[OPTIONS]"), marked("COMMAND [ARGS]..."))
"""Of a usage line, what click writes in English."""
_HELP_NAMES = ["-h", "--help"]


class Option(click.Option):
    """An option and its place in the help: ``common`` to several verbs, or ``rare``.

    ``aliases`` are older names, which are accepted and not shown.
    """

    def __init__(
        self, *args: Any, common: bool = False, rare: bool = False, aliases: Sequence[str] = (), **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.common = common
        self.rare = rare
        self.aliases = aliases

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        return record and (record[0], record[1].replace("[default: ", _("[default: ")))

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        shown = self.opts
        self.opts = [*shown, *self.aliases]
        super().add_to_parser(parser, ctx)
        self.opts = shown


option = partial(click.option, cls=Option)


class Verb(click.Command):
    """A command whose help is grouped, and which names the option that a misspelt one is close to."""

    context_class = Context
    examples: Sequence[str] = ()

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*self.params, *self._help_options]

    @cached_property
    def _help_options(self) -> tuple[Option, Option]:
        shown = sum(isinstance(each, click.Option) for each in self.params) + 1
        return _help_all(), help_option(has_more=shown > MOST_SHOWN)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_usage(self, ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_options(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(self.examples, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            list_all = _("`{command} --help-all` lists the options").format(command=ctx.command_path)
            why = did_you_mean(error.option_name, _option_names(self, ctx), list_all)
            raise click.UsageError(_("no option {name}; {why}").format(name=error.option_name, why=why), ctx) from None


def verb() -> Callable[[Callable[..., Any]], Verb]:
    """`click.command` for a verb."""
    return click.command(cls=Verb)


def language_option() -> Option:
    """What every verb takes, before its name or after; the language is chosen before options are parsed."""
    words = f"Output language. Default: ${VARIABLE}, then the terminal's locale."
    return Option(["--lang"], type=click.Choice(LANGUAGES), expose_value=False, help=words, common=True, rare=True)


def write_usage(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    pieces = " ".join(map(_, command.collect_usage_pieces(ctx)))
    formatter.write_usage(ctx.command_path, pieces, _("Usage: "))


def write_options(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """The options in two groups; how many more there are, unless all are asked for."""
    options = [each for each in command.get_params(ctx) if isinstance(each, click.Option) and not each.hidden]
    shown = [each for each in options if ctx.meta.get(_ALL) or not _is_rare(each)]
    if len(options) <= MOST_SHOWN:
        shown = options
    own = [each for each in shown if not getattr(each, "common", False)]
    common = [each for each in shown if each not in own]
    if not own or isinstance(command, click.Group):
        own, common = shown, []
    for heading, listed in ((_("Options"), own), (_("Common options"), common)):
        rows = [row for row in (each.get_help_record(ctx) for each in listed) if row]
        if rows:
            with formatter.section(heading):
                formatter.write_dl(rows)
    if len(shown) < len(options):
        text = _("{number} more options: {command} --help-all")
        formatter.write_paragraph()
        formatter.write_text(text.format(number=len(options) - len(shown), command=ctx.command_path))


def write_commands(
    sections: Iterable[tuple[str, Iterable[tuple[str, click.Command]]]], formatter: click.HelpFormatter
) -> None:
    """The verbs of each section with the first sentence of their help, in one column."""
    listed = [(heading, [(name, _summary(each)) for name, each in commands]) for heading, commands in sections]
    widest = max((len(name) for _heading, rows in listed for name, _text in rows), default=0)
    for heading, rows in listed:
        if rows:
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), text) for name, text in rows])


def write_examples(lines: Sequence[str], formatter: click.HelpFormatter) -> None:
    if lines:
        with formatter.section(_("Examples")):
            formatter.write_text("\n".join(("\b", *lines)))


_ALL = "compatcheck.help_all"


def _is_rare(each: click.Option) -> bool:
    return isinstance(each, Option) and each.rare


def _summary(command: click.Command) -> str:
    text = command.short_help or (command.help or "").strip().partition("\n\n")[0]
    return " ".join(text.split()).removesuffix(".").removesuffix("。")


def help_option(*, has_more: bool) -> Option:
    text = marked("Show this help. --help-all lists every option.") if has_more else marked("Show this help.")
    return _exiting(_HELP_NAMES, _(text), everything=False, common=True)


def _help_all() -> Option:
    return _exiting(["--help-all"], None, everything=True, hidden=True)


def _exiting(names: list[str], text: str | None, *, everything: bool, **kwargs: Any) -> Option:
    def show(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            ctx.meta[_ALL] = everything
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()

    flags: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False}
    return Option(names, help=text, callback=show, **flags, **kwargs)


def _option_names(command: click.Command, ctx: click.Context) -> Iterator[str]:
    for each in command.get_params(ctx):
        if isinstance(each, click.Option) and not each.hidden:
            yield from (*each.opts, *each.secondary_opts)
