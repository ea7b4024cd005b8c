"""What an interpreter prints where an import or an attribute of a module asks for a name that is not there."""

from __future__ import annotations

import re

MARKS = ("cannot import name", "No module named", "has no attribute")
"""One of these stands in every line that tells of a missing name."""

_IMPORTED = re.compile(r"cannot import name ['\"](\w{1,100})['\"] from ['\"]([\w.]{1,200})['\"]")
_MODULE = re.compile(r"No module named ['\"]?(\w{1,100}(?:\.\w{1,100}){1,12})\b")
_ATTRIBUTE = re.compile(r"\bmodule ['\"]?([\w.]{1,200})['\"]? has no attribute ['\"]?(\w{1,100})\b")
_OTHER_CAUSES = ("circular import", "partially initialized", "is not a package", "consider renaming")
"""What the interpreter adds where files that shadow or import one another are the cause, not their release."""


def missing_name(text: str) -> dict[str, str | None] | None:
    """The ``module`` and the ``name`` that it lacks, None for the whole of a submodule; None where no line says so.

    The messages are those of https://docs.python.org/3/library/exceptions.html#ImportError; of a package that is not
    there at all no release can be told, so it counts for nothing.
    """
    if any(cause in text for cause in _OTHER_CAUSES):
        return None
    if match := _IMPORTED.search(text):
        return {"module": match[2], "name": match[1]}
    if match := _MODULE.search(text):
        return {"module": match[1], "name": None}
    if match := _ATTRIBUTE.search(text):
        return {"module": match[1], "name": match[2]}
    return None
