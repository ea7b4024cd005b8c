"""`compatcheck completion`."""

from __future__ import annotations

import click

from compatcheck.verbs import _help
from compatcheck.verbs._output import write

_VARIABLE = "_COMPATCHECK_COMPLETE"

EXAMPLES = (
    "compatcheck completion bash > ~/.local/share/bash-completion/completions/compatcheck",
    'compatcheck completion zsh > "${fpath[1]}/_compatcheck"',
    "compatcheck completion fish > ~/.config/fish/completions/compatcheck.fish",
)


@_help.verb()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    For this session only: eval "$(compatcheck completion bash)".
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None, shell
    write(made(context.find_root().command, {}, "compatcheck", _VARIABLE).source(), None)
