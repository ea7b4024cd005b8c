"""`compatcheck formats`."""

from __future__ import annotations

import click

from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.verbs import _help

SECTION = "understand"
EXAMPLES = (
    "compatcheck formats",
    "compatcheck formats | grep -i yaml",
)
LOGS = (
    marked("the output of a Trainer, of torchtune, MMEngine or DeepSpeed"),
    marked("trainer_state.json, or a log of one JSON object per line"),
    marked("a TensorBoard event file"),
    marked("a traceback or an error line"),
    marked("lines of the kernel, NCCL, CANN and ROCm"),
    marked("any of these compressed with gzip"),
)


@_help.verb()
def command() -> None:
    """List the file formats that compatcheck reads.

    These are project files, and the reports and logs that `diagnose` takes. All are recognised by their content.
    """
    from compatcheck import bug_report
    from compatcheck.project.sources import formats

    training, models, packages = formats()
    parts = ((_("training"), training), (_("models"), models), (_("packages"), packages))
    for heading, titles in (*parts, (_("reports"), bug_report.titles()), (_("logs"), LOGS)):
        click.echo(heading)
        for title in titles:
            click.echo(f"  {_(title)}")
