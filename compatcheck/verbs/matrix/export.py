"""`compatcheck matrix export`."""

from __future__ import annotations

import os

import click

from compatcheck.verbs._output import make_folder, write

EXAMPLES = (
    "compatcheck matrix export --format csv -o matrix.csv",
    "compatcheck matrix export --format osv -o osv/",
)


@click.command()
@click.option("--format", "format_name", type=click.Choice(["osv", "csv"]), required=True)
@click.option("-o", "--output", metavar="PATH", help="Write a folder of OSV files, or a CSV file, here.")
def command(format_name: str, output: str | None) -> None:
    """Write the matrix for other tools: as OSV records, or as a table.

    OSV speaks of packages and versions alone. An entry that bounds no version is left out, and a record says what else
    must hold for its ranges to count.
    """
    from compatcheck import matrix
    from compatcheck.report.formats.entries import csv, osv

    entries = matrix.all_entries(matrix.load())
    if format_name == "csv":
        write(csv.render(entries), output)
        return
    records = osv.records(entries, matrix.interval)
    if output is None:
        write(osv.render(records), None)
    else:
        make_folder(output)
        for record in records:
            write(osv.render(record), os.path.join(output, f"{record['id']}.json"))
    left = len(entries) - len(records)
    click.echo(f"{len(records)} records; {left} entries bound no version and are left out", err=True)
