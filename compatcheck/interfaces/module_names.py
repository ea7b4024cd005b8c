"""Which module of a package a file is."""

from __future__ import annotations

COMPILED = (".so", ".pyd")
_TEXTS = (".py", ".pyi")


def module_name(path: str) -> tuple[str | None, bool]:
    """The module that a file of a wheel is, and whether it is a package; None for any other file."""
    if not path.endswith((*_TEXTS, *COMPILED)):
        return None, False
    parts = path.split("/")
    parts[-1] = parts[-1].partition(".")[0]
    is_package = parts[-1] == "__init__"
    if is_package:
        parts.pop()
    plain = bool(parts) and all(part.isidentifier() for part in parts)
    return (".".join(parts), is_package) if plain else (None, False)
