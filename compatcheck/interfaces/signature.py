"""The parameters of a callable, written as one line of text.

``self model args= *rest key kw= **more``: a name without ``=`` is required, those after ``*`` are given by keyword
alone. ``+old`` is a keyword that a decorator still accepts, ``+old>new`` one that it renames, ``?`` anything. ``**^``
goes to the same method of the base class and nowhere else, and ``.`` in front says that no object is given first.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from compatcheck.files.python_syntax import Function, is_super, last_name

ANYTHING, FORWARDED = "?", "**^"
BASE = "^"
"""In front of a class of another package whose parameters are taken as well."""
_KEEPS = frozenset(
    {
        *("staticmethod", "classmethod", "abstractmethod", "wraps", "no_grad", "inference_mode", "contextmanager"),
        *(
            "asynccontextmanager",
            "cache",
            "lru_cache",
            "deprecated",
            "deprecate_method",
            "final",
            "override",
            "profiled",
        ),
        *("add_start_docstrings", "add_end_docstrings", "add_start_docstrings_to_model_forward", "auto_docstring"),
        *("replace_return_docstrings", "add_code_sample_docstrings", "requires", "requires_backends", "experimental"),
        *(
            "can_return_tuple",
            "check_model_inputs",
            "instrument_w_nvtx",
            "timeit",
            "require_main_process",
            "torch_required",
        ),
        *(
            "runtime_checkable",
            "require_torch",
            "dataclass_json",
            "add_model_info_to_custom_pipelines",
            "register_module",
        ),
        *("on_main_process", "on_local_main_process", "on_last_process", "on_process", "on_local_process"),
        *(
            "find_executable_batch_size",
            "can_return_loss",
            "merge_with_config_defaults",
            "capture_outputs",
            "dynamo_disable",
        ),
        *("disable", "ignore", "unused", "export", "script", "script_if_tracing", "record_function", "rank_zero_only"),
        *("wrap", "compiler_disable", "validate_hf_hub_args", "_experimental", "dataclass_transform", "inherits"),
        *(
            "transmit_format",
            "fingerprint_transform",
            "deprecated_start_docstrings",
            "dynamic_rope_update",
            "custom_fwd",
        ),
        *("custom_bwd", "force_fp32", "force_fp16", "auto_fp16", "property_deprecated", "set_module", "total_ordering"),
        *(
            "staticproperty",
            "hybridmethod",
            "use_kernel_forward_from_hub",
            "use_kernel_func_from_hub",
            "maybe_autocast",
        ),
    }
)
"""Decorators that leave the parameters as they are written."""


class Parameters(NamedTuple):
    """A signature, parsed. ``positional`` may be given by place, ``keywords`` by name; both in order.

    ``renamed`` are old names that are still accepted, each with the new one.
    """

    positional: tuple[str, ...]
    keywords: tuple[str, ...]
    required: tuple[str, ...]
    takes_rest: bool
    takes_more: bool
    renamed: Mapping[str, str] = {}


def signature_of(function: Function) -> str:
    """The text of a function as it is written, with what its decorators change."""
    renamed = []
    for decorator in function.decorator_list:
        name = last_name(decorator.func if isinstance(decorator, ast.Call) else decorator) or ""
        if "deprecate" in name or "rename" in name:
            renamed += _renamed(decorator)
        elif name not in _KEEPS:
            return ANYTHING
    return " ".join([*_written(function.args, _forwards(function)), *renamed])


def keeps(decorator: str) -> bool:
    """Whether a decorator of this name leaves the parameters as they are written."""
    return decorator in _KEEPS or "deprecate" in decorator


def _renamed(decorator: ast.expr) -> list[str]:
    """The old names that a decorator still accepts, each with its new one where that is said."""
    if not isinstance(decorator, ast.Call):
        return []
    new = next((each.value for each in decorator.keywords if each.arg and each.arg.startswith("new")), None)
    texts = [each.value for each in decorator.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    if isinstance(new, ast.Constant) and isinstance(new.value, str) and texts:
        return [f"+{texts[0]}>{new.value}"]
    if any(each.arg is None for each in decorator.keywords):
        return [ANYTHING]
    given = [(each.arg, each.value.value) for each in decorator.keywords if isinstance(each.value, ast.Constant)]
    pairs = [f"+{old}>{name}" for old, name in given if isinstance(name, str) and name.isidentifier()]
    gone = [f"+{old}" for old, name in given if name is None]
    texts += [
        each.value
        for keyword in decorator.keywords
        for each in ast.walk(keyword.value)
        if isinstance(keyword.value, (ast.List, ast.Tuple, ast.Set))
        and isinstance(each, ast.Constant)
        and isinstance(each.value, str)
    ]
    return [*pairs, *gone, *(f"+{text}" for text in dict.fromkeys(texts) if text.isidentifier())]


def _forwards(function: Function) -> bool:
    """Whether ``**kwargs`` go to the same method of the base class and nowhere else."""
    if function.args.kwarg is None:
        return False
    name = function.args.kwarg.arg
    used = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == name]
    if len(used) != 1:
        return False
    for call in ast.walk(function):
        if isinstance(call, ast.Call) and any(not each.arg and each.value is used[0] for each in call.keywords):
            method = call.func
            return isinstance(method, ast.Attribute) and method.attr == function.name and is_super(method.value)
    return False


def _written(arguments: ast.arguments, forwards: bool) -> list[str]:
    placed = [*arguments.posonlyargs, *arguments.args]
    required = len(placed) - len(arguments.defaults)
    words = [each.arg if at < required else f"{each.arg}=" for at, each in enumerate(placed)]
    if arguments.posonlyargs:
        words.insert(len(arguments.posonlyargs), "/")
    if arguments.vararg:
        words.append(f"*{arguments.vararg.arg}")
    elif arguments.kwonlyargs:
        words.append("*")
    words += [
        each.arg if default is None else f"{each.arg}="
        for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults)
    ]
    if arguments.kwarg:
        words.append(FORWARDED if forwards else f"**{arguments.kwarg.arg}")
    return words


@lru_cache(maxsize=2048)
def parse(signature: str) -> Parameters:
    """What a caller can give, of a signature without the object itself."""
    if ANYTHING in signature.split():
        return Parameters((), (), (), True, True)
    positional: list[str] = []
    keywords: list[str] = []
    required: list[str] = []
    renamed: dict[str, str] = {}
    rest = more = by_name = False
    for word in signature.split():
        if word.startswith("**"):
            more = True
        elif word.startswith("*"):
            rest, by_name = rest or len(word) > 1, True
        elif word.startswith("+"):
            old, _, new = word[1:].partition(">")
            keywords.append(old)
            renamed |= {old: new} if new else {}
        elif word == "/":
            keywords.clear()
        elif word == ".":
            continue
        else:
            name = word.removesuffix("=")
            keywords.append(name)
            if not by_name:
                positional.append(name)
            if word == name:
                required.append(name)
    return Parameters(tuple(positional), tuple(keywords), tuple(required), rest, more, renamed)


def problem(parameters: Parameters, places: int, names: tuple[str, ...]) -> tuple[str, str] | None:
    """Why a call fails, as a kind and the name it is about; None where it is accepted or that is not known.

    ``places`` arguments are given by place, or if it is negative at least ``-1 - places`` and more that are not known,
    and ``names`` by keyword.
    """
    starred, places = places < 0, places if places >= 0 else -1 - places
    if not parameters.takes_more:
        for name in names:
            if name not in parameters.keywords:
                return "keyword", name
    if not parameters.takes_rest and places > len(parameters.positional):
        return "positional", str(len(parameters.positional))
    given = {*parameters.positional[:places], *names, *(parameters.renamed.get(name, name) for name in names)}
    twice = next((name for name in names if name in parameters.positional[:places]), None)
    if twice:
        return "twice", twice
    missing = [name for name in parameters.required if name not in given]
    if missing and not starred:
        return "missing", missing[0]
    return None
