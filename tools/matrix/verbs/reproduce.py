"""`compatcheck matrix reproduce`."""

from __future__ import annotations

import os
import sys

import click

from compatcheck.results import exit_status
from compatcheck.verbs import _help, _options
from compatcheck.verbs._output import make_folder, screen_of, write

EXAMPLES = (
    "compatcheck matrix reproduce CC-2024-0001",
    "compatcheck matrix reproduce CC-2024-0001 --records records/",
)


@_help.verb()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@_help.option("--records", metavar="FOLDER", help="Write the results to this folder, one JSON file per entry.")
@_help.option("--offline", is_flag=True, help="Use only the packages in uv's cache.")
@_options.page_format
@_options.output
def command(ids: tuple[str, ...], records: str | None, offline: bool, format_name: str, output: str | None) -> None:
    """Reproduce entries: build their bad and good environments and run their probes.

    The probe must fail in the bad environment and pass in the good one. Default: every entry with a [reproduce] table.
    Environments are built one at a time and removed afterwards.

    Exits with 1 if an entry is not reproduced, and with 4 if an environment cannot be built or a probe cannot run; such
    a run leaves no record.
    """
    from compatcheck import matrix
    from compatcheck.report import render
    from compatcheck.report.formats import json
    from compatcheck.terminal.progress import building_progress
    from tools.matrix import reproduce as reproducing
    from tools.matrix.pages.reproduction import document

    known = matrix.load()
    entries = [matrix.find_entry(known, entry_id) for entry_id in ids] if ids else matrix.all_entries(known)
    chosen = reproducing.require(entries) if ids else [entry for entry in entries if reproducing.reproducible(entry)]
    if records is not None:
        make_folder(records)
    done = []
    with building_progress() as show:
        for entry in chosen:
            done.append(reproducing.record(reproducing.reproduce(entry, offline=offline, on_line=show)))
            if records is not None and done[-1]["verdict"] != "not tried":
                write(json.write(done[-1]), os.path.join(records, reproducing.record_name(done[-1])))
    write(render(document(done), format_name, screen_of(output)), output)
    sys.exit(_reproduced_status({record["verdict"] for record in done}))


def _reproduced_status(verdicts: set[str]) -> int:
    if "not reproduced" in verdicts:
        return exit_status.FINDINGS
    return exit_status.REQUIRED_MISSING if "not tried" in verdicts else exit_status.CLEAN
