"""What a module defines and asks, and under which conditions."""

from __future__ import annotations

import pytest

from compatcheck.interfaces.conditions import atoms_of, opposite
from compatcheck.interfaces.reading import read_module
from compatcheck.interfaces.summary import Module

_AVAILABLE = "own.part.is_a_available"


def read(source: str) -> Module:
    return read_module(source, "own.part", is_package=False)


def asked(source: str) -> set[tuple[str, str, tuple[str, ...]]]:
    return {(ask.kind, f"{ask.target}.{ask.name}".rstrip("."), ask.conditions) for ask in read(source).asks}


@pytest.mark.parametrize(
    ("source", "kind", "target", "conditions"),
    [
        ("from peft import X", "import", "peft.X", ()),
        ("import torch._six", "import", "torch._six", ()),
        ("import torch\nx = torch.float8", "attribute", "torch.float8", ()),
        ("import torch.nn.functional as F\ny = F.sdpa(1)", "call", "torch.nn.functional.sdpa", ()),
        ("if is_peft_available():\n    from peft import X", "import", "peft.X", ("+peft",)),
        ("if is_torch_version('>=', '2.1'):\n    from torch import X", "import", "torch.X", ("torch>=2.1",)),
        ("import trl\nif parse(trl.__version__) < parse('1'):\n    from trl import X", "import", "trl.X", ("trl<1",)),
        ("def f():\n    from trl import X", "import", "trl.X", ()),
        ("def f():\n    if not is_peft_available():\n        raise E\n    import peft", "import", "peft", ("+peft",)),
        ("__import__('pkg_resources').declare_namespace(__name__)", "import", "pkg_resources", ()),
        ("import importlib\nimportlib.import_module('peft')", "import", "peft", ()),
        ("try:\n    from a import B\nexcept:\n    from a.c import B", "import", "a.c.B", ("!a.B",)),
        ("if required_torch_version(min_version=1.11):\n    import a", "import", "a", ("torch>=1.11",)),
        ("def is_new(): ...\nif is_new():\n    import a", "import", "a", ("=own.part.is_new",)),
        ("def is_a_available(): ...\nif is_a_available():\n    import a", "import", "a", ("+a", f"~{_AVAILABLE}")),
        ("from a import B\nclass C(B):\n    def f(self):\n        super().f(1, x=2)", "super", "a.B.f", ()),
        ("from a import B\nclass C:\n    def f(self):\n        b = B()\n        b.go()", "method", "a.B.go", ()),
    ],
)  # fmt: skip
def test_what_is_asked_of_others(source: str, kind: str, target: str, conditions: tuple[str, ...]) -> None:
    assert (kind, target, conditions) in asked(source)


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    from peft import X\nexcept ImportError:\n    X = None",
        "from contextlib import suppress\nwith suppress(ImportError):\n    from peft import X",
        "if TYPE_CHECKING:\n    from peft import X",
        "if some_flag:\n    from peft import X",
        "def f():\n    def g():\n        from peft import X",
        "def f(x):\n    if x:\n        return 1\n    from peft import X",
        "f = lambda: __import__('x')",
        "import os\nfrom json import nothing_like_it",
    ],
)
def test_what_is_guarded_or_may_not_run_is_not_asked(source: str) -> None:
    assert not asked(source)


@pytest.mark.parametrize(
    ("function", "atoms"),
    [
        ("def is_new():\n    'doc'\n    return is_torch_version('>=', '2.1')", ("torch>=2.1",)),
        ("LEAST = '0.15'\ndef is_torchao_available(min_version: str = LEAST):\n    return go()", ("torchao>=0.15",)),
        ("def is_torchao_available(min_version='0.4'):\n    return go()", ("torchao>=0.4",)),
        ("def is_new():\n    return go()", None),
        ("def is_bnb_available():\n    return _is_package_available('bitsandbytes')", ("+bitsandbytes",)),
        ("def is_x_available():\n    return _is_package_available('x.y')", None),
        (
            "def is_torchao_available():\n"
            "    exists = _is_package_available('torchao')\n"
            "    if exists:\n"
            "        found = version.parse(importlib.metadata.version('torchao'))\n"
            "        return compare_versions(found, '>=', '0.6.1')\n"
            "    return False",
            ("+torchao", "torchao>=0.6.1"),
        ),
        (
            "def is_torchao_available():\n"
            "    if importlib.util.find_spec('torchao') is None:\n"
            "        return False\n"
            "    LEAST = parse('0.16.0')\n"
            "    try:\n"
            "        found = parse(importlib_metadata.version('torchao'))\n"
            "    except PackageNotFoundError:\n"
            "        return False\n"
            "    if found < LEAST:\n"
            "        raise ImportError\n"
            "    return True",
            ("+torchao", "torchao>=0.16.0"),
        ),
        ("def is_gpu():\n    if not is_torch_available():\n        return False\n    return go()", ("+torch", "?")),
        (
            "def is_a():\n    try:\n        import a\n        there = True\n    except ImportError:\n"
            "        there = False\n    return there",
            None,
        ),
        ("def is_a():\n    if is_b_available():\n        return True\n    return is_c_available()", None),
        ("def is_new(given):\n    return is_torch_version('>=', '2.1')", None),
    ],
)  # fmt: skip
def test_what_a_test_of_the_package_itself_requires(function: str, atoms: tuple[str, ...] | None) -> None:
    assert next(iter(read(function).tests.values()), None) == atoms


