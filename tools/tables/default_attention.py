"""Which attention transformers chooses by itself: writes ``matrix/tables/default-attention.toml``.

    python -m tools.tables.default_attention FOLDER     some 140 wheels; 10 minutes, 700 MB in FOLDER

Read from the syntax trees of the published wheels. From 4.36.0 on ``PreTrainedModel`` takes ``sdpa`` where the class of
the model has ``_supports_sdpa`` and torch is new enough, else ``eager``; before, a model computes the plain formula
unless its own code calls ``scaled_dot_product_attention``. A type is left out of a release where that does not decide:
its classes differ, it overrides how attention is chosen, its configuration or its code sets one, or it is made of
several models that choose each for themselves.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

from packaging.version import Version

from compatcheck.files.python_syntax import last_name
from tools.tables._runs import runs
from tools.tables._toml import header, section
from tools.tables._wheels import final_releases, sources, write_table
from tools.tables.model_types import named

OLDEST = "4.30.0"
TABLE = Path(__file__).parents[2] / "matrix" / "tables" / "default-attention.toml"
WANTED = re.compile(
    r"transformers/(?:models/.*(?:modeling_|configuration_).*\.py|models/auto/.*\.py|\w+\.py|quantizers/.*\.py"
    r"|utils/(?:quantization_config|import_utils)\.py|integrations/.*attention.*\.py)"
)
_TASKS = ("CAUSAL_LM", "SEQ_TO_SEQ_CAUSAL_LM", "MASKED_LM", "SEQUENCE_CLASSIFICATION")
_CHOOSING = (
    "_autoset_attn_implementation",
    "_check_and_enable_sdpa",
    "_check_and_adjust_attn_implementation",
    "get_correct_attn_implementation",
    "_sdpa_can_dispatch",
)
_SET = ("attn_implementation", "_attn_implementation", "_attn_implementation_internal")
_SETTING = re.compile(r"config\w*\._?attn_implementation\w*\s*=(?!=)")
_OF_SEVERAL = re.compile(r"\bsub_configs\b|\bis_composition\s*=\s*True")
_OWN_CALL = re.compile(r"(?:\bF|\bfunctional)\.scaled_dot_product_attention\(")
_WHAT = f"""\
The attention that transformers chooses for a model where none is asked for, by model type: the first and the last
release of each run, and what `attn_implementation` is then. "sdpa" needs the torch release that `needs` has for the
release of transformers; without it the choice is "eager". A type that is not listed for a release was not decided by
the flags of its classes. First release that was read: {OLDEST}."""
Attention = Literal["eager", "sdpa"]


class Release:
    """The model classes of one release, resolved by name through the modules that import them."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files
        self._bodies: dict[str, dict[str, str]] = {}
        self._nodes: dict[tuple[str, str], ast.ClassDef] = {}
        self._base = self._class("transformers/modeling_utils.py", "PreTrainedModel")

    def defaults(self) -> Iterator[tuple[str, Attention]]:
        """The attention by model type, as far as the flags of its classes decide."""
        for model_type, classes in self._classes_by_type.items():
            found = {self._default(self._module_of[name], name) for name in classes if name in self._module_of}
            attention = found.pop() if len(found) == 1 else None
            if attention and not self._is_of_several(model_type, classes):
                yield model_type, attention

    @cached_property
    def chooses(self) -> bool:
        """Whether the release chooses an attention at all, as from 4.36 on."""
        return any(isinstance(each, ast.FunctionDef) and each.name in _CHOOSING for each in self._base.body)

    @cached_property
    def torch_needed(self) -> str:
        """The oldest torch that has what the release needs for sdpa; empty where every torch it takes has it."""
        text = self._files["transformers/utils/import_utils.py"]
        checks = [each for each in ast.walk(ast.parse(text)) if getattr(each, "name", "") == "is_torch_sdpa_available"]
        if not self.chooses or not checks:
            return ""
        compared = [each.value for each in ast.walk(checks[0]) if isinstance(each, ast.Constant)]
        versions = [Version(each) for each in compared if isinstance(each, str) and re.fullmatch(r"2\.\d+\.\d+", each)]
        return str(max(versions, default=""))

    @cached_property
    def _classes_by_type(self) -> dict[str, set[str]]:
        source = self._files["transformers/models/auto/modeling_auto.py"]
        found: dict[str, set[str]] = {}
        for task in _TASKS:
            for model_type, name in named(source, f"MODEL_FOR_{task}_MAPPING_NAMES"):
                found.setdefault(model_type, set()).add(name)
        return found

    @cached_property
    def _module_of(self) -> dict[str, str]:
        """The module that defines each class of a model."""
        modules = [path for path in self._files if re.search(r"/modeling_\w+\.py$", path) and "/models/" in path]
        return {name: path for path in modules for name in self._classes(path)}

    def _default(self, path: str, name: str) -> Attention | None:
        text = self._files[path]
        if not self.chooses:
            return None if _OWN_CALL.search(text) else "eager"
        if _SETTING.search(text) and _sets_attention(ast.parse(text)):
            return None
        overriding = self._override(path, name)
        if overriding is not None:
            return "eager" if _is_eager_alone(overriding) else None
        if self._flag(path, name):
            return "sdpa"
        return None if _OWN_CALL.search(text) else "eager"

    def _is_of_several(self, model_type: str, classes: set[str]) -> bool:
        """Whether a model is made of several, or its configuration sets an attention."""
        folders = {path.rpartition("/")[0] for each in classes if (path := self._module_of.get(each))}
        paths = [path for path in self._files if path.rpartition("/")[0] in folders and "/configuration_" in path]
        stated = re.compile(rf"model_type\s*(?::[^=\n]+)?=\s*['\"]{re.escape(model_type)}['\"]")
        bodies = [body for path in paths for body in self._classes(path).values() if stated.search(body)]
        return any(
            _OF_SEVERAL.search(body) or (_SET[0] in body and _sets_attention(ast.parse(body), ("self", "config")))
            for body in bodies
        )

    def _flag(self, path: str, name: str) -> bool:
        for _, node in self._ancestry(path, name):
            for each in node.body:
                targets = each.targets if isinstance(each, ast.Assign) else [getattr(each, "target", None)]
                if any(isinstance(target, ast.Name) and target.id == "_supports_sdpa" for target in targets):
                    return isinstance(each.value, ast.Constant) and each.value.value is True  # type: ignore[attr-defined]
        return False

    def _override(self, path: str, name: str) -> ast.FunctionDef | None:
        """The first method with which a class or an ancestor changes how this release chooses."""
        used = {each.name for each in self._base.body if isinstance(each, ast.FunctionDef) and each.name in _CHOOSING}
        for _, node in self._ancestry(path, name):
            for each in node.body:
                if isinstance(each, ast.FunctionDef) and each.name in used:
                    return each
        return None

    def _ancestry(self, path: str, name: str) -> Iterator[tuple[str, ast.ClassDef]]:
        """A class and its ancestors among the models, in the order in which Python would look."""
        path = path if name in self._classes(path) else self._module_of.get(name, "")
        if not path:
            return
        node = self._class(path, name)
        yield path, node
        for base in node.bases:
            if (above := last_name(base) or "") != "PreTrainedModel":
                yield from self._ancestry(path, above)

    def _class(self, path: str, name: str) -> ast.ClassDef:
        if (path, name) not in self._nodes:
            (node,) = (each for each in ast.parse(self._classes(path)[name]).body if isinstance(each, ast.ClassDef))
            self._nodes[path, name] = node
        return self._nodes[path, name]

    def _classes(self, path: str) -> dict[str, str]:
        """The source of each class of a module: parsing the few that matter is a tenth of the work."""
        if path not in self._bodies:
            pieces = re.split(
                r"^(?=class |def |async def |@|[A-Za-z_]\w* ?[=(:]|if |try:|import |from )",
                self._files[path],
                flags=re.M,
            )
            named = ((re.match(r"class (\w+)", piece), piece) for piece in pieces)
            self._bodies[path] = {match[1]: piece for match, piece in named if match}
        return self._bodies[path]


