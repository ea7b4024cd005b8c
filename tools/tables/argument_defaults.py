"""What the classes that configure a training take for arguments that are not given, release by release.

    python -m tools.tables.argument_defaults FOLDER     some 300 wheels; 15 minutes, 900 MB in FOLDER

Writes ``matrix/tables/argument-defaults.toml`` from the syntax trees of the published wheels: the fields of dataclasses
with those that they inherit within their package, the parameters of ``__init__``, and what either does about one
that is None. A default that is computed otherwise has no row.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from packaging.version import Version

from compatcheck.files.python_syntax import last_name
from tools.tables._runs import runs
from tools.tables._toml import header, section
from tools.tables._wheels import final_releases, sources, write_table
from tools.tables.default_attention import WANTED as OF_TRANSFORMERS

TABLE = Path(__file__).parents[2] / "matrix" / "tables" / "argument-defaults.toml"
_WHAT = """\
What an argument that is not given is worth: under the class the first and the last release of its package of each run
of releases, the default, and what else has to be there for it. A row of two cells is None. `facts` has the facts that
arguments state; `bases` the class whose arguments a class takes as well, in the releases that have the class and no
other. `bf16` is true where the class turns it on unless `fp16` is."""
_SOURCES = [f"https://pypi.org/project/{name}/#files" for name in ("transformers", "trl", "peft")]
_TRAINING = {
    "optim": "optimizer",
    "adafactor": "optimizer",
    "activation_checkpointing": "gradient_checkpointing",
    "full_determinism": "deterministic",
    "max_seq_length": "max_length",
    "use_liger": "use_liger_kernel",
    **{
        name: name
        for name in (
            *("per_device_train_batch_size", "per_device_eval_batch_size", "gradient_accumulation_steps", "max_length"),
            *("learning_rate", "max_grad_norm", "num_train_epochs", "max_steps", "neftune_noise_alpha", "packing"),
            *("gradient_checkpointing", "group_by_length", "torch_compile", "use_liger_kernel", "save_safetensors"),
            *("padding_free", "predict_with_generate", "use_vllm", "ddp_find_unused_parameters"),
            *("average_tokens_across_devices", "packing_strategy", "loss_type", "report_to"),
        )
    },
}
_LORA = ("r", "lora_alpha", "modules_to_save", "use_dora", "use_rslora", "init_lora_weights", "bias")
_FACTS = {
    **{argument: f"training.{fact}" for argument, fact in _TRAINING.items()},
    **{argument: f"training.lora.{argument}" for argument in _LORA},
    "bnb_4bit_quant_type": "training.quantization.type",
    "bnb_4bit_use_double_quant": "training.quantization.double_quant",
    "bnb_4bit_compute_dtype": "training.quantization.compute_dtype",
    "bnb_4bit_quant_storage": "training.quantization.quant_storage",
}
_ON_THEIR_OWN = ("bf16", "fp16")
_SILENT = ("adafactor", "full_determinism", "group_by_length")
"""Given, they decide a fact; not given, they leave it to another argument, or to code."""
_MAY_BE_NONE = frozenset(("neftune_noise_alpha", "ddp_find_unused_parameters", "modules_to_save"))
_WORDS_OF_LISTS = frozenset(("report_to",))
"""Arguments of which the fact is a list: a default that is one word stands for a list of it."""
_MAKERS = ("__init__", "__post_init__")
_NEEDS = {"is_torch_greater_or_equal_than_2_8": "torch>=2.8"}
Rows = tuple[tuple[Any, str], ...]
"""What an argument is worth, each with the requirement under which it is; an empty one always holds."""


class Package(NamedTuple):
    """A package, its oldest release that counts, the files that are kept, and those whose classes are read."""

    name: str
    oldest: str
    wanted: str
    configuring: str
    classes: str


_PACKAGES = (
    Package(
        "transformers",
        "4.30.0",
        OF_TRANSFORMERS.pattern,
        r"transformers/(?:training_args(?:_seq2seq)?|utils/quantization_config)\.py",
        "(?:Seq2Seq)?TrainingArguments|BitsAndBytesConfig",
    ),
    Package(
        "trl",
        "0.9.0",
        r"trl/.*config.*\.py",
        r"trl/(?:trainer|experimental/\w+)/\w+_config\.py",
        r"(?!Base)[A-Z]\w+Config",
    ),
    Package("peft", "0.4.0", r"peft/(?:config|tuners/lora(?:/config|/__init__)?)\.py", "peft/.*", "LoraConfig"),
)
_BASE = "transformers.TrainingArguments"
_ON_BASE = re.compile(r"trl\..*|transformers\.Seq2SeqTrainingArguments")


def defaults(package: Package, files: Mapping[str, str]) -> dict[str, dict[str, Rows]]:
    """By class the default of each argument that is a fact, as one release has it."""
    configuring = sorted(path for path in files if re.fullmatch(package.configuring, path))
    classes = {node.name: node for path in configuring for node in _classes(ast.parse(files[path]))}
    return {
        f"{package.name}.{name}": dict(_of_class(name, classes))
        for name in classes
        if re.fullmatch(package.classes, name) and (package.name != "trl" or _is_training(name, classes))
    }


def _classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    """The classes of a file with the bases by the names that they have where they are defined.

    One that goes on from another of its own name only keeps an old place of that.
    """
    imports = [each for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for each in node.names]
    defined = {each.asname: each.name for each in imports if each.asname}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names = [last_name(base) or "" for base in node.bases]
            node.bases = [ast.Name(defined.get(name, name)) for name in names]
            if node.name not in {defined.get(name) for name in names}:
                yield node


def _is_training(name: str, classes: Mapping[str, ast.ClassDef]) -> bool:
    """Whether a class of trl derives from TrainingArguments."""
    bases = [last_name(base) or "" for base in classes[name].bases] if name in classes else []
    return "TrainingArguments" in bases or any(_is_training(base, classes) for base in bases)


def _of_class(name: str, classes: Mapping[str, ast.ClassDef]) -> Iterator[tuple[str, Rows]]:
    """The defaults of a class, those of its bases in the package first."""
    node = classes[name]
    for base in reversed(node.bases):
        if (above := last_name(base) or "") in classes:
            yield from _of_class(above, classes)
    filled = dict(_filled_in(node))
    for argument, value in _declared(node):
        rows = tuple(_worth(node, value))
        if rows == ((None, ""),) and argument in filled:
            rows = ((filled[argument], ""),)
        if argument in _WORDS_OF_LISTS:
            rows = tuple(([value], needs) for value, needs in rows if value is not None)
        if argument in (*_FACTS, *_ON_THEIR_OWN) and argument not in _SILENT:
            yield argument, rows if argument in _MAY_BE_NONE or rows != ((None, ""),) else ()


def _declared(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr | None]]:
    """The arguments with the expression of their default."""
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            yield each.target.id, _default_of(each.value)
        elif isinstance(each, ast.FunctionDef) and each.name == "__init__":
            arguments = [*each.args.posonlyargs, *each.args.args]
            named = zip(reversed(arguments), reversed(each.args.defaults))
            for argument, value in [*named, *zip(each.args.kwonlyargs, each.args.kw_defaults)]:
                yield argument.arg, value


def _default_of(value: ast.expr | None) -> ast.expr | None:
    """The default of a field, in ``field(default=...)`` or as it stands."""
    if isinstance(value, ast.Call) and last_name(value.func) == "field":
        return next((each.value for each in value.keywords if each.arg == "default"), None)
    return value


def _worth(node: ast.ClassDef, value: ast.expr | None) -> Iterator[tuple[Any, str]]:
    """What an expression is worth: a constant, or a name that the class gives one, under a condition that is known."""
    if isinstance(value, (ast.Constant, ast.UnaryOp)):
        yield ast.literal_eval(value), ""
    elif isinstance(value, ast.Name):
        assigned = [
            (each, [name for test in ast.walk(node) if isinstance(test, ast.If) for name in _guarding(test, each)])
            for each in ast.walk(node)
            if isinstance(each, ast.Assign) and last_name(each.targets[0]) == value.id
        ]
        for each, guards in assigned:
            needed = [_NEEDS[guard] for guard in guards if guard in _NEEDS]
            others = [_NEEDS[guard] for _, more in assigned for guard in more if guard in _NEEDS]
            if isinstance(each.value, ast.Constant):
                yield each.value.value, needed[0] if needed else others[0].replace(">=", "<") if others else ""


def _guarding(test: ast.If, statement: ast.stmt) -> Iterator[str]:
    """The name that a statement within an ``if`` depends on."""
    if isinstance(test.test, ast.Name) and any(each is statement for each in ast.walk(test)):
        yield test.test.id


def _filled_in(node: ast.ClassDef) -> Iterator[tuple[str, Any]]:
    """What ``__init__`` or ``__post_init__`` puts in the place of an argument that is None."""
    makers = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name in _MAKERS]
    for each in (each for maker in makers for each in ast.walk(maker)):
        if isinstance(each, ast.If) and (argument := _compared_with_none(each.test)):
            for inner in each.body:
                if isinstance(inner, ast.Assign) and last_name(inner.targets[0]) == argument:
                    yield from ((argument, value) for value in _literal(inner.value))
        elif isinstance(each, ast.Assign) and isinstance(each.value, ast.IfExp):
            argument = _compared_with_none(each.value.test)
            if argument == "bf16" == last_name(each.targets[0]):
                yield argument, True


def _compared_with_none(test: ast.expr) -> str | None:
    is_none = (
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.Is)
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value is None
    )
    return last_name(test.left) if is_none else None  # type: ignore[attr-defined]


def _literal(value: ast.expr) -> Iterator[Any]:
    """A constant, or a dtype by its name."""
    if isinstance(value, ast.Constant):
        yield value.value
    elif isinstance(value, ast.Attribute) and last_name(value.value) == "torch":
        yield value.attr


def rows_of_class(
    by_release: Mapping[Version, Mapping[str, Rows]], known: Sequence[Version]
) -> dict[str, list[list[Any]]]:
    """The runs of each argument of a class, and all of a run that depends on another package."""
    arguments = dict.fromkeys(argument for values in by_release.values() for argument in values)
    found: dict[str, list[list[Any]]] = {}
    for argument in arguments:
        values = {version: each.get(argument) or None for version, each in by_release.items()}
        found[argument] = [
            [first, last, *([] if value is None else [value]), *([needs] if needs else [])]
            for first, last, worth in runs(values, known)
            for value, needs in worth
        ]
    return {argument: rows for argument, rows in found.items() if rows}


def write(folder: Path) -> str:
    """The table as text."""
    text = header(_WHAT, "python -m tools.tables.argument_defaults FOLDER", _SOURCES)
    bases: dict[str, list[tuple[str, str, str]]] = {}
    tables = ""
    for package in _PACKAGES:
        wanted = re.compile(package.wanted)
        known = {
            version: defaults(package, files)
            for version in final_releases(package.name, package.oldest)
            if (files := sources(package.name, version, folder, wanted))
        }
        for name in sorted({name for release in known.values() for name in release}):
            by_release = {version: release[name] for version, release in known.items() if name in release}
            tables += section(f'defaults."{name}"', rows_of_class(by_release, list(known)))
            if _ON_BASE.fullmatch(name):
                bases[name] = runs(dict.fromkeys(by_release, _BASE), list(known))
    return text + section("facts", _FACTS) + section("bases", bases) + tables


if __name__ == "__main__":
    write_table(TABLE, __doc__, write)
