"""The matrix itself: every entry proved by the linter, and the linter proved by bad entries."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from compatcheck import matrix, probes
from compatcheck.errors import DataError, InputError
from compatcheck.matrix.compile import compile_entries, read_entry, read_sources
from compatcheck.matrix.entry import Entry, WithdrawnEntry
from compatcheck.matrix.lint import Fault, lint
from tests.conftest import SOURCES

ENTRIES, WITHDRAWN = read_sources(SOURCES)
TODAY = date(2026, 11, 21)
ENTRY = """
id = "CC-2026-9999"
title = "Something breaks"
impact = "crash"
confidence = "reported"
summary = "It breaks."
mechanism = "Because."
published = 2026-11-01
reviewed = 2026-11-21

[[affected]]
distributions.torch = ">=2.5.0,<2.5.1"
training.packing = true

[[remedies]]
pins = { torch = ">=2.5.1" }
why = "fixed there"

[[evidence]]
url = "https://example.org/issue/1"
kind = "report"
supports = ["affected"]

[[examples]]
environment = { distributions.torch = "2.5.0", training.packing = true }
unaffected = [
    { distributions.torch = "2.5.1", note = "fixed" },
    { distributions.torch = "2.4.1" },
    { training.packing = false },
]
undetermined = [{ without = ["training.packing"] }]
"""


@pytest.fixture(scope="module")
def faults(known: matrix.Matrix) -> list[Fault]:
    return lint(ENTRIES, known.table, probes.names(), TODAY, withdrawn=WITHDRAWN)


@pytest.mark.parametrize("path", (*ENTRIES, *WITHDRAWN), ids=lambda path: path.stem)
def test_entry_proves_itself(path: Path, faults: list[Fault]) -> None:
    assert [fault.text for fault in faults if fault.id == path.stem] == []


def lint_text(tmp_path: Path, text: str, known: matrix.Matrix) -> list[str]:
    path = tmp_path / "torch" / "CC-2026-9999.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return [fault.text for fault in lint({path: parsed(path)}, known.table, ["labels_masked"], TODAY)]


def parsed(path: Path) -> Entry:
    entry = read_entry(path)
    assert isinstance(entry, Entry)
    return entry


def test_a_good_entry_has_no_fault(tmp_path: Path, known: matrix.Matrix) -> None:
    assert lint_text(tmp_path, ENTRY, known) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("training.packing = true\n\n[[rem", "\n[[rem", "example 4 is affected, not unaffected"),
        (">=2.5.0,<2.5.1", "<2.5.1", "example 3 is affected, not unaffected"),
        (
            "[[remedies]]",
            '[[affected]]\ndistributions.torch = "<2.5.1"\ntraining.packing = true\n\n[[remedies]]',
            "table 1: no example changes without distributions.torch >=2.5.0",
        ),
        (">=2.5.0,<2.5.1", ">=2.5.1,<2.5.0", "no example is affected by table 1"),
        ('">=2.5.1"', '">=2.5.0"', "remedy 1: does not clear"),
        ('">=2.5.1"', '"<2.5.0"', "names no version that it allows itself"),
        ('supports = ["affected"]', 'supports = ["remedies.2"]', "'remedies.2', which the entry does not have"),
        ('supports = ["affected"]', 'supports = ["summary"]', "no evidence supports the affected range"),
        ('"reported"', '"corroborated"', "needs evidence of two kinds"),
        ('"reported"', '"reproduced"', "needs a reproduction"),
        ('"reported"', '"upstream-fixed"', "needs evidence of an upstream fix"),
        ("[[evidence]]", '[probe]\nname = "nonsense"\n[[evidence]]', "there is no probe 'nonsense'"),
        ('id = "CC-2026-9999"', 'id = "CC-2026-9998"', "the file is named"),
        ("distributions.torch", "distributions.peft", "the file is in torch/"),
        ("Something breaks", "x" * 81, "the title has 81 characters; shorten it to at most 80"),
        ("undetermined = [", "affected = [", "example 2 is undetermined, not affected"),
        ("[[examples]]", '[[examples]]\nexpect = "unaffected"', "example 1 is affected, not unaffected"),
        (
            "[[remedies]]",
            'training.mixed_precision = "bfloat16"\n\n[[remedies]]',
            "no reader states 'bfloat16' for training.mixed_precision",
        ),
        (
            "[[remedies]]",
            'training.attention = "flash"\n\n[[remedies]]',
            "no reader states 'flash' for training.attention",
        ),
        ("published", 'symptoms = ["nan-loss"]\npublished', "the symptom 'nan-loss' is called 'loss-nan'"),
        ("published", 'symptoms = ["loss-nam"]\npublished', "there is no symptom 'loss-nam' in tables/symptoms.toml"),
    ],
)
def test_the_linter_sees(tmp_path: Path, known: matrix.Matrix, old: str, new: str, fault: str) -> None:
    assert old in ENTRY
    assert any(fault in text for text in lint_text(tmp_path, ENTRY.replace(old, new), known))


def test_the_linter_sees_a_spelling_that_no_reader_states(known: matrix.Matrix) -> None:
    paths = {path: entry for path, entry in ENTRIES.items() if entry.id in ("CC-2025-2401", "CC-2026-1140")}
    (path, entry) = next((path, entry) for path, entry in paths.items() if entry.id == "CC-2025-2401")
    paths[path] = entry.model_copy(
        update={"affected": [{**table, "training.objective": "online-dpo"} for table in entry.affected]}
    )
    faults = lint(paths, known.table, probes.names(), TODAY)
    assert [fault.id for fault in faults if "'online-dpo' is spelled 'online_dpo'" in fault.text] == ["CC-2025-2401"]


def test_a_record_is_evidence_only_where_it_saw_the_fault(tmp_path: Path, known: matrix.Matrix) -> None:
    cited = ENTRY.replace('url = "https://example.org/issue/1"', 'url = "records/a.json"')
    assert any("there is no record records/a.json" in text for text in lint_text(tmp_path, cited, known))
    record = tmp_path / "records" / "a.json"
    record.parent.mkdir()
    for content, fault in (
        ('{"verdict": "not reproduced"}', "says 'not reproduced', which is not evidence"),
        ("[]", "says 'no record'"),
        ("{", "cannot be read"),
    ):
        record.write_text(content, encoding="utf-8")
        assert any(fault in text for text in lint_text(tmp_path, cited, known)), content
    record.write_text('{"verdict": "reproduced"}', encoding="utf-8")
    assert not any("record" in text for text in lint_text(tmp_path, cited, known))


def test_a_range_that_stays_open_asks_for_a_new_look(tmp_path: Path, known: matrix.Matrix) -> None:
    text = ENTRY.replace(">=2.5.0,<2.5.1", ">=2.5.0").replace("reviewed = 2026-11-21", "reviewed = 2026-11-01")
    path = tmp_path / "CC-2026-9999.toml"
    path.write_text(text, encoding="utf-8")
    late = date(2027, 11, 21)
    assert any(fault.stale for fault in lint({path: parsed(path)}, known.table, [], late))


@pytest.mark.parametrize(
    ("old", "new", "seen"),
    [
        ("title", "tittle", "tittle: Extra inputs are not permitted"),
        ("training.packing", "training.paking", "unknown condition key 'training.paking'"),
        ('">=2.5.0,<2.5.1"', '"2.5.0"', "a version is compared with a range"),
        ('">=2.5.0,<2.5.1"', '"~=2.5"', "a version is compared with a range"),
        ("packing = true\n\n[[rem", 'packing = "yes"\n\n[[rem', "a flag is compared with true or false"),
        ("distributions.torch", 'distributions."Torch"', "write the normalised name 'torch'"),
        ('">=2.5.1"', '"2.5.1 or later"', "is not a version specifier"),
        ("reviewed = 2026-11-21", "reviewed = 2026-10-01", "reviewed lies before published"),
        ("2026-11-21", "2026-11-31", "Invalid date or datetime"),
    ],
)
def test_a_malformed_entry_is_refused_in_one_line(tmp_path: Path, old: str, new: str, seen: str) -> None:
    path = tmp_path / "CC-2026-9999.toml"
    path.write_text(ENTRY.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError) as refusal:
        read_entry(path)
    assert seen in str(refusal.value)
    assert str(path) in str(refusal.value)


def test_an_id_is_never_used_twice() -> None:
    entry = next(iter(ENTRIES.values()))
    with pytest.raises(DataError, match="used twice"):
        compile_entries([entry, entry])


def test_a_withdrawn_entry_stays_readable_and_matches_nothing() -> None:
    withdrawn = WithdrawnEntry.model_validate(
        {"id": "CC-2026-9999", "title": "t", "withdrawn": {"on": TODAY, "reason": "was wrong"}}
    )
    compiled = compile_entries([], withdrawn=[withdrawn])
    assert (compiled.summary["guards"], compiled.summary["unguarded"], compiled.conditions) == ({}, [], b"")
    assert b"was wrong" in compiled.entries


def test_withdrawn_entry_keeps_its_reason_alone(tmp_path: Path) -> None:
    path = tmp_path / "CC-2026-9999.toml"
    path.write_text(ENTRY + '\n[withdrawn]\non = 2026-11-21\nreason = "was wrong"\n', encoding="utf-8")
    with pytest.raises(InputError, match="examples: Extra inputs are not permitted"):
        read_entry(path)


def test_successor_of_a_withdrawn_entry_is_in_force(known: matrix.Matrix) -> None:
    path, gone = next(item for item in WITHDRAWN.items() if item[1].withdrawn.successors)
    faults = lint({}, known.table, (), TODAY, withdrawn={path: gone})
    assert [each.text for each in faults][:1] == [
        f"the successor {gone.withdrawn.successors[0]} is not an active entry"
    ]


@pytest.mark.parametrize(
    ("condition", "url", "kind", "fault"),
    [
        (
            'training.framework = "trl"',
            "https://github.com/Modelscope/Swift/issues/1",
            "report",
            "reports the fault with ms-swift",
        ),
        ('training.runs_on = "trl"', "https://github.com/modelscope/ms-swift/issues/1", "report", None),
        ('training.framework = "ms-swift"', "https://github.com/huggingface/trl/issues/1", "report", None),
        (
            'training.framework = "verl"',
            "https://github.com/huggingface/trl/pull/1",
            "upstream-fix",
            "reports the fault with trl",
        ),
        ('training.framework = "verl"', "https://github.com/huggingface/trl/blob/v1/a.py", "source", None),
        ('training.framework = "verl"', "https://github.com/huggingface/accelerate/issues/1", "report", None),
        ('training.framework = "vrel"', "https://example.org/1", "report", "training.framework is 'vrel'"),
        ('training.runs_on = "pytorch-lightning"', "https://example.org/1", "report", "training.runs_on is 'pytorch-"),
        ("training.packing = true", "https://github.com/huggingface/trl/issues/1", "report", None),
    ],
)
def test_a_framework_that_met_the_fault_is_reached(
    tmp_path: Path, known: matrix.Matrix, condition: str, url: str, kind: str, fault: str | None
) -> None:
    text = ENTRY.replace("training.packing = true\n", f"{condition}\n", 1).replace("https://example.org/issue/1", url)
    texts = lint_text(tmp_path, text.replace('kind = "report"', f'kind = "{kind}"'), known)
    assert any(fault in text for text in texts) if fault else not any("met it" in t or " is '" in t for t in texts)


def test_cited_framework_is_reached_or_shown_unaffected(tmp_path: Path, known: matrix.Matrix) -> None:
    cited = ENTRY.replace("training.packing = true\n", 'training.framework = "trl"\n', 1)
    for part, supports in (("mechanism", '["mechanism"]'), ("summary", '["mechanism", "summary"]')):
        text = f"""{cited}
