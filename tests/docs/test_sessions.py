"""Every command of the documentation does what its page says, typed in order into a fresh folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from uv import find_uv_bin

from tests.conftest import ROOT, Wheel
from tests.docs.sessions import PAGES, REASONS, RUN, SHOWN, Fence, agrees, fences, run, steps

LEFT_OUT = {
    "README.md": 3,
    "docs/explanation/accuracy.md": 4,
    "docs/how-to/compare.md": 1,
    "docs/how-to/guard.md": 2,
    "docs/explanation/limits.md": 1,
    "docs/how-to/ci.md": 1,
    "docs/how-to/editors.md": 1,
    "docs/explanation/verdicts.md": 1,
    "docs/how-to/air-gap.md": 3,
    "docs/how-to/cluster.md": 1,
    "docs/how-to/diagnose.md": 1,
    "docs/how-to/entry.md": 2,
    "docs/how-to/fresh-venv.md": 5,
    "docs/how-to/look-up.md": 1,
    "docs/how-to/nan.md": 1,
    "docs/how-to/pins.md": 1,
    "docs/how-to/pre-commit.md": 1,
    "docs/how-to/probe.md": 1,
    "docs/how-to/requirements.md": 1,
    "docs/index.md": 1,
    "docs/tutorial/index.md": 1,
    "docs/zh/index.md": 1,
}
IN_A_CLONE = {"docs/how-to/entry.md"}
"""Pages whose verbs a wheel does not hold."""

_POSIX = pytest.mark.skipif(os.name == "nt", reason="the sessions are those of a POSIX shell")
_WRITTEN = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}


def _pages() -> list[object]:
    """The pages with something to run; those that ask the package index are marked so."""
    return [
        pytest.param(name, marks=pytest.mark.network if "<!-- needs: network -->" in text else ())
        for name, text in _WRITTEN.items()
        if steps(text)
    ]


@_POSIX
@pytest.mark.parametrize("page", _pages())
def test_the_commands_of_a_page_print_what_it_shows(
    page: str, wheel: Wheel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With uv at the end of PATH, as the pages on pins ask for."""
    monkeypatch.setenv("PATH", os.environ["PATH"] + os.pathsep + os.path.dirname(find_uv_bin()))
    binaries = Path(sys.executable).parent if page in IN_A_CLONE else wheel.python.parent
    for step in run(steps(_WRITTEN[page]), tmp_path, binaries):
        told = f"{page}:{step.fence.line}: {step.command}\nexit status {step.status}\n{step.printed}"
        assert step.status == step.expected_status, told
        assert not step.shown or agrees(step.shown, step.printed), told


@_POSIX
def test_a_session_that_prints_something_else_is_seen(wheel: Wheel, tmp_path: Path) -> None:
    typed = "$ cd compatcheck && printf 'a\\nb\\n'\na\n...\n$ basename $PWD\nother\n$ (exit 3)\n"
    page = f"<!-- exit 3 -->\n```console\n{typed}```\n"
    done = run(steps(page), tmp_path, wheel.python.parent)
    assert [agrees(step.shown, step.printed) for step in done] == [True, False, True]
    assert [step.status for step in done] == [step.expected_status for step in done] == [0, 0, 3]


def _unheld(fence: Fence) -> bool:
    """Whether it could hold commands that nothing runs: every fence says what it is."""
    if fence.left_out is not None:
        return fence.left_out not in REASONS
    if fence.kind == "sh":
        return fence.title is None
    if fence.kind == "console":
        return re.sub(r"\A\$ .*", "", fence.text, flags=re.S) != ""
    return fence.kind not in (*RUN, *SHOWN)


@pytest.mark.parametrize("page", _WRITTEN)
def test_no_command_slips_by(page: str) -> None:
    text = _WRITTEN[page]
    found = fences(text)
    assert 2 * len(found) == len(re.findall(r"^ *```", text, re.M)), "a fence is not closed, or one has an odd head"
    assert [fence.line for fence in found if _unheld(fence)] == []


def test_what_is_not_run_is_counted() -> None:
    left = Counter(name for name, text in _WRITTEN.items() for fence in fences(text) if fence.left_out is not None)
    assert left == LEFT_OUT


@pytest.mark.slow
def test_the_examples_in_python_pass_a_strict_type_check(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    for name, text in _WRITTEN.items():
        for number, fence in enumerate(fences(text)):
            if fence.kind == "python" and fence.left_out is None and fence.title is None:
                (tmp_path / f"{Path(name).stem.replace('-', '_')}_{number}.py").write_text(fence.text, encoding="utf-8")
    assert len(list(tmp_path.iterdir())) >= 2
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout
