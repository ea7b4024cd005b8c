"""A package index asked for releases and for what the newest of them requires.

Releases come from the simple API as JSON (PEP 691, upload times by PEP 700), which any index may serve; requirements
from the JSON API beside it (https://docs.pypi.org/api/json/), which only some have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any, NamedTuple

from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from compatcheck.errors import InputError

_AT_ONCE = 8
_SECONDS = 20.0
_LARGEST = 64 << 20
_SIMPLE = "application/vnd.pypi.simple.v1+json"


class Release(NamedTuple):
    """A final release that was not withdrawn; ``uploaded`` is None where the index does not say."""

    version: Version
    uploaded: date | None


class _Refused(Exception):
    """Why one package could not be asked for."""


class Index:
    """A connection to one index, closed on leaving. Raises InputError where the address is none."""

    def __init__(self, url: str) -> None:
        import ssl

        import httpx

        try:
            address = httpx.URL(url.rstrip("/"))
        except httpx.InvalidURL as error:
            raise InputError("asking the index", url, str(error), "give the address of a simple index") from None
        if address.scheme not in ("http", "https"):
            shown = str(address.copy_with(userinfo=b""))
            raise InputError("asking the index", shown, "not a web address", "give the address of a simple index")
        self.url = str(address)
        self.shown = str(address.copy_with(userinfo=b""))
        self._client = httpx.Client(timeout=_SECONDS, follow_redirects=True, verify=ssl.create_default_context())

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def releases(
        self, packages: Iterable[str], on_package: Callable[[str], None]
    ) -> tuple[dict[str, list[Release]], dict[str, str]]:
        """The releases of each package, the oldest first, and why others are unknown."""

        def of(package: str) -> list[Release]:
            found = _final(self._json(f"{self.url}/{package}/", _SIMPLE))
            if not found:
                raise _Refused("the index has no final release of it")
            return found

        return _each(packages, of, on_package)

    def requirements(self, newest: Mapping[str, Version]) -> tuple[dict[str, list[str]], dict[str, str]]:
        """What a release of each package requires, and why that of others is unknown."""
        root = self.url.removesuffix("/simple")

        def of(package: str) -> list[str]:
            info = self._json(f"{root}/pypi/{package}/json", "application/json").get("info")
            if not isinstance(info, dict) or info.get("version") != str(newest[package]):
                raise _Refused(f"the index has no metadata of {newest[package]}")
            return [each for each in info.get("requires_dist") or () if isinstance(each, str)]

        found, unknown = _each(newest, of, lambda package: None)
        return found, {f"requirements of {name}": why for name, why in unknown.items()}

    def _json(self, url: str, kind: str) -> dict[str, Any]:
        import httpx

        try:
            with self._client.stream("GET", url, headers={"Accept": kind}) as answer:
                if answer.status_code != 200:
                    raise _Refused(f"the index answers {answer.status_code} {answer.reason_phrase}".rstrip())
                body = b""
                for part in answer.iter_bytes():
                    body += part
                    if len(body) > _LARGEST:
                        raise _Refused(f"the index sends more than {_LARGEST >> 20} MiB")
        except httpx.HTTPError as error:
            raise _Refused(f"the index does not answer: {error or type(error).__name__}") from None
        try:
            told = json.loads(body)
        except (ValueError, RecursionError):
            raise _Refused("the index sends no JSON; it may serve only HTML") from None
        if not isinstance(told, dict):
            raise _Refused("the index sends JSON with an unexpected structure")
        return told


def _each(
    packages: Iterable[str], of: Callable[[str], Any], on_package: Callable[[str], None]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The answer for each package, some at once, and why there is none for others."""

    def tried(package: str) -> tuple[str, Any, str | None]:
        try:
            return package, of(package), None
        except _Refused as refusal:
            return package, None, str(refusal)

    found: dict[str, Any] = {}
    unknown: dict[str, str] = {}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for package, answer, why in pool.map(tried, packages):
            on_package(package)
            if why is None:
                found[package] = answer
            else:
                unknown[package] = why
    return found, unknown


def _final(told: Mapping[str, Any]) -> list[Release]:
    """The final releases with a file that was not withdrawn, the oldest first, each with its first upload."""
    dates: dict[Version, date | None] = {}
    for file in told.get("files") or ():
        version = _version(file)
        if version is None or version.is_prerelease or file.get("yanked"):
            continue
        try:
            uploaded = date.fromisoformat(str(file.get("upload-time"))[:10])
        except ValueError:
            uploaded = None
        known = dates.get(version)
        dates[version] = min(known, uploaded) if known and uploaded else known or uploaded
    return [Release(version, uploaded) for version, uploaded in sorted(dates.items(), key=lambda item: item[0])]


def _version(file: Any) -> Version | None:
    name = file.get("filename") if isinstance(file, dict) else None
    if not isinstance(name, str):
        return None
    try:
        return parse_wheel_filename(name)[1] if name.endswith(".whl") else parse_sdist_filename(name)[1]
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None
