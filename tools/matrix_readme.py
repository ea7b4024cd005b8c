"""Make the generated parts of `matrix/README.md` anew: the fields of an entry, from its schema.

python tools/matrix_readme.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.matrix.schema import schema

README = Path(__file__).parents[1] / "matrix" / "README.md"
_PARTS = ("remedies", "probe", "error_patterns", "evidence", "examples", "reproduce")


def fields() -> str:
    """A table of the fields of an entry, and one of each part's; those that must be there are bold."""
    forms = schema()["$defs"]
    shape = forms["Entry"]
    tables = ["\n".join(_table(shape, ""))]
    for part in _PARTS:
        told = shape["properties"][part]
        inner = next(ref for ref in _references(told) if ref in forms)
        brackets = f"[[{part}]]" if told.get("type") == "array" else f"[{part}]"
        tables.append("\n".join(_table(forms[inner], f" of `{brackets}`")))
    tables.append("\n".join(_table(forms["Change"], " of a change in `[[examples]]`")))
    tables.append("\n".join(_table(forms["Withdrawn"], " of `[withdrawn]`")))
    return "\n\n".join(tables)


def _references(told: Any) -> Iterator[str]:
    if isinstance(told, dict):
        if "$ref" in told:
            yield told["$ref"].rpartition("/")[2]
        told = list(told.values())
    for each in told if isinstance(told, list) else ():
        yield from _references(each)


def _table(shape: dict[str, Any], of: str) -> Iterator[str]:
    yield f"| field{of} | |"
    yield "|---|---|"
    for name, told in shape["properties"].items():
        shown = f"**`{name}`**" if name in shape.get("required", ()) else f"`{name}`"
        words = told.get("enum") or next((each["enum"] for each in told.get("anyOf", ()) if "enum" in each), ())
        choices = f": {', '.join(f'`{word}`' for word in words)}" if words else ""
        yield f"| {shown} | {told['description']}{choices} |"


def replaced(text: str, name: str, content: str) -> str:
    """The text with the content between the marks of that name."""
    head, mark, rest = text.partition(f"<!-- {name} -->\n")
    old, end, tail = rest.partition("<!-- end -->")
    assert mark and end, f"no part {name}"
    return f"{head}{mark}{content}\n{end}{tail}"


if __name__ == "__main__":
    README.write_text(replaced(README.read_text(encoding="utf-8"), "fields", fields()), encoding="utf-8")
