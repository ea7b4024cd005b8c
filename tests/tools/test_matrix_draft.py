"""Drafts of entries from issues as GitHub writes them, and from such as an attacker would."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from compatcheck import matrix, probes
from compatcheck.bug_report import read_report
from compatcheck.errors import InputError
from compatcheck.files.toml_text import parse_toml
from compatcheck.matrix.compile import read_toml
from tools.matrix import draft
from tools.matrix.draft._evidence import drafted
from tools.matrix.draft._issue import LABELS, Issue
from tools.matrix.draft._toml import text
from tools.matrix.draft._versions import range_of, versions_of

from ..conftest import ROOT, run_command

ISSUE = (Path(__file__).parent / "issues" / "trainer-crash.md").read_text(encoding="utf-8")
FORM = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / "matrix-entry.yml").read_text(encoding="utf-8"))
TODAY = date(2026, 11, 21)
Drafter = Callable[..., dict[str, Any]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A matrix of tables alone."""
    shutil.copytree(ROOT / "matrix" / "tables", tmp_path / "matrix" / "tables")
    return tmp_path / "matrix"


@pytest.fixture
def entry_of(folder: Path, tmp_path: Path) -> Drafter:
    def made(body: str, **options: Any) -> dict[str, Any]:
        issue = tmp_path / "issue.md"
        issue.write_text(body, encoding="utf-8")
        return read_toml(Path(draft.write(draft.from_issue(str(issue), TODAY, **options), str(folder), TODAY).path))

    return made


def without(field: str, body: str = ISSUE) -> str:
    """The body as it is where the reporter left a field empty."""
    head, _, rest = body.partition(f"### {LABELS[field]} /")
    answer, heading, tail = rest.partition("\n### ")
    return f"{head}### {LABELS[field]} /{answer.splitlines()[0]}\n\n_No response_\n{heading}{tail}"


def test_the_form_asks_for_what_a_draft_is_made_of() -> None:
    asked = {part["id"]: part["attributes"]["label"] for part in FORM["body"] if part["type"] != "markdown"}
    assert {field: label.partition(" / ")[0] for field, label in asked.items()} == LABELS
    assert all(label.partition(" / ")[2] for label in asked.values())
    options = next(part["attributes"]["options"] for part in FORM["body"] if part.get("id") == "impact")
    assert tuple(option.partition(":")[0] for option in options) == matrix.impacts()


def test_a_filled_in_form_becomes_an_entry(entry_of: Drafter) -> None:
    entry = entry_of(ISSUE)
    assert (entry["id"], entry["title"], entry["impact"], entry["confidence"]) == (
        "CC-2026-0001",
        "Trainer crashes with the example config",
        "crash",
        "reported",
    )
    assert entry["summary"] == 'After the first evaluation training ends with a "KeyError".'
    assert entry["affected"] == [{"distributions": {"transformers": ">=4.46.0,<4.46.2"}}]
    assert entry["remedies"][0]["pins"] == {"transformers": ">=4.46.2"}
    assert [each["url"][-6:] for each in entry["evidence"]] == ["sues/1", "pull/2"]
    assert [each["environment"]["distributions"]["transformers"] for each in entry["examples"]] == ["4.46.0"]
    assert entry["examples"][0]["environment"]["gpus"] == [{"name": "NVIDIA A100-SXM4-80GB"}]
    assert entry["examples"][0]["environment"]["training"]["per_device_train_batch_size"] == 2
    assert entry["error_patterns"][0]["example"].startswith("KeyError")


def test_the_linter_names_just_what_the_draft_lacks(folder: Path, entry_of: Drafter) -> None:
    entry_of(ISSUE)
    faults, _ = matrix.lint_folder(str(folder), probes.names())
    path = folder / "transformers" / "CC-2026-0001.toml"
    draft = path.read_text(encoding="utf-8").splitlines()
    asked = [line for line in draft if line.startswith("# TODO")]
    assert len(asked) == 2
    assert [fault.text for fault in faults] == [
        "mechanism is still to be written",
        *(f"resolve and remove the comment {line!r}" for line in asked),
    ]
    settled = (line.replace("TODO: why it happens", "Because.") for line in draft if line not in asked)
    path.write_text("\n".join(settled), encoding="utf-8")
    assert matrix.lint_folder(str(folder), probes.names())[0] == []


