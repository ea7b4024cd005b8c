"""`compatcheck probe`."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import click

from compatcheck.verbs import _options, _status
from compatcheck.verbs._output import progress, write


@click.command()
@click.argument("names", nargs=-1, metavar="[PROBE]...")
@_options.python
@_options.format_name
@_options.output
@click.option("--request", metavar="JSON", default="{}", help='What to ask of it, as {"dtype": "float16"}.')
def command(names: tuple[str, ...], python: str | None, output: str | None, request: str, format_name: str) -> NoReturn:
    """Run probes in the target's interpreter. Without a name, all of them."""
    from compatcheck import facts, probes
    from compatcheck.report import probes as probe_report

    asked = probes.parse_request(request)
    trials = [(name, asked) for name in probes.require(names)]
    with progress() as show:
        results = probes.run_all(trials, facts.find_target(python, os.environ), on_progress=show)
    write(probe_report.render(results, format_name), output)
    outcomes = {result.outcome for result in results}
    if "fail" in outcomes:
        sys.exit(_status.FINDINGS)
    sys.exit(
        _status.CLEAN if outcomes & {"pass", "watch"} and not outcomes & {"crash", "timeout"} else _status.PROBE_MISSING
    )
