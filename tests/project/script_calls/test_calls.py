"""What is read of the calls in a script: snippets, and the arguments that a call in them is given."""

from __future__ import annotations

import contextlib
import json
import textwrap
import time
from pathlib import Path

import pytest

from compatcheck.environment import Location
from compatcheck.errors import InputError
from compatcheck.files.reading import OversizeError
from compatcheck.project.python_values import Open, Reference
from compatcheck.project.script_calls.calls import Call, CommandLine
from compatcheck.project.script_calls.reader import read_calls, read_calls_in

HEAD = "import argparse, os, sys, torch\nfrom dataclasses import dataclass, field\nfrom pathlib import Path\n"
HEAD += "from transformers import HfArgumentParser, TrainingArguments, AutoModel\n"
OPEN = "open"


def arguments(code: str, command: CommandLine | None = None) -> list[dict[str, object]]:
    """The keywords of each call of TrainingArguments; the word ``open`` for what is not known."""
    read = read_calls_in(HEAD + textwrap.dedent(code), "train.py", command)
    made = [call.keywords for call in read.calls if call.callee == "transformers.TrainingArguments"]
    return [{name: OPEN if isinstance(value, Open) else value for name, value in each.items()} for each in made]


SNIPPETS: dict[str, tuple[str, dict[str, object]]] = {
    "names": (
        """
        LR = 1e-4
        TrainingArguments(learning_rate=LR, bf16=not False)
        """,
        {"learning_rate": 0.0001, "bf16": True},
    ),
    "aliases": (
        """
        from transformers import TrainingArguments as T
        T(seed=-1)
        """,
        {"seed": -1},
    ),
    "modules": (
        """
        import transformers as tf
        tf.TrainingArguments(seed=1)
        """,
        {"seed": 1},
    ),
    "dicts": (
        """
        a = dict(x=1)
        a['y'] = 2
        a.update(z=3)
        TrainingArguments(**{**a, 'x': 4})
        """,
        {"x": 4, "y": 2, "z": 3},
    ),
    "later changes": (
        """
        a = {'x': 1}
        b = a
        TrainingArguments(**b)
        a['x'] = 2
        """,
        {"x": 1},
    ),
    "shared": (
        """
        a = {'x': 1}
        b = a
        a['x'] = 2
        TrainingArguments(**b)
        """,
        {"x": 2},
    ),
    "strings": (
        """
        n = 'm'
        TrainingArguments(a=f'o/{n}-{2}', b='o' + n, c=os.path.join('o', n), d=str(Path('o') / n))
        """,
        {"a": "o/m-2", "b": "om", "c": "o/m", "d": "o/m"},
    ),
    "torch": (
        """
        TrainingArguments(a=torch.float16, b=getattr(torch, 'bfloat16'))
        """,
        {"a": Reference("torch.float16"), "b": Reference("torch.bfloat16")},
    ),
    "environment": (
        """
        TrainingArguments(a=os.environ.get('A', 'b'), b=os.getenv('B'))
        """,
        {"a": OPEN, "b": OPEN},
    ),
    "main": (
        """
        def main(lr=1e-4):
            TrainingArguments(lr=lr)
        if __name__ == '__main__':
            main(lr=2e-4)
        """,
        {"lr": 0.0002},
    ),
    "closures": (
        """
        def a(x):
            def b():
                return x
            return b
        TrainingArguments(x=a(1)())
        """,
        {"x": 1},
    ),
    "branches": (
        """
        if torch.cuda.is_available():
            a, b = 1, 2
        else:
            a, b = 1, 3
        TrainingArguments(a=a, b=b)
        """,
        {"a": 1, "b": OPEN},
    ),
    "loops": (
        """
        x = 1
        for i in open('f'):
            x = x + 1
            y = 1
        TrainingArguments(x=x, y=y)
        """,
        {"x": OPEN, "y": OPEN},
    ),
    "rounds": (
        """
        x = []
        for i in ['q', 'v']:
            x.append(i + '_proj')
        TrainingArguments(x=x)
        """,
        {"x": ["q_proj", "v_proj"]},
    ),
    "early return": (
        """
        d = {'x': 1}
        def f():
            d['x'] = 2
            if input():
                return
            d['x'] = 1
        f()
        TrainingArguments(**d)
        """,
        {"x": OPEN},
    ),
    "unknown code": (
        """
        import lib
        d = {'x': 1}
        lib.change(d)
        TrainingArguments(**d, y=1)
        """,
        {"y": 1},
    ),
    "callbacks": (
        """
        import lib
        x = 1
        def f():
            global x
            x = 2
        lib.run(f)
        TrainingArguments(x=x)
        """,
        {"x": OPEN},
    ),
    "tries": (
        """
        try:
            import bitsandbytes
            has = True
        except ImportError:
            has = False
        TrainingArguments(x=has)
        """,
        {"x": OPEN},
    ),
    "classes": (
        """
        class A:
            lr = 1e-4
            def __init__(self, x):
                self.x = x
            def make(self):
                return TrainingArguments(lr=self.lr, x=self.x)
        A(3).make()
        """,
        {"lr": 0.0001, "x": 3},
    ),
    "own kinds": (
        """
        @dataclass
        class Mine(TrainingArguments):
            lr: float = field(default=1e-4)
            x: int = 1
        Mine(x=2)
        """,
        {"lr": 0.0001, "x": 2},
    ),
    "partial": (
        """
        import functools
        make = functools.partial(TrainingArguments, x=1)
        make(y=2)
        """,
        {"x": 1, "y": 2},
    ),
    "argparse": (
        """
        p = argparse.ArgumentParser()
        p.add_argument('--learning-rate', '-l', type=float, default=1e-4)
        p.add_argument('--bf16', action='store_true')
        p.add_argument('data')
        a = p.parse_args()
        TrainingArguments(lr=a.learning_rate, bf16=a.bf16, d=a.data)
        """,
        {"lr": 0.0001, "bf16": False, "d": OPEN},
    ),
    "dataclasses": (
        """
        @dataclass
        class A:
            lr: float = 1e-4
            t: list = field(default_factory=lambda: ['q'])
        a, = HfArgumentParser((A,)).parse_args_into_dataclasses()
        TrainingArguments(lr=a.lr, t=a.t)
        """,
        {"lr": 0.0001, "t": ["q"]},
    ),
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_arguments_are_read(name: str) -> None:
    code, expected = SNIPPETS[name]
    assert arguments(code) == [expected]


COMMANDS = {
    "fire": "import fire\ndef main(lr: float = 1e-4, out=None):\n    TrainingArguments(lr=lr)\nfire.Fire(main)",
    "typer": "import typer\ndef main(lr: float = typer.Option(1e-4)):\n    TrainingArguments(lr=lr)\ntyper.run(main)",
    "typer app": "import typer\napp = typer.Typer()\n@app.command()\ndef main(lr: float = 1e-4):\n"
    "    TrainingArguments(lr=lr)\nif __name__ == '__main__':\n    app()",
    "click": "import click\n@click.command()\n@click.option('--lr', default=1e-4)\ndef main(lr):\n"
    "    TrainingArguments(lr=lr)\nmain()",
    "tyro": "import tyro\n@dataclass\nclass A:\n    lr: float = 1e-4\na = tyro.cli(A)\nTrainingArguments(lr=a.lr)",
    "namespace": "p = argparse.ArgumentParser()\nfor n in ['--lr']:\n    p.add_argument(n, type=float, default=1e-4)\n"
    "settings = vars(p.parse_known_args()[0])\nTrainingArguments(**settings)",
    "dataclasses": "@dataclass\nclass A:\n    lr: float = 1e-4\nTrainingArguments(lr=HfArgumentParser(A)"
    ".parse_args_into_dataclasses()[0].lr)",
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    ("command", "rate"), [(None, 1e-4), (CommandLine({}), 1e-4), (CommandLine({"lr": 2e-4}), 2e-4)]
)
def test_command_gives_its_defaults_or_flags(name: str, command: CommandLine | None, rate: float) -> None:
    assert arguments(COMMANDS[name], command) == [{"lr": rate}]


UNKNOWN = {
    "decorator": "import lib\n@lib.wrapped\ndef f():\n    return 1\nTrainingArguments(x=f())",
    "generator": "def f():\n    yield 1\nTrainingArguments(x=f())",
    "enumeration": "import enum\nclass E(str, enum.Enum):\n    A = 'a'\nTrainingArguments(x=E.A)",
    "exec": "x = 1\nexec(open('configurator.py').read())\nTrainingArguments(x=x)",
    "own parser": "p = argparse.ArgumentParser()\np.add_argument('--x', default=1)\na = p.parse_args(['--x', '2'])\n"
    "TrainingArguments(x=a.x)",
    "refused default": "p = argparse.ArgumentParser()\np.add_argument('--x')\na = p.parse_args()\n"
    "if a.x is None:\n    raise ValueError\nTrainingArguments(x=a.x)",
    "asserted default": "import fire\ndef main(x=''):\n    assert x\n    TrainingArguments(x=x)\nfire.Fire(main)",
    "unknown star": "from lib import *\nTrainingArguments(x=y)",
    "missing file": "import yaml\nc = yaml.safe_load(open('none.yaml'))\nTrainingArguments(x=c['x'])",
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_the_text_does_not_give_is_open(name: str) -> None:
    assert arguments(UNKNOWN[name]) == [{"x": OPEN}]


def test_values_of_a_configuration_beside_the_script_have_their_place(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("model: m\ntrain:\n  lr: 0.5\n")
    (tmp_path / "t.py").write_text(
        "import yaml\nfrom t5 import C\nwith open('c.yaml') as f:\n    c = yaml.safe_load(f)\nC(**c['train'])\n"
    )
    (made,) = read_calls(str(tmp_path / "t.py")).calls
    assert made.keywords == {"lr": 0.5} and made.places["lr"] == Location(str(tmp_path / "c.yaml"), 3)


GENERATED = {
    "assignments": "".join(f"x{i} = {i}\n" for i in range(50_000)),
    "conditions": "".join(f"if y:\n    x = {i}\n" for i in range(4000)),
    "loops": "".join(f"{' ' * i}for a{i} in y:\n" for i in range(19)) + " " * 19 + "x = 1",
    "functions": "def f0(): pass\n" + "".join(f"def f{i + 1}():\n  f{i}()\n  f{i}()\n" for i in range(40)) + "f40()",
    "lists": "x = [1]\n" + "x = x + x\n" * 60,
    "nested lists": "x = [1]\n" + "x = [x, x]\n" * 60 + "import t\nt.C(x=x)",
    "numbers": "x = 9 ** 9 ** 9 ** 9",
    "sums": "x = " + "+".join(["1"] * 20_000),
    "attributes": "x = y" + ".a()" * 3000,
    "circle": "x = []\nx.append(x)\nimport t\nt.C(x=x)",
}


@pytest.mark.parametrize("name", GENERATED)
def test_generated_code_is_read_or_refused_in_time(name: str) -> None:
    started = time.process_time()
    with contextlib.suppress(OversizeError):
        read_calls_in(GENERATED[name], "train.py")
    assert time.process_time() - started < 3


PARSED = """
    p = argparse.ArgumentParser()
    p.add_argument('--learning-rate', type=float, default=1e-4)
    p.add_argument('--bf16', action='store_true')
    p.add_argument('--dtype', choices=['auto', 'half'])
    p.add_argument('data')
    a = p.parse_args()
    TrainingArguments(lr=a.learning_rate, bf16=a.bf16, t=a.dtype, d=a.data)
"""


@pytest.mark.parametrize("rate", ["2e-4", 2e-4])
def test_launch_line_gives_arguments(rate: object) -> None:
    at = Location("run.sh", 3)
    command = CommandLine({"learning_rate": rate, "bf16": True}, ("d.json",), {"learning_rate": at, 0: at})
    (made,) = (call for call in read_calls_in(HEAD + textwrap.dedent(PARSED), "t.py", command).calls if call.keywords)
    assert made.keywords == {"lr": 2e-4, "bf16": True, "t": None, "d": "d.json"}
    assert made.places["lr"] == made.places["d"] == at


def test_default_that_decides_a_branch_leaves_the_other_in_doubt() -> None:
    code = "p = argparse.ArgumentParser()\np.add_argument('--lora', action='store_true')\na = p.parse_args()\n"
    code += "from peft import LoraConfig\nif a.lora:\n    LoraConfig(r=8)\n"
    (lora,) = (call for call in read_calls_in(HEAD + code, "t.py").calls if call.callee == "peft.LoraConfig")
    assert "--lora" in lora.doubt
    (lora,) = read_calls_in(HEAD + code, "t.py", CommandLine({"lora": True})).calls
    assert not lora.doubt


def test_library_class_takes_flags_and_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "sft.yaml").write_text("learning_rate: 1.0e-4\nlora_r: 16\n")
    (tmp_path / "train.py").write_text(
        "from trl import ModelConfig, SFTConfig, TrlParser\n"
        "parser = TrlParser((SFTConfig, ModelConfig))\nargs, model = parser.parse_args_and_config()\n"
    )
    path = str(tmp_path / "train.py")
    sft, _ = read_calls(path, CommandLine({"config": "sft.yaml", "bf16": True})).calls
    assert sft.callee == "trl.SFTConfig" and not sft.gap
    assert sft.keywords["learning_rate"] == 1e-4 and sft.keywords["bf16"] is True
    assert sft.places["learning_rate"] == Location(str(tmp_path / "sft.yaml"), 1)
    assert all(call.gap for call in read_calls(path).calls)


def test_objects_keep_what_is_set_and_called_on_them() -> None:
    code = "m = AutoModel.from_pretrained('x')\nm.config.use_cache = False\nm.gradient_checkpointing_enable()\n"
    read = read_calls_in(HEAD + code, "t.py")
    model, enable = read.calls
    assert enable == Call(".gradient_checkpointing_enable", Location("t.py", 7), owner=model)
    (cache,) = read.assignments
    assert (cache.owner, cache.name, cache.value, cache.at) == (model, "config.use_cache", False, Location("t.py", 6))


@pytest.mark.parametrize(("made", "doubt"), [("A()", ""), ("", "training_step")])
def test_method_that_the_library_calls_is_certain(made: str, doubt: str) -> None:
    code = "import lightning\nclass A(lightning.LightningModule):\n    def training_step(self, batch):\n"
    code += f"        with torch.autocast('cuda', dtype=torch.float16):\n            return 1\n{made}\n"
    (cast,) = (call for call in read_calls_in(HEAD + code, "t.py").calls if call.callee == "torch.autocast")
    assert (
        cast.keywords == {"dtype": Reference("torch.float16")}
        and doubt in cast.doubt
        and bool(cast.doubt) == bool(doubt)
    )


def test_module_beside_the_script_is_read(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text("LR = 1e-4\ndef scaled(x):\n    return LR * x\n")
    script = tmp_path / "train.py"
    script.write_text("import settings\nfrom settings import scaled\nfrom t import C\nC(a=settings.LR, b=scaled(2))\n")
    (made,) = read_calls(str(script)).calls
    assert made.keywords == {"a": 1e-4, "b": 2e-4}
    assert made.places["a"] == Location(str(tmp_path / "settings.py"), 1)


@pytest.mark.parametrize("code", ["print 'x'", "def f(:", "x = (" * 300, "a\0b", "x = " + "-" * 50_000 + "1"])
def test_what_is_no_python_is_an_input_error(code: str) -> None:
    with pytest.raises(InputError, match="train.py"):
        read_calls_in(code, "train.py")


def notebook(*cells: str, outputs: str = "", indent: int | None = 1) -> str:
    code = [
        {
            "cell_type": "code",
            "metadata": {},
            "outputs": [{"output_type": "stream", "text": [outputs]}],
            "source": cell.splitlines(keepends=True),
        }
        for cell in cells
    ]
    text = {"cell_type": "markdown", "metadata": {}, "source": ["TrainingArguments(lr=9)\n"]}
    return json.dumps({"cells": [text, *code], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=indent)


CELLS = (
    "!pip install \\\n  transformers\n%matplotlib inline\nimport transformers as tf\nlr = 1e-4  # größer\nfiles = !ls",
    "%%bash\nlr = 2",
    "%%time\ntf.TrainingArguments(\n    lr=lr,\n)\ntf?",
)


def test_notebook_has_the_lines_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "train.ipynb"
    path.write_text(notebook(*CELLS, outputs="    lr=lr,\n"), encoding="utf-8")
    (made,) = read_calls(str(path)).calls
    lines = path.read_text(encoding="utf-8").splitlines()
    assert made.keywords == {"lr": 1e-4}
    assert "tf.TrainingArguments(" in lines[(made.at.line or 0) - 1]
    assert "lr = 1e-4" in lines[(made.places["lr"].line or 0) - 1]


def test_notebook_in_one_line_is_read() -> None:
    (made,) = read_calls_in(notebook(*CELLS, indent=None), "train.ipynb").calls
    assert made.keywords == {"lr": 1e-4} and made.at == Location("train.ipynb", 1)


@pytest.mark.parametrize("text", ["", "[]", '{"cells": 1}', '{"cells": [', '{"cells": [{"source"', "[" * 9999, "{}x{"])
def test_what_is_no_notebook_is_an_input_error_or_empty(text: str) -> None:
    with contextlib.suppress(InputError):
        assert not read_calls_in(text, "train.ipynb").calls


def test_syntax_error_in_a_notebook_has_its_line() -> None:
    text = notebook("x = 1", "print 'x'")
    line = next(i for i, each in enumerate(text.splitlines(), 1) if "print" in each)
    with pytest.raises(InputError, match=f"line {line}:"):
        read_calls_in(text, "train.ipynb")


@pytest.mark.parametrize("mebibytes", [50, 65])
def test_notebook_with_large_outputs_is_read_in_time(tmp_path: Path, mebibytes: int) -> None:
    path = tmp_path / "train.ipynb"
    path.write_text(notebook("import transformers as tf\ntf.TrainingArguments()", outputs="x" * (mebibytes << 20)))
    started = time.process_time()
    if mebibytes < 64:
        assert read_calls(str(path)).calls
    else:
        with pytest.raises(InputError, match="64 MiB"):
            read_calls(str(path))
    assert time.process_time() - started < 2
