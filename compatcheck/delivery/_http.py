"""The downloads of TUF over httpx.

TUF limits how long each file may be; here is limited how long it may take, and how often it may be redirected. Proxies
and certificates are those of httpx's own environment variables.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from tuf.api.exceptions import DownloadError, DownloadHTTPError, SlowRetrievalError
from tuf.ngclient.fetcher import FetcherInterface

from compatcheck import __version__
from compatcheck.errors import InputError
from compatcheck.files import limits

if TYPE_CHECKING:
    import httpx

MOST_REDIRECTS = 5


class HttpFetcher(FetcherInterface):
    """A file as the server sends it: content that it encodes is not decoded, so that a length is a length."""

    def __init__(self, client: httpx.Client, file_seconds: float = limits.FETCH_SECONDS) -> None:
        self._client = client
        self._file_seconds = file_seconds

    def _fetch(self, url: str) -> Iterator[bytes]:
        deadline = time.monotonic() + self._file_seconds
        with _translate_errors(url):
            response = self._client.send(self._client.build_request("GET", url), stream=True)
        if response.status_code != 200:
            response.close()
            raise DownloadHTTPError(f"{url}: HTTP status {response.status_code}", response.status_code)
        return self._chunks(url, response, deadline)

    def _chunks(self, url: str, response: httpx.Response, deadline: float) -> Iterator[bytes]:
        with closing(response), _translate_errors(url):
            for chunk in response.iter_raw():
                if time.monotonic() > deadline:
                    raise SlowRetrievalError(f"{url}: it is still missing after {self._file_seconds:g} s")
                yield chunk


@contextmanager
def _translate_errors(url: str) -> Iterator[None]:
    """What goes wrong on the way, as TUF's own errors."""
    import httpx

    try:
        yield
    except httpx.TimeoutException as error:
        raise SlowRetrievalError(f"{url}: {type(error).__name__}, no answer in time") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise DownloadError(f"{url}: {str(error) or type(error).__name__}") from error


def client() -> httpx.Client:
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
