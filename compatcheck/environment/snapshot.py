"""An environment as a JSON document, so that a bug report, a login node or a test can stand for a machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compatcheck.environment import SNAPSHOT_SCHEMA_VERSION, Environment
from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.json_text import json_object
from compatcheck.files.reading import decoded, read_text
from compatcheck.packages.names import normalised

_DOING = "reading the snapshot"


def load_snapshot(text: str, source: str) -> Environment:
    """The environment that a snapshot states; keys this version does not know are kept.

    Raises `InputError` where it is not JSON, of another schema version, or a value has a wrong type.
    """
    return check_snapshot(json_object(text, source), source)


def check_snapshot(document: dict[str, Any], source: str) -> Environment:
    """The same for a document that is parsed already."""
    _require_version(document, source)
    if isinstance(document.get("training"), dict):
        document["training"] = _with_numbers(document["training"])
    require_types(document, source)
    _require_files(document, source)
    for listed in ("distributions", "distribution_ranges"):
        if document.get(listed):
            document[listed] = {normalised(name): version for name, version in document[listed].items()}
    return Environment.from_snapshot(document)


def read_snapshot(path: str) -> Environment:
    """The environment in a snapshot file; ``-`` is standard input. Errors as for `load_snapshot`."""
    if path != "-":
        return load_snapshot(read_text(path), path)
    import sys

    return load_snapshot(decoded(sys.stdin.buffer.read(limits.TEXT_BYTES), "standard input"), "standard input")


def _with_numbers(value: Any) -> Any:
    """The numbers that JSON lacks are strings in a report."""
    if isinstance(value, dict):
        return {key: _with_numbers(each) for key, each in value.items()}
    return float(value) if value in ("nan", "inf", "-inf") else value


def _require_version(document: dict[str, object], source: str) -> None:
    version = document.get("schema_version")
    if version == SNAPSHOT_SCHEMA_VERSION and isinstance(version, int) and not isinstance(version, bool):
        return
    seen = f"the schema_version is {version!r}" if "schema_version" in document else "the file has no schema_version"
    advice = f"this compatcheck reads version {SNAPSHOT_SCHEMA_VERSION}; record it again with `compatcheck env`"
    raise InputError(_DOING, source, seen, advice)


def _require_files(document: Mapping[str, Any], source: str) -> None:
    for path, at in (document.get("locations") or {}).items():
        if "\0" in at["file"]:
            advice = "correct that value, or omit it if it is unknown"
            raise InputError(_DOING, source, f"locations.{path}.file: the path contains a null byte", advice)


def require_types(document: Mapping[str, object], source: str, doing: str = _DOING) -> None:
    """Raise `InputError` where the value of a key that is known has another type or is none of the words it may be."""
    from compatcheck.environment.schema import faults, schema

    for fault in faults(document, schema()):
        raise InputError(doing, source, fault, "correct that value, or omit it if it is unknown")
