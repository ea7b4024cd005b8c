"""Damage to inputs: of bytes, of lines, of values and of nesting, with pieces of the other seeds."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

_WORD = re.compile(rb"[A-Za-z_][\w.-]*|\d+(?:\.\d+)*|\"[^\"\n]{0,80}\"|'[^'\n]{0,80}'")
_PIECES = (
    *(b"", b"\0", b"\n", b"\r", b"\t", b" ", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\x1f\x8b", b"\x1b[31m"),
    *(b"[", b"]", b"{", b"}", b"(", b")", b"<", b">", b'"', b"'", b"`", b"\\", b"$", b"${", b"$((", b"%", b"&", b"*"),
    *(b"#", b";", b":", b"=", b"==", b"!=", b">=", b"~=", b"@", b"|", b"- ", b"-r ", b"-c ", b"--", b"&a ", b"*a"),
    *(b"0", b"-1", b"1e999", b"NaN", b"Infinity", b"1_0", b"0x1F", b"9" * 25, b"9" * 5000, b"1.0.post1+a.b", b"1!2"),
    *(b"null", b"None", b"true", b"True", b"[]", b"{}", b"[null]", b'{"a": []}', b'""', b"~", b"!!python/name:a"),
    *(b"../", b"/", b"/dev/zero", b"file:///etc/passwd", b"https://u:p@h/", b"C:\\", b".", b"..", b"-"),
    *(b"\\u0000", b"\\ud800", b"\xed\xa0\x80", b"\xc2\x85", b"\xe2\x80\xa8", b"nan", b"inf", b"import ", b"lambda: 0"),
    *(b"<<: ", b"\xe2\x80\xae", "²".encode(), "١".encode(), "ﷺ".encode(), "İ".encode(), b"\xf0\x9f"),
)  # fmt: skip
_NESTS = ((b"[", b"]"), (b"{", b"}"), (b"(", b")"), (b'{"a":', b"}"), (b"a: {", b"}"), (b"- ", b""), (b"not ", b""))
_FILE = re.compile(rb"^%%% [^\n]*\n", re.M)
_NO_FILES = (
    *(b"<fifo>", b"<folder>", b"<link .>", b"<link missing>", b"<link /dev/zero>", b"<link /proc/self/mem>"),
    *(b"<link ..>", b""),
)
_BRACKETS = re.compile(rb"[\[\](){}]")


class Mutator:
    """Changes inputs; ``words`` are what values and names are exchanged for."""

    def __init__(self, seeds: Sequence[bytes]) -> None:
        words = {word for seed in seeds for word in _WORD.findall(seed[:20_000])}
        self.words = sorted(words)[:5000] or [b"a"]
        self.seeds = list(seeds)

    def changed(self, data: bytes, draw: random.Random, largest: int) -> bytes:
        """The input after one to four changes, of at most so many bytes."""
        for _ in range(draw.choice((1, 1, 1, 2, 3, 4))):
            data = draw.choice(_CHANGES)(self, data, draw)[:largest]
        return data

    def piece(self, draw: random.Random) -> bytes:
        return draw.choice(_PIECES) if draw.random() < 0.6 else draw.choice(self.words)


Change = Callable[[Mutator, bytes, random.Random], bytes]


def _span(data: bytes, draw: random.Random, longest: int = 64) -> tuple[int, int]:
    start = draw.randrange(len(data) + 1)
    return start, min(len(data), start + draw.randrange(longest))


def _cut(one: Mutator, data: bytes, draw: random.Random) -> bytes:
    start, end = _span(data, draw, draw.choice((4, 64, 1000)))
    return data[:start] + data[end:]


def _put(one: Mutator, data: bytes, draw: random.Random) -> bytes:
    start, end = _span(data, draw, draw.choice((1, 8)))
    return data[:start] + one.piece(draw) + data[end:]


def _flip(one: Mutator, data: bytes, draw: random.Random) -> bytes:
    if not data:
        return b"\0"
    at = draw.randrange(len(data))
    return data[:at] + bytes((data[at] ^ (1 << draw.randrange(8)),)) + data[at + 1 :]


def _word(one: Mutator, data: bytes, draw: random.Random) -> bytes:
    """Another word or value in the place of one."""
    at = draw.randrange(len(data) + 1)
    found = _WORD.search(data, at) or _WORD.search(data)
    return data[: found.start()] + one.piece(draw) + data[found.end() :] if found else data


def _line(one: Mutator, data: bytes, draw: random.Random) -> bytes:
    """A line left out, doubled, moved, or taken from another seed."""
    lines = data.split(b"\n")
    at = draw.randrange(len(lines))
    kind = draw.randrange(4)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(draw.randrange(len(lines)), lines[at])
    elif kind == 2:
        lines.insert(draw.randrange(len(lines)), lines.pop(at))
    else:
        lines.insert(at, draw.choice(draw.choice(one.seeds).split(b"\n")))
    return b"\n".join(lines)


def _repeat(one: Mutator, data: bytes, draw: random.Random) -> bytes:
    start, end = _span(data, draw, draw.choice((3, 40, 400)))
    return data[:end] + data[start:end] * draw.choice((1, 2, 10, 200)) + data[end:]


def _nest(one: Mutator, data: bytes, draw: random.Random) -> bytes:
    opening, closing = draw.choice(_NESTS)
    times = draw.choice((1, 2, 70, 500, 3000))
    found = _WORD.search(data, draw.randrange(len(data) + 1))
    start, end = found.span() if found else _span(data, draw)
    return data[:start] + opening * times + data[start:end] + closing * times + data[end:]


def _bracket(one: Mutator, data: bytes, draw: random.Random) -> bytes:
    found = _BRACKETS.search(data, draw.randrange(len(data) + 1))
    return (
        data[: found.start()] + draw.choice((b"", b"[", b"{", b"null", b"}")) + data[found.end() :] if found else data
    )


def _splice(one: Mutator, data: bytes, draw: random.Random) -> bytes:
    other = draw.choice(one.seeds)
    return data[: draw.randrange(len(data) + 1)] + other[draw.randrange(len(other) + 1) :]


def _special(one: Mutator, data: bytes, draw: random.Random) -> bytes:
    """A file of a folder as something that is no file."""
    heads = [each.end() for each in _FILE.finditer(data)]
    if not heads:
        return data
    start = draw.choice(heads)
    end = data.find(b"\n%%% ", start)
    return data[:start] + draw.choice(_NO_FILES) + (data[end:] if end >= 0 else b"\n")


_CHANGES: tuple[Change, ...] = (
    *(_cut, _put, _put, _flip, _word, _word, _word, _line, _line, _repeat, _nest, _bracket, _splice, _special),
)
