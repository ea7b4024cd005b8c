"""Where a model's folder comes from: a Hugging Face or ModelScope cache, and what the caches' names alone tell."""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from compatcheck.files import limits
from compatcheck.files.reading import open_text

_SNAPSHOT = re.compile(r"(.*[/\\]models--([^/\\]+))[/\\]snapshots[/\\]([0-9a-f]{40})\Z", re.S)
_MODELSCOPE = re.compile(r".*[/\\]modelscope[/\\](?:hub[/\\])?(?:models[/\\])?([^/\\]+)[/\\]([^/\\]+)\Z", re.S)
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_SHA1 = re.compile(r"[0-9a-f]{40}\Z")


class Origin(NamedTuple):
    """``source`` is ``folder``, ``huggingface-cache`` or ``modelscope-cache``; ``refs`` are the names that point here.

    ``refs`` is None where the source keeps none.
    """

    source: str
    name: str | None = None
    revision: str | None = None
    refs: tuple[str, ...] | None = None


def origin_of(folder: str) -> Origin:
    """What the path of a folder and the files beside it say of its origin; no file of the model is read."""
    absolute = os.path.abspath(folder)
    cached = _SNAPSHOT.match(absolute) or _SNAPSHOT.match(os.path.realpath(folder))
    if cached:
        refs = _refs(os.path.join(cached[1], "refs"))
        pointing = tuple(sorted(name for name, revision in refs.items() if revision == cached[3]))
        return Origin("huggingface-cache", cached[2].replace("--", "/"), cached[3], pointing)
    scoped = _MODELSCOPE.match(absolute)
    if scoped and os.path.isfile(os.path.join(absolute, ".mv")):
        return Origin("modelscope-cache", f"{scoped[1]}/{scoped[2].replace('___', '.')}", _stated_revision(absolute))
    return Origin("folder")


def blob_identity(path: str) -> dict[str, str]:
    """The hash that a cache's blob bears as its name: ``sha256`` of a large file, git's own of a plain one."""
    if not os.path.islink(path):
        return {}
    blob = os.path.realpath(path)
    name = os.path.basename(blob)
    if os.path.basename(os.path.dirname(blob)) != "blobs":
        return {}
    if _SHA256.match(name):
        return {"sha256": name}
    return {"git_blob": name} if _SHA1.match(name) else {}


def _refs(folder: str) -> dict[str, str]:
    """The revision of each ref; one that cannot be read is left out."""
    found: dict[str, str] = {}
    for path, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names)[: limits.REFS - len(found)]:
            inner = os.path.join(path, name)
            try:
                with open_text(inner) as stream:
                    found[os.path.relpath(inner, folder).replace(os.sep, "/")] = stream.read(limits.REF_BYTES).strip()
            except OSError:
                continue
    return found


def _stated_revision(folder: str) -> str | None:
    """ModelScope's ``.mv`` holds ``Revision:master,CreatedAt:1700000000``."""
    try:
        with open_text(os.path.join(folder, ".mv")) as stream:
            stated = re.match(r"Revision:([^,\s]{1,80})", stream.read(limits.REF_BYTES))
    except OSError:
        return None
    return stated[1] if stated else None


def as_fact(origin: Origin) -> dict[str, object]:
    known: dict[str, Any] = {"source": origin.source, "revision": origin.revision}
    return known if origin.refs is None else {**known, "refs": list(origin.refs)}
