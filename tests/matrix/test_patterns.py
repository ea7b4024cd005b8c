"""Error patterns: what may be one, that they are proved, and that a check does not read them."""

from __future__ import annotations

import re
import shutil
import time
from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from compatcheck import matrix
from compatcheck.errors import DataError
from compatcheck.files.limits import MATCHED_CHARACTERS
from compatcheck.matrix._regex import check_regex, literals, without_name
from compatcheck.matrix.compile import write_compiled
from compatcheck.matrix.lint import lint
from tests.matrix.test_entries import parsed

SOURCES = Path(__file__).parents[2] / "matrix"
PATTERN = "[[error_patterns]]\nregex = {regex}\nexample = {example}\nnot_examples = [{other}]\n\n"


@pytest.mark.parametrize(
    ("regex", "fault"),
    [
        ("(a+)+b", "only one character or class"),
        ("(?:x{1,5}y)*", "only one character or class"),
        ("a(b|c+)*d", "only one character or class"),
        ("x(?:a|aa){0,200}y", "only one character or class"),
        ("x(?:aa?)+y", "only one character or class"),
        (".*Error", "starts with an unbounded repeat"),
        (r"\w+Error: boom", "starts with an unbounded repeat"),
        ("a.*b.*c", "match too much"),
        (r"a(.*)b\1", "groupref"),
        ("(unclosed", "is not a regular expression"),
    ],
)
def test_a_pattern_that_could_run_away_is_refused(regex: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        check_regex(regex)


@pytest.mark.parametrize(
    "regex",
    ["cannot import name 'x'", r"Error: \w{1,80} in .{0,200}", r"in \w+Error", r"lib/[\w.]{0,60}\.so", "a?b?c?Error"],
)
def test_an_ordinary_pattern_is_let_through(regex: str) -> None:
    assert check_regex(regex) == regex


@pytest.mark.parametrize(
    ("regex", "texts"),
    [
        ("cannot import name 'X'", ("cannot import name 'x'",)),
        (r"Error: \w+ in the module \d+", (" in the module ",)),
        ("one of these|one of those", ("one of these", "one of those")),
        ("these|others", ("these", "others")),
        (r"a\.b(?:c|d)efgh", ("a.bcefgh", "a.bdefgh")),
        ("(?:optional)?Error", ("error", "optionalerror")),
        (
            "has no attribute '?x'?$",
            ("has no attribute x", "has no attribute x'", "has no attribute 'x", "has no attribute 'x'"),
        ),
        (r"bad [kv]alue\b", ("bad kalue", "bad value")),
        (r"(?:ab|c\d)efgh", ("efgh",)),
        (r"\w{1,9}", ()),
    ],
)
def test_one_of_the_literals_stands_in_every_match(regex: str, texts: tuple[str, ...]) -> None:
    assert literals(regex) == texts


def test_a_pattern_is_found_by_its_literals_and_key_words(known: matrix.Matrix) -> None:
    """Whatever the letter case of the line is."""
    examples = [
        (pattern, example["example"].lower())
        for entry in matrix.all_entries(known)
        for example in entry.get("error_patterns", ())
        for pattern in matrix.patterns(known)
        if pattern.entry == entry["id"] and re.search(pattern.regex, example["example"])
    ]
    assert {pattern for pattern, _ in examples} == set(matrix.patterns(known))
    for pattern, line in examples:
        assert not pattern.literals or any(literal in line for literal in pattern.literals), pattern
        words = set(re.findall(r"[a-z0-9_]+", line))
        assert not pattern.keys or not words.isdisjoint(pattern.keys), pattern


def test_most_patterns_have_key_words_of_few(known: matrix.Matrix) -> None:
    patterns = matrix.patterns(known)
    assert sum(not pattern.keys for pattern in patterns) < len(patterns) / 40
    counts = Counter(key for pattern in patterns for key in set(pattern.keys))
    assert (
        sum(max(counts[key] for key in pattern.keys) > 10 for pattern in patterns if pattern.keys) < len(patterns) / 8
    )


@pytest.mark.parametrize(
    ("regex", "others", "without"),
    [
        ("TypeError: fit\\(\\) takes no keyword arguments", [], "(?<![\\w.])fit\\(\\) takes no keyword arguments"),
        ("torch\\.X_Error: 'A' object has no attribute", [], "(?<!\\w)'A' object has no attribute"),
        ("KeyError: 'a_long_key.of_many.parts'", [], None),
        ("ValueError: no way", [], None),
        ("ValueError: there is no way|OSError: nor another one", [], None),
        ("ValueError: there is no (?:way|path)", [], "(?<![\\w.])there is no (?:way|path)"),
        ("ValueError: there is no way", ["RuntimeError: there is no way"], None),
        ("A: ValueError: there is no way", [], None),
        ("OuterError: ValueError: there is no way", [], None),
        ("there is no way", [], None),
    ],
)
def test_a_message_that_tells_enough_needs_no_name(regex: str, others: list[str], without: str | None) -> None:
    assert without_name(regex, others) == (without or regex)


def test_no_pattern_of_the_matrix_takes_long_on_a_hostile_line(known: matrix.Matrix) -> None:
    slow = []
    for pattern in matrix.patterns(known):
        compiled = re.compile(pattern.regex, re.IGNORECASE)
        for line in hostile_lines(pattern.regex):
            start = time.process_time()
            compiled.search(line)
            if time.process_time() - start > 0.1:
                slow.append((pattern.entry, line[:80]))
    assert slow == []


def hostile_lines(regex: str) -> set[str]:
    """Lines that begin to match again and again and never end to: made of what stands between the repeats."""
    repeat = r"(?:\\.|\[[^\]]*\]|[^\\\])])(?:[*+]|\{\d+,\d*\})\??"
    parts = [re.sub(r"\\(.)|[()?:^$]", r"\1", part) for part in re.split(repeat, regex)]
    seeds = {"".join(parts[:number]) for number in range(1, len(parts) + 1)} | set(parts)
    seeds |= {f"{seed}{letter}" for seed in seeds for letter in "a0 ."}
    seeds |= {regex[:12], re.sub(r"\W", "a", regex), "a", " ", "'", "cannot import name '"}
    made = {seed * MATCHED_CHARACTERS for seed in seeds}
    made |= {parts[0] + part * MATCHED_CHARACTERS for part in (*parts[1:], *"a0 .")}
    return {line[:MATCHED_CHARACTERS] for line in made if line}


@pytest.mark.parametrize(
    ("regex", "example", "other", "fault"),
    [
        ("'no such thing'", "'Error: another thing'", "", "does not match its example"),
        ("'no such thing'", "'no such thing here'", "", "no error mark"),
        ("'no such thing'", "'  no such thing here'", "", None),
        ("'Error: no such'", '"Error: no such\\nthing"', "", "read line by line"),
        ("'Error: no such'", "'Error: no such'", "'TypeError: no such'", "which it must not"),
        ("'Error: no such'", "'Error: no such'", "'Error: some such'", None),
    ],
)
def test_a_pattern_is_proved_by_its_own_lines(
    regex: str, example: str, other: str, fault: str | None, tmp_path: Path, known: matrix.Matrix
) -> None:
    path = tmp_path / "transformers" / "CC-2024-0005.toml"
    path.parent.mkdir()
    text = (SOURCES / "transformers" / path.name).read_text(encoding="utf-8")
    block = PATTERN.format(regex=regex, example=example, other=other)
    path.write_text(text.replace("[[evidence]]", block + "[[evidence]]", 1), encoding="utf-8")
    entry = parsed(path)
    faults = [
        f.text for f in lint({path: entry}, known.table, ["labels_masked"], date(2026, 11, 22)) if "pattern" in f.text
    ]
    assert not faults if fault is None else any(fault in text for text in faults)


QUOTED = "did not match any variant of untagged enum ModelWrapper"


@pytest.mark.parametrize(
    ("summary", "block", "fault"),
    [
        (f'Loading ends in "data {QUOTED}".', "", True),
        (f"Loading ends in Exception: data {QUOTED}.", "", True),
        (f"Loading says that data {QUOTED}.", "", False),
        (
            f'Loading ends in "data {QUOTED}".',
            PATTERN.format(regex=f"'{QUOTED}'", example=f"'Error: {QUOTED}'", other=""),
            False,
        ),
        (
            f'Loading ends in "data ... {QUOTED}".',
            PATTERN.format(regex="'Error: other'", example=f"'Error: other data, {QUOTED}'", other=""),
            False,
        ),
        ('Loading ends in "it could not be loaded for some reason".', "", False),
    ],
)
def test_a_quoted_message_leads_to_its_entry(
    summary: str, block: str, fault: bool, tmp_path: Path, known: matrix.Matrix
) -> None:
    other = next(SOURCES.glob("*/CC-2026-0065.toml"))
    path = tmp_path / "transformers" / "CC-2024-0005.toml"
    path.parent.mkdir()
    text = (
        (SOURCES / "transformers" / path.name)
        .read_text(encoding="utf-8")
        .replace("[[evidence]]", block + "[[evidence]]", 1)
    )
    path.write_text(
        re.sub(r'(?s)^summary = """.*?"""', lambda _: f"summary = {summary!r}", text, flags=re.M), encoding="utf-8"
    )
    entries = {each: parsed(each) for each in (path, other)}
    faults = [
        each.text
        for each in lint(entries, known.table, ["labels_masked"], date(2026, 11, 22), ["CC-2024-0005"])
        if "the entry quotes" in each.text
    ]
    assert bool(faults) is fault and all("CC-2026-0065" in text for text in faults)


def test_the_compiled_form_gives_the_same_patterns_in_a_file_of_their_own(known: matrix.Matrix, tmp_path: Path) -> None:
    from compatcheck.matrix import loading

    write_compiled(SOURCES, tmp_path)
    compiled = loading.load_compiled(str(tmp_path))
    assert compiled.patterns() == known.patterns() and len(known.patterns()) > 10
    assert not any(
        pattern.regex in (tmp_path / "index.json").read_text(encoding="utf-8") for pattern in known.patterns()
    )
    (tmp_path / "patterns.jsonl").unlink()
    with pytest.raises(DataError, match="missing"):
        loading.load_compiled(str(tmp_path))
    shutil.rmtree(tmp_path)
