"""The code that asked for what is missing, from the frames above an error line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compatcheck.packages.interface_errors import MissingName, NoAttribute, UnexpectedKeyword
from compatcheck.packages.interface_failures import Failure, add_failure, from_fact, read_failure, to_fact
from compatcheck.packages.traceback_frames import Frame, called_in, frames_above

LIBRARY = """\
class Trainer:
    def __init__(self, model): ...
def pass_on(function, *args, **kwargs):
    return function(*args, **kwargs)
"""
KEYWORD = "TypeError: __init__() got an unexpected keyword argument 'tokenizer'"


def failed(folder: Path, code: str) -> list[str]:
    """The lines of the traceback of a script that fails."""
    (folder / "functools.py").write_text(LIBRARY, encoding="utf-8")
    (folder / "library.py").write_text(LIBRARY, encoding="utf-8")
    (folder / "run.py").write_text(code, encoding="utf-8")
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(folder)!r}); import run"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return ran.stderr.strip().split("\n")


def test_the_script_that_asks_is_the_caller(tmp_path: Path) -> None:
    found = read_failure(failed(tmp_path, "from library import Trainer\n\nTrainer(1, tokenizer=2)\n"))
    file = str(tmp_path / "run.py")
    assert found is not None and found.caller == Frame(file, "<module>", "Trainer(1, tokenizer=2)")
    assert read_failure(failed(tmp_path, "from library import gone\n")) == Failure(
        MissingName("library", "gone"), Frame(file, "<module>", "from library import gone")
    )


def test_the_frame_that_names_what_is_missing_is_the_caller(tmp_path: Path) -> None:
    code = "from library import Trainer, pass_on\nTrainer\npass_on(Trainer, 1, tokenizer=2)\n"
    found = read_failure(failed(tmp_path, code))
    assert found is not None and found.caller is not None
    assert (found.caller.file, found.caller.code) == (str(tmp_path / "run.py"), "pass_on(Trainer, 1, tokenizer=2)")


CPYTHON = """\
Traceback (most recent call last):
  File "D:\\work\\infer.py", line 3, in <module>
    from peft import PeftModel
  File "D:\\envs\\llm\\lib\\site-packages\\peft\\peft_model.py", line 4, in <module>
    from transformers import Cache
"""
IPYTHON = """\
File ~/conda/lib/python3.10/site-packages/peft/peft_model.py:123, in Model.load(self, model)
    122     a = 1
--> 123     from transformers import Cache
    124     b = 2
"""
OLD_IPYTHON = """\
/opt/python3.7/site-packages/peft/peft_model.py in load(self, x)
   1118     a = 1
-> 1120     from transformers import Cache
   1121     b = 2
"""
RICH = """\
│ /usr/lib/site-packages/peft/peft_model.py:123 in load        │
│                                                              │
│   122 │   a = 1                                              │
│ ❱ 123 │   from transformers import Cache                     │
"""
RANKS = """\
[rank0]:   File ".../peft/peft_model.py", line 4, in load
[rank0]:     from transformers import Cache
[rank0]:     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
CUT = """\
llm/peft/peft_model.py", line 4, in load
    from transformers import Cache
"""


@pytest.mark.parametrize("above", [CPYTHON, IPYTHON, OLD_IPYTHON, RICH, RANKS, CUT])
def test_frames_are_read_as_programs_print_them(above: str) -> None:
    innermost = frames_above(above.strip("\n").split("\n"))[0]
    assert innermost.file.endswith("/peft/peft_model.py") and innermost.code == "from transformers import Cache"


def test_prose_above_a_line_is_no_frame() -> None:
    assert frames_above(["I ran train.py today, and line 3 of it", "    says:"]) == ()
    assert frames_above([]) == ()


@pytest.mark.parametrize(
    ("code", "function", "called"),
    [
        ("trainer = SFTTrainer(", "__init__", "SFTTrainer"),
        ("trainer = trl.SFTTrainer(args, peft_config=None)", "__init__", "trl.SFTTrainer"),
        ("args = DPOConfig(peft=LoraConfig(r=8))", "__init__", ""),
        ("super().__init__(", "__init__", ""),
        ("self.accelerator.unwrap_model(model)", "unwrap_model", "self.accelerator.unwrap_model"),
        ("return wrap_unwrap_model(model)", "unwrap_model", ""),
    ],
)
def test_code_says_what_it_calls(code: str, function: str, called: str) -> None:
    assert called_in(code, function) == called


def test_an_old_interpreter_leaves_the_class_to_the_code() -> None:
    lines = ['  File "train.py", line 9, in main', "    trainer = SFTTrainer(", KEYWORD]
    found = read_failure(lines)
    assert found is not None and found.error == UnexpectedKeyword("SFTTrainer.__init__", "tokenizer")
    assert found.caller is not None and found.caller.file == "train.py"


def test_of_the_same_error_twice_the_one_with_a_caller_stays() -> None:
    bare, placed = Failure(UnexpectedKeyword("f", "x")), Failure(UnexpectedKeyword("C.f", "x"), Frame("a.py"))
    other = Failure(NoAttribute("C", "x"))
    assert add_failure([bare, other], placed) == [placed, other]
    assert add_failure([placed], bare) == [placed]


@pytest.mark.parametrize(
    "line",
    [
        KEYWORD,
        "f() missing 2 required positional arguments: 'a' and 'b'",
        "f() takes 1 positional argument but 2 were given",
        "No module named 'a.b'",
        "'A' object has no attribute 'b'",
        "'A' object is not callable",
    ],
)
def test_a_failure_survives_as_a_fact(line: str) -> None:
    found = read_failure(['  File "a.py", line 1, in f', "    g()", line])
    assert found is not None and from_fact(to_fact(found)) == found
    assert from_fact({"error": to_fact(found)["error"]}) is None
