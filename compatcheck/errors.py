"""The errors a person can act on; anything else that escapes is a bug."""

from __future__ import annotations

from os import PathLike


class CompatcheckError(Exception):
    """An error with a message of one line.

    The line names the operation, the file, what went wrong, and what to do next.
    """

    exit_status = 2

    def __init__(self, doing: str, subject: str | PathLike[str], seen: str, advice: str) -> None:
        super().__init__(f"{doing} {subject}: {seen}; {advice}")
        self.doing, self.subject, self.seen, self.advice = doing, subject, seen, advice


class InputError(CompatcheckError):
    """What the user gave cannot be used: exit status 2."""


class NothingInspectedError(CompatcheckError):
    """There is no environment to judge: exit status 3."""

    exit_status = 3


class DataError(CompatcheckError):
    """The matrix itself is damaged: exit status 5."""

    exit_status = 5
