"""Every rank's side: find rank 0, say what is here, and do what it asks until all is over."""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from compatcheck.cluster import _messages, _network
from compatcheck.cluster._channel import Channel
from compatcheck.cluster._launch import Launch
from compatcheck.cluster._messages import (
    Beat,
    Ended,
    Greeting,
    Has,
    Hello,
    Leaving,
    Message,
    Over,
    Reach,
    Reached,
    Said,
    Snapshot,
    Stop,
    Want,
    Work,
)
from compatcheck.errors import CompatcheckError

_TICK_SECONDS = 0.1
_BEAT_SECONDS = 1.0
_RETRY_SECONDS = 0.3
_GREETING_SECONDS = 2.0


class Worker(Protocol):
    """A process that takes part in a probe."""

    def new_lines(self) -> list[dict[str, object]]: ...
    def status(self) -> int | None: ...
    def pulse(self) -> tuple[float | None, str]: ...
    def tail(self) -> str: ...
    def end(self) -> None: ...


class Participant:
    """One rank, from finding rank 0 to the end; ``stopping`` may be set to leave, with the reason."""

    def __init__(self, launch: Launch, start: Callable[[Work], Worker]) -> None:
        self.launch = launch
        self.start = start
        self.stopping = ""
        self.listener = _network.listen()
        self.worker: Worker | None = None
        self.turn = 0
        self.beaten = 0.0

    def run(self, hello: Hello, look: Callable[[], tuple[Has, Mapping[str, object]]], seconds: float) -> int:
        """The exit status that rank 0 gives; ``look`` finds out what this machine has, once rank 0 knows of us.

        Raises CompatcheckError where rank 0 cannot be reached in time, or dies.
        """
        with self.listener:
            channel = self._find(seconds)
            try:
                channel.send(hello.model_copy(update={"port": self.listener.getsockname()[1]}))
                has, snapshot = look()
                channel.send(has)
                return self._serve(channel, has.digest, snapshot)
            finally:
                self._end_work()
                channel.close()

    def _find(self, seconds: float) -> Channel:
        """The connection to rank 0: the first of the ports that answers with the greeting of this run."""
        deadline, seen = time.monotonic() + seconds, "nothing listens there"
        while time.monotonic() < deadline and not self.stopping:
            for port in self.launch.ports:
                found = _greeted(self.launch, port)
                if isinstance(found, Channel):
                    return found
                seen = found or seen
            time.sleep(_RETRY_SECONDS)
        first, last = self.launch.ports[0], self.launch.ports[-1]
        if not self.stopping:
            seen += f", for {seconds:g} s"
        advice = "check that MASTER_ADDR is correct and that this node can reach it"
        place = f"{self.launch.address}, ports {first} to {last}"
        raise CompatcheckError(f"rank {self.launch.rank}: finding rank 0 at", place, self.stopping or seen, advice)

    def _serve(self, channel: Channel, digest: str, snapshot: Mapping[str, object]) -> int:
        with selectors.DefaultSelector() as selector:
            selector.register(channel, selectors.EVENT_READ)
            selector.register(self.listener, selectors.EVENT_READ)
            while not self.stopping:
                for key, _ in selector.select(_TICK_SECONDS):
                    if key.fileobj is self.listener:
                        with contextlib.suppress(OSError):
                            self.listener.accept()[0].close()
                        continue
                    for message in channel.receive():
                        if isinstance(message, Over):
                            return message.status
                        if isinstance(message, Want):
                            channel.send(Snapshot(digest=digest, snapshot=dict(snapshot)))
                        self._obey(channel, message)
                self._tell(channel)
                if channel.gone:
                    advice = "see the output of rank 0"
                    raise CompatcheckError(f"rank {self.launch.rank}: hearing", "rank 0", channel.gone, advice)
        channel.send(Leaving(why=self.stopping))
        return 1

    def _obey(self, channel: Channel, message: Message) -> None:
        if isinstance(message, Reach):
            channel.send(Reached(failed=_network.reach(message.peers, message.seconds)))
        elif isinstance(message, Work):
            self._end_work()
            self.turn, self.worker = message.turn, self.start(message)
        elif isinstance(message, Stop):
            self._end_work()

    def _tell(self, channel: Channel) -> None:
        """Pass on what the process that works has said, and beat."""
        channel.flush()
        if self.worker is not None:
            status = self.worker.status()
            for event in self.worker.new_lines():
                channel.send(Said(turn=self.turn, event=event))
            if status is not None:
                channel.send(Ended(turn=self.turn, status=status, tail=self.worker.tail()))
                self._end_work()
        if time.monotonic() - self.beaten >= _BEAT_SECONDS:
            self.beaten = time.monotonic()
            cpu, state = self.worker.pulse() if self.worker is not None else (None, "")
            channel.send(Beat(cpu=cpu, state=state, moved=_network.moved()))

    def _end_work(self) -> None:
        if self.worker is not None:
            self.worker.end()
            self.worker = None


def _greeted(launch: Launch, port: int) -> Channel | str:
    """The connection, or what was seen instead: the empty string where nobody listens."""
    try:
        connection = socket.create_connection((launch.address, port), _GREETING_SECONDS)
    except ConnectionRefusedError:
        return ""
    except OSError as error:
        return error.strerror or str(error)
    try:
        connection.settimeout(_GREETING_SECONDS)
        line = b""
        while not line.endswith(b"\n") and len(line) < 4096:
            data = connection.recv(1)
            if not data:
                break
            line += data
    except OSError:
        line = b""
    greeting = _messages.decoded(line)
    if not isinstance(greeting, Greeting) or greeting.job != launch.job:
        connection.close()
        return "another service or another run responds there"
    if greeting.protocol != _messages.PROTOCOL:
        connection.close()
        return f"rank 0 runs another compatcheck (protocol {greeting.protocol}, here {_messages.PROTOCOL})"
    return Channel(connection)
