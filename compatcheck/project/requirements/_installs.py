"""The packages that a shell line installs, told from its words; nothing is run."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

_PIP = re.compile(r"(?:.*/)?pip[\d.]*\Z")
_PYTHON = re.compile(r"(?:.*/)?python[\d.]*\Z")
_CONDA = re.compile(r"(?:.*/)?(?:conda|mamba|micromamba)\Z")
_ENDS = frozenset(("&&", "||", ";", "|", "&", "(", ")", "\n", ";;", "|&"))
_CONDITIONS = frozenset(("if", "elif", "else", "case", "for", "while", "until"))
_SKIPPED = frozenset(("sudo", "time", "exec", "then", "do", "else", "{", "!", "nice", "env", "-E", "-H"))
_SCRIPT = re.compile(r"(?:\S*sh\b[^<]*)?<<-?\s*[\"']?\w+[\"']?\s*(?:\S*sh\b.*)?\Z")
_ASSIGNMENT = re.compile(r"\w+=")
# fmt: off
_VALUED = frozenset((
    "-t", "--target", "-p", "--python", "--prefix", "--root", "--src", "--upgrade-strategy", "--progress-bar",
    "--platform", "--no-binary", "--only-binary", "-C", "--config-settings", "--config-setting", "--timeout",
    "--retries", "--trusted-host", "--proxy", "--cache-dir", "--python-version", "--implementation", "--abi",
    "--report", "--global-option", "--torch-backend", "--index-strategy", "--resolution", "--prerelease",
    "--exclude-newer", "--log", "--exists-action", "--keyring-provider", "-n", "--name", "-c", "--channel",
    "--link-mode", "--default-timeout", "--use-feature", "--use-deprecated", "--no-build-isolation-package",
    "--extra", "--group",
))
# fmt: on
_INDEXES = ("-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--index", "--default-index")
_FILES = {"-r": False, "--requirement": False, "--requirements": False, "-c": True, "--constraint": True}


class Install(NamedTuple):
    """One command: its requirements, the files it names with whether they only constrain, and its indexes.

    ``conditional`` marks one that the shell may pass over.
    """

    tool: str
    requirements: tuple[str, ...] = ()
    files: tuple[tuple[str, bool], ...] = ()
    indexes: tuple[str, ...] = ()
    conditional: bool = False
    with_dependencies: bool = True
    upgrade: bool = False


def installs_in(text: str) -> Iterator[Install]:
    """The installs of pip, uv and conda in the text of a ``RUN``, and in its heredoc where a shell reads that.

    Raises `ValueError` where quotes do not match.
    """
    text = re.sub(r"^(?:--\w+=\S+\s+)+", "", text)
    if text.startswith("["):
        try:
            words = json.loads(text)
        except (ValueError, RecursionError):
            words = None
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            if len(words) == 3 and words[1] in ("-c", "-lc", "-ec"):
                yield from installs_in(words[2])
            else:
                yield from _parse_command(words, False)
            return
    head, newline, body = text.partition("\n")
    if newline:
        script = _SCRIPT.match(head)
        text = body.replace("\\\n", " ") if script else head
    for words, conditional in _commands(text):
        yield from _parse_command(words, conditional)


def _commands(text: str) -> Iterator[tuple[list[str], bool]]:
    words: list[str] = []
    depth, branched = 0, False
    for line in text.split("\n"):
        lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
        lexer.whitespace_split, lexer.commenters = True, "#"
        for word in [*lexer, "\n"]:
            if word not in _ENDS:
                depth += word in _CONDITIONS and not words
                depth -= word in ("fi", "done", "esac") and depth > 0
                words.append(word)
                continue
            if words:
                yield words, depth > 0 or branched
            branched = word == "||"
            words = []


def _parse_command(words: list[str], conditional: bool) -> Iterator[Install]:
    while words and (words[0] in _SKIPPED or words[0] in _CONDITIONS or _ASSIGNMENT.match(words[0])):
        words = words[1:]
    if not words:
        return
    if _PYTHON.match(words[0]) and words[1:3] == ["-m", "pip"]:
        words = ["pip", *words[3:]]
    if words[0].rpartition("/")[2] == "uv" and words[1:2] == ["pip"]:
        words = ["uv-pip", *words[2:]]
    elif words[0].rpartition("/")[2] == "uv" and words[1:2] == ["add"]:
        words = ["uv-pip", "install", *words[2:]]
    tool = "conda" if _CONDA.match(words[0]) else "pip" if _PIP.match(words[0]) or words[0] == "uv-pip" else ""
    verbs = [at for at, word in enumerate(words[1:4], 1) if word == "install"]
    if tool and verbs:
        yield _install(tool, words[verbs[0] + 1 :], conditional)


def _install(tool: str, words: list[str], conditional: bool) -> Install:
    requirements: list[str] = []
    files: list[tuple[str, bool]] = []
    indexes: list[str] = []
    upgrade, with_dependencies = False, True
    waiting = iter(words)
    for word in waiting:
        if word in (">", ">>", "<", ">&", "&>", "<<"):
            next(waiting, None)
            continue
        option, _, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if tool == "pip" and (option in _FILES or (word[:2] in ("-r", "-c") and len(word) > 2 and word[1] != "-")):
            short = word[:2] if option not in _FILES else option
            named = value or (word[2:] if short != option else next(waiting, ""))
            files.append((named, _FILES[short]))
        elif option in ("-e", "--editable"):
            requirements.append(f"-e {value or next(waiting, '')}")
        elif option in _INDEXES:
            indexes.append(value or next(waiting, ""))
        elif option in _VALUED:
            if not value:
                next(waiting, None)
        elif word.startswith("-"):
            upgrade = upgrade or option in ("-U", "--upgrade", "--force-reinstall")
            with_dependencies = with_dependencies and option != "--no-deps"
        elif not word.isdigit():
            requirements.append(word)
    return Install(tool, tuple(requirements), tuple(files), tuple(indexes), conditional, with_dependencies, upgrade)
