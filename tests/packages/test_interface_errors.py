"""Error lines of names, parameters and attributes as CPython prints them and people quote them."""

from __future__ import annotations

import pytest

from compatcheck.environment.vocabulary import INTERFACE_ERROR
from compatcheck.packages.interface_errors import (
    InterfaceError,
    MissingArgument,
    MissingName,
    NoAttribute,
    TooManyPositionals,
    UnexpectedKeyword,
    WrongKind,
    missing_name,
    read_interface_error,
)
from compatcheck.packages.interface_failures import KINDS


def raised(code: str) -> str:
    """What this interpreter says of code that fails."""
    try:
        exec(code, {"__name__": "script"})
    except (TypeError, AttributeError, ImportError) as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError(f"{code} does not fail")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("def f(): ...\nf(a=1)", UnexpectedKeyword("f", "a")),
        ("class C:\n  def m(self): ...\nC().m(a=1)", UnexpectedKeyword("C.m", "a")),
        (
            "def g():\n  class C:\n    def __init__(self, a): ...\n  return C\ng()(b=1)",
            UnexpectedKeyword("C.__init__", "b"),
        ),
        ("def f(a, b, c): ...\nf()", MissingArgument("f", ("a", "b", "c"))),
        ("def f(a, b): ...\nf()", MissingArgument("f", ("a", "b"))),
        ("def f(*, a): ...\nf()", MissingArgument("f", ("a",))),
        ("def f(a, b=1): ...\nf(1, 2, 3)", TooManyPositionals("f", 2, 3)),
        ("def f(a, *, b): ...\nf(1, 2, b=1)", TooManyPositionals("f", 1, 2)),
        ("class C:\n  def m(self): ...\nC().m(1)", TooManyPositionals("C.m", 1, 2)),
        ("import json\njson.no_such", MissingName("json", "no_such")),
        ("from json import no_such", MissingName("json", "no_such")),
        ("import json.no_such", MissingName("json.no_such", None)),
        ("import no_such_at_all", MissingName("no_such_at_all", None)),
        ("class C: ...\nC().no_such", NoAttribute("C", "no_such")),
        ("class C: ...\nC.no_such", NoAttribute("C", "no_such")),
        ("class C: ...\nC()[0]", WrongKind("C", "subscriptable")),
        ("class C: ...\nC()()", WrongKind("C", "callable")),
        ("class C: ...\nlist(C())", WrongKind("C", "iterable")),
    ],
)
def test_what_this_interpreter_raises_is_read(code: str, error: InterfaceError) -> None:
    assert read_interface_error(raised(code)) == error


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("TypeError: __init__() got an unexpected keyword argument 'tokenizer'", "__init__ tokenizer"),
        ("unwrap_model() got an unexpected keyword argument keep_torch_compile。", "unwrap_model keep_torch_compile"),
        ("LoraConfig got an unexpected keyword argument `use_dora`", "LoraConfig use_dora"),
        ("it stops: `A.f()` got an unexpected keyword argument `x`. Did you mean 'y'?", "A.f x"),
        ("[rank1]: AttributeError: module torch has no attribute xpu", "torch xpu"),
        ("报 cannot import name cached_download from huggingface_hub (C:\\a.py)", "huggingface_hub cached_download"),
        ("ImportError: cannot import name 'AutoModel'", " AutoModel"),
        ("Tok2 has no attribute all_tokens. Did you mean: 'all_special'?", "Tok2 all_tokens"),
    ],
)
def test_a_line_within_prose_counts_without_its_exception(line: str, error: str) -> None:
    found = read_interface_error(line)
    assert found is not None and " ".join(map(str, found)) == error


@pytest.mark.parametrize(
    "line",
    [
        "ImportError: cannot import name 'A' from partially initialized module 'pkg' (most likely a circular import)",
        "ImportError: cannot import name 'A' from 'pkg' (unknown location)",
        "ModuleNotFoundError: No module named 'pkg.b'; 'pkg' is not a package",
        "it got an unexpected keyword argument",
        "the model has no attribute that I know of",
        "this object is not worth it, and takes 3 positional arguments",
    ],
)
def test_other_causes_and_other_words_are_no_error(line: str) -> None:
    assert read_interface_error(line) is None


def test_only_a_name_within_a_package_tells_its_releases_apart() -> None:
    assert missing_name(MissingName("a", "b")) == {"module": "a", "name": "b"}
    assert missing_name(MissingName("a.b", None)) == {"module": "a.b", "name": None}
    assert missing_name(MissingName("a", None)) is None and missing_name(NoAttribute("A", "b")) is None


def test_facts_know_every_kind_of_error() -> None:
    assert tuple(INTERFACE_ERROR.schema["enum"]) == KINDS


def test_a_long_hostile_line_is_read_in_linear_time() -> None:
    for line in ("A" * 4_000, "a_" * 2_000, "a." * 2_000, "'" * 4_000, "A." * 1_000 + "()" * 1_000):
        for mark in (
            "got an unexpected keyword argument",
            "has no attribute",
            "missing 1 required positional argument",
        ):
            assert read_interface_error(f"{line} {mark} ") is None
