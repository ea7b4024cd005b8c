"""What a shell offers for the values of a verb: told by the word that its help has for them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

_FILES = {"FILE", "PATH", "FOLDER", "FOLDERS", "DIR", "MODEL", "INPUT"}


class _Offered(click.ParamType):  # type: ignore[type-arg]
    """A text for which the shell offers what ``word``, its name in the help, stands for."""

    name = "text"

    def __init__(self, word: str) -> None:
        self.word = word

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        if self.word in _FILES:
            return [CompletionItem(incomplete, type="file")]
        offered = _offered(self.word)
        return [item for item in offered if item.value.lower().startswith(incomplete.lower())]


def offer(command: click.Command) -> click.Command:
    """The same command, whose values can be completed where they are plain texts."""
    for parameter in command.params:
        stated = parameter.metavar or (parameter.name or "").upper()
        if parameter.type is click.STRING:
            parameter.type = _Offered(re.sub(r"^\W+|\W+$", "", stated))
    return command


def _offered(word: str) -> Iterator[CompletionItem]:
    """The values of a word; what stands between bars in small letters is a choice."""
    for kind in word.split("|"):
        if kind == "ID":
            yield from _ids()
        elif kind == "PROBE":
            from compatcheck import probes

            yield from map(CompletionItem, probes.names())
        elif kind.islower() and kind != word:
            yield CompletionItem(kind)


def _ids() -> Iterator[CompletionItem]:
    from compatcheck import matrix

    for entry in matrix.all_entries(matrix.load()):
        yield CompletionItem(entry["id"], help=entry["title"])


def register() -> None:
    """Let ``--option=value`` be completed: bash hands it over in three words, the others want it back in one."""
    for shell in (_Bash, _Zsh, _Fish):
        add_completion_class(shell)


class _Bash(BashComplete):
    def get_completion_args(self) -> tuple[list[str], str]:
        args, incomplete = super().get_completion_args()
        return [each for each in args if each != "="], incomplete


class _Joined(ShellComplete):
    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        name, joint, value = incomplete.partition("=")
        if not joint or not name.startswith("--"):
            return super().get_completions(args, incomplete)
        found = super().get_completions([*args, name], value)
        return [CompletionItem(f"{name}={item.value}", item.type, item.help) for item in found]


class _Zsh(_Joined, ZshComplete):
    """That of click, whose words keep the option that they belong to."""


class _Fish(_Joined, FishComplete):
    """That of click, whose words keep the option that they belong to."""
