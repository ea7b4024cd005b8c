"""What must hold for a statement to be reached, as far as it is about what is installed.

An atom is ``+peft`` or ``-peft`` (installed or not), ``torch>=2.5`` (its version, also with ``<``, ``<=``, ``>``,
``==`` and ``!=``), ``python>=3.10``, ``never`` or ``?``: something else, that nobody can tell beforehand. While a
release is read, ``=peft.utils.is_new`` is what a function of the package itself returns,
``~peft.utils.is_x_available`` what such a function requires besides that x is there, and ``!torch.utils.name`` that an
import fails.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping

from compatcheck.files.python_syntax import last_name

UNTOLD, NEVER = "?", "never"
OWN, OWN_MORE, FAILS = "=", "~", "!"
"""What begins the atoms that are settled while a release is read."""
AVAILABLE = re.compile(r"_?(?:is|has|have)_(\w+?)_(?:available|installed|importable)")
_VERSION_TEST = re.compile(r"is_(\w+?)_version|is_(\w+?)_greater_or_equal|is_(\w+?)_at_least")
_REQUIRED = re.compile(r"required_(\w+?)_version")
_IN_NAME = re.compile(
    r"is_(torch|transformers|accelerate|peft|trl|numpy)_(?:greater_or_equal_than|ge|gte|greater_or_equal)_(\d+(?:_\d+)*)"
)
_OF_ANY = frozenset({"package", "module", "library"})
"""Tests that are named after no distribution, and given one."""
_PARSING = frozenset({"parse", "Version", "LooseVersion"})
_NUMBER = re.compile(r"\d+(?:\.\d+)+\w*|\d+")
_OPERATORS = {ast.GtE: ">=", ast.Gt: ">", ast.LtE: "<=", ast.Lt: "<", ast.Eq: "==", ast.NotEq: "!="}
_OPPOSITE = {">=": "<", "<": ">=", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
_MIRRORED = {">=": "<=", "<=": ">=", ">": "<", "<": ">", "==": "==", "!=": "!="}
_MODULES = {
    "bnb": "bitsandbytes",
    "sklearn": "scikit-learn",
    "huggingface_hub": "huggingface-hub",
    "hf_hub": "huggingface-hub",
    "flash_attn": "flash-attn",
    "auto_gptq": "auto-gptq",
    "sentence_transformers": "sentence-transformers",
    "liger_kernel": "liger-kernel",
    "liger": "liger-kernel",
    "optimum_quanto": "optimum-quanto",
    "quanto": "optimum-quanto",
    "auto_awq": "autoawq",
    "pytorch": "torch",
    "torch_distributed": "torch",
    "fsdp": "torch",
    "vision": "pillow",
    "PIL": "pillow",
    "awq": "autoawq",
    "cv2": "opencv-python",
    "google": "protobuf",
    "yaml": "pyyaml",
}
Names = Mapping[str, ast.expr]
"""What a module binds once at its top level, so that a test by that name can be read."""
OwnFunction = Callable[[ast.expr], str | None]
"""Gives the full name of a function of the package itself, by the expression that leads to it."""


def atoms_of(test: ast.expr, names: Names, depth: int = 4, own: OwnFunction = lambda function: None) -> tuple[str, ...]:
    """What holds where the test is true."""
    if depth == 0:
        return (UNTOLD,)
    if isinstance(test, ast.Constant):
        return () if test.value else (NEVER,)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return opposite(atoms_of(test.operand, names, depth - 1, own))
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return tuple(atom for each in test.values for atom in atoms_of(each, names, depth - 1, own))
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compared(test, names)
    if isinstance(test, ast.Call):
        return _with_own(_called(test, names), test, own)
    if isinstance(test, ast.Subscript) and isinstance(test.value, ast.Call) and ast.unparse(test.slice) == "0":
        return _called(test.value, names)
    name = last_name(test)
    if name == "TYPE_CHECKING":
        return (NEVER,)
    if name and (told := _IN_NAME.fullmatch(name)):
        return (f"{told[1]}>={told[2].replace('_', '.')}",)
    if name and (told := AVAILABLE.fullmatch(name.lower())):
        return _installed(told[1])
    if isinstance(test, ast.Name) and test.id in names:
        return atoms_of(names[test.id], {}, depth - 1, own)
    return (UNTOLD,)


def _with_own(atoms: tuple[str, ...], test: ast.Call, own: OwnFunction) -> tuple[str, ...]:
    """With what the function that is called requires besides, if it is one of the package itself and given nothing."""
    name = None if test.args or test.keywords else own(test.func)
    if name is None:
        return atoms
    return (f"{OWN}{name}",) if atoms == (UNTOLD,) else (*atoms, f"{OWN_MORE}{name}")


def opposite(atoms: tuple[str, ...]) -> tuple[str, ...]:
    """What holds where the test is false; of several conditions nobody can tell which one fails."""
    atoms = tuple(each for each in atoms if each[0] != OWN_MORE)
    if not atoms:
        return (NEVER,)
    if len(atoms) > 1:
        return (UNTOLD,)
    atom = atoms[0]
    if atom == NEVER:
        return ()
    if atom[0] in "+-":
        return (("-" if atom[0] == "+" else "+") + atom[1:],)
    told = re.fullmatch(r"([\w.-]+)(>=|<=|==|!=|<|>)(.+)", atom)
    return (f"{told[1]}{_OPPOSITE[told[2]]}{told[3]}",) if told else (UNTOLD,)


def distribution(module: str) -> str:
    """The distribution that a test of availability is named after."""
    return _MODULES.get(module, module.replace("_", "-"))


def _installed(module: str) -> tuple[str, ...]:
    """That a distribution is there; a number behind its name is its major version."""
    name, _, major = module.rpartition("_")
    if major.isdigit() and name:
        return (f"+{distribution(name)}", f"{distribution(name)}>={major}")
    return (f"+{distribution(module)}",)


def _called(test: ast.Call, names: Names) -> tuple[str, ...]:
    name = (last_name(test.func) or "").lower()
    texts = [each.value for each in test.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    told = _VERSION_TEST.fullmatch(name)
    if told:
        package = distribution(told[1] or told[2] or told[3])
        operator = texts.pop(0) if texts and texts[0] in _OPPOSITE else ">="
        return (f"{package}{operator}{texts[0]}",) if len(texts) == 1 and len(test.args) < 3 else (UNTOLD,)
    required = _REQUIRED.fullmatch(name)
    if required and not test.args and len(test.keywords) == 1 and test.keywords[0].arg == "min_version":
        value = test.keywords[0].value
        number = str(value.value) if isinstance(value, ast.Constant) else ""
        return (f"{distribution(required[1])}>={number}",) if _NUMBER.fullmatch(number) else (UNTOLD,)
    if name == "compare_versions" and len(test.args) == 3 and texts[-2:-1] and texts[-2] in _OPPOSITE:
        compared = distribution(texts[0]) if len(texts) == 3 else package_in(test.args[0], names)
        return (f"{compared}{texts[-2]}{texts[-1]}",) if compared else (UNTOLD,)
    available = AVAILABLE.fullmatch(name)
    if available and available[1] in _OF_ANY:
        is_one = len(texts) == len(test.args) == 1 and "." not in texts[0] and _is_plain(test)
        return (f"+{distribution(texts[0])}",) if is_one else (UNTOLD,)
    if available and not test.args and not test.keywords:
        return _installed(available[1])
    if available:
        package = distribution(available[1])
        given = [*texts, *(each.value.value for each in test.keywords if isinstance(each.value, ast.Constant))]
        least = [f"{package}>={each}" for each in given if isinstance(each, str) and _NUMBER.fullmatch(each)]
        return (f"+{package}", *least) if len(least) == len(test.args) + len(test.keywords) else (UNTOLD,)
    return (UNTOLD,)


def _is_plain(test: ast.Call) -> bool:
    """Whether nothing is given by keyword but a wish for the version as well."""
    return all(each.arg == "return_version" for each in test.keywords)


def _compared(test: ast.Compare, names: Names) -> tuple[str, ...]:
    left, right, operator = test.left, test.comparators[0], test.ops[0]
    if isinstance(operator, (ast.Is, ast.IsNot)) and isinstance(right, ast.Constant) and right.value is None:
        if isinstance(left, ast.Call) and last_name(left.func) == "find_spec" and len(left.args) == 1:
            found = left.args[0]
            if isinstance(found, ast.Constant) and isinstance(found.value, str) and "." not in found.value:
                return (("+" if isinstance(operator, ast.IsNot) else "-") + distribution(found.value),)
        return (UNTOLD,)
    sign = _OPERATORS.get(type(operator))
    if sign is None:
        return (UNTOLD,)
    version, package = version_in(right, names), package_in(left, names)
    if not (version and package):
        version, package, sign = version_in(left, names), package_in(right, names), _MIRRORED[sign]
    return (f"{package}{sign}{version}",) if version and package else (UNTOLD,)


def version_in(node: ast.expr, names: Names) -> str | None:
    """The version that an expression stands for, written out or by a name that is bound once."""
    node = _unwrapped(node, names)
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and _NUMBER.fullmatch(node.value):
        return node.value
    if isinstance(node, ast.Tuple) and all(
        isinstance(each, ast.Constant) and isinstance(each.value, int) for each in node.elts
    ):
        return ".".join(str(each.value) for each in node.elts if isinstance(each, ast.Constant))
    return None


def package_in(node: ast.expr, names: Names) -> str | None:
    """The distribution whose version an expression is."""
    node = _unwrapped(node, names)
    text = ast.unparse(node)
    if text in ("sys.version_info", "sys.version_info[:2]"):
        return "python"
    if told := re.fullmatch(r"(\w+)\.__version__(?:\.split\('\+'\)\[0\])?", text):
        return distribution(told[1])
    if told := re.fullmatch(r"(?:[\w.]*\.)?version\('([\w-]+)'\)", text):
        return distribution(told[1].replace("-", "_"))
    if told := re.fullmatch(
        r"_?(torch|transformers|accelerate|peft|trl|datasets|deepspeed|numpy)_version", text.lower()
    ):
        return told[1]
    return None


def _unwrapped(node: ast.expr, names: Names, depth: int = 4) -> ast.expr:
    """What ``parse`` or ``Version`` is called with, and what a name that is bound once stands for."""
    if isinstance(node, ast.Attribute) and node.attr == "release":
        node = node.value
    if isinstance(node, ast.Call) and len(node.args) == 1 and last_name(node.func) in _PARSING and depth:
        return _unwrapped(node.args[0], names, depth - 1)
    if isinstance(node, ast.Name) and node.id in names and depth:
        return _unwrapped(names[node.id], names, depth - 1)
    return node
