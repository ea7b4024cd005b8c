"""This machine's place in the network: whom it reaches, by which interface, and how much has moved."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import struct
import sys
import time
from collections.abc import Mapping

_SIOCGIFADDR = 0x8915
_AT_ONCE = 64
_BACKLOG = 4096
_COUNTERS = "/proc/self/net/dev"
_INFINIBAND = "/sys/class/infiniband"


def listen(port: int = 0) -> socket.socket:
    """A socket that takes connections over IPv4 and, where this machine has it, IPv6; OSError where it cannot."""
    dual = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual else socket.AF_INET
    listener = socket.create_server(("", port), family=family, backlog=_BACKLOG, dualstack_ipv6=dual)
    listener.setblocking(False)
    return listener


def reach(peers: Mapping[int, tuple[str, int]], seconds: float) -> dict[int, str]:
    """Those of the peers that no connection could be made to, with what was seen; ``seconds`` for each."""
    failed: dict[int, str] = {}
    waiting = list(peers.items())
    tried: dict[socket.socket, tuple[int, float]] = {}
    with selectors.DefaultSelector() as selector:
        while waiting or tried:
            while waiting and len(tried) < _AT_ONCE:
                number, (host, port) = waiting.pop()
                connection = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
                connection.setblocking(False)
                with contextlib.suppress(BlockingIOError, OSError):
                    connection.connect((host, port))
                selector.register(connection, selectors.EVENT_WRITE)
                tried[connection] = number, time.monotonic() + seconds
            ready = {key.fileobj for key, _ in selector.select(0.1)}
            for connection, (number, deadline) in list(tried.items()):
                if connection in ready:
                    error = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    seen = os.strerror(error) if error else _unconnected(connection)
                elif time.monotonic() >= deadline:
                    seen = f"no answer within {seconds:g} s"
                else:
                    continue
                if seen:
                    failed[number] = seen
                selector.unregister(connection)
                connection.close()
                del tried[connection]
    return failed


def _unconnected(connection: socket.socket) -> str:
    try:
        connection.getpeername()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def interface_of(address: str) -> str:
    """The name of the interface that has an IPv4 address, empty where none can be told."""
    if sys.platform != "linux":
        return ""
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                told = fcntl.ioctl(asked.fileno(), _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                if socket.inet_ntoa(told[20:24]) == address:
                    return name
    return ""


def moved() -> int | None:
    """Bytes sent and received by this machine so far, over Ethernet and InfiniBand; None where nobody tells."""
    try:
        with open(_COUNTERS, encoding="ascii") as stream:
            rows = [line.split(":", 1)[1].split() for line in stream if ":" in line]
    except OSError:
        return None
    total = sum(int(row[0]) + int(row[8]) for row in rows)
    with contextlib.suppress(OSError):
        for device in os.listdir(_INFINIBAND):
            for port in os.listdir(f"{_INFINIBAND}/{device}/ports"):
                for counter in ("port_xmit_data", "port_rcv_data"):
                    with open(f"{_INFINIBAND}/{device}/ports/{port}/counters/{counter}", encoding="ascii") as stream:
                        total += 4 * int(stream.read())  # counted in words of four bytes
    return total
