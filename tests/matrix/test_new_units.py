"""A trait of any kind is one file: a copy of the package with that file alone decides it, and an entry may name it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KINDS = {
    "code": "project/model_files/traits",
    "file": "project/model_files/file_traits",
    "trainer": "project/scripts/rules",
    "relation": "matrix/traits",
}
RULES = {
    "code": """
KIND = "model"


def find(code):
    return min((each.lineno for each in code.nodes if getattr(each, "id", "") == "frobnicate"), default=None)
""",
    "file": """
def find(files):
    return "frobnicated" in files.config
""",
    "trainer": """
READS = "calls"


def find(script):
    return script.keyword_line(("TrainingArguments",), frozenset(("frobnicate",)))
""",
    "relation": """
from compatcheck.matrix.matching.match import TraitVerdict


def find(environment, table):
    return TraitVerdict(environment.facts.get("python") == "3.99.0")
""",
}
ENTRY = """
id = "CC-2026-9{number}"
title = "A package of the test goes wrong"
impact = "crash"
confidence = "corroborated"
summary = "It goes wrong."
mechanism = "It goes wrong."
symptoms = ["import-error"]
packages = ["transformers"]
published = 2026-11-01
reviewed = 2026-11-01

[[affected]]
distributions.transformers = "present"
traits = ["frobnicates-{kind}"]

[[remedies]]
pins = {{ transformers = ">=5.0.0" }}
why = "does not"

[[evidence]]
url = "https://github.com/huggingface/transformers/issues/1"
kind = "report"
supports = ["affected"]

[[examples]]
expect = "affected"
environment = {{}}
"""
CHECK = """
import json, sys
from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.project import model_files, scripts
folder, python = sys.argv[1:]
model, trainer = model_files.read(folder), scripts.read([f"{folder}/train.py"])
facts = {"python": python, "distributions": {"transformers": "4.48.0"}, **model.facts, **trainer.facts}
print(json.dumps([[each.id, each.status] for each in matrix.judge(matrix.load(), Environment(facts)).findings]))
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it is, one new unit of each kind, and a matrix of four entries that name their traits."""
    root = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "compatcheck", root / "compatcheck", ignore=shutil.ignore_patterns("__pycache__", "data"))
    shutil.copytree(ROOT / "compatcheck" / "data", root / "compatcheck" / "data")
    (root / "matrix" / "transformers").mkdir(parents=True)
    (root / "matrix" / "tables").symlink_to(ROOT / "matrix" / "tables")
    for number, (kind, folder) in enumerate(KINDS.items(), 100):
        (root / "compatcheck" / folder / f"frobnicates_{kind}.py").write_text(RULES[kind])
        (root / "matrix" / "transformers" / f"CC-2026-9{number}.toml").write_text(
            ENTRY.format(number=number, kind=kind)
        )
    return root


def check(checkout: Path, folder: Path, word: str, python: str) -> dict[str, str]:
    """The status of each entry for a model and a script that use a word."""
    auto_map = {"AutoModelForCausalLM": "modeling_a.A"}
    (folder / "config.json").write_text(json.dumps({"model_type": "a", f"{word}d": 1, "auto_map": auto_map}))
    (folder / "modeling_a.py").write_text(f"class A: ...\n{word} = 1\n")
    (folder / "train.py").write_text(f"from transformers import TrainingArguments\nTrainingArguments('o', {word}=1)\n")
    paths = {"PYTHONPATH": str(checkout), "XDG_CACHE_HOME": str(folder / "cache")}
    child = [sys.executable, "-c", CHECK, str(folder), python]
    done = subprocess.run(child, env=paths, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert not done.returncode, done.stderr
    return dict(json.loads(done.stdout))


def test_a_new_trait_is_one_file(checkout: Path, tmp_path: Path) -> None:
    ids = [f"CC-2026-9{number}" for number in range(100, 104)]
    assert check(checkout, tmp_path, "frobnicate", "3.99.0") == dict.fromkeys(ids, "affected")
    assert check(checkout, tmp_path, "calibrate", "3.12.0") == {}


def test_the_map_names_the_folder_of_each_kind() -> None:
    text = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    assert all(f"`compatcheck/{folder}/`" in text for folder in KINDS.values())


def test_no_file_of_the_package_lists_traits() -> None:
    """A file may use what one trait means, such as that checkpointing has no effect; a list of them is a register."""
    folders = [ROOT / "compatcheck" / folder for folder in KINDS.values()]
    units = [path for folder in folders for path in folder.glob("[a-z]*.py")]
    names = re.compile("|".join(rf'"{path.stem.replace("_", "-")}"' for path in units))
    assert len(units) > 70
    for path in (ROOT / "compatcheck").rglob("*.py"):
        assert len(set(names.findall(path.read_text(encoding="utf-8")))) <= 2, path
