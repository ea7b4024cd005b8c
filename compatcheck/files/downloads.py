"""Downloads with limits of bytes and time, over httpx with its variables for proxies and certificates."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from compatcheck import __version__
from compatcheck.errors import InputError
from compatcheck.files import limits

if TYPE_CHECKING:
    import httpx

MOST_REDIRECTS = 5


def open_client() -> httpx.Client:
    """Raises InputError where the environment names a proxy or a certificate that cannot be used."""
    import httpx

    headers = {"User-Agent": f"compatcheck/{__version__}", "Accept-Encoding": "identity"}
    try:
        return httpx.Client(
            headers=headers, timeout=limits.SILENCE_SECONDS, follow_redirects=True, max_redirects=MOST_REDIRECTS
        )
    except (ValueError, ImportError, OSError) as error:
        advice = "correct HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE or SSL_CERT_DIR"
        raise InputError("setting up", "the connection", str(error), advice) from None


@contextmanager
def time_limit(client: httpx.Client, seconds: float) -> Iterator[None]:
    """Raise TimeoutError where the block takes longer.

    The client is closed then, which ends what it waits for: a server that sends a byte now and then never times out.
    """
    is_over = threading.Event()

    def end() -> None:
        is_over.set()
        client.close()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if is_over.is_set():
            raise TimeoutError(f"not complete after {seconds:g} s")


def read(client: httpx.Client, url: str, most_bytes: int, headers: dict[str, str] | None = None) -> bytes:
    """The content of an address. Raises what `chunks` raises."""
    return b"".join(chunks(client, url, most_bytes, headers))


def chunks(client: httpx.Client, url: str, most_bytes: int, headers: dict[str, str] | None = None) -> Iterator[bytes]:
    """The content of an address, as it is sent. Raises ValueError beyond the limit, and httpx's errors."""
    left = most_bytes
    with client.stream("GET", url, headers=headers) as response:
        response.raise_for_status()
        for chunk in response.iter_raw():
            left -= len(chunk)
            if left < 0:
                raise ValueError(f"the server sends more than {most_bytes} bytes")
            yield chunk
