"""The error lines of entries are found however people hand them on, and code that only quotes them is not."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from compatcheck import matrix, symptoms
from compatcheck.results.logs import Hit, Pattern

Form = Callable[[str], str]
NAME = re.compile(r"(?:[\w.]+(?:Error|Exception|Warning): )")
FRAME = 'Traceback (most recent call last):\n  File "/opt/run.py", line 3, in step\n{code}\nOddError: 12\n'


@pytest.fixture(scope="module")
def examples(known: matrix.Matrix) -> list[tuple[str, str]]:
    """Each entry with the lines it explains, but for the code of frames."""
    return [
        (entry["id"], pattern["example"].strip())
        for entry in matrix.all_entries(known)
        for pattern in entry.get("error_patterns", ())
        if not pattern["example"].startswith("  ")
    ]


def hits(text: str, known: matrix.Matrix) -> tuple[Hit, ...]:
    return symptoms.read_text(text, "report.md", matrix.patterns(known)).hits


def message(line: str) -> str:
    return NAME.sub("", line, count=1)


def broken(line: str, width: int) -> str:
    return "\n".join(line[at : at + width] for at in range(0, len(line), width))


@pytest.mark.parametrize(
    ("form", "least"),
    [
        pytest.param(lambda line: line, 1.0, id="itself"),
        pytest.param(message, 0.96, id="without its name"),
        pytest.param(lambda line: f"- {message(line)}", 0.96, id="list item"),
        pytest.param(lambda line: f"[Bug] {message(line)} since the upgrade", 0.96, id="title"),
        pytest.param(lambda line: f"hi, my run says {message(line)} any idea?", 0.96, id="chat"),
        pytest.param(lambda line: f"启动就报{message(line)}怎么办", 0.96, id="within Chinese"),
        pytest.param(lambda line: f"报错信息：「{message(line)}」。", 0.96, id="quoted in Chinese"),
        pytest.param(lambda line: "\n".join(textwrap.wrap(f"my run says {line}", 80)), 0.96, id="wrapped"),
        pytest.param(lambda line: broken(line, 80), 0.96, id="broken by a terminal"),
        pytest.param(lambda line: f"> > {line}", 0.99, id="quoted by a mail"),
        pytest.param(lambda line: line.replace("'", "\u2019"), 0.96, id="curly quotes"),
        pytest.param(
            lambda line: line.replace("&", "&amp;").replace("'", "&#39;").replace("<", "&lt;"), 0.99, id="HTML"
        ),
        pytest.param(lambda line: f"[rank2]: {line}", 0.99, id="of a rank"),
        pytest.param(lambda line: line.upper()[:1] + line[1:], 0.99, id="capital"),
    ],
)
def test_lines_are_found_in_any_form(
    form: Form, least: float, examples: list[tuple[str, str]], known: matrix.Matrix
) -> None:
    tried = examples[len(form("")) % 3 :: 3]
    missed = [line for entry, line in tried if entry not in {hit.entry for hit in hits(form(line), known)}]
    assert len(missed) <= (1 - least) * len(tried), missed


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(lambda line: f'    raise RuntimeError(f"{line}")', id="raise"),
        pytest.param(lambda line: f'warnings.warn("{line}")', id="warn"),
        pytest.param(lambda line: f'text = "{line}"', id="assignment"),
        pytest.param(lambda line: f'```python\nif bad:\n    complain(\n        "{line}"\n    )\n```', id="fence"),
        pytest.param(lambda line: f'raise ValueError(\n    "{line}"\n)', id="argument on its own line"),
        pytest.param(lambda line: FRAME.format(code=f'    complain("{line}")'), id="frame"),
        pytest.param(lambda line: FRAME.format(code=f'complain("{line}")'), id="frame without indent"),
        pytest.param(lambda line: f'----> 3 complain("{line}")\n      4 go()', id="notebook"),
        pytest.param(lambda line: f'@@ -1,2 +1,2 @@\n if x:\n-    "{line}"\n+    "fine"', id="diff"),
    ],
)
def test_quoted_code_is_no_error(form: Form, examples: list[tuple[str, str]], known: matrix.Matrix) -> None:
    for start in range(0, len(examples), 100):
        text = "\n\n".join(form(line) for _, line in examples[start : start + 100])
        assert len(text) < 100_000 and hits(text, known) == ()


def test_output_in_a_fence_of_code_is_found(examples: list[tuple[str, str]], known: matrix.Matrix) -> None:
    shown = "```python\n>>> run()\nTraceback (most recent call last):\n{line}\n```"
    tried = examples[::5]
    missed = [line for entry, line in tried if entry not in {hit.entry for hit in hits(shown.format(line=line), known)}]
    assert len(missed) < len(tried) / 50, missed


LONG = Pattern("CC-1", "gauge \\w+ is unset", (" is unset",), ("unset",))
OTHER = Pattern("CC-2", "gauge kappa", ("gauge kappa",))
CODE = Pattern("CC-3", "gauge\\.kappa = 3", ("gauge.kappa = 3",), (), True)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gauge kappa is unset now", [("CC-1", 1, 1, True), ("CC-2", 1, 1, True)]),
        ("gauge delta is unset now", [("CC-1", 1, 0, True)]),
        ("I believe that gauge delta is unset", [("CC-1", 1, 0, False)]),
        ("2024-05-01 10:00:00 [ERROR] (main.py:7) OddError: gauge delta is unset", [("CC-1", 1, 0, True)]),
        ("/opt/a.py:12: UserWarning: gauge delta is unset", [("CC-1", 1, 0, True)]),
        ("RuntimeError: CUDA error: gauge delta is unset", [("CC-1", 1, 0, True)]),
        ("报gauge delta is unset", [("CC-1", 1, 0, False)]),
        ("all is well\nso far as gauge\ndelta is unset", [("CC-1", 2, 0, False)]),
        ("gauge delta\n\nis unset", []),
        ("GAUGE Delta is Unset", [("CC-1", 1, 0, True)]),
        (FRAME.format(code="    gauge.kappa = 3"), [("CC-3", 3, 0, True)]),
        ("gauge.kappa = 3", [("CC-3", 1, 0, True)]),
        ("```python\ngauge.kappa = 3\n```", []),
        ("x" * 5_000 + " gauge delta is unset", [("CC-1", 1, 0, False)]),
    ],
)
def test_a_hit_tells_who_else_knows_the_line(text: str, found: list[tuple[str, int, int, bool]]) -> None:
    seen = symptoms.read_text(text, "report.md", (LONG, OTHER, CODE)).hits
    assert [(hit.entry, hit.location.line, hit.others, hit.whole) for hit in seen] == found


def test_the_end_of_a_traceback_is_whole() -> None:
    text = FRAME.format(code="    go()").replace("12", "the poor gauge delta is unset")
    assert [hit.whole for hit in symptoms.read_text(text, "a", (LONG,)).hits] == [True]


def test_marks_decide_in_large_logs(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    for line, found in (("gauge delta is unset", 0), ("RuntimeError: gauge delta is unset", 1)):
        log.write_text("step 1 of 2, all is well\n" * 9_000 + line + "\n", encoding="utf-8")
        assert len(symptoms.read(str(log), (LONG,)).hits) == found


def test_few_hits_of_an_entry_are_kept() -> None:
    assert len(symptoms.read_text("gauge delta is unset\n" * 50, "a", (LONG,)).hits) == 3


def test_a_line_among_many_alike_keeps_its_number(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    noise = [f"node{n % 8}: WARNING: bucket {n} was not full" for n in range(40_000)]
    told = {30_000: "OddError: gauge delta is unset", 39_000: "{'loss': 2.5, 'epoch': 0.5}"}
    lines = [told.get(number, line) for number, line in enumerate(noise, 1)]
    lines[39_500:39_500] = FRAME.format(code="    go()").splitlines()
    log.write_text("\n".join(lines), encoding="utf-8")
    read = symptoms.read(str(log), (LONG,), chunk=1 << 16)
    assert [hit.location.line for hit in read.hits] == [30_000]
    assert [(run.readings, run.first_line) for run in read.runs] == [(1, 1)]
    assert [(crash.text, crash.location.line, len(crash.frames)) for crash in read.crashes] == [
        ("OddError: gauge delta is unset", 30_000, 0),
        ("OddError: 12", 39_504, 1),
    ]