def _sets_attention(tree: ast.AST, owners: Sequence[str] = ("config",)) -> bool:
    """Whether code other than the methods that choose attention, which are judged apart, sets one in a configuration.

    ``owners`` are in the names of what counts as one; a module's own copy of the value is none.
    """
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef) and node.name in _CHOOSING:
            continue
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Attribute) and target.attr in _SET:
                owner = last_name(target.value) or ""
                if any(each in owner for each in owners):
                    return True
        waiting += ast.iter_child_nodes(node)
    return False


def _is_eager_alone(method: ast.FunctionDef) -> bool:
    """Whether all that a method adds to what it overrides is to put eager in the place of the default."""
    set_to = [
        each.value.value
        for each in ast.walk(method)
        if isinstance(each, ast.Assign)
        and last_name(each.targets[0]) == "_attn_implementation"
        and isinstance(each.value, ast.Constant)
    ]
    return method.name == "_check_and_enable_sdpa" and set_to == ["eager"] and "super" in ast.dump(method)


def read(version: Version, folder: Path) -> tuple[dict[str, Attention], str] | None:
    """The attention by model type of one release, and the torch that it needs; None where it has no wheel."""
    files = sources("transformers", version, folder, WANTED)
    if not files:
        return None
    release = Release(files)
    return dict(release.defaults()), release.torch_needed


def write(folder: Path) -> str:
    """The table as text."""
    versions = final_releases("transformers", OLDEST)
    known = {version: found for version in versions if (found := read(version, folder))}
    types = sorted({model_type for defaults, _ in known.values() for model_type in defaults})
    attention = {
        each: runs({version: defaults.get(each) for version, (defaults, _) in known.items()}, known) for each in types
    }
    needs = runs({version: needed or None for version, (_, needed) in known.items()}, known)
    command = "python -m tools.tables.default_attention FOLDER"
    top = header(_WHAT, command, ["https://pypi.org/project/transformers/#files"])
    return top + section("needs", {"torch": needs}) + section("attention", attention)


if __name__ == "__main__":
    write_table(TABLE, __doc__, write)
