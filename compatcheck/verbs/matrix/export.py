"""`compatcheck matrix export`."""

from __future__ import annotations

import os

import click

from compatcheck.language import gettext as _
from compatcheck.verbs import _help
from compatcheck.verbs._output import make_folder, write

EXAMPLES = (
    "compatcheck matrix export --format csv -o matrix.csv",
    "compatcheck matrix export --format osv -o osv/",
)


@_help.verb()
@_help.option("--format", "format_name", type=click.Choice(["osv", "csv"]), required=True, help="Output format.")
@_help.option("-o", "--output", metavar="PATH", help="Write a folder of OSV files, or a CSV file, to this path.")
def command(format_name: str, output: str | None) -> None:
    """Write the matrix as OSV records or as a table.

    OSV describes only packages and versions. Entries without a version range are omitted, and each record states the
    further conditions of its ranges.
    """
    from compatcheck import matrix
    from compatcheck.report.formats.entries import csv, osv

    known = matrix.load()
    entries, withdrawn = matrix.all_entries(known), matrix.withdrawn_entries(known)
    if format_name == "csv":
        write(csv.render([*entries, *withdrawn]), output)
        return
    records = [*osv.records(entries, matrix.interval), *map(osv.withdrawn_record, withdrawn)]
    if output is None:
        write(osv.render(records), None)
    else:
        make_folder(output)
        for record in records:
            write(osv.render(record), os.path.join(output, f"{record['id']}.json"))
    left = len(entries) + len(withdrawn) - len(records)
    text = _("{records} records; {omitted} entries without a version range are omitted")
    click.echo(text.format(records=len(records), omitted=left), err=True)
