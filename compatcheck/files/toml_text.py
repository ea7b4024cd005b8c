"""TOML, by the reader that comes with Python, or tomli before there was one."""

from __future__ import annotations

import sys
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOMLDecodeError = tomllib.TOMLDecodeError


def parse_toml(text: str) -> dict[str, Any]:
    """What the text holds. Raises `TOMLDecodeError` where it is no TOML, RecursionError where it is too deep."""
    try:
        return tomllib.loads(text)
    except TOMLDecodeError:
        raise
    except ValueError:  # int() refuses what takes it long to read
        raise TOMLDecodeError("a number with thousands of digits") from None
