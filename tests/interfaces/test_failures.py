"""Which package and which releases an error line speaks of, by tables of releases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from packaging.version import Version

from compatcheck.interfaces.failures import Answer, answers, joined_runs, package_of_file
from compatcheck.interfaces.history import Interfaces, is_in
from compatcheck.packages.interface_failures import read_failure

TABLES: Mapping[str, Mapping[str, Any]] = {
    "interfaces/index": {
        "modules": {"lib": "lib", "top": "top", "other": "other"},
        "releases": {"lib": "1.0 1.1 1.2 2.0 2.1", "top": "0.1 0.2 0.3", "other": "1.0 2.0"},
    },
    "interfaces/lib": {
        "module lib": {"<2.0": "gone", ">=1.1": "fresh"},
        "module lib.deep": {"<2.0": "."},
        "call Trainer": {
            "model tokenizer=": "<1.2",
            "model processor= +tokenizer>processor": ">=1.2,<2.0",
            "model processor=": ">=2.0",
        },
        "call Trainer.log": {"logs": "<1.2", "logs start_time=": ">=1.2"},
        "call Trainer.step": {"**kwargs": ">=1.0,<1.2", "closure=": ">=1.2,<2.0", "": ">=2.0"},
        "call Attention.forward": {"states positions=": "<2.0", "states positions": ">=2.0"},
        "call PreTrainedModel.set_up": {"enable= function=": ">=1.2", },
        "call Arguments": {"old_name= seed=": "<2.0", "new_name= seed=": ">=2.0"},
        "call helper": {"": "<1.1", "keep=": ">=1.1"},
        "class Cache": {"is": "", "of": "Base", "<1.2": "get_length"},
        "class Base": {"is": "", ">=1.2,<2.0": "get_length"},
        "class PreTrainedModel": {"is": "", "of": "lib.deep.Root", ">=1.2": "enable_grads"},
        "class Trainer": {"is": "", "<2.0": "gather"},
        "class Layer": {"is": "", "<2.0": "dropout_p"},
        "class lib.deep.inner:Root": {"is": "", ">=2.0": "set_part"},
        "home lib.deep.inner:Root": "lib.deep.inner",
        "home Layer": "lib.layers",
        "home Trainer": "lib.trainer lib",
        "home Arguments": "lib.arguments lib",
        "home PreTrainedModel": "lib.models lib",
    },
    "interfaces/top": {
        "call Config": {"^lib.Arguments packing=": "<0.2", "^lib.Arguments packing= extra=": ">=0.2"},
        "class TopTrainer": {"is": "", "of": "TopBase", ">=0.2": "own"},
        "class TopBase": {"is": "", "of": "lib.Trainer", ">=0.2": "other"},
    },
    "interfaces/other": {
        "call Trainer": {"tokenizer=": "<2.0", "": ">=2.0"},
        "home Trainer": "other.inner",
    },
    "links/top": {
        "lib": [
            ["import", "lib.gone", "gone", "top/a.py", "import top", "", "<0.3", "<2.0", ""],
            ["keyword", "lib.Trainer", "tokenizer", "top/b.py", "TopTrainer", "", "<0.2", "<2.0", ""],
        ]
    },
}  # fmt: skip


def table(name: str) -> Mapping[str, Any]:
    return TABLES.get(name, {})


def answered(*lines: str, **versions: str | None) -> list[Answer]:
    failure = read_failure(lines)
    assert failure is not None
    return list(answers(failure, table, {name: Version(text) if text else None for name, text in versions.items()}))


@pytest.mark.parametrize(
    ("line", "kind", "accepts"),
    [
        ("cannot import name 'gone' from 'lib'", "name", ("<2.0",)),
        ("module 'lib' has no attribute 'fresh'", "name", (">=1.1",)),
        ("No module named 'lib.deep'", "module", ("<2.0",)),
        ("Trainer.__init__() got an unexpected keyword argument 'tokenizer'", "keyword", ("<2.0",)),
        ("helper() got an unexpected keyword argument 'keep'", "keyword", (">=1.1",)),
        ("Trainer.step() got an unexpected keyword argument 'closure'", "keyword", (">=1.2,<2.0",)),
        ("Trainer.log() takes 2 positional arguments but 3 were given", "positional", (">=1.2",)),
        ("Attention.forward() missing 1 required positional argument: 'positions'", "missing", ("<2.0",)),
        ("'Cache' object has no attribute 'get_length'", "member", ("<2.0",)),
        ("'TopTrainer' object has no attribute 'gather'", "member", ("<2.0",)),
        ("'SomeTrainer' object has no attribute 'gather'", "member", ("<2.0",)),
        ("'GlmForCausalLM' object has no attribute 'enable_grads'", "member", (">=1.2",)),
        ("'GlmForCausalLM' object has no attribute 'set_part'", "member", (">=2.0",)),
        ("cannot import name 'gone'", "name", ("<2.0",)),
        ("Config.__init__() got an unexpected keyword argument 'old_name'", "keyword", ("<2.0",)),
        ("MyPreTrainedModel.set_up() got an unexpected keyword argument 'enable'", "override-keyword", ("<1.2",)),
        ("set_up() got an unexpected keyword argument 'enable'", "override-keyword", ("<1.2",)),
        ("MyTrainer.log() takes 2 positional arguments but 3 were given", "override-positional", ("<1.2",)),
    ],
)
def test_an_error_is_answered_with_the_releases_that_fit(line: str, kind: str, accepts: tuple[str, ...]) -> None:
    (answer,) = answered(line)
    assert (answer.package, answer.kind, answer.accepts) == ("lib", kind, accepts)


@pytest.mark.parametrize(
    "line",
    [
        "cannot import name 'never' from 'lib'",
        "cannot import name 'gone' from 'unread'",
        "Trainer.__init__() got an unexpected keyword argument 'never'",
        "Trainer.__init__() got an unexpected keyword argument 'model'",
        "'Cache' object has no attribute 'never'",
        "'MyLayer' object has no attribute 'dropout_p'",
        "cannot import name 'never'",
        "Unknown.forward() got an unexpected keyword argument 'x'",
        "Unknown.forward() missing 1 required positional argument: 'positions'",
        "'Cache' object is not callable",
    ],
)
def test_what_no_release_has_or_all_have_is_not_answered(line: str) -> None:
    assert answered(line) == []


def test_a_package_that_is_there_goes_before_one_that_others_ask() -> None:
    line = "Trainer.__init__() got an unexpected keyword argument 'tokenizer'"
    assert [each.package for each in answered(line, other="2.0")] == ["other"]
    assert [each.package for each in answered(line, other="2.0", lib="2.0")] == ["lib"]


FRAME = '  File "/x/site-packages/top/a.py", line 3, in f'


def test_the_frame_names_the_package_that_asks_and_the_table_which_releases_do() -> None:
    (answer,) = answered(FRAME, "    from lib import gone", "ImportError: cannot import name 'gone' from 'lib'")
    assert (answer.caller, answer.asks) == ("top", ("<0.3",))
    line = "TypeError: __init__() got an unexpected keyword argument 'tokenizer'"
    (answer,) = answered(FRAME, "    super(Trainer).__init__(1)", "    a = Trainer(tokenizer=1)", line)
    assert (answer.package, answer.caller, answer.asks) == ("lib", "top", ("<0.2",))


def test_without_a_frame_only_a_release_that_asks_is_the_caller() -> None:
    line = "cannot import name 'gone' from 'lib'"
    assert answered(line)[0].caller == ""
    assert answered(line, top="0.2")[0].caller == "top" and answered(line, top=None)[0].caller == "top"
    assert answered(line, top="0.3")[0].caller == ""


@pytest.mark.parametrize(
    ("file", "package"),
    [
        ("/opt/lib/python3.11/site-packages/top/other/a.py", "top"),
        ("C:/env/Lib/site-packages/lib/a.py", "lib"),
        (".../top/other/a.py", "top"),
        ("/home/me/lib/src/top/a.py", "top"),
        ("/home/me/train.py", ""),
        ("/root/.cache/huggingface/modules/transformers_modules/top/lib/a.py", ""),
        ("top.py", ""),
    ],
)
def test_a_file_belongs_to_the_package_of_its_folder(file: str, package: str) -> None:
    assert package_of_file(file, Interfaces(table)) == package


def test_runs_are_joined_over_the_releases_that_were_read() -> None:
    releases = ("1.0", "1.1", "1.2", "2.0")
    assert joined_runs(releases, lambda each: is_in(each, (">=1.0,<1.1", ">=1.1,<1.2"))) == ("<1.2",)
    assert joined_runs(releases, lambda each: str(each) != "1.1") == ("<1.1", ">=1.2")
    assert joined_runs(releases, lambda each: False) == ()
