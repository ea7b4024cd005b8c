"""The generated parts of `compatcheck/probes/README.md`, between markers.

Run: python tools/probe_notes.py
Writes the list of probes anew from their files. The other parts are written by the commands that the page names.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "compatcheck" / "probes" / "README.md"


def listed() -> str:
    """Markdown: every probe, what it tries, when it runs and how long it takes."""
    from compatcheck import probes
    from compatcheck.probes import _units

    lines = ["| probe | tests | runs | seconds |", "|---|---|---|---|"]
    for name in probes.names():
        unit = _units.unit(name)
        title, _ = probes.describe(name)
        path = _units.paths()[name].relative_to(_units.FOLDER)
        profile, asked = unit.PROFILE, getattr(unit, "ASKED_BY", ())
        runs = profile
        if asked and profile == "deep":
            runs += f", or quick with {', '.join(f'`{key}`' for key in asked)}"
        lines.append(f"| [`{name}`]({path}) | {title.rstrip('.')} | {runs} | {unit.SECONDS:g} |")
    return "\n".join(lines)


def part(path: Path, name: str) -> str:
    """What stands between the markers of this name."""
    match = _pattern(name).search(path.read_text(encoding="utf-8"))
    assert match, f"{path} has no part {name}"
    return match.group(2).strip()


def replace_part(path: Path, name: str, text: str) -> None:
    """Put the text between the markers of this name."""
    part(path, name)
    before = path.read_text(encoding="utf-8")
    after = _pattern(name).sub(lambda match: f"{match[1]}\n{text.strip()}\n{match[3]}", before)
    path.write_text(after, encoding="utf-8")


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {re.escape(name)} -->)(.*?)(<!-- end {re.escape(name)} -->)", re.DOTALL)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    replace_part(README, "probes", listed())