def test_conditions_of_the_report_are_offered_and_hold_where_they_are_kept(folder: Path, entry_of: Drafter) -> None:
    entry_of(ISSUE)
    path = folder / "transformers" / "CC-2026-0001.toml"
    lines = path.read_text(encoding="utf-8").splitlines()
    offered = [line for line in lines if line.startswith("# ") and " = " in line]
    assert "# training.per_device_train_batch_size = 2" in offered and '# distributions.torch = "==2.5.0"' in offered
    assert '# model.name = ["THUDM/glm-4-9b-chat-hf"]' in offered
    kept = [line.removeprefix("# ") if line in offered else line for line in lines]
    path.write_text("\n".join(kept), encoding="utf-8")
    told = {fault.text for fault in matrix.lint_folder(str(folder), probes.names())[0]}
    assert not any("is unaffected, not" in each or "is undetermined, not" in each for each in told)


def test_what_the_reporter_speaks_of_is_kept_beside_the_package(entry_of: Drafter) -> None:
    named = ISSUE.replace("accelerate    1.0.1", "kernels       0.15.1\nidle          1.0").replace(
        "4 ranks", "kernels."
    )
    assert entry_of(named)["examples"][0]["environment"]["distributions"] == {
        "transformers": "4.46.0",
        "torch": "2.5.0+cu118",
        "kernels": "0.15.1",
    }


def test_a_version_that_works_is_missing(folder: Path, entry_of: Drafter) -> None:
    entry = entry_of(without("works", without("fails")))
    assert entry["affected"] == [{"distributions": {"transformers": "==4.46.0"}}]
    assert entry["remedies"][0]["action"] == "TODO: what helps"
    told = [fault.text for fault in matrix.lint_folder(str(folder), probes.names())[0]]
    assert "remedies.1 is still to be written" in told


@pytest.mark.parametrize(
    ("fails", "works", "installed", "expected"),
    [
        ("4.46.0", "4.46.2", "4.46.0", ">=4.46.0,<4.46.2"),
        ("4.46.0, 4.46.1", "4.45", "4.46.0", ">=4.46.0,<=4.46.1"),
        ("", "4.45", "4.46.0", "==4.46.0"),
        ("transformers==4.46.0 with torch 2.5.0", "torch 2.4.0", None, "==4.46.0"),
        ("4.40.0, 4.46.0", "4.43.1, 4.47", "4.46.0", ">=4.46.0,<4.47"),
        ("v4.46.0.", "all before", None, "==4.46.0"),
        ("4.46.0-4.46.1", "torch-2.4.0, v4.47.0.dev0", None, ">=4.46.0,<4.47.0.dev0"),
        ("everything", "nothing", None, ""),
        ("", "4.46.0", "4.46.0", ""),
    ],
)
def test_the_range_is_no_wider_than_what_was_tried(
    fails: str, works: str, installed: str | None, expected: str
) -> None:
    from packaging.version import Version

    tried = [versions_of(each, "transformers", {"torch"}) for each in (fails, works)]
    assert range_of(*tried, Version(installed) if installed else None).text == expected


def test_a_snapshot_and_the_export_of_an_issue_are_read(entry_of: Drafter) -> None:
    snapshot = {"schema_version": 1, "python": "3.11.4", "distributions": {"transformers": "4.46.1", "torch": "2.5.0"}}
    head, _, rest = ISSUE.partition("```text\nPackage ")
    body = f"{head}```text\n{json.dumps(snapshot, indent=2)}\n```{rest.partition('```')[2]}"
    url = "https://github.com/o/r/issues/7"
    entry = entry_of(json.dumps({"body": body.replace("\n", "\r\n"), "title": "[entry] x", "url": url}))
    assert entry["examples"][0]["environment"]["python"] == "3.11.4"
    assert entry["examples"][0]["environment"]["distributions"]["transformers"] == "4.46.1"
    assert entry["evidence"][0]["url"] == url


