"""What pages show of other tools' files is there: inputs of the action, hooks, and commands that the page runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from tests.conftest import ROOT
from tests.docs.sessions import PAGES, fences, steps

_SHOWN = [(page, fence) for page in PAGES for fence in fences(page.read_text(encoding="utf-8")) if fence.kind == "yaml"]


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    """Every table in a document, however deep."""
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _parts(each)


def _tables() -> Iterator[dict[str, Any]]:
    for _, fence in _SHOWN:
        yield from _parts(yaml.safe_load(fence.text))


def test_the_action_takes_the_inputs_that_are_shown() -> None:
    action = yaml.safe_load((ROOT / ".github/actions/compatcheck/action.yml").read_text(encoding="utf-8"))
    shown = [part["with"] for part in _tables() if "actions/compatcheck" in str(part.get("uses"))]
    assert shown and all(set(each) <= set(action["inputs"]) for each in shown)


def test_the_hooks_that_are_shown_are_offered() -> None:
    offered = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
    shown = {hook["id"] for part in _tables() for hook in part.get("hooks", ())}
    assert shown == offered


def test_commands_in_files_are_typed_on_the_same_page() -> None:
    found = 0
    for page, fence in _SHOWN:
        typed = {step.command for step in steps(page.read_text(encoding="utf-8"))}
        for command in re.findall(r"^ *- (compatcheck .*)$", fence.text, re.M):
            assert command in typed, (page, command)
            found += 1
    assert found
