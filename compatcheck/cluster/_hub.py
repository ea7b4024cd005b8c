"""Rank 0's side: every rank's connection, polled by the one thread that leads."""

from __future__ import annotations

import contextlib
import selectors
import socket
import sys
import time
from types import TracebackType
from typing import NamedTuple

from compatcheck.cluster import _network
from compatcheck.cluster._channel import Channel
from compatcheck.cluster._launch import Launch
from compatcheck.cluster._messages import PROTOCOL, Beat, Greeting, Hello, Leaving, Message
from compatcheck.errors import InputError

_PARTING_SECONDS = 5.0
_OTHER_FILES = 64


class Heard(NamedTuple):
    """What a rank said; ``message`` is None where it is gone, for the reason in ``why``."""

    rank: int
    message: Message | None
    why: str = ""


class Stopped(Exception):
    """The launcher, or a person, has asked this process to end."""


class Hub:
    """The meeting point. ``heard_at`` is when each rank was last heard, ``beats`` its last sign of life."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        _make_room(launch.world)
        self.listener = _listen(launch)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.channels: dict[int, Channel] = {}
        self.addresses: dict[int, str] = {}
        self.heard_at: dict[int, float] = {}
        self.beats: dict[int, Beat] = {}
        self.leaving: dict[int, str] = {}
        self.outer = ""
        self.stopping = False
        self._unnamed: set[Channel] = set()
        self._behind: set[Channel] = set()

    def __enter__(self) -> Hub:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        for channel in (*self.channels.values(), *self._unnamed):
            channel.close()
        self.selector.close()
        self.listener.close()

    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def poll(self, seconds: float) -> list[Heard]:
        """What came within so many seconds, at once where something is there.

        Raises Stopped where this process has been asked to end.
        """
        if self.stopping:
            raise Stopped
        found: list[Heard] = []
        for key, _ in self.selector.select(seconds):
            if key.fileobj is self.listener:
                self._accept()
            else:
                found += self._read(key.data)
        return found

    def send(self, rank: int, message: Message) -> None:
        channel = self.channels.get(rank)
        if channel is not None:
            channel.send(message)
            if not channel.flush():
                self._behind.add(channel)

    def flush(self) -> bool:
        """Whether everything queued for anybody has left."""
        self._behind = {channel for channel in self._behind if not channel.flush()}
        return not self._behind

    def address(self, rank: int) -> str:
        """The address by which other machines know a rank; for one beside rank 0, that machine's own."""
        seen = self.addresses.get(rank, "127.0.0.1")
        return (self.outer or seen) if _is_loopback(seen) else seen

    def part(self, message: Message) -> None:
        """Send everybody a last message, and wait a moment for them to go."""
        for rank in self.channels:
            self.send(rank, message)
        deadline = time.monotonic() + _PARTING_SECONDS
        while self.channels and time.monotonic() < deadline:
            self.flush()
            with contextlib.suppress(Stopped):
                self.poll(0.05)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            connection, peer = self.listener.accept()
            channel = Channel(connection, is_guest=True)
            seen = peer[0].removeprefix("::ffff:")
            self._unnamed.add(channel)
            self.selector.register(connection, selectors.EVENT_READ, channel)
            channel.send(Greeting(protocol=PROTOCOL, job=self.launch.job, seen=seen))

    def _read(self, channel: Channel) -> list[Heard]:
        messages = channel.receive()
        found: list[Heard] = []
        for message in messages:
            if channel in self._unnamed and isinstance(message, Hello):
                self._name(channel, message)
            rank = channel.rank
            if rank is not None:
                self.heard_at[rank] = time.monotonic()
                if isinstance(message, Beat):
                    self.beats[rank] = message
                elif isinstance(message, Leaving):
                    self.leaving[rank] = message.why
                else:
                    found.append(Heard(rank, message))
        if channel.gone:
            found += self._drop(channel)
        return found

    def _name(self, channel: Channel, hello: Hello) -> None:
        if hello.rank in self.channels or hello.rank >= self.launch.world:
            channel.gone = "another process has this rank"
            return
        self._unnamed.discard(channel)
        self.channels[hello.rank], channel.rank, channel.is_guest = channel, hello.rank, False
        seen = channel.connection.getpeername()[0].removeprefix("::ffff:")
        self.addresses[hello.rank] = seen
        if not _is_loopback(seen) and not self.outer:
            self.outer = channel.connection.getsockname()[0].removeprefix("::ffff:")

    def _drop(self, channel: Channel) -> list[Heard]:
        self.selector.unregister(channel.connection)
        channel.close()
        self._unnamed.discard(channel)
        if channel.rank is None:
            return []
        del self.channels[channel.rank]
        return [Heard(channel.rank, None, channel.gone)]


def _make_room(world: int) -> None:
    """Raise this process's limit of open files to what all ranks need; InputError where the system allows fewer."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = world + _OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        seen = f"this system allows {hard} open files per process, but {world} ranks need {needed}"
        raise InputError(
            "listening for", f"{world} ranks", seen, "raise the hard limit (ulimit -Hn) on the node of rank 0"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _is_loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


def _listen(launch: Launch) -> socket.socket:
    """Raises InputError where none of the ports is free."""
    seen = "no port is left to try"
    for port in launch.ports:
        try:
            return _network.listen(port)
        except OSError as error:
            seen = error.strerror or str(error)
    advice = "set MASTER_PORT to a port with free ports above it"
    raise InputError("listening for the other ranks at port", str(launch.ports[0]), seen, advice)
