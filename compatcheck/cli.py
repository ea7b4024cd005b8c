"""The command line: finds the verb, and is the one top-level error handler."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

import click

from compatcheck import __version__, language
from compatcheck.errors import CompatcheckError
from compatcheck.files.secrets import masked
from compatcheck.results import exit_status
from compatcheck.terminal import usage_errors
from compatcheck.terminal.messages import one_line, say
from compatcheck.terminal.screen import write_readably
from compatcheck.verbs._group import VerbGroup


@click.group(
    cls=VerbGroup,
    package="compatcheck.verbs",
    default="check",
    examples=("compatcheck train.py requirements.txt model/", "compatcheck diagnose train.log"),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="compatcheck %(version)s")
def cli() -> None:
    """Find the combinations of versions, GPUs, settings and model files that break language-model training.

    `check` is the default command.
    """


_COLLECTED = 500_000
"""New objects before a collection: a usual check stays below, and of a folder of many scripts no garbage piles up."""


def _choose_language() -> None:
    """Before any verb is loaded, so that its help is in the language as well; English is told where it stands in."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    wanted = language.wanted(sys.argv[1:], os.environ, on_terminal=terminal)
    if wanted != language.ENGLISH:
        why = language.use(wanted, getattr(sys.stdout, "encoding", None))
        if why is not None:
            say(f"using English: {why}")


def main() -> NoReturn:
    """Run the command line; every way out ends here with its own exit status."""
    gc.set_threshold(_COLLECTED, 5, 1000)
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    write_readably()
    if "_COMPATCHECK_COMPLETE" in os.environ:
        from compatcheck.verbs import _completion

        _completion.register()
    try:
        _choose_language()
        sys.exit(cli.main(prog_name="compatcheck", standalone_mode=False) or exit_status.CLEAN)
    except CompatcheckError as error:
        say(language.error_line(error))
        sys.exit(error.exit_status)
    except click.ClickException as error:
        vars(error).update(message=one_line(error.message))
        usage_errors.show(error)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        say(language.gettext("interrupted"))
        sys.exit(exit_status.INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(exit_status.CLEAN)
    except Exception:  # noqa: BLE001
        import traceback

        sys.stderr.write(masked(traceback.format_exc()))
        say(language.gettext("this is a bug; please report it with the lines above"))
        sys.exit(exit_status.BUG)