def test_a_handler_that_raises_again_guards_nothing() -> None:
    source = "try:\n    from peft import X\nexcept ImportError as e:\n    raise ImportError('install peft') from e"
    assert ("import", "peft.X", ()) in asked(source)


def test_annotations_are_asked_unless_they_are_postponed() -> None:
    source = "import torch\ndef f(x: torch.float8): ..."
    assert ("attribute", "torch.float8", ()) in asked(source)
    assert ("attribute", "torch.float8", ()) not in asked("from __future__ import annotations\n" + source)


def test_a_call_has_its_places_and_keywords() -> None:
    (call,) = (ask for ask in read("from trl import T\nT(1, *more, b=2, **rest)\n").asks if ask.kind == "call")
    assert call.places == -1 and call.keywords == ("b",)


def test_a_dataclass_has_fields_and_others_have_none() -> None:
    fields = "    x: int\n    y: int = field(default=1)\n    z: ClassVar[int] = 2\n    w: int = field(init=False)\n"
    source = f"@dataclass\nclass A:\n{fields}class B: ...\n"
    found = read(source).classes
    assert found["A"].fields == ("x", "y=") and found["B"].fields is None


@pytest.mark.parametrize("atoms", [("+peft",), ("torch>=2.1",), ("python<3.10",), ("never",)])
def test_the_opposite_of_the_opposite_is_the_same(atoms: tuple[str, ...]) -> None:
    assert opposite(opposite(atoms)) == atoms


def test_of_several_conditions_nobody_can_tell_which_one_fails() -> None:
    import ast

    test = ast.parse("is_peft_available() and is_torch_version('>=', '2')", mode="eval").body
    assert atoms_of(test, {}) == ("+peft", "torch>=2")
    assert opposite(atoms_of(test, {})) == ("?",)


@pytest.mark.parametrize(
    ("source", "target", "conditions"),
    [
        ("if is_peft_available():\n    from peft import X\nX.go()", "peft.X.go", ("+peft",)),
        ("try:\n    from a import X\nexcept ImportError:\n    from b import X\nX.go()", "b.X.go", None),
        ("import t\nif t.__version__ >= '2.4':\n    op = t.op\nelse:\n    op = None\nop()", "t.op", None),
        (
            "if is_flash_attn_2_available():\n    from flash_attn import x",
            "flash_attn.x",
            ("+flash-attn", "flash-attn>=2"),
        ),
    ],
)
def test_a_name_is_followed_to_what_it_leads_to_where_it_leads_there(
    source: str, target: str, conditions: tuple[str, ...] | None
) -> None:
    found = {
        told for kind, name, told in asked(source) if name == target and (kind != "attribute" or told != ("t>=2.4",))
    }
    assert found == ({conditions} if conditions is not None else set())


def test_name_behind_a_check_of_the_package_itself_needs_that_package() -> None:
    source = "from .imports import is_rich_available\nif is_rich_available():\n    from rich.traceback import install\n"
    assert read_module(source, "accelerate.utils.rich", False).needs == {"install": ("rich",)}


def test_name_behind_an_import_check_needs_that_package() -> None:
    source = (
        "if is_deepspeed_available():\n    from .deep import Optim\n    class Wrapper: ...\n"
        "if is_peft_available():\n    from .a import Either\nelse:\n    from .b import Either\n"
        "if is_rich_available():\n    from .c import Later\nLater = None\n"
        "try:\n    from .d import Perhaps\nexcept ImportError:\n    pass\n"
    )
    read = read_module(source, "pkg.utils", is_package=False)
    assert read.needs == {"Optim": ("deepspeed",), "Wrapper": ("deepspeed",)}
