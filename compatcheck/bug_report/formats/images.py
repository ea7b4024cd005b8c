"""Container images whose reference says what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim
from compatcheck.bug_report._platform import platform_claims
from compatcheck.packages.container_images import Contents, contents_of, mentioned

TITLE = "the tag of a container image"
TYPED = True
WITHIN_PROSE = True


def recognises(block: Block) -> tuple[Line, ...]:
    return tuple(line for line in block.short() if any(_contents(line)))


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    for line in lines:
        for image in mentioned(line.text):
            yield from (claim for claim in platform_claims(image, line.number) if claim.path == "platform.libc")
        for contents in _contents(line):
            stated = {
                "platform.system": "Linux",
                "python": contents.python,
                **{f"distributions.{name}": version for name, version in contents.distributions.items()},
                "cuda.runtime": contents.runtime,
                "cuda.toolkit": contents.toolkit,
                "torch_build.hip": contents.hip,
                "npu.cann": contents.cann,
                "image.name": contents.image,
                "image.release": contents.release,
            }
            yield from (Claim(path, value, line.number) for path, value in stated.items() if value)


def _contents(line: Line) -> Iterator[Contents]:
    """What the images hold that a line names; one whose tag says nothing is skipped."""
    return (found for found in map(contents_of, mentioned(line.text)) if found.distributions or not found.reason)
