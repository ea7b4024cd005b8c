"""What ranks say to one another: a JSON object a line, parsed strictly where it comes in."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from compatcheck.files import limits

PROTOCOL = 1


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


Rank = Annotated[int, Field(ge=0, le=limits.RANKS)]
Port = Annotated[int, Field(ge=0, le=65535)]
Text = Annotated[str, Field(max_length=limits.WORDS_CHARACTERS)]


class Greeting(_Message):
    """Rank 0 speaks first, so that nothing is said to another service; ``seen`` is the address it sees."""

    kind: Literal["greeting"] = "greeting"
    protocol: int
    job: str
    seen: str


class Hello(_Message):
    """A rank presents itself before it looks at its machine; ``port`` is where other nodes can reach it."""

    kind: Literal["hello"] = "hello"
    rank: Rank
    local_rank: Rank
    node: Annotated[str, Field(max_length=limits.NODE_CHARACTERS)]
    place: Text
    version: Text
    port: Port = 0


class Has(_Message):
    """What a rank has found on its machine: the digest stands for the snapshot.

    ``torch`` is the version that the interpreter under trial has installed, None where there is none. ``unread`` is
    why there is no snapshot.
    """

    kind: Literal["has"] = "has"
    digest: Text = ""
    torch: Text | None = None
    gpus: Annotated[int, Field(ge=0, le=limits.GPUS)] = 0
    unread: Text = ""


class Want(_Message):
    """Nobody has sent the snapshot of this digest yet."""

    kind: Literal["want"] = "want"


class Snapshot(_Message):
    kind: Literal["snapshot"] = "snapshot"
    digest: str
    snapshot: dict[str, Any]


class Reach(_Message):
    """Try to connect to each of these ranks, by number, within so many seconds."""

    kind: Literal["reach"] = "reach"
    peers: dict[Rank, tuple[Text, Port]]
    seconds: float


class Reached(_Message):
    """Those that could not be reached, with what was seen."""

    kind: Literal["reached"] = "reached"
    failed: dict[Rank, Text]


class Work(_Message):
    """Take part in a probe as rank ``number`` of ``world``; ``own`` is the address by which others know this rank."""

    kind: Literal["work"] = "work"
    turn: int
    probe: str
    cases: list[dict[str, Any]]
    number: int
    world: int
    local: int
    backend: str
    device: str
    address: str
    port: int
    own: str
    environ: dict[str, str]
    limit: float


class Said(_Message):
    """One line of the diary of the process that works."""

    kind: Literal["said"] = "said"
    turn: int
    event: dict[str, Any]


class Ended(_Message):
    """The process that worked is gone, with this exit status (negative: a signal)."""

    kind: Literal["ended"] = "ended"
    turn: int
    status: Annotated[int, Field(ge=-(2**31), lt=2**32)] | None
    tail: Text


class Beat(_Message):
    """A sign of life: CPU seconds and state of the process that works, and bytes this machine's network has moved."""

    kind: Literal["beat"] = "beat"
    cpu: float | None = None
    state: str = ""
    moved: int | None = None


class Stop(_Message):
    """End the process that works."""

    kind: Literal["stop"] = "stop"


class Leaving(_Message):
    """The rank ends because of what it says here, not by itself."""

    kind: Literal["leaving"] = "leaving"
    why: Text


class Over(_Message):
    """All is said: end with this exit status."""

    kind: Literal["over"] = "over"
    status: int


Message = Union[Greeting, Hello, Has, Want, Snapshot, Reach, Reached, Work, Said, Ended, Beat, Stop, Leaving, Over]  # noqa: UP007
_ADAPTER: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="kind")])


def encoded(message: Message) -> bytes:
    return json.dumps(message.model_dump(), separators=(",", ":")).encode() + b"\n"


def decoded(line: bytes) -> Message | None:
    """Parse a line as a message; None if it is not one."""
    try:
        return _ADAPTER.validate_json(line)
    except ValidationError:
        return None