[[evidence]]
url = "https://github.com/modelscope/ms-swift/issues/1"
kind = "maintainer"
supports = {supports}
"""
        assert any("reports the fault with ms-swift" in each for each in lint_text(tmp_path, text, known)), part
        spared = f"""{text}
[[examples]]
expect = "unaffected"
environment = {{ distributions = {{ torch = "2.5.0" }}, training = {{ framework = "ms-swift" }} }}
"""
        still = any("reports the fault with" in each for each in lint_text(tmp_path, spared, known))
        assert still == (part == "summary"), part


@pytest.mark.parametrize(
    ("pins", "fault"),
    [
        ("<=2.5.1", "remedy 1 allows torch 2.5.0, which is affected according to the entry"),
        (
            ">=2.6.0",
            "remedy 1 skips torch 2.5.1, the first release without the fault: name this release, or say why not",
        ),
        (">=2.5.1", None),
        (">=2.5.2,<2.6", "remedy 1 names torch 2.5.2, which was never released or is withdrawn (yanked)"),
    ],
)
def test_pin_stays_off_the_fault_and_near_the_fix(
    tmp_path: Path, known: matrix.Matrix, pins: str, fault: str | None
) -> None:
    text = ENTRY.replace('pins = { torch = ">=2.5.1" }', f'pins = {{ torch = "{pins}" }}')
    assert lint_text(tmp_path, text, known) == ([fault] if fault else [])


def test_reason_names_the_skipped_fix(tmp_path: Path, known: matrix.Matrix) -> None:
    far = ENTRY.replace('">=2.5.1" }\nwhy = "fixed there"', '">=2.6.0" }\nwhy = "fixed there; 2.5.1 has the fix too"')
    assert lint_text(tmp_path, far, known) == []


@pytest.mark.parametrize(
    ("regex", "others", "told"),
    [
        ("OSError: no space left for \\\\w+", "", 0),
        ("OSError: .*space left", "", 1),
        ("OSError: .*space left", 'not_examples = ["RuntimeError: no space left for weights"]', 0),
    ],
)
def test_pattern_matches_a_message_without_the_name(
    tmp_path: Path, known: matrix.Matrix, regex: str, others: str, told: int
) -> None:
    pattern = f'[[error_patterns]]\nregex = "{regex}"\nexample = "OSError: no space left for weights"\n{others}\n'
    seen = lint_text(tmp_path, ENTRY.replace("[[evidence]]", f"{pattern}\n[[evidence]]", 1), known)
    assert [text.startswith("error pattern 1 needs the exception's name") for text in seen] == [True] * told


def test_entry_inside_another_says_what_it_tells_besides(tmp_path: Path, known: matrix.Matrix) -> None:
    def faults(reason: str) -> list[str]:
        paths = {}
        for id, text in (("CC-2026-9998", ENTRY.replace(">=2.5.0,<2.5.1", ">=2.4.1,<2.5.1")), ("CC-2026-9999", ENTRY)):
            path = tmp_path / "torch" / f"{id}.toml"
            path.parent.mkdir(exist_ok=True)
            extra = reason if id == "CC-2026-9999" else ""
            path.write_text(extra + text.replace("CC-2026-9999", id), encoding="utf-8")
            paths[path] = parsed(path)
        found = lint(paths, known.table, ["labels_masked"], TODAY, only=["CC-2026-9999"])
        return [fault.text for fault in found]

    assert faults("")[0].startswith("the entry applies only where CC-2026-9998 (Something breaks) applies: merge them")
    assert faults('overlaps = { CC-2026-9998 = "another error" }\n') == []
    stale = 'overlaps = { CC-2026-9998 = "another error", CC-2026-9997 = "gone" }\n'
    assert faults(stale) == ["the conditions do not lie within those of CC-2026-9997: remove it from `overlaps`"]


def test_variable_that_must_be_absent_needs_a_row(tmp_path: Path, known: matrix.Matrix) -> None:
    def faults(name: str) -> list[str]:
        return lint_text(
            tmp_path, ENTRY.replace("[[affected]]\n", f'[[affected]]\nenviron.{name} = "absent"\n', 1), known
        )

    assert any("has no row for NO_SUCH_VARIABLE: list its values" in each for each in faults("NO_SUCH_VARIABLE"))
    assert not any("has no row" in each for each in faults("VLLM_USE_V1"))


def test_entry_says_why_no_probe_shows_it(tmp_path: Path, known: matrix.Matrix) -> None:
    unknown = ENTRY.replace("reviewed =", 'unprobed = "laziness"\nreviewed =')
    assert "tables/unprobed.toml has no reason 'laziness'" in lint_text(tmp_path, unknown, known)
    both = unknown.replace("laziness", "race") + '[probe]\nname = "matmul"\n'
    assert "the entry names a probe, but `unprobed` says that no probe can show the fault" in lint_text(
        tmp_path, both, known
    )
    quiet = ENTRY.replace('impact = "crash"', 'impact = "hang"')
    assert any("the impact is hang: name a probe" in each for each in lint_text(tmp_path, quiet, known))


@pytest.mark.parametrize(
    ("part", "rows", "fault"),
    [
        ("off_unless_asked", {"training.paking": []}, "there is no fact training.paking"),
        ("off_unless_asked", {"training.packing": ["training.frame"]}, "there is no fact training.frame"),
        ("chosen_by_few", {"training.deepspeed.zero_stage": ["three"]}, "cannot be 'three'"),
        ("switches", {"vllm": "training.vllm"}, "there is no fact training.vllm"),
        ("own_settings", {"peft": "training.adapter"}, "there is no fact below training.adapter"),
    ],
)
def test_a_table_names_facts_that_exist(known: matrix.Matrix, part: str, rows: dict[str, Any], fault: str) -> None:
    changed = {**known.table("relevance"), part: rows}
    faults = lint({}, lambda name: changed if name == "relevance" else known.table(name), (), TODAY)
    assert [each for each in faults if fault in each.text] == faults != []


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ({"a": {"replaces": ["x"]}, "b": {"replaces": ["x"]}}, "'x' is replaced twice"),
        ({"a": {"replaces": ["b"]}, "b": {}}, "'b' is a symptom and cannot be replaced"),
        ({"a": {"implies": ["b"]}}, "there is no symptom 'b' to imply"),
        ({"a": {"observed": {"los": 0.0}}}, "there is no fact training.observed.los"),
    ],
)
def test_a_symptom_has_one_name(known: matrix.Matrix, rows: dict[str, Any], fault: str) -> None:
    faults = lint({}, lambda name: {"symptoms": rows} if name == "symptoms" else known.table(name), (), TODAY)
    assert [each.text for each in faults] == [fault]


def test_the_tables_have_no_fault(known: matrix.Matrix) -> None:
    assert lint({}, known.table, (), TODAY) == []
