"""Fetch a newer matrix: find out from where, verify it, unpack it, and take it into use."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from compatcheck import delivery, matrix
from compatcheck.delivery import Archive, Repository
from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.reading import open_bytes
from compatcheck.matrix import fetched

URL_VARIABLE = "COMPATCHECK_MATRIX_URL"
ROOT_VARIABLE = "COMPATCHECK_MATRIX_ROOT"

DEFAULT_URL: str | None = None
"""The project's own repository; None until there is one. Its root file is then ``SHIPPED_ROOT``."""

SHIPPED_ROOT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "matrix", "root.json")


class Updated(NamedTuple):
    """What came of an update, and from where."""

    url: str
    adopted: delivery.Adopted


def update(url: str | None, root: str | None, environ: Mapping[str, str]) -> Updated:
    """Fetch the matrix from ``url``, trusting the root file ``root``; both may be left to the environment variables.

    Else the repository of the last update is asked again. Raises InputError where no repository or root is known, this
    is a checkout, or the server or the disk fails; DataError where what is served is not to be trusted. In either case
    the matrix in use stays.
    """
    matrix.require_installed()
    delivery.require_tuf()
    store = fetched.store()
    address = _address(url or environ.get(URL_VARIABLE) or delivery.last_url() or DEFAULT_URL)
    with delivery.only_one(store):
        repository = Repository(address, _root(root or environ.get(ROOT_VARIABLE), address, store))
        archive = Archive(delivery.download(repository, matrix.ARCHIVE, store), matrix.ARCHIVE)
        adopted = delivery.adopt(lambda folder: delivery.unpack(archive, folder), address)
    return Updated(repository.shown, adopted)


def _address(url: str | None) -> str:
    """The address of a repository, checked. Raises InputError where none is known or it is no address."""
    if url is None:
        advice = (
            f"pass a repository with --url and its root.json with --root, or set {URL_VARIABLE} and {ROOT_VARIABLE}"
        )
        raise InputError("updating", "the matrix", "no public repository exists yet", advice)
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query and not parts.fragment
    except ValueError:
        usable = False
    if not usable:
        raise InputError(
            "updating the matrix from",
            url,
            "not an http or https address",
            "use a URL such as https://example.org/matrix",
        )
    return url.rstrip("/")


def _root(path: str | None, address: str, store: str) -> bytes | None:
    """The root file to trust, or None for the one that was trusted at this address before."""
    if path is None and address == DEFAULT_URL:
        path = SHIPPED_ROOT
    if path is None and delivery.is_known(store, address):
        return None
    if path is None:
        shown = Repository(address, None).shown
        advice = f"pass the publisher's root.json with --root FILE or {ROOT_VARIABLE}"
        raise InputError(
            "updating the matrix from", shown, "no root of trust is stored for this repository yet", advice
        )
    try:
        with open_bytes(path) as stream:
            return stream.read(limits.ROOT_BYTES)
    except OSError as error:
        seen = error.strerror or str(error)
        raise InputError("reading the root file", path, seen, "pass the publisher's root.json") from None
