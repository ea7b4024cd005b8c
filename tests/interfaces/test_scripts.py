"""What a script asks of packages, each thing with its place."""

from __future__ import annotations

import ast
import textwrap
import time

import pytest

from compatcheck.interfaces.scripts import Asked, asked_by


def asks(text: str, loaded: bool = False) -> list[Asked]:
    return [each for each in asked_by(ast.parse(textwrap.dedent(text)), loaded) if each.ask.kind != "import"]


def called(text: str, loaded: bool = False) -> list[str]:
    found = (each.ask for each in asks(text, loaded))
    return [".".join(filter(None, (each.target, each.name))) for each in found if each.kind in ("call", "method")]


def test_call_in_inner_function_has_its_keywords_and_lines() -> None:
    (found,) = asks(
        """
        from trl import SFTTrainer as T
        def main(args):
            def train(model):
                return T(model, args,
                    tokenizer=None,
                    packing=True)
        """
    )
    assert found.ask[:5] == ("call", "trl.SFTTrainer", "", 2, ("packing", "tokenizer"))
    assert (found.ask.line, found.given, found.lines) == (5, ("model", "args"), (7, 6))


@pytest.mark.parametrize(
    "text",
    [
        "from trl import f\ndef g(f):\n    f(1)",
        "from trl import f\nf = print\nf(1)",
        "from trl import f\ndef g():\n    for f in ():\n        f(1)",
        "try:\n    from trl import f\nexcept ImportError:\n    f = None",
        "from trl import f\nimport pytest\nwith pytest.raises(TypeError):\n    f(1)",
        "from trl import f\nif hasattr(f, 'x'):\n    f(1)",
        "from .trl import f\nf(1)",
        "if True:\n    from trl import f\nelse:\n    from peft import f\nf(1)",
    ],
)
def test_name_of_something_else_or_guarded_call_is_not_asked(text: str) -> None:
    assert not [each for each in called(text) if each != "pytest.raises"]


def test_method_of_object_is_asked_unless_it_is_made_twice() -> None:
    assert called("from trl import A\na = A()\na.train(1)") == ["trl.A", "trl.A.train"]
    assert called("from trl import A, B\na = A()\nif x:\n    a = B()\na.train(1)") == ["trl.A", "trl.B"]


def test_condition_of_the_script_itself_hides_no_call() -> None:
    text = "from trl import f\nif args.x:\n    f(1)"
    assert called(text) == ["trl.f"]
    assert called(text, loaded=True) == []


def test_call_behind_a_test_of_versions_has_that_condition() -> None:
    text = "import torch\nfrom trl import f\nif torch.__version__ >= '2.5':\n    f(1)"
    (found,) = (each for each in asks(text) if each.ask.kind == "call")
    assert found.ask.conditions == ("torch>=2.5",)


def test_the_time_of_a_name_that_is_bound_again_and_again_is_linear() -> None:
    def seconds(count: int) -> float:
        tree = ast.parse("import torch\n" + "x = torch.f()\n" * count)
        started = time.process_time()
        asked_by(tree)
        return time.process_time() - started

    seconds(10)
    assert seconds(24_000) < 9 * max(seconds(6_000), 0.05)
