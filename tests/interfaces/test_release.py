"""One release as its modules define it, by small packages and by those that are installed."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import numpy
import pytest

from compatcheck.interfaces.module_names import module_name
from compatcheck.interfaces.reading import read_module
from compatcheck.interfaces.release import Release
from compatcheck.interfaces.signature import parse
from compatcheck.interfaces.summary import Ask, Module


def release(**files: str) -> Release:
    modules = {}
    for name, source in files.items():
        module = "pkg" if name == "init" else f"pkg.{name}"
        modules[module] = read_module(source, module, is_package=name == "init")
    return Release(modules)


def names(**files: str) -> dict[str, dict[str, int]]:
    return release(**files).names


def ask(kind: str, target: str, name: str = "", places: int = 0, *keywords: str) -> Ask:
    return Ask(kind, target, name, places, keywords, "", (), 1)


BASE = "class Base:\n    def __init__(self, a, b=1, **kwargs): ...\n    def go(self, x): ...\n"
PACKAGE = {
    "init": "from .base import Base\nfrom .child import Child, Config\nfrom .star import *\n",
    "base": BASE,
    "child": (
        "from dataclasses import dataclass\nfrom other import Arguments\nfrom .base import Base\n"
        "class Child(Base):\n    def __init__(self, c, **kwargs):\n        super().__init__(**kwargs)\n"
        "@dataclass\nclass Config(Arguments):\n    size: int = 1\n"
    ),
    "star": "__all__ = ['shown']\ndef shown(a): ...\ndef hidden(): ...\n",
}


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (ask("import", "pkg", "Base"), None),
        (ask("import", "pkg", "shown"), None),
        (ask("import", "pkg", "hidden"), ("import", "pkg.hidden")),
        (ask("import", "pkg.gone"), ("import", "pkg.gone")),
        (ask("attribute", "pkg.base.Nothing"), ("attribute", "pkg.base.Nothing")),
        (ask("call", "pkg.shown", "", 1), None),
        (ask("call", "pkg.shown", "", 2), ("positional", "1")),
        (ask("call", "pkg.Base", "", 0, "a", "anything"), None),
        (ask("call", "pkg.Child", "", 0, "c", "a"), None),
        (ask("call", "pkg.Config", "", 0, "whatever"), None),
        (ask("method", "pkg.Child", "go", 0, "y"), ("keyword", "y")),
        (ask("method", "pkg.Child", "gone"), ("member", "Child.gone")),
        (ask("call", "pkg.Base.go", "", 1), None),
        (ask("call", "pkg.Base.gone", "", 1), ("member", "Base.gone")),
    ],
)
def test_an_ask_is_answered(asked: Ask, answer: tuple[str, str] | None) -> None:
    assert release(**PACKAGE).answer(asked) == answer


def test_fields_of_another_package_are_named_in_a_signature() -> None:
    found = release(**PACKAGE)
    assert found.signature(found.find("pkg.Config")) == "^other.Arguments size="


def test_a_constructor_comes_from_the_first_base_that_has_one() -> None:
    found = release(init=BASE + "class Mixin:\n    def also(self): ...\nclass Both(Mixin, Base): ...\n")
    assert found.signature(found.find("pkg.Both")) == "a b= **kwargs"
    hands_on = "class Mixin:\n    def __init__(self, **kwargs):\n        super().__init__(**kwargs)\n"
    assert release(init=hands_on).constructor("pkg", "Mixin") == "* **kwargs"


def test_a_module_that_gives_names_up_on_demand_lacks_none() -> None:
    found = release(init="def __getattr__(name): ...\n")
    assert found.answer(ask("import", "pkg", "Anything")) is None


@pytest.fixture(scope="module")
def peft() -> Release:
    return Release(installed("peft"))


def installed(package: str, *files: str) -> dict[str, Module]:
    spec = importlib.util.find_spec(package)
    assert spec and spec.origin
    root = Path(spec.origin).parent
    modules = {}
    for path in (found for pattern in files or ("**/*.py",) for found in root.glob(pattern)):
        name, is_package = module_name(f"{package}/{path.relative_to(root).as_posix()}")
        if name is None:
            continue
        text = path.read_text(encoding="utf-8") if path.suffix != ".so" else ""
        key = f"{name}!" if path.suffix == ".pyi" else name
        modules[key] = read_module(text, name, is_package) if text or is_package else Module({"*": 2})
    return modules


def test_what_is_read_of_an_installed_package_is_what_python_says_of_it(peft: Release) -> None:
    """Every public callable of peft: its parameters as `inspect` has them, where the text tells them."""
    module = importlib.import_module("peft")
    compared = 0
    for name in sorted(dir(module)):
        value = getattr(module, name)
        if name.startswith("_") or not callable(value) or inspect.isabstract(value):
            continue
        found = peft.find(f"peft.{name}")
        text = peft.signature(found)
        if text is None or {"?", "**^"} & set(text.split()) or "^" in text:
            continue
        try:
            real = list(inspect.signature(value).parameters.values())
        except ValueError:
            continue
        if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in real):
            continue
        named = [each.name for each in real if each.kind is not inspect.Parameter.VAR_POSITIONAL]
        assert list(parse(text).keywords) == named, name
        compared += 1
    assert compared > 70


@pytest.mark.parametrize(
    ("source", "bound"),
    [
        ("import os.path\nfrom a import b as c\n", {"os", "c"}),
        ("X: int = 1\nY, (Z, *W) = f()\n", {"X", "Y", "Z", "W"}),
        ("if f():\n    from .a import x\nelse:\n    x = None\n    y = 1\n", {"x", "y"}),
        ("try:\n    import a\nexcept ImportError:\n    b = 1\nfinally:\n    c = 2\n", {"a", "b", "c"}),
        ("for i in range(3):\n    with f() as g:\n        h = i\n", {"i", "g", "h"}),
        ("def f():\n    inside = 1\nclass C:\n    inner = 2\n", {"f", "C"}),
        ("def __getattr__(name):\n    return 1\n", {"*"}),
        ("from numpy import *\n", {"*"}),
        ("a = globals()['__file__']\n", {"a"}),
        ("for n in f():\n    globals()[n] = 1\n", {"n", "*"}),
        ("for n in ('a', 'b'):\n    m = f'_{n}'\n    globals()[m] = globals()[n] = 1\n", {"n", "m", "*"}),
        ("for n in ('a', 'b'):\n    m = f'{n}_x'\n    globals()[m] = 1\n", {"n", "m", "a_x", "b_x"}),
        ("def f():\n    globals()['a'] = 1\n", {"f", "*"}),
        ("x = (", {"*"}),
        ("S = {'a': ['B', 'no name']}\nimport sys\nsys.modules[__name__] = Lazy(S)\n", {"S", "sys", "a", "B"}),
        ("__getattr__, __dir__ = attach({'part': ['thing']})\n", {"__getattr__", "__dir__", "part", "thing"}),
    ],
)
def test_a_module_holds_what_is_bound_at_its_top_level_in_some_branch(source: str, bound: set[str]) -> None:
    assert set(read_module(source, "pkg.part", is_package=False).names) == bound


@pytest.mark.parametrize(
    ("body", "given"),
    [
        (
            "if name == 'a':\n    return 1\nelif name in {'b', 'c'}:\n    return 2\nraise AttributeError",
            {"a", "b", "c"},
        ),
        ("if name in TABLE:\n    return TABLE[name]\nraise AttributeError", {"d", "e"}),
        ("if name in GONE:\n    raise AttributeError\nif name not in TABLE:\n    raise KeyError\nreturn 1", {"d", "e"}),
        ("found = TABLE.get(name)\nif found is not None:\n    return found()\nraise AttributeError", {"d", "e"}),
        (
            "try:\n    found = TABLE[name]\nexcept KeyError:\n    pass\nelse:\n    return found\nraise KeyError",
            {"d", "e"},
        ),
        ("if name in CHANGED:\n    return 1\nraise AttributeError", {"*"}),
        ("if name.startswith('a'):\n    return 1\nraise AttributeError", {"*"}),
        ("if name == 'a':\n    return 1\n", {"*"}),
        ("for each in parts:\n    return each\nraise AttributeError", {"*"}),
    ],
)
def test_a_module_gives_up_the_names_that_its_function_returns_for(body: str, given: set[str]) -> None:
    tables = "if f():\n    TABLE = {'d': 1, 'e': 2}\nGONE = ('x',)\nCHANGED = {'y'}\nCHANGED.add('z')\n"
    source = f"{tables}def __getattr__(name):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    assert set(read_module(source, "pkg", is_package=True).names) - {"TABLE", "GONE", "CHANGED"} == given


def test_numpy_has_the_names_that_python_has_and_none_that_it_expired() -> None:
    found = Release(installed("numpy", "*.py", "*/__init__.py"))
    names = found.names["numpy"]
    assert "*" not in names
    assert sorted({name for name in dir(numpy) if not name.startswith("_")} - names.keys()) == []
    assert found.answer(ask("attribute", "numpy.float_")) == ("attribute", "numpy.float_")


def test_module_that_may_hold_anything_has_the_names_of_its_stub() -> None:
    modules = {
        "pkg": read_module("def __getattr__(name): ...\n", "pkg", is_package=True),
        "pkg!": read_module("import os\na: int\ndef b(): ...\n_own: int\n", "pkg", is_package=True),
    }
    assert Release(modules).names["pkg"].keys() == {"*", "a", "b"}


def test_what_is_taken_over_whole_follows_the_other_modules_own_list() -> None:
    found = names(
        init="from .listed import *\nfrom .plain import *\n",
        listed="__all__ = ['a']\na = b = 1\n",
        plain="from .listed import b as c\nd = 1\n",
    )
    assert {"a", "c", "d", "listed", "plain"} <= set(found["pkg"])
    assert "b" not in found["pkg"]


def test_a_package_that_gathers_its_files_offers_what_they_do_and_misses_none() -> None:
    for_checkers = "if TYPE_CHECKING:\n    from .gone import *\n"
    lazy = "sys.modules[__name__] = LazyModule(define_import_structure(__file__))\n"
    found = names(
        init=for_checkers + lazy,
        here="__all__ = ['a']\na = b = 1\n",
        older="from .here import b\nc = 1\n",
    )
    assert {"a", "c", "here"} <= set(found["pkg"])
    assert not {"b", "*"} & set(found["pkg"])


def test_a_module_that_takes_over_compiled_code_may_hold_anything() -> None:
    modules = {"pkg": read_module("from ._C import *\n", "pkg", is_package=True), "pkg._C": Module({"*": 2})}
    assert "*" in Release(modules).names["pkg"]


def test_a_module_under_another_name_or_changed_from_elsewhere_may_hold_anything() -> None:
    moved = 'OLD = {"pkg.before": "pkg.moved"}\nimport pkg\nsetattr(pkg, "b", 2)\n'
    found = names(init="a = 1\n", moved=moved)
    assert "*" in found["pkg.before"]
    assert "*" in found["pkg"]
    assert "*" not in found["pkg.moved"]


def test_rest_of_a_subclass_hides_no_parameter_of_its_base() -> None:
    child = (
        "from .base import Base\nclass Child(Base):\n"
        "    def __init__(self, *args, **kwargs):\n        super().__init__(*args, **kwargs)\n"
    )
    base = "class Base:\n    def __init__(self, model, args=None): ...\n"
    read = release(init="", base=base, child=child)
    assert read.answer(ask("call", "pkg.child.Child", "", 1, "args")) is None
    assert read.answer(ask("call", "pkg.child.Child", "", 0, "other")) == ("keyword", "other")


LAZY = """
import sys
from typing import TYPE_CHECKING
from .utils import _LazyModule, helper, shown

_import_structure = {"utils": ["shown"]}
if TYPE_CHECKING:
    from .utils import typed
else:
    sys.modules[__name__] = _LazyModule(__name__, globals()["__file__"], _import_structure)
"""


def test_lazy_object_has_the_names_of_its_table_alone() -> None:
    there = names(init=LAZY)["pkg"]
    assert {"shown", "typed"} <= there.keys()
    assert there.keys().isdisjoint({"helper", "_LazyModule"})
