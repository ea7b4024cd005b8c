"""Print what the changelog says of a release, for its page; refuse a tag that is not the version.

python .github/release_notes.py v0.1.0 > notes.md
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main(tag: str, root: Path = ROOT) -> None:
    """Print the section of the tag's version; exits with 1, and says why, where anything of a release is missing."""
    source = (root / "compatcheck" / "__init__.py").read_text(encoding="utf-8")
    version = re.search(r'^__version__ = "(.+)"$', source, re.M)
    if version is None or tag != f"v{version[1]}":
        sys.exit(
            f"release_notes: the tag is {tag}, the version is {version and version[1]}; tag the commit that sets it"
        )
    notes = section((root / "CHANGELOG.md").read_text(encoding="utf-8"), version[1])
    if notes is None:
        sys.exit(f"release_notes: CHANGELOG.md has no text below '## {version[1]}'; write what users get")
    print(notes)


def section(changelog: str, version: str) -> str | None:
    """What stands below the version's heading, up to the next one; a date may follow the version there."""
    heading = re.compile(rf"^## {re.escape(version)}(?: \(\d{{4}}-\d\d-\d\d\))?$\n(.*?)(?=^## |\Z)", re.M | re.S)
    found = heading.search(changelog)
    return (found and found[1].strip()) or None


if __name__ == "__main__":
    main(*sys.argv[1:2])