@pytest.mark.parametrize(
    ("package", "told"),
    [
        ("../../etc", "not a valid package name"),
        ("a/b", "not a valid package name"),
        ("/etc/passwd", "not a valid package name"),
        ("..", "not a valid package name"),
        ("-rf", "not a valid package name"),
        ("x" * 200, "not a valid package name"),
        ("torch\n[[affected]]", "not a valid package name"),
        ("tables", "a folder of the matrix already has this name"),
    ],
)
def test_a_name_is_no_path(folder: Path, entry_of: Drafter, package: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        entry_of(ISSUE, package=package)
    assert sorted(path.name for path in folder.iterdir()) == ["tables"]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("Just some words", "no heading of the issue form"),
        ("", "no heading of the issue form"),
        ('{"title": "x"}', "no body"),
        ('{"body": ', "begins as JSON"),
        ('{"body": {"a": 1}}', "no body"),
        ("### What you see\n\n" + "a" * (1 << 18), "too large for an issue"),
        (without("package"), "names no package"),
    ],
)
def test_what_is_no_issue_of_the_form_is_refused_in_one_line(entry_of: Drafter, body: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        entry_of(body)


def test_no_file_is_written_over_and_numbers_go_on(folder: Path, entry_of: Drafter) -> None:
    (folder / "peft").mkdir()
    (folder / "peft" / "CC-2026-0041.toml").write_text("kept", encoding="utf-8")
    (folder / "peft" / "CC-2025-0700.toml").write_text("kept", encoding="utf-8")
    assert [entry_of(ISSUE)["id"], entry_of(ISSUE)["id"]] == ["CC-2026-0042", "CC-2026-0043"]
    assert (folder / "peft" / "CC-2026-0041.toml").read_text(encoding="utf-8") == "kept"


HOSTILE = st.text(st.one_of(st.characters(), st.sampled_from("\"\\'\n\r\t#[]{}=`|\x00\x7f\u2028")), max_size=80)


@settings(max_examples=60, deadline=None)
@given(st.fixed_dictionaries(dict.fromkeys(LABELS, HOSTILE)), HOSTILE)
def test_nothing_breaks_out_of_its_string(fields: dict[str, str], url: str) -> None:
    clean = {field: each.encode("utf-8", "ignore").decode() for field, each in fields.items()}
    issue = Issue(clean, url.encode("utf-8", "ignore").decode(), read_report(clean["environment"], "x"))
    made = drafted(issue, "torch", None, TODAY)
    entry = parse_toml(text(made, "CC-2026-0001"))
    assert set(entry) <= {
        *("id", "title", "impact", "confidence", "summary", "mechanism", "published", "reviewed"),
        *("affected", "remedies", "error_patterns", "evidence", "examples"),
    }
    assert entry["title"] == made.title and entry["summary"] == made.summary and len(entry["affected"]) == 1
    assert [each["url"] for each in entry["evidence"]] == list(made.urls or ["TODO: a public source"])


def test_the_command_writes_the_draft_and_tells_what_to_do_next(folder: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_command(sys.executable, "matrix", "new", *arguments, "-o", str(folder), cwd=tmp_path)

    (tmp_path / "issue.md").write_text(ISSUE, encoding="utf-8")
    done = run("--from-issue", "issue.md")
    (path,) = folder.glob("transformers/CC-*-0001.toml")
    assert (done.returncode, done.stdout) == (0, f"{path}\n")
    assert "to do  mechanism" in done.stderr and f"matrix lint {folder}" in done.stderr
    bare = run("--package", "Flash_Attn", "--title", "It breaks")
    assert [f"{path}\n" for path in folder.glob("flash-attn/CC-*-0002.toml")] == [bare.stdout]
    with pytest.raises(InputError, match=r"0002.toml: impact: Input should be .* affected.0: .* evidence.0.url"):
        matrix.lint_folder(str(folder), probes.names())
    assert run().returncode == 2
