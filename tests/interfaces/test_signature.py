"""Parameters as text, and what is wrong with a call."""

from __future__ import annotations

import ast
import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compatcheck.interfaces.signature import parse, problem, signature_of


def signature(source: str) -> str:
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    return signature_of(function)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("def f(a, b=1, *c, d, e=2, **g): ...", "a b= *c d e= **g"),
        ("def f(a, /, b, *, c): ...", "a / b * c"),
        ("def f(): ...", ""),
        ("@torch.no_grad()\ndef f(a): ...", "a"),
        ("@some_other\ndef f(a): ...", "?"),
        (
            "@deprecate_kwarg('tokenizer', new_name='processing_class', version='5')\ndef f(x): ...",
            "x +tokenizer>processing_class",
        ),
        (
            "@_deprecate_arguments(version='1', deprecated_args=['old', 'older'])\ndef f(x): ...",
            "x +1 +old +older".replace("+1 ", ""),
        ),
        ("def save(self, **kwargs):\n    super().save(**kwargs)", "self **^"),
        ("def save(self, **kwargs):\n    print(kwargs)\n    super().save(**kwargs)", "self **kwargs"),
    ],
)
def test_a_function_is_written_as_one_line(source: str, text: str) -> None:
    assert signature(source) == text


@pytest.mark.parametrize(
    ("text", "places", "names", "wrong"),
    [
        ("model args= *rest", 5, (), None),
        ("model args=", 3, (), ("positional", "2")),
        ("model args=", 1, ("tokenizer",), ("keyword", "tokenizer")),
        ("model args= **more", 1, ("tokenizer",), None),
        ("model args=", 0, ("args",), ("missing", "model")),
        ("model args=", 1, ("model",), ("twice", "model")),
        ("model args=", -1, ("args",), None),
        ("model * key", 1, (), ("missing", "key")),
        ("model +old>new new=", 1, ("old",), None),
        ("model new +old>new", 1, ("old",), None),
        ("model new +old", 1, ("old",), ("missing", "new")),
        ("a / b=", 1, ("a",), ("keyword", "a")),
        ("?", 9, ("anything",), None),
    ],
)
def test_a_call_is_held_against_a_signature(
    text: str, places: int, names: tuple[str, ...], wrong: tuple[str, str] | None
) -> None:
    assert problem(parse(text), places, names) == wrong


@given(
    st.integers(0, 3),
    st.integers(0, 3),
    st.booleans(),
    st.booleans(),
    st.integers(0, 5),
    st.sets(st.sampled_from("abcdefz"), max_size=4),
)
def test_a_call_fails_where_python_says_so(
    required: int, optional: int, rest: bool, more: bool, places: int, names: set[str]
) -> None:
    """The same verdict as `inspect.Signature.bind`, for whatever function and call."""
    letters = "abcdef"
    listed = [*letters[:required], *(f"{each}=0" for each in letters[required : required + optional])]
    listed += ["*rest"] * rest + ["**more"] * more
    source = f"def f({', '.join(listed)}): ..."
    scope: dict[str, object] = {}
    exec(source, scope)
    real = inspect.signature(scope["f"])  # type: ignore[arg-type]
    try:
        real.bind(*range(places), **dict.fromkeys(names, 0))
        fails = False
    except TypeError:
        fails = True
    assert (problem(parse(signature(source)), places, tuple(sorted(names))) is not None) == fails
