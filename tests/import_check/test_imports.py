"""Each rule on small distributions as installers leave them: what surely fails is given, everything else is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.import_check.conftest import Fails, install

PROVIDER = "def there():\n    pass\n\nclass There:\n    pass\n"
HELPERS = """
import importlib.metadata
import importlib.util
from functools import lru_cache
from packaging import version

@lru_cache()
def is_provider_available():
    return importlib.util.find_spec("provider") is not None

def is_provider_greater_or_equal(wanted):
    if not is_provider_available():
        return False
    return version.parse(importlib.metadata.version("provider")) >= version.parse(wanted)
"""
LAZY = """
import importlib
from types import ModuleType

class _LazyModule(ModuleType):
    def __init__(self, name, module_file, import_structure, module_spec=None, extra_objects=None):
        self._class_to_module = {}

    def _get_module(self, module_name):
        try:
            return importlib.import_module("." + module_name, self.__name__)
        except Exception as e:
            raise RuntimeError("Failed to import") from e
"""


@pytest.fixture(autouse=True)
def provider(site: Path) -> None:
    install(site, "provider", "1.5.0", {"provider/__init__.py": PROVIDER, "provider/part.py": "inside = 1\n"})
    install(site, "packaging", "26.0", {"packaging/__init__.py": "", "packaging/version.py": "class Version: ...\n"})


def importer(site: Path, code: str | bytes, **more: str) -> None:
    files = {"importer/__init__.py": code, "importer/helpers.py": HELPERS, "importer/lazy.py": LAZY}
    files |= {f"importer/{name}.py": text for name, text in more.items()}
    install(site, "importer", "2.0", files)


MISSING = ("provider", "gone")
TOLD = {
    "a name that is gone": ("from provider import gone", MISSING),
    "a name beside one that is there": ("from provider import there, gone", MISSING),
    "a module that is gone": ("import provider.gone", ("provider.gone", None)),
    "a distribution that is absent": ("import absent", ("absent", None)),
    "an attribute used at import": ("import provider\n\nclass A(provider.gone):\n    pass", MISSING),
    "an attribute in a default": ("import provider\n\ndef f(x=provider.gone):\n    pass", MISSING),
    "an attribute in a decorator": ("import provider\n\n@provider.gone\ndef f():\n    pass", MISSING),
    "an attribute in an annotation": ("import provider\n\ndef f(x: provider.gone):\n    pass", MISSING),
    "a name taken if available": (
        "from .helpers import is_provider_available\nif is_provider_available():\n    from provider import gone",
        MISSING,
    ),
    "a name taken above a version": (
        "from .helpers import is_provider_greater_or_equal as newer\nif newer('1.2'):\n    from provider import gone",
        MISSING,
    ),
    "a name taken if there is metadata": (
        "import importlib.metadata\ntry:\n    importlib.metadata.metadata('provider')\n    HAS = True\n"
        "except importlib.metadata.PackageNotFoundError:\n    HAS = False\nif HAS:\n    from provider import gone",
        MISSING,
    ),
    "a handler for another error": (
        "try:\n    from provider import gone\nexcept ValueError:\n    pass",
        MISSING,
    ),
    "a handler that fails itself": (
        "try:\n    from provider import gone\nexcept ImportError:\n    from provider import also_gone",
        ("provider", "also_gone"),
    ),
    "a handler that gives up": (
        "try:\n    from provider import gone\nexcept ImportError as e:\n    raise ImportError('update') from e",
        MISSING,
    ),
    "a name that nothing binds": ("if False:\n    Gone = 1\ndef f(x: Gone):\n    pass", ("importer", "Gone")),
    "an error said in words": (
        "import importlib.metadata\nfrom packaging import version\n"
        "if version.parse(importlib.metadata.version('provider')) < version.parse('3'):\n"
        "    raise ImportError('provider>=3 is required')",
        ("provider>=3 is required", None),
    ),
}


@pytest.mark.parametrize("case", TOLD)
def test_what_surely_fails_is_told(site: Path, fails: Fails, case: str) -> None:
    code, missing = TOLD[case]
    importer(site, code)
    assert fails("import importer") == missing


LEFT_OUT = {
    "a module that is still running": "from importer import gone",
    "what a branch left half-way binds": (
        "import os\nif os.cpu_count() > 3:\n    assert False\n    Half = 1\nclass A(Half):\n    pass"
    ),
    "a guarded import": "try:\n    from provider import gone\nexcept ImportError:\n    gone = None",
    "a bare handler": "try:\n    from provider import gone\nexcept:\n    gone = None",
    "a handler of a tuple": "try:\n    import provider.gone\nexcept (ValueError, ModuleNotFoundError):\n    pass",
    "for type checkers": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from provider import gone",
    "typing by its module": "import typing\nif typing.TYPE_CHECKING:\n    from provider import gone",
    "below a version": (
        "from .helpers import is_provider_greater_or_equal as newer\nif newer('1.6'):\n    from provider import gone"
    ),
    "not available": (
        "import importlib.util\nif importlib.util.find_spec('absent') is not None:\n    from absent import gone"
    ),
    "an unknown condition": "import os\nif os.cpu_count() > 3:\n    from provider import gone",
    "a Python version": "import sys\nif sys.version_info < (3, 8):\n    from provider import gone",
    "another platform": "import sys\nif sys.platform == 'nonesuch':\n    import absent",
    "inside a function": "def f():\n    from provider import gone",
    "a suppressing context": "import contextlib\nwith contextlib.suppress(ImportError):\n    from provider import gone",
    "a short circuit": "import provider\nx = hasattr(provider, 'gone') and provider.gone",
    "a conditional expression": "import provider\nx = provider.gone if hasattr(provider, 'gone') else None",
    "getattr with a default": "import provider\nx = getattr(provider, 'gone', None)",
    "annotations not evaluated": "from __future__ import annotations\nimport provider\ndef f(x: provider.gone): ...",
    "annotations not evaluated, said at length": (
        "from __future__ import (  # why\n    annotations,\n)\nimport provider\ndef f(x: provider.gone): ..."
    ),
    "a comprehension over what the class body binds": (
        "import os\nimport provider as box\nclass A:\n    box = os.environ\n    x = [i for i in box.gone]"
    ),
    "a package imported by a dot": "from importlib import import_module\nimport_module('.', package='provider')",
    "the standard library": "from collections import whatever_may_be_there",
    "after a first failure": "try:\n    import absent\n    from provider import gone\nexcept ImportError:\n    pass",
    "a flag from a guarded import": (
        "try:\n    import absent\n    HAS = True\nexcept ImportError:\n    HAS = False\n"
        "if HAS:\n    from provider import gone"
    ),
    "an own error that is caught": (
        "class Skip(Exception):\n    pass\ntry:\n    raise Skip()\nexcept Skip:\n    pass\n"
        "try:\n    from provider import gone\nexcept Exception:\n    pass"
    ),
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_what_may_well_work_is_left_out(site: Path, fails: Fails, case: str) -> None:
    importer(site, LEFT_OUT[case])
    assert fails("import importer") is None


OPEN = {
    "module getattr of unknown kind": "import os\n__getattr__ = os.getenv\n",
    "globals filled in a loop": "import os\nfor n in os.listdir('.'):\n    globals()[n] = 1\n",
    "globals updated": "import os\nglobals().update(os.environ)\n",
    "globals handed away": "from absent_tool import fill\n",
    "exec": "import os\nexec(os.environ['X'])\n",
    "bound under a condition": "import os\nif os.cpu_count() > 3:\n    gone = 1\n",
    "bound in a function": "def late():\n    global gone\n    gone = 1\n",
    "replaced in sys.modules": "import sys\nimport os\nsys.modules[__name__] = os.fdopen(3)\n",
    "set on itself": (
        "import os\nimport sys\nthis = sys.modules[__name__]\nfor n in os.listdir('.'):\n    setattr(this, n, 1)\n"
    ),
    "served by name": (
        "def __getattr__(name):\n    if name == 'gone':\n        return 1\n    raise AttributeError(name)\n"
    ),
    "not Python": "print 'two'\n",
    "null bytes": "x = 1\0\n",
}


@pytest.mark.parametrize("case", OPEN)
def test_a_module_whose_names_cannot_be_listed_is_never_said_to_lack_one(site: Path, fails: Fails, case: str) -> None:
    install(site, "absent-tool", "1", {"absent_tool/__init__.py": "def fill(names): ...\n"})
    code = OPEN[case] + (
        "fill(globals())\nimport os\nos.register(globals())\n" if case == "globals handed away" else ""
    )
    install(site, "open", "1", {"opened/__init__.py": code})
    assert fails("from opened import gone") is None


def test_a_module_getattr_that_knows_its_names_is_asked(site: Path, fails: Fails) -> None:
    code = "_OLD = {'old': 1}\ndef __getattr__(name):\n    if name in _OLD:\n        return _OLD[name]\n"
    code += "    raise AttributeError(name)\n"
    install(site, "served", "1", {"served.py": code})
    assert fails("from served import old") is None
    assert fails("from served import gone") == ("served", "gone")


def test_star_imports_are_followed(site: Path, fails: Fails) -> None:
    install(
        site,
        "starred",
        "1",
        {"starred/__init__.py": "from .a import *\n", "starred/a.py": "__all__ = ['x']\nx = y = 1\n"},
    )
    assert fails("from starred import x") is None
    assert fails("from starred import y") == ("starred", "y")


def test_lazy_modules_give_their_names_on_demand(site: Path, fails: Fails) -> None:
    structure = "import sys\nfrom .lazy import _LazyModule\n_import_structure = {'good': ['A'], 'bad': []}\n"
    structure += "_import_structure['bad'].append('B')\n"
    structure += "sys.modules[__name__] = _LazyModule(__name__, globals()['__file__'], _import_structure)\n"
    importer(site, structure, good="A = 1\n", bad="from provider import gone\nB = 1\n", other="C = 1\n")
    assert fails("import importer") is None
    assert fails("from importer import A") is None
    assert fails("from importer import B") == MISSING
    assert fails("from importer import D") == ("importer", "D")
    assert fails("from importer import other") is None
    assert fails("try:\n    from importer import B\nexcept ImportError:\n    pass") == MISSING, (
        "a RuntimeError gets past"
    )


def test_an_extension_module_may_hold_anything(site: Path, fails: Fails) -> None:
    files = {"ext/__init__.py": "from ._c import *\n", "ext/_c.cpython-311-x86_64-linux-gnu.so": b"\x7fELF"}
    install(site, "ext", "1", files)
    assert fails("from ext._c import anything") is None
    assert fails("from ext import anything") is None


def test_namespace_packages_hold_their_parts_and_nothing_else(site: Path, fails: Fails) -> None:
    install(site, "ns-one", "1", {"ns/one.py": "x = 1\n"})
    assert fails("from ns import one") is None
    assert fails("from ns.one import x") is None
    assert fails("import ns.two") == ("ns.two", None)


def test_circular_imports_are_left_out(site: Path, fails: Fails) -> None:
    importer(site, "from . import first\nlater = 1\n", first="from importer import later\n")
    assert fails("import importer") is None


def test_a_module_failed_once_fails_again_in_another_statement(site: Path, fails: Fails) -> None:
    importer(
        site,
        "try:\n    from . import broken\nexcept ImportError:\n    pass\nfrom . import broken\n",
        broken="import absent\n",
    )
    assert fails("import importer") == ("absent", None)


def test_editable_installs_are_found_through_their_finder(site: Path, fails: Fails, tmp_path: Path) -> None:
    source = tmp_path / "checkout" / "edited"
    source.mkdir(parents=True)
    (source / "__init__.py").write_text("x = 1\n", encoding="utf-8")
    (site / "__editable___edited_1_finder.py").write_text(
        f"MAPPING: dict[str, str] = {{'edited': {str(source)!r}}}\n", encoding="utf-8"
    )
    assert fails("from edited import x") is None
    assert fails("from edited import y") == ("edited", "y")


def test_a_start_up_hook_may_provide_what_no_file_holds(site: Path, fails: Fails) -> None:
    (site / "hook.pth").write_text("import hook; hook.install('made')\n", encoding="utf-8")
    assert fails("import made") is None
    assert fails("import other") == ("other", None)


def test_links_and_odd_encodings_are_read(site: Path, fails: Fails, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "__init__.py").write_bytes("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"))
    (site / "linked").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (site / "loop").symlink_to(site / "loop")
    assert fails("from linked import x") is None
    assert fails("from linked import y") == ("linked", "y")
    assert fails("import loop") in (None, ("loop", None))


def test_a_file_larger_than_any_module_is_left_out(site: Path, fails: Fails) -> None:
    install(site, "huge", "1", {"huge.py": b"x = 1\n" * 1_500_000})
    assert fails("from huge import y") is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_left_out(site: Path, fails: Fails) -> None:
    install(site, "locked", "1", {"locked.py": "x = 1\n"})
    (site / "locked.py").chmod(0)
    assert fails("from locked import y") is None


def test_nothing_of_the_environment_is_run(site: Path, fails: Fails, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    importer(site, f"open({str(mark)!r}, 'w').close()\nimport os\nos.mkdir({str(mark)!r} + 'd')\n")
    fails("import importer")
    assert not mark.exists() and not Path(f"{mark}d").exists()


def test_recursion_and_endless_loops_end(site: Path, fails: Fails) -> None:
    importer(site, "def f(x):\n    return f(x)\nf(1)\nwhile True:\n    pass\nx = [0]\nfor i in x:\n    x.append(i)\n")
    assert fails("import importer") is None


def test_a_package_may_carry_others_that_it_puts_on_the_search_path(site: Path, fails: Fails) -> None:
    importer(site, "import sys\nsys.path.insert(0, __path__[0] + '/vendor')\nimport carried\n")
    (site / "importer" / "vendor" / "carried").mkdir(parents=True)
    assert fails("import importer") is None
    importer_of_nothing = "import sys\nsys.path.insert(0, '/nowhere')\nimport absent\n"
    install(site, "other", "1.0", {"other/__init__.py": importer_of_nothing})
    assert fails("import other") == ("absent", None)
