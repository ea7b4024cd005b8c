"""The downloads of TUF over httpx: TUF limits how long each file may be, and here is limited how long it may take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tuf.api.exceptions import DownloadError, DownloadHTTPError, SlowRetrievalError
from tuf.ngclient.fetcher import FetcherInterface

from compatcheck.files import limits
from compatcheck.files.downloads import time_limit

if TYPE_CHECKING:
    import httpx


class HttpFetcher(FetcherInterface):
    """A file as the server sends it: content that it encodes is not decoded, so that a length is a length."""

    def __init__(self, client: httpx.Client, file_seconds: float = limits.FETCH_SECONDS) -> None:
        self._client = client
        self._file_seconds = file_seconds

    def _fetch(self, url: str) -> Iterator[bytes]:
        with self._translate_errors(url), self._client.stream("GET", url) as response:
            if response.status_code != 200:
                raise DownloadHTTPError(f"{url}: HTTP status {response.status_code}", response.status_code)
            yield from response.iter_raw()

    @contextmanager
    def _translate_errors(self, url: str) -> Iterator[None]:
        """What goes wrong on the way, and what takes too long, as TUF's own errors."""
        import httpx

        try:
            with time_limit(self._client, self._file_seconds):
                yield
        except httpx.TimeoutException as error:
            raise SlowRetrievalError(f"{url}: {type(error).__name__}, no answer in time") from error
        except TimeoutError as error:
            raise SlowRetrievalError(f"{url}: {error}") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise DownloadError(f"{url}: {str(error) or type(error).__name__}") from error
