"""A connection that carries messages: it never blocks, and knows when the other side is gone."""

from __future__ import annotations

import socket

from compatcheck.cluster import _messages
from compatcheck.cluster._messages import Message
from compatcheck.files import limits

_CHUNK = 1 << 18


class Channel:
    """Messages over one TCP connection; ``gone`` is why it carries no more, empty while it does.

    ``rank`` is whose it is, once that is known; of a guest it is not, and so little is taken from one.
    """

    def __init__(self, connection: socket.socket, is_guest: bool = False) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection = connection
        self.gone = ""
        self.rank: int | None = None
        self.is_guest = is_guest
        self._incoming = bytearray()
        self._outgoing = bytearray()

    def fileno(self) -> int:
        return self.connection.fileno()

    def send(self, message: Message) -> None:
        """Queue a message and pass on what the connection takes at once."""
        self._outgoing += _messages.encoded(message)
        self.flush()

    def flush(self) -> bool:
        """Whether all that was queued has left."""
        while self._outgoing and not self.gone:
            try:
                sent = self.connection.send(self._outgoing[:_CHUNK])
            except BlockingIOError:
                return False
            except OSError as error:
                self.gone = error.strerror or str(error)
                return True
            del self._outgoing[:sent]
        return True

    def receive(self) -> list[Message]:
        """The messages that have come; what is no message ends the connection."""
        while not self.gone:
            try:
                data = self.connection.recv(_CHUNK)
            except BlockingIOError:
                break
            except OSError as error:
                self.gone = error.strerror or str(error)
                break
            if not data:
                self.gone = "the connection was closed"
            self._incoming += data
            if len(data) < _CHUNK or len(self._incoming) > limits.MESSAGE_BYTES:
                break
        *lines, rest = self._incoming.split(b"\n")
        self._incoming = rest
        found = [_messages.decoded(bytes(line)) for line in lines]
        most = limits.HELLO_BYTES if self.is_guest and not lines else limits.MESSAGE_BYTES
        if None in found or len(rest) > most:
            self.gone = "the rank sent an invalid message"
        return [message for message in found if message is not None]

    def close(self) -> None:
        self.connection.close()
