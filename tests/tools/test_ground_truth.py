"""The comparison of what failed with what was said, and one stage on the libraries of this very interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.ground_truth import _stages
from tools.ground_truth.training import Outcome

CRASH = {
    "error": "ImportError: cannot import name 'A' from 'b'",
    "files": ["/v/site-packages/peft/x.py"],
    "wrong": False,
}
WRONG = {"error": "WrongNumber: the update differs by 3.00 of its size", "files": [], "wrong": True}


def _finding(impact: str, packages: tuple[str, ...] = (), patterns: tuple[str, ...] = ()) -> dict[str, object]:
    return {"id": "CC-2026-9999", "impact": impact, "packages": packages, "patterns": patterns}


@pytest.mark.parametrize(
    ("failure", "finding", "explained"),
    [
        (CRASH, _finding("import-fail", patterns=("cannot import name 'A'",)), True),
        (CRASH, _finding("import-fail", packages=("peft",)), True),
        (CRASH, _finding("import-fail", packages=("trl",)), False),
        (CRASH, _finding("silent-wrong", packages=("peft",)), False),
        (WRONG, _finding("silent-wrong", packages=("transformers",)), True),
        (WRONG, _finding("import-fail", packages=("transformers",)), False),
    ],
)
def test_a_failure_is_told_by_a_finding_of_its_kind(failure: dict, finding: dict, explained: bool) -> None:
    outcome = Outcome({"LoRA": failure}, (finding,))
    assert outcome.missed() == ([] if explained else ["LoRA"])
    assert outcome.without_cause() == []


def test_a_finding_in_a_stack_that_passes_is_without_cause() -> None:
    assert Outcome({}, (_finding("crash"),)).without_cause() == ["CC-2026-9999"]


_PASSES_THE_MASK_BY = """
import torch.nn.functional as f
kept = f.scaled_dot_product_attention
f.scaled_dot_product_attention = lambda q, k, v, attn_mask=None, **rest: kept(q, k, v, **rest)
"""


@pytest.mark.stack
@pytest.mark.parametrize("broken", ["", _PASSES_THE_MASK_BY], ids=["as it is", "masks are ignored"])
def test_a_stage_passes_here_and_fails_where_attention_is_broken(tmp_path: Path, broken: str) -> None:
    program = f"{broken}\nimport runpy, sys\nsys.argv[1:] = [{str(tmp_path)!r}, 'left padding']\n"
    program += f"runpy.run_path({_stages.__file__!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    verdict = json.loads(done.stdout.splitlines()[-1])["verdict"]
    assert (verdict["wrong"] if verdict else False) is bool(broken), verdict
