"""The arrays of requirements in a ``pyproject.toml``: which ones count, and their items with line and comment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from compatcheck.errors import InputError
from compatcheck.packages.names import normalised

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

GROUP = "compatcheck"
"""The dependency group (PEP 735) that holds what a project's own requirements bring along.

Nothing installs a group unasked, and no later resolution is bound by it. uv's ``constraint-dependencies`` would bind
every resolution in the project's folder, ours too.
"""
_TOKEN = re.compile(
    r"""
    (\"{3}(?:[^\\]|\\.)*?\"{3} | '{3}.*?'{3} | "(?:[^"\\\n]|\\.)*" | '[^'\n]*' | \{[^}]*\})
    | (\#[^\n]*) | (\n) | [\[\],] | [^\S\n]+
    """,
    re.DOTALL | re.VERBOSE,
)
_SELF = re.compile(r"\s*([\w.-]+)\s*\[([^\]]*)\]")


class Item(NamedTuple):
    """One value of an array as it is spelled; ``value`` is its text, None where it is no string.

    ``comment`` stands behind it, ``above`` are the comments and empty lines before it; ``line`` counts from that of the
    opening bracket, which is 0.
    """

    spelled: str
    value: str | None
    comment: str = ""
    above: tuple[str, ...] = ()
    line: int = 0


def parse(text: str, path: str) -> TOMLDocument:
    """The document; raises `InputError` with the line where it is not TOML."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(text)
    except RecursionError:
        seen = "the content is nested too deeply"
    except (TOMLKitError, ValueError) as error:  # int() refuses thousands of digits
        seen = str(error)
    raise InputError("reading TOML from", path, seen, "correct it there") from None


def at(value: object, *keys: str) -> Any:
    """What is found below nested keys, or None."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def active_arrays(document: Mapping[str, object]) -> list[tuple[str, ...]]:
    """Where the requirements stand that count: the project's, its default groups', and the extras it names itself."""
    found: list[tuple[str, ...]] = [("project", "dependencies")]
    groups = _paths_by_name(document, "dependency-groups")
    chosen = at(document, "tool", "uv", "default-groups")
    waiting = list(groups) if chosen == "all" else _texts(chosen) if isinstance(chosen, list) else ["dev"]
    while waiting:
        name, *waiting = map(normalised, waiting)
        path = groups.get(name)
        if path is not None and name != GROUP and path not in found:
            found.append(path)
            waiting += _texts(at(each, "include-group") for each in array_at(document, path))
    extras = _paths_by_name(document, "project", "optional-dependencies")
    for path in found:
        named = [extra for text in _texts(array_at(document, path)) for extra in own_extras(document, text)]
        found += [extra for extra in map(extras.get, map(normalised, named)) if extra and extra not in found]
    return [path for path in found if isinstance(at(document, *path), list)]


def inactive_arrays(document: Mapping[str, object]) -> list[tuple[str, ...]]:
    """Where other requirements stand: extras and groups that are installed only where somebody asks for them."""
    extras = _paths_by_name(document, "project", "optional-dependencies")
    groups = _paths_by_name(document, "dependency-groups")
    chosen = active_arrays(document)
    return [path for path in (*extras.values(), *groups.values()) if path not in chosen and path[-1] != GROUP]


def array_at(document: Mapping[str, object], path: tuple[str, ...]) -> list[Any]:
    """The values of an array; none where there is no such array."""
    found = at(document, *path)
    return found if isinstance(found, list) else []


def own_extras(document: Mapping[str, object], text: str) -> list[str]:
    """The project's own extras that a requirement on the project itself names."""
    found = _SELF.match(text)
    own = normalised(str(at(document, "project", "name") or ""))
    return [each.strip() for each in found[2].split(",")] if found and normalised(found[1]) == own else []


def _paths_by_name(document: Mapping[str, object], *keys: str) -> dict[str, tuple[str, ...]]:
    """Where each key of a table is, by its normalised name."""
    table = at(document, *keys)
    return {normalised(name): (*keys, name) for name in table} if isinstance(table, Mapping) else {}


def _texts(values: Iterable[object]) -> list[str]:
    return [each for each in values if isinstance(each, str)]


def items(source: str, values: Sequence[object]) -> tuple[list[Item], tuple[str, ...]]:
    """The items of an array's own text, and the comments and empty lines behind the last one."""
    found: list[Item] = []
    above: list[str] = []
    line, fresh, blank = 0, True, False
    for token in _TOKEN.finditer(source):
        if token[1]:
            value = values[len(found)] if len(found) < len(values) else None
            found.append(Item(token[1], value if isinstance(value, str) else None, "", tuple(above), line))
            above, fresh, blank = [], False, False
        elif token[2] and (fresh or not found):
            above.append(token[2].rstrip())
            blank = False
        elif token[2]:
            found[-1] = found[-1]._replace(comment=token[2].rstrip())
        elif token[3]:
            above += [""] if fresh and blank else []
            line, fresh, blank = line + 1, True, True
    return found, tuple(above)


def spell_array(found: Iterable[Item], behind: Sequence[str] = (), indent: str = "    ") -> str:
    """An array's text; on one line where its items stood on the first and nothing stands between them."""
    listed = list(found)
    if not behind and not any(item.comment or item.above or item.line for item in listed):
        return "[" + ", ".join(item.spelled for item in listed) + "]"
    lines = [
        text for item in listed for text in (*item.above, "  ".join(filter(None, (f"{item.spelled},", item.comment))))
    ]
    return "[\n" + "".join(f"{indent}{text}".rstrip() + "\n" for text in (*lines, *behind)) + "]"


def quoted(text: str, like: str = '"') -> str:
    """A TOML string, in the quotes of another where they do."""
    import json

    mark = like[:1] if like[:1] in ("'", '"') else '"'
    return mark + text + mark if mark not in text and "\\" not in text else json.dumps(text, ensure_ascii=False)
