"""The matrix as a static site: pages that need no server and load nothing from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files

from compatcheck.report.pages import styles
from compatcheck.report.pages.site import _entry, _index, _version_map
from compatcheck.report.pages.site._folder import require_ours, write
from compatcheck.report.pages.site._source import Source

__all__ = ["MAPPED", "Source", "render", "require_ours", "write"]

MAPPED = (_version_map.TORCH, *_version_map.BESIDE)
"""The packages of the version map."""


def render(source: Source) -> dict[str, str]:
    """The text of every file of the site, by its path.

    The page of an entry is ``entries/CC-….html`` for good, also once it is withdrawn; ``index.html#CC-…`` leads there.
    """
    footer = f"Matrix {source.revision}, {len(source.entries)} entries. Made by compatcheck matrix site."
    pages = {
        "index.html": _index.render(source, footer),
        "search.js": _index.search_data(source),
        "map.html": _version_map.render(source, footer),
        "style.css": styles.palette() + styles.style() + _text("style.css"),
        "script.js": _text("script.js") + styles.copy_script(),
    }
    for entry, related in zip(source.entries, _entry.related_entries(source.entries)):
        pages[f"entries/{entry['id']}.html"] = _entry.render(entry, related, source, footer)
    for entry in source.withdrawn:
        pages[f"entries/{entry['id']}.html"] = _entry.render_withdrawn(entry, footer)
    cited = {each["url"] for entry in source.entries for each in entry["evidence"]}
    for path in sorted(cited & set(source.records)):
        pages[path] = _json(source.records[path])
    return pages


def _text(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1, default=str) + "\n"
