"""What the publisher's keys vouch for, and nothing else.

python-tuf walks from a trusted root to the signed length and digest of one archive. It remembers the versions that it
has seen, so that older ones are refused, and dates of expiry, so that nobody can hold back newer ones for long.
https://theupdateframework.github.io/specification/latest/#detailed-client-workflow
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from compatcheck.errors import CompatcheckError, DataError, InputError
from compatcheck.files import limits

if TYPE_CHECKING:
    import httpx


_DOING = "updating the matrix from"
_STAYS = "the current matrix stays in use"


class Repository(NamedTuple):
    """A TUF repository: its address, and the root file to trust; None is the root that was trusted there before."""

    url: str
    root: bytes | None

    @property
    def shown(self) -> str:
        """The address without the user and password it may hold."""
        parts = urlsplit(self.url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def records_folder(store: str, url: str) -> str:
    """Where what is known of a repository is kept: one folder for each address."""
    return os.path.join(store, "trusted", hashlib.sha256(url.encode()).hexdigest()[:16])


def is_known(store: str, url: str) -> bool:
    """Whether a root is trusted for the address."""
    return os.path.exists(os.path.join(records_folder(store, url), "root.json"))


def download(repository: Repository, target: str, store: str) -> str:
    """The path of the archive of that name, verified.

    Raises InputError where the server cannot be reached, has no such archive, or the disk is full; and DataError where
    what it sends is not what the publisher signed, or is no longer.
    """
    from compatcheck.files.downloads import open_client

    records = records_folder(store, repository.url)
    try:
        os.makedirs(records, exist_ok=True)
        with open_client() as connection:
            return _download_verified(repository, target, records, connection)
    except OSError as error:
        seen = f"{error.strerror or error}"
        raise InputError("saving the downloaded matrix in", store, seen, f"make room there; {_STAYS}") from None


def _download_verified(repository: Repository, target: str, records: str, connection: httpx.Client) -> str:
    from tuf.api.exceptions import DownloadError, RepositoryError
    from tuf.ngclient.config import UpdaterConfig
    from tuf.ngclient.updater import Updater

    from compatcheck.delivery._http import HttpFetcher

    base = repository.url.rstrip("/")
    try:
        updater = Updater(
            records,
            f"{base}/metadata/",
            os.path.join(records, "targets"),
            f"{base}/targets/",
            HttpFetcher(connection),
            UpdaterConfig(max_delegations=0),
            bootstrap=repository.root,
        )
    except RepositoryError as error:
        advice = "pass the publisher's root.json with --root"
        raise InputError("checking root.json of", repository.shown, str(error), advice) from None
    try:
        updater.refresh()
        found = updater.get_targetinfo(target)
        if found is None:
            seen = f"the repository has no {target}, the format that this compatcheck reads"
            raise InputError(_DOING, repository.shown, seen, f"upgrade compatcheck; {_STAYS}")
        if found.length > limits.FETCHED_BYTES:
            seen = f"the file {target} has {found.length} bytes, more than {limits.FETCHED_BYTES}"
            raise DataError(_DOING, repository.shown, seen, _STAYS)
        return updater.find_cached_target(found) or updater.download_target(found)
    except (RepositoryError, DownloadError) as error:
        raise _refusal(error, repository) from None


def _refusal(error: Exception, repository: Repository) -> CompatcheckError:
    """In the words of a user, what TUF holds against what it was sent."""
    from tuf.api import exceptions

    said = str(error).replace(repository.url.rstrip("/"), repository.shown.rstrip("/")) or type(error).__name__
    if isinstance(error, exceptions.ExpiredMetadataError):
        seen = f"the data has expired, or newer data is withheld ({said})"
        return DataError(_DOING, repository.shown, seen, f"try again later and report it to the publisher; {_STAYS}")
    if isinstance(error, exceptions.BadVersionNumberError):
        seen = f"the server sends older data than before ({said})"
    elif isinstance(error, exceptions.UnsignedMetadataError):
        seen = f"the trusted keys have not signed the data of the server ({said})"
    elif isinstance(error, (exceptions.LengthOrHashMismatchError, exceptions.DownloadLengthMismatchError)):
        seen = f"the data does not match the signature ({said})"
    elif isinstance(error, exceptions.RepositoryError):
        seen = f"the data of the repository cannot be trusted ({said})"
    else:
        return InputError(_DOING, repository.shown, said, f"try again later, or check the address; {_STAYS}")
    return DataError(_DOING, repository.shown, f"refused: {seen}", f"{_STAYS}; report it to the publisher")
