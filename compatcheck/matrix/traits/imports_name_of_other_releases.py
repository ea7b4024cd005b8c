"""The model's own code, or the user's script, imports a name that the stated release lacks and others have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from packaging.version import Version

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._release_names import NameHistory, histories, occurrence
from compatcheck.packages.versions import final_release

_MODEL, _SCRIPT = "model.asks", "trainer.asks"


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Certain of the model's code and of a single script; of several scripts it is open which one is run.

    A name that the model's code imports and that releases dropped is left to an entry of its own where it has one.
    """
    looked = {path: environment.get(path) for path in (_MODEL, _SCRIPT)}
    names = {path: listed or () for path, listed in looked.items() if not isinstance(listed, Unknown)}
    if not names:
        return TraitVerdict(None, missing=(_MODEL,))
    found: dict[str, list[Occurrence]] = {}
    for path, listed in names.items():
        for asked in histories([_import(each) for each in listed if _is_import(each)], table, with_module=True):
            stated = environment.get(f"distributions.{asked.package}")
            release = None if isinstance(stated, Unknown) else final_release(stated)
            if release and asked.lacks(release) and not (path == _MODEL and _has_entry(asked, release, table)):
                found.setdefault(path, []).append(occurrence(asked, release))
    scripts = {each["file"] for each in names.get(_SCRIPT, ())}
    certain = [path for path in found if path == _MODEL or len(scripts) == 1]
    if certain:
        return TraitVerdict(True, tuple(each for path in certain for each in found[path]))
    if found:
        return TraitVerdict(None, tuple(found[_SCRIPT]), ("trainer.script",))
    return TraitVerdict(False)


def _is_import(asked: Mapping[str, Any]) -> bool:
    """Whether it is a name or a submodule that is surely imported."""
    return (
        asked["kind"] == "import" and bool(asked.get("name") or "." in asked["target"]) and not asked.get("conditions")
    )


def _import(asked: Mapping[str, Any]) -> dict[str, Any]:
    place = {"file": asked["file"], "line": asked["line"]}
    return {"module": asked["target"], "name": asked.get("name"), **place}


def _has_entry(asked: NameHistory, release: Version, table: Table) -> bool:
    rows = table("imported-names")["traits"].values()
    return not asked.is_older(release) and any(f"{asked.module}.{asked.name}" in names for names in rows)
