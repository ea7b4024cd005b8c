"""`compatcheck matrix site`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from compatcheck.language import gettext as _
from compatcheck.verbs import _help

if TYPE_CHECKING:
    from compatcheck.report.pages.site import Source

EXAMPLES = (
    "compatcheck matrix site public/",
    "compatcheck matrix site public/ --matrix matrix/",
)


@_help.verb()
@click.argument("folder", default="compatcheck-site")
@_help.option("--matrix", "matrix_folder", metavar="FOLDER", help="Use this folder of matrix sources.")
def command(folder: str, matrix_folder: str | None) -> None:
    """Write the matrix as a website into FOLDER.

    It contains entries to search and filter, and a map of versions. It opens from a file, needs no server and loads
    nothing from elsewhere. A folder with anything other than an earlier site is not touched.
    """
    from compatcheck.report.pages import site

    site.require_ours(folder)
    files = site.render(_source(matrix_folder))
    site.write(files, folder)
    size = sum(len(text.encode()) for text in files.values())
    text = _("{number} files, {size} MB in {folder}; open {folder}/index.html")
    click.echo(text.format(number=len(files), size=f"{size / 1e6:.1f}", folder=folder), err=True)


def _history(days: Mapping[str, object]) -> list[tuple[str, str]]:
    from packaging.version import Version

    return [(version, str(days[version])) for version in sorted(days, key=Version)]


def _source(folder: str | None) -> Source:
    from compatcheck import matrix, probes
    from compatcheck.environment import Environment
    from compatcheck.report.pages.site import Source

    known = matrix.load(folder)
    patterns = known.patterns()
    ids = [entry["id"] for entry in matrix.all_entries(known)]

    def suspected(facts: Mapping[str, object]) -> set[str]:
        judged = matrix.infer(known, Environment(facts))
        return {entry for entry, is_ruled_out in matrix.ruled_out(known, judged, ids).items() if not is_ruled_out}

    return Source(
        revision=known.revision,
        entries=matrix.all_entries(known),
        withdrawn=matrix.withdrawn_entries(known),
        histories={name: _history(days) for name, days in known.table("release-history")["releases"].items()},
        runtimes=known.table("torch-cuda-builds")["default"],
        records=matrix.records(folder),
        probes={name: probes.describe(name)[0] for name in probes.names()},
        survey=lambda shared, added: matrix.survey(known, shared, added),
        suspected=suspected,
        within=matrix.within,
        patterns=lambda entry: [
            (pattern.regex, pattern.literals[0] if len(pattern.literals) == 1 else "")
            for pattern in patterns
            if pattern.entry == entry
        ],
    )
