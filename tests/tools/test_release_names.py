"""The table of names by release: what a module binds, what it takes over, and which releases are said to have it."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.version import Version

from tools.tables.release_names import Names, bound_in, names_of, rows


def names(source: str, module: str = "pkg.part") -> set[str]:
    return set(bound_in(source, module, is_package=False).names)


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
        ("x = (", {"*"}),
        ("S = {'a': ['B', 'no name']}\nimport sys\nsys.modules[__name__] = Lazy(S)\n", {"S", "sys", "a", "B"}),
        ("__getattr__, __dir__ = attach({'part': ['thing']})\n", {"__getattr__", "__dir__", "part", "thing"}),
    ],
)
def test_a_module_holds_what_is_bound_at_its_top_level_in_some_branch(source: str, bound: set[str]) -> None:
    assert names(source) == bound


def package(folder: Path, **files: str) -> dict[str, dict[str, int]]:
    (folder / "pkg").mkdir()
    for name, source in files.items():
        (folder / "pkg" / f"{name}.py").write_text(source, encoding="utf-8")
    return names_of(folder)


def test_what_is_taken_over_whole_follows_the_other_modules_own_list(tmp_path: Path) -> None:
    found = package(
        tmp_path,
        __init__="from .listed import *\nfrom .plain import *\n",
        listed="__all__ = ['a']\na = b = 1\n",
        plain="from .listed import b as c\nd = 1\n",
    )
    assert {"a", "c", "d", "listed", "plain"} <= set(found["pkg"])
    assert "b" not in found["pkg"]


def test_a_package_that_gathers_its_files_offers_what_they_do_and_misses_none(tmp_path: Path) -> None:
    for_checkers = "if TYPE_CHECKING:\n    from .gone import *\n"
    lazy = "sys.modules[__name__] = LazyModule(define_import_structure(__file__))\n"
    found = package(
        tmp_path,
        __init__=for_checkers + lazy,
        here="__all__ = ['a']\na = b = 1\n",
        older="from .here import b\nc = 1\n",
    )
    assert {"a", "c", "here"} <= set(found["pkg"])
    assert not {"b", "*"} & set(found["pkg"])


def test_a_module_that_takes_over_compiled_code_may_hold_anything(tmp_path: Path) -> None:
    package(tmp_path, __init__="from ._C import *\n")
    (tmp_path / "pkg" / "_C.cpython-311-x86_64-linux-gnu.so").write_bytes(b"")
    assert "*" in names_of(tmp_path)["pkg"]


def test_a_module_under_another_name_or_changed_from_elsewhere_may_hold_anything(tmp_path: Path) -> None:
    found = package(
        tmp_path,
        __init__="a = 1\n",
        moved='OLD = {"pkg.before": "pkg.moved"}\nimport pkg\nsetattr(pkg, "b", 2)\n',
    )
    assert "*" in found["pkg.before"]
    assert "*" in found["pkg"]
    assert "*" not in found["pkg.moved"]


def history(*releases: dict[str, str]) -> Names:
    """Releases 1.0, 2.0 and so on of a package whose modules bind the names given."""
    found = Names()
    for number, modules in enumerate(releases, 1):
        kept = {module: dict.fromkeys(text.split(), 2) for module, text in modules.items()}
        found.add(Version(f"{number}.0"), kept)
    return found


def test_each_run_of_releases_is_told_with_the_first_release_that_is_without() -> None:
    table = rows(history({"pkg": "a b"}, {"pkg": "a c"}, {"pkg": "a"}, {"pkg": "a b c"}))
    assert table == {"pkg": {"<2.0 >=4.0": "b", ">=2.0,<3.0 >=4.0": "c"}}


def test_a_module_that_comes_and_goes_has_a_row_of_its_own() -> None:
    whole = {"pkg": "a", "pkg.old": "x", "pkg.old.deep": "y"}
    assert rows(history(whole, {"pkg": "a"})) == {"pkg.old": {"<2.0": "."}}


def test_of_a_release_in_which_a_module_may_hold_anything_no_name_is_said_to_be_missing() -> None:
    assert rows(history({"pkg": "a"}, {"pkg": "*"}, {"pkg": "a"})) == {}
    assert rows(history({"pkg": "a"}, {"pkg": "*"}, {"pkg": "b"})) == {
        "pkg": {"<2.0 ?>=2.0,<3.0": "a", ">=3.0 ?>=2.0,<3.0": "b"}
    }


def test_of_a_single_model_only_what_went_is_told() -> None:
    first = {"pkg": "a", "pkg.models": "m", "pkg.models.x": "m", "pkg.models.x.modeling": "Old Same"}
    second = {**first, "pkg.models.x.modeling": "New Same"}
    assert rows(history(first, second)) == {"pkg.models.x.modeling": {"<2.0": "Old"}}
