"""JSON: the shape of the subject, versioned apart from everything inside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compatcheck.files.json_text import written_json
from compatcheck.files.secrets import without_secrets
from compatcheck.report.document import Document
from compatcheck.report.shapes import finite
from compatcheck.terminal.screen import Screen

SCHEMA_VERSION = 1


def render(document: Document, screen: Screen) -> str:
    return write({"schema_version": SCHEMA_VERSION, **document.shape()})


def write(shape: Mapping[str, Any]) -> str:
    return written_json(without_secrets(finite(shape)))
