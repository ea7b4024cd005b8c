"""Record environments of well-run projects, as their own files at a release pin them, for `compatcheck matrix diff`.

    python tools/known_good.py CLONES > matrix/environments/known-good.jsonl

CLONES is a folder of git clones named owner+name, bare or not. `matrix/environments/sources.json` lists what to read:
`repository` (owner/name), `revision` (a tag or commit), `files` (lock files, requirements and the like of one
environment) and, where the files do not say it, `facts` by their path in a snapshot (such as the torch of the image
they are installed into) with `why`. `launch` names the files that the facts on GPUs and training are taken from.
`proven` names the entries that are true of one, each with the run that showed it.
Versions alone are taken over, Python's from a `.python-version` beside the first
file. What a file leaves open stays unknown.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from compatcheck.project.reading import read_paths

SOURCES = Path(__file__).parents[1] / "matrix" / "environments" / "sources.json"
KEPT = ("python", "distributions", "cuda")


def main() -> None:
    for source in json.loads(SOURCES.read_text(encoding="utf-8")):
        print(json.dumps(snapshot(Path(sys.argv[1]), source)))


def snapshot(clones: Path, source: dict[str, Any]) -> dict[str, Any]:
    """One environment as a snapshot, with its name and where it is from."""
    owner, name = source["repository"].split("/")
    git = ["git", "-C", str(next(clones.glob(f"{owner}+{name}/**/HEAD")).parent)]
    revision = source["revision"]
    date, commit = _output(*git, "log", "-1", "--format=%cs %H", f"{revision}^{{commit}}").split()
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, path in enumerate(source["files"]):
            place = Path(folder) / str(number) / Path(path).name
            place.parent.mkdir()
            place.write_text(_output(*git, "show", f"{commit}:{path}"), encoding="utf-8")
            paths.append(str(place))
        known = read_paths(paths).environment.facts
    kept = {key: known[key] for key in KEPT if known.get(key)}
    beside = str(Path(source["files"][0]).with_name(".python-version"))
    if "python" not in kept and _output(*git, "ls-tree", "--name-only", commit, "--", beside):
        kept["python"] = _output(*git, "show", f"{commit}:{beside}").strip()
    for path, value in source.get("facts", {}).items():
        *sections, last = path.split(".")
        inner = kept
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[last] = value
    label = revision if len(revision) < 40 else f"{date} ({revision[:12]})"
    urls = [
        f"https://github.com/{source['repository']}/blob/{revision}/{path}"
        for path in (*source["files"], *source.get("launch", ()))
    ]
    told = {"name": source.get("name", f"{name} {label}"), "source": urls, "date": date}
    told |= {"note": source["why"]} if "why" in source else {}
    told |= {"proven": source["proven"]} if "proven" in source else {}
    return {"schema_version": 1, **told, **kept, "distributions": dict(sorted(kept.get("distributions", {}).items()))}


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main()
