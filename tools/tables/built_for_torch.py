"""Write matrix/tables/built-for-torch.toml: compiled packages whose releases belong to one torch.

    python tools/tables/built_for_torch.py FOLDER... > matrix/tables/built-for-torch.toml

The folders hold metadata as `_metadata` reads it. What a project's own page says where the metadata is silent stands
here, with its address.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.tables import _metadata, _toml

COMPILED = ("torch-npu", "vllm", "xformers", "torchtext")
"""Packages with an extension of their own; what pure Python demands says nothing about loading."""
DOCUMENTED = {
    "torchcodec": dict(
        zip(
            ("0.0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "0.10"),
            ("2.4", "2.5", "2.6", "2.7", "2.7", "2.7", "2.8", "2.8", "2.9", "2.9", "2.10"),
        )
    )
    | {f"0.{minor}": "2.11" for minor in range(11, 17)},
    "torchtext": {"0.18": "2.3"},
    "torch-npu": {"2.1": "2.1", "2.2": "2.2"},
}
LATER_TORCH_TOO = {"xformers": "0.0.34", "torchcodec": "0.12"}
"""From these releases on a package is built on torch's stable interface."""
SOURCES = (
    "https://pypi.org/project/torch-npu/",
    "https://pypi.org/project/vllm/",
    "https://pypi.org/project/xformers/",
    "https://pypi.org/project/torchtext/",
    "https://github.com/facebookresearch/xformers/blob/main/CHANGELOG.md",
    "https://github.com/meta-pytorch/torchcodec/blob/v0.16.0/README.md",
    "https://github.com/pytorch/text/blob/main/README.rst",
    "https://github.com/Ascend/pytorch/blob/v2.1.0/README.md",
)
_WHAT = """Compiled packages whose releases belong to one torch: the first and the last release of a run, and its torch.
[declared] is what the metadata of the releases demands with ==; a release between two runs was not read.
[documented] is what the project's page says where the metadata demands nothing, by minor release.
[later_torch_too] names the release from which a package also loads beside later ones."""
_EXACT = re.compile(r"==(\d+(?:\.\d+)*)(?:\.\*|\+cpu)?$")


def render(folders: Sequence[Path]) -> str:
    """The table as TOML."""
    declared = _metadata.read(folders)
    rows = {name: _metadata.runs({v: _exact(r) for v, r in sorted(declared[name].items())}) for name in COMPILED}
    command = "python tools/tables/built_for_torch.py FOLDER..."
    return "".join(
        (
            _toml.header(_WHAT, command, SOURCES),
            _toml.section("later_torch_too", LATER_TORCH_TOO),
            *(_toml.section(f"documented.{name}", series) for name, series in DOCUMENTED.items()),
            _toml.section("declared", rows),
        )
    )


def _exact(requirements: dict[str, str]) -> str:
    match = _EXACT.match(requirements.get("torch", ""))
    return match[1] if match else ""


if __name__ == "__main__":
    sys.stdout.write(render([Path(folder) for folder in sys.argv[1:]]))
