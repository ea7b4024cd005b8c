"""What is read for the tables of interfaces: undeclared imports, tests of the package itself, imports tried in turn."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from packaging.version import Version

from compatcheck.interfaces.reading import read_module
from compatcheck.interfaces.release import Release
from compatcheck.interfaces.summary import Ask
from tools.tables._absent import Undeclared
from tools.tables._interface_packages import owners
from tools.tables._reach import Walk, asked, settled
from tools.tables.interfaces import _both, _optional


@pytest.mark.parametrize(
    ("file", "lines", "target", "told"),
    [
        ("a.dist-info/METADATA", "", "scipy.stats", "scipy"),
        ("a.dist-info/METADATA", "Requires-Dist: scipy (>=1.0)\n", "scipy.stats", None),
        ("a.dist-info/METADATA", "Requires-Dist: scipy; extra == 'test'\n", "scipy", "scipy"),
        ("a.dist-info/METADATA", "Requires-Dist: scikit-learn\n", "scipy", None),
        ("a.dist-info/METADATA", "", "a_module_of_nobody", None),
        ("a.dist-info/METADATA", "", "pkg_resources", None),
        ("sdist.dist-info/METADATA", "", "scipy", None),
    ],
)
def test_undeclared_import_names_its_distribution(
    tmp_path: Path, file: str, lines: str, target: str, told: str | None
) -> None:
    (tmp_path / "a").mkdir()
    with zipfile.ZipFile(tmp_path / "a" / "1.0.zip", "w") as archive:
        archive.writestr(file, f"Metadata-Version: 2.1\nName: a\nVersion: 1.0\n{lines}\n")
    undeclared = Undeclared(tmp_path, "a")
    ask = Ask("import", target, "", 0, (), "", (), 1)
    assert undeclared.distribution(Version("1.0"), ask, ("a",)) == told
    assert undeclared.distribution(Version("1.0"), ask._replace(scope="f"), ("a",)) is None


def test_a_top_module_belongs_to_the_distribution_of_its_name() -> None:
    assert owners(["optimum", "optimum-quanto"]) == owners(["optimum-quanto", "optimum"]) == {"optimum": "optimum"}


def test_what_a_release_asks_for_by_a_function_is_optional() -> None:
    assert _optional(_release(own="def is_bs4_available(): ...\ndef is_sklearn_available(): ...\n")) == {
        "bs4",
        "scikit-learn",
    }


def _release(**texts: str) -> Release:
    return Release({name: read_module(text, name, is_package=name == "own") for name, text in texts.items()})


def test_what_a_test_of_another_module_requires_takes_the_place_of_its_call() -> None:
    release = _release(
        own="from own.tests import is_new, is_torchao_available\nif is_new():\n    import a\n"
        "if is_torchao_available():\n    import torchao",
        **{
            "own.tests": "def is_new():\n    return required_torch_version(min_version=1.11)\n"
            "def is_torchao_available(min_version='0.15.0'):\n    return go(min_version)"
        },
    )
    found = {ask.target: ask.conditions for ask, _ in asked(release, Walk(release, "own").run(), "own")}
    assert found == {"a": ("torch>=1.11",), "torchao": ("+torchao", "torchao>=0.15.0")}
    assert settled(release, frozenset({"=own.tests.gone"})) is None


def test_name_of_a_test_is_no_distribution_where_its_text_tells_what_it_requires() -> None:
    texts = {
        "own.tests": "def is_training_available():\n    return is_datasets_available() and is_accelerate_available()\n"
        "def is_peft_available():\n    return go()\n"
    }
    release = _release(
        own="from own.tests import is_peft_available, is_training_available\n"
        "if is_training_available():\n    import a\nif is_peft_available():\n    import b\n",
        **texts,
    )
    found = {ask.target: ask.conditions for ask, _ in asked(release, Walk(release, "own").run(), "own")}
    assert found == {"a": ("+accelerate", "+datasets"), "b": ("+peft",)}


def test_an_import_in_a_handler_fails_where_the_one_that_was_tried_does_too() -> None:
    first = ("import", "b", "x", 0, ())
    told = {"answers": {first: [None, ("import", "x"), ("import", "x")]}}
    answers = [("import", "x"), None, ("import", "x")]
    assert _both(answers, told, "b.x", True) == [None, None, ("import", "x")]
    assert _both(answers, told, "b.x", False) == _both(answers, {"answers": {}}, "b.x", True) == []
