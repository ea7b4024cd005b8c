"""Every text of a report goes through the catalogue: a made-up language that has no letter leaves none behind."""

from __future__ import annotations

import re

import pytest

from compatcheck import language
from compatcheck.report import PAGE_FORMATS, render
from compatcheck.report.document import Document, Exit
from compatcheck.report.subjects import check, cluster, data, diagnosis, pins, probes
from compatcheck.results.cluster import ClusterReport, Difference, Failure, Group, Link, Member
from compatcheck.results.data import DataProblem, DataReport
from tests.report import test_html
from tests.report.page import Page

_KEPT = re.compile(
    r"\{\w+\}|--?[\w.=-]+|compatcheck( \w+)*|training\.attention=sdpa|https?://\S+|example\.org\S*|matrix/\S+|records/\S+"
    r"|cuda\.\w+|file_problems|GB/s|rank\b|torch|Python|framework|\[\{\"path.*|\bname\b|javascript:alert|</?[a-z]+>|```\w*"
    r"|python\b|platform\.system|distributions\.|training\.|model\.|:[a-z_]+:|&\w+;|(confirmed|affected|possible|refuted|fail|problem|hung|environ|driver)"
)
"""Commands, options, facts, statuses and addresses are the same in every language."""


class _Letterless:
    """A catalogue in which every letter of a text is another sign."""

    def gettext(self, text: str) -> str:
        kept = re.compile(f"({_KEPT.pattern})|[A-Za-z]")
        return kept.sub(lambda found: found[0] if found[1] else "字", text)

    def ngettext(self, one: str, many: str, count: int) -> str:
        return self.gettext(one if count == 1 else many)


def _documents() -> dict[str, Document]:
    judged, pinned, measured, seen = test_html.hostile_values()
    group = Group("A", "X", (Member(0, "X"), Member(1, "Y")), judged.environment, judged.findings)
    other = Group("B", "Y", (Member(2, "Z"),), judged.environment, split={"Z": (2,)})
    machines = ClusterReport(
        "X", 9, (group, other), (Difference(("environ", "X"), ((None, ("A",)), ("Y", ("B",)))),), judged.findings,
        (Failure("hung", group.members, "X"),), "X", 1, "X", True, tuple(measured),
        (Link(("X", "Y"), 1e9, slow=True), Link(("X", "Z"), 2e9, slow=False)), ("X",),
    )  # fmt: skip
    problem = DataProblem("X", "problem", "X", "X", 1, (1,), entries=(("X", "X"),))
    pieces = (("X", True, True), ("Y", True, False))
    lengths = {"median": 1, "longest": 2}
    rows = DataReport("X", "X", 1, 1, (problem,), "X", {"padding_side": "X"}, lengths, (1, pieces))
    return {
        "check": check.document(judged, Exit("X"), refuted=True, verbose=True),
        "pins": pins.document(pinned, verbose=True),
        "probes": probes.document(measured),
        "diagnosis": diagnosis.document(seen, verbose=True),
        "cluster": cluster.document(machines, Exit("X")),
        "data": data.document(rows, Exit("X")),
    }


@pytest.mark.parametrize("format_name", sorted({*PAGE_FORMATS} - {"json"}))
def test_no_text_stays_english(format_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_html, "HOSTILE", "X")
    monkeypatch.setattr(language, "_catalogue", _Letterless())
    for subject, document in _documents().items():
        text = render(document, format_name)
        if format_name == "html":
            text = "\n".join(Page(re.sub(r"(?s)<style>.*?</style>|<script>.*?</script>", "", text)).words)
        left = re.findall(r".*[a-z]{3}.*", _KEPT.sub("", text))
        assert not left, subject
