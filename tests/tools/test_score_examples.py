"""What scripts use, what of it breaks in a real interpreter, and how claims about it are judged."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tools.example_scripts import truth
from tools.example_scripts.truth import Outcome
from tools.example_scripts.uses import read_uses
from tools.score_examples import Claim, judge, score

LIBRARY = """
import functools
from dataclasses import dataclass

def renames(old, new):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            if old in kwargs:
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)
        return wrapper
    return decorate

class Trainer:
    @renames("tokenizer", "processing_class")
    def __init__(self, model, processing_class=None):
        self.state = {}

    def train(self, resume=None): ...

    def __getstate__(self): ...

class Lenient(Trainer):
    def __init__(self, *args, **kwargs): ...

class Base:
    def __init__(self, name, size=1): ...

class Lazy(Base):
    def __init__(self, name, **kwargs):
        super().__init__(name, **kwargs)

class Mother:
    @classmethod
    def load(cls, name, *, dtype=None): ...

@dataclass
class Config:
    folder: str
    steps: int = 1

class Plain: ...
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shelf").mkdir()
    (tmp_path / "shelf" / "__init__.py").write_text(LIBRARY)
    (tmp_path / "shelf" / "needy.py").write_text("import nowhere_to_be_found\n")
    (tmp_path / "shelf" / "quiet.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def _breaks(text: str) -> list[tuple[int, str, str]]:
    outcomes = truth.run(Path(sys.executable), {"script.py": read_uses(dedent(text))})["script.py"]
    return [(each.line, each.kind, each.name) for each in outcomes if each.state == "breaks"]


def _states(text: str) -> dict[str, str]:
    outcomes = truth.run(Path(sys.executable), {"script.py": read_uses(dedent(text))})["script.py"]
    return {each.name: each.state for each in outcomes if each.kind != "import"}


@pytest.mark.parametrize(
    ("line", "kind", "name"),
    [
        ("from shelf import Gone", "import", "Gone"),
        ("import shelf.gone", "import", "shelf.gone"),
        ("from shelf.gone.far import Away", "import", "shelf.gone"),
        ("import shelf.needy", "inside", "shelf.needy"),
        ("import shelf; shelf.gone", "attribute", "gone"),
        ("import shelf; shelf.Gone(1)", "attribute", "Gone"),
        ("from shelf import Config; Config('x', step=1)", "keyword", "step"),
        ("from shelf import Config; Config(steps=1)", "missing", "Config"),
        ("from shelf import Config; Config(1, 2, 3)", "positional", "Config"),
        ("from shelf import Plain; Plain(1)", "positional", "Plain"),
        ("from shelf import Trainer; Trainer(1, tokeniser=2)", "keyword", "tokeniser"),
        ("from shelf import Trainer; t = Trainer(1); t.train(until=2)", "keyword", "until"),
        ("from shelf import Trainer; t = Trainer(1); t.fit()", "attribute", "fit"),
        ("from shelf import Lazy; Lazy('x', size=1, until=2)", "keyword", "until"),
        ("from shelf import Trainer; t = Trainer(1); t.optimizer", "attribute", "optimizer"),
        ("from shelf import Trainer; t = Trainer(1); t.optimizer.step()", "attribute", "optimizer"),
        ("from shelf import Mother; Mother.load('x', torch_dtype=1)", "keyword", "torch_dtype"),
        ("from shelf import Mother; Mother.open('x')", "attribute", "open"),
    ],
)
def test_use_that_breaks_is_found(library: None, line: str, kind: str, name: str) -> None:
    assert _breaks(line) == [(1, kind, name)]


@pytest.mark.parametrize(
    "line",
    [
        "from shelf import quiet, Trainer; Trainer(1, None)",
        "from shelf import Trainer; Trainer(1, tokenizer=2)",
        "from shelf import Trainer; t = Trainer(1); t.train(resume=True); t.state.update(); t.state, t.train",
        "from shelf import Lenient; Lenient(anything=1)",
        "from shelf import Lazy; Lazy('x', size=1)",
        "from shelf import Trainer; Trainer(1, **{'gone': 1})",
        "from shelf import Trainer\ndef f(Trainer): Trainer(gone=1)",
        "from shelf import Trainer\nif hasattr(Trainer, 'x'): Trainer(gone=1)",
        "try:\n  from shelf import Gone\nexcept ImportError:\n  pass",
        "from shelf import Config\nwith pytest.raises(TypeError): Config(gone=1)",
        "try: shelf.Plain()\nexcept TypeError:\n  from shelf import Config\n  Config(gone=1)",
        "from shelf import Plain\nmock.patch.object(Plain, '__init__', other)\nPlain(1)",
        "import nowhere_to_be_found",
        "from .shelf import Gone",
    ],
)
def test_what_works_or_is_expected_to_fail_does_not_break(library: None, line: str) -> None:
    assert _breaks(line) == []


def test_what_only_a_run_can_tell_is_open(library: None) -> None:
    assert _states("import shelf.needy\nshelf.needy.run(size=1)")["size"] == "open"
    assert _states("from shelf import Lenient; Lenient(anything=1)") == {"Lenient": "works", "anything": "open"}
    assert _states("from shelf import Trainer; t = Trainer(1); t.state()")["state"] == "open"


def test_script_that_ends_the_process_leaves_others_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deadly.py").write_text("import os; os._exit(3)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    scripts = {"a.py": read_uses("import deadly"), "b.py": read_uses("from json import nothing")}
    found = truth.run(Path(sys.executable), scripts)
    assert [each.state for each in found["a.py"]] == ["open"]
    assert [(each.kind, each.name) for each in found["b.py"]] == [("import", "nothing")]


def test_outcomes_survive_being_recorded() -> None:
    outcomes = {"a.py": (Outcome(1, 2, "trl.SFTTrainer", "tokenizer", "breaks", "keyword", "unexpected"),)}
    assert truth.load(truth.dump(outcomes)) == outcomes


GONE = Outcome(3, 5, "trl.SFTTrainer", "tokenizer", "breaks", "keyword")
NEEDED = Outcome(3, 5, "trl.SFTTrainer", "SFTTrainer", "breaks", "missing")
FINE = Outcome(3, 5, "trl.SFTTrainer", "args", "works", "call")
LATER = Outcome(9, 9, "trl.SFTTrainer", "tokenizer", "works", "call")
UNSURE = Outcome(12, 12, "trl.SFTTrainer", "model", "open", "call")
INSIDE = Outcome(1, 1, "trl.SFTTrainer", "SFTTrainer", "breaks", "inside")
KNOWN = (GONE, FINE, LATER, UNSURE, INSIDE)


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (Claim("A", 4, "SFTTrainer() takes no tokenizer"), "true"),
        (Claim("A", 4, "SFTTrainer() takes no args"), "false"),
        (Claim("A", 9, "SFTTrainer() takes no tokenizer"), "false"),
        (Claim("A", 12, "SFTTrainer() takes no model"), "open"),
        (Claim("A", 20, "SFTTrainer() takes no tokenizer"), "open"),
        (Claim("A", 4, "SFTTrainer() takes no tokenizer_name"), "open"),
    ],
)
def test_claim_is_judged_by_its_place_and_name(claim: Claim, verdict: str) -> None:
    assert judge(claim, KNOWN) == verdict


def test_break_is_told_by_any_entry_and_inside_ones_count_apart() -> None:
    by_hand = Claim("B", 3, "trl takes no tokenizer any more")
    found = score([by_hand], KNOWN, entries=("A",))
    assert (found.claims, found.told, found.missed, found.inside) == ((), (GONE,), (), (INSIDE,))
    assert score([], KNOWN, entries=("A",)).missed == (GONE,)


def test_use_that_breaks_twice_counts_once() -> None:
    assert score([Claim("A", 3, "takes no tokenizer")], (NEEDED, GONE)).told == (NEEDED,)
