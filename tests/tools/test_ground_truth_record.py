"""What a stage's error says, what is recorded of it, and how forecasts are scored."""

from __future__ import annotations

import subprocess
import sys
from email.message import Message
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest

from tools.ground_truth._failure import WrongNumber, failure
from tools.ground_truth._run import applicable
from tools.ground_truth.linking import POSSIBLE, explains, score
from tools.ground_truth.record import causes, conflicts


def _raised(statement: str) -> dict:
    try:
        exec(statement, {})
    except Exception as error:  # noqa: BLE001
        return failure(error)
    raise AssertionError(statement)


@pytest.mark.parametrize(
    ("statement", "kind", "name", "provider"),
    [
        ("from packaging.version import NoSuchName", "import", "NoSuchName", "packaging"),
        ("import no_such_module.part", "import", "no_such_module", "no-such-module"),
        ("import packaging; packaging.no_such_name", "attribute", "no_such_name", "packaging"),
        ("from packaging.version import parse; parse(text='1')", "call", "text", "packaging"),
        ("from packaging.version import parse; parse()", "call", "", "packaging"),
        ("from packaging.version import Version; Version('1').no_such_name", "attribute", "no_such_name", "packaging"),
        ("{}.no_such_name", "other", "no_such_name", "builtins"),
        ("1 / 0", "other", "", ""),
    ],
)
def test_failure_names_what_is_missing_and_its_package(statement: str, kind: str, name: str, provider: str) -> None:
    said = _raised(statement)
    assert (said["kind"], said["name"], said["provider"]) == (kind, name, provider)


def test_failure_follows_the_cause_to_the_package_that_asked(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "caller"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "try:\n"
        "    from packaging.version import Gone\n"
        "except ImportError as error:\n"
        "    raise RuntimeError('no') from error\n"
    )
    said = _raised(f"import sys; sys.path.insert(0, {str(package.parent)!r}); import caller")
    assert said["error"] == "RuntimeError: no"
    assert said["root"].startswith("ImportError: cannot import name 'Gone'")
    assert (said["caller"], said["provider"]) == ("caller", "packaging")
    assert said["frames"][-1] == "caller/__init__.py:2 <module>"


def test_wrong_number_is_no_failure_of_a_call() -> None:
    error = WrongNumber("the losses are []")
    assert failure(error.with_traceback(None))["wrong"]


class _Made(Distribution):
    def __init__(self, name: str, version: str, *requires: str) -> None:
        self.message = Message()
        self.message["Name"], self.message["Version"] = name, version
        for each in requires:
            self.message["Requires-Dist"] = each

    def read_text(self, filename: str) -> str | None:
        return self.message.as_string() if filename == "METADATA" else None

    def locate_file(self, path: object) -> Path:
        raise NotImplementedError


def test_conflicts_are_what_pip_check_prints() -> None:
    installed = {
        "a": _Made("a", "1.0", "b>=2", "c; extra == 'more'", "d", "packaging; python_version < '3'"),
        "b": _Made("b", "1.5"),
    }
    assert list(conflicts(installed)) == [("a", "b", "b>=2"), ("a", "d", "d")]
    assert distribution("packaging").requires is None


FAILURE = {
    "root": "ImportError: cannot import name 'gone' from 'b' (/x/site-packages/b/__init__.py)",
    "kind": "import",
    "name": "gone",
    "caller": "a",
    "provider": "b",
    "mentions": [],
    "wrong": False,
    "frames": ["a/__init__.py:3 <module>"],
}


def test_stages_that_fail_alike_are_one_cause() -> None:
    other = {**FAILURE, "root": "TypeError: f() got an unexpected keyword argument 'x'", "kind": "call"}
    found = causes({"import a": FAILURE, "full training": FAILURE, "SFT": other, "import b": None}, set())
    assert [each["stages"] for each in found] == [["import a", "full training"], ["SFT"]]
    assert found[0]["error"] == "ImportError: cannot import name 'gone' from 'b' (b/__init__.py)"
    assert found[0]["undeclared"]


def test_conflict_of_the_same_two_packages_declares_a_failure() -> None:
    assert not causes({"import a": FAILURE}, {frozenset(("a", "b"))})[0]["undeclared"]
    assert causes({"import a": FAILURE}, {frozenset(("a", "c"))})[0]["undeclared"]


def _claim(*packages: str, title: str = "", impact: str = "import-fail", status: str = "affected") -> dict:
    because: list[dict] = []
    claim = {"id": "CC-2026-9999", "impact": impact, "status": status, "summary": "", "because": because}
    return {**claim, "title": title, "packages": list(packages)}


@pytest.mark.parametrize(
    ("claim", "explained"),
    [
        (_claim("a", "b"), True),
        (_claim("z", title="a 1 needs gone of b"), True),
        (_claim("a"), False),
        (_claim("b", "c"), False),
        (_claim("a", "c", title="a 1 needs goner of c"), False),
    ],
)
def test_claim_explains_a_failure_by_its_name_or_both_packages(claim: dict, explained: bool) -> None:
    assert explains(claim, FAILURE) is explained


def test_score_divides_claims_by_what_happened() -> None:
    (failed,) = causes({"import a": FAILURE}, set())
    claims = [_claim("a", "b"), _claim("a", "c"), _claim("d", "e"), _claim("f", "g", impact="silent-wrong")]
    result = score({"failures": [failed]}, [*claims, _claim("h", "i", status="possible")])
    assert [len(each) for each in result] == [1, 0, 1, 1, 1]
    assert [len(each) for each in score({"failures": [failed]}, [])] == [0, 1, 0, 0, 0]


def test_stage_without_its_package_is_left_out() -> None:
    assert applicable(["import peft", "SFT", "full training"], ["peft", "transformers", "accelerate"]) == [
        "import peft",
        "full training",
    ]


def test_stages_run_in_processes_of_their_own(tmp_path: Path) -> None:
    from tools.ground_truth import _stages

    program = "import sys, os, json; sys.argv = ['x']; import runpy; module = runpy.run_path(sys.orig_argv[-2]); "
    program += "module['TRAINING'].clear(); module['CALLS']['kill'] = (lambda folder: os.kill(os.getpid(), 9), ()); "
    program += "print(json.dumps(module['forked']('kill', sys.orig_argv[-1])))"
    command = [sys.executable, "-c", program, _stages.__file__, str(tmp_path / "room")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "the process ended with status 9" in done.stdout


def test_missed_failure_says_whether_a_possible_finding_explains_it() -> None:
    (failed,) = causes({"import a": FAILURE}, set())
    for claims, is_possible in (([_claim("a", "b", status="possible")], True), ([_claim("a", "c")], False)):
        (line,) = score({"failures": [failed]}, claims).missed
        assert line.endswith(POSSIBLE) is is_possible
