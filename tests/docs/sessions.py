"""The sessions that documentation shows: found, run as a reader types them, and compared with what is printed.

`python -m tests.docs.sessions [PAGE...]` runs pages and writes anew what their commands print, where a page shows
something and leaves nothing out.

A fence of `console` holds commands behind `$ `, continued behind `> `, and what they print; a line `...` stands for
any number of lines. A `python` fence is run as it stands, one with `title="FILE"` is written to that file. A page runs
in one shell, from a folder that holds the clone as `compatcheck/`. In the line before a fence,

    <!-- exit 1 -->             the last command leaves with 1; all others must leave with 0
    <!-- not run: network -->   it is not run, for one of the reasons in `REASONS`; a verb's own tests run what is slow
    <!-- needs: network -->     the page is run only where the package index can be asked
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
REASONS = ("install", "network", "gpu", "cluster", "hosting", "clone", "other machine", "slow")
RUN = ("console", "python")
SHOWN = ("text", "yaml", "toml", "json", "sh")

_FENCE = re.compile(
    r"^(?P<indent> *)(?:<!-- (?P<mark>exit \d+|not run: [^>]*?|needs: network) -->\n(?P=indent)(?:<!-- [\w ]+ -->\n)?)?"
    r"```(?P<kind>[\w]*)(?: title=\"(?P<title>[^\"]+)\")?[^\n]*\n(?P<text>.*?)^(?P=indent)```$",
    re.S | re.M,
)
_MASKS = (
    (r"matrix [0-9a-f]{12}( of [0-9-]{10})?, \d+ entries", "matrix"),
    (r"矩阵 [0-9a-f]{12}（[0-9-]{10}），\d+ 个条目", "矩阵"),
    (r"(?m)^[✓-] (driver, GPU|驱动, GPU) .*\n(?: {15}.*\n)*", ""),
    (r"(?m)^([✓-] (?:packages|软件包) .*Python )\S+", r"\1"),
    (r"(?m)^ +(known|missing): .*\n(?: {24}.*\n)*", ""),
    (r"; not judged: .*", ""),
    (r"(?m)^not known: .*\n(?:           .*\n)*", ""),
    (r"\d+(\.\d+)? s\b", "0 s"),
)
_MARK = "\x1e"


class Fence(NamedTuple):
    """A fenced block: ``kind`` is its language, ``title`` the file that it is, ``mark`` the comment before it."""

    line: int
    kind: str
    title: str | None
    mark: str
    text: str
    start: int

    @property
    def left_out(self) -> str | None:
        """Why it is not run, None where it is."""
        return self.mark.removeprefix("not run: ") if self.mark.startswith("not run") else None

    @property
    def exit_status(self) -> int:
        return int(self.mark.removeprefix("exit ")) if self.mark.startswith("exit") else 0


class Step(NamedTuple):
    """A command as it is typed, what the page says it prints, and what it printed."""

    fence: Fence
    command: str
    shown: str
    last: bool
    status: int = 0
    printed: str = ""

    @property
    def expected_status(self) -> int:
        return self.fence.exit_status if self.last else 0


def fences(text: str) -> list[Fence]:
    found = []
    for match in _FENCE.finditer(text):
        indent, body = match["indent"], match["text"]
        plain = "".join(line.removeprefix(indent) for line in body.splitlines(keepends=True))
        line = text.count("\n", 0, match.start("kind")) + 1
        found.append(Fence(line, match["kind"], match["title"], match["mark"] or "", plain, match.start("text")))
    return found


def steps(text: str) -> list[Step]:
    """What is typed on a page, in order."""
    found: list[Step] = []
    for fence in fences(text):
        if fence.left_out is not None:
            continue
        if fence.title is not None:
            found.append(Step(fence, f"cat > {fence.title} <<'END OF FILE'\n{fence.text}END OF FILE", "...\n", True))
        elif fence.kind == "python":
            found.append(Step(fence, f"python - <<'END OF FILE'\n{fence.text}END OF FILE", "...\n", True))
        elif fence.kind == "console":
            pairs = list(_typed(fence.text))
            found += [
                Step(fence, command, shown, place == len(pairs)) for place, (command, shown) in enumerate(pairs, 1)
            ]
    return found


def _typed(text: str) -> Iterator[tuple[str, str]]:
    """Each command, and what stands below it."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        typed = re.match(r".*\n(?:> .*\n)*", part)
        assert typed is not None, part
        yield re.sub(r"^> ", "", typed[0], flags=re.M).strip(), part[typed.end() :]


def run(typed: Sequence[Step], folder: Path, binaries: Path) -> list[Step]:
    """The steps with what came of them, run in one shell that finds the command in ``binaries``."""
    script = "".join(
        f"{step.command}\n_status=$?; printf '{_MARK}%s{_MARK}' $_status; (exit $_status)\n" for step in typed
    )
    (folder / "compatcheck").symlink_to(ROOT)
    callers = re.compile(r"COMPATCHECK_|PYTHON|VIRTUAL_|CONDA_")
    kept = {key: value for key, value in os.environ.items() if not callers.match(key)}
    environ = {
        **kept,
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(folder / ".cache"),
        "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv")),
        "NO_COLOR": "1",
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-s"],
        input=script,
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    parts = done.stdout.split(_MARK)
    assert len(parts) == 2 * len(typed) + 1, f"the shell ended early: {parts[-1]}"
    return [
        step._replace(printed=printed, status=int(status))
        for step, printed, status in zip(typed, parts[::2], parts[1::2])
    ]


def agrees(shown: str, printed: str) -> bool:
    """Whether what is shown is what was printed, but for what differs from machine to machine and day to day."""
    pieces = re.split(r"^\.\.\.\n", masked(shown), flags=re.M)
    pattern = r"(?:.*\n)*?".join(map(re.escape, pieces))
    return re.fullmatch(pattern, masked(printed)) is not None


def masked(text: str) -> str:
    for pattern, instead in _MASKS:
        text = re.sub(pattern, instead, text)
    return text


def rewritten(text: str, done: Sequence[Step]) -> str:
    """The page with what was printed, in fences that leave nothing out."""
    for fence in reversed(fences(text)):
        mine = [step for step in done if step.fence.start == fence.start]
        if all(not step.shown or agrees(step.shown, step.printed) for step in mine) or fence.title is not None:
            continue
        if any("...\n" in step.shown for step in mine):
            print(f"line {fence.line}: write it by hand", *(step.printed for step in mine), sep="\n")
            continue
        lines = [
            "$ " + step.command.replace("\n", "\n> ") + "\n" + (step.printed if step.shown else "") for step in mine
        ]
        text = text[: fence.start] + "".join(lines) + text[fence.start + len(fence.text) :]
    return text


def _main() -> None:
    import shutil
    import tempfile

    command = shutil.which("compatcheck")
    assert command is not None, "no compatcheck on PATH"
    for page in [Path(name).resolve() for name in sys.argv[1:]] or PAGES:
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            done = run(steps(text), Path(folder), Path(command).parent)
        for step in done:
            if step.status != step.expected_status:
                print(f"{page}:{step.fence.line}: {step.command}: exit {step.status}\n{step.printed}")
        page.write_text(rewritten(text, done), encoding="utf-8")


if __name__ == "__main__":
    _main()
