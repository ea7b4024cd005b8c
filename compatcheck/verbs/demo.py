"""`compatcheck demo`."""

from __future__ import annotations

from typing import NoReturn

from compatcheck.verbs import _help, _options
from compatcheck.verbs._verdict import judge_and_exit, options_of, view_of

SECTION = "judge"
EXAMPLES = (
    "compatcheck demo",
    "compatcheck demo --format html -o demo.html",
)


@_help.verb()
@_options.verdict
def command(**options: object) -> NoReturn:
    """Check a recorded environment: a GLM-4 fine-tune on torch 2.5.0."""
    from importlib import resources

    from compatcheck import matrix
    from compatcheck.environment.snapshot import read_snapshot
    from compatcheck.language import gettext as _
    from compatcheck.results.areas import Given

    path = str(resources.files("compatcheck") / "demo" / "glm-4.json")
    chosen = options_of(options)._replace(given=Given(_("a recorded environment")))
    judge_and_exit(read_snapshot(path), matrix.load(), chosen, None, view_of(options))
