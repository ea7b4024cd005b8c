"""Fetch a model's small files into the Hugging Face cache.

Nothing that the hub says is trusted: each answer has a limit of bytes and all together one of time, each file must
have the hash that the listing states, and no name leads out of the cache.
https://huggingface.co/docs/huggingface_hub/guides/manage-cache describes the folders,
https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables the variables.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from compatcheck.errors import InputError
from compatcheck.files import downloads, leftovers, limits
from compatcheck.files.json_text import parse_json
from compatcheck.files.reading import read_text
from compatcheck.language import gettext as _
from compatcheck.terminal.progress import late_progress

if TYPE_CHECKING:
    import httpx

_DOING = "fetching the model"
_ENDINGS = (".json", ".py", ".jinja", ".txt", ".model")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MALFORMED = "the hub's answer is malformed"


class _File(NamedTuple):
    """A file of the listing: its path in the model, its bytes, and the hash that names its content in the cache."""

    path: str
    size: int
    digest: str


def fetch(name: str, revision: str | None, home: str, cache: str) -> str:
    """The snapshot's folder in the ``cache`` of the model, with all files that are not weights.

    ``home`` is the folder of the hub's settings, such as its token. Raises `InputError` where that fails.
    """
    wanted = f"{name}@{revision}" if revision else name
    try:
        import httpx
    except ImportError:
        advice = "run pip install 'compatcheck[hub]'"
        raise InputError(_DOING, wanted, "httpx is not installed", advice) from None
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        raise InputError(_DOING, wanted, "HF_HUB_OFFLINE is set", "unset it, or pass the folder of the model")
    advice = "check the name, the connection and HF_ENDPOINT"
    try:
        with downloads.open_client() as client, downloads.time_limit(client, limits.DOWNLOAD_SECONDS):
            return _fetch(client, name, revision or "main", _headers(home), cache)
    except httpx.HTTPStatusError as error:
        status = error.response.status_code
        if status in (401, 403):
            advice = "check the name; for a private or gated model, set HF_TOKEN"
        raise InputError(_DOING, wanted, f"the hub answered with HTTP status {status}", advice) from None
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError) as error:
        seen = " ".join(str(error).split()) or type(error).__name__
        raise InputError(_DOING, wanted, seen, advice) from None
    except OSError as error:
        advice = "free some space there, or set HF_HOME to another folder"
        raise InputError("writing", cache, error.strerror or str(error), advice) from None


def _headers(home: str) -> dict[str, str]:
    """The user's token, if there is one; httpx does not pass it on to another host."""
    environ = os.environ
    if environ.get("HF_HUB_DISABLE_IMPLICIT_TOKEN", "").upper() in ("1", "ON", "YES", "TRUE"):
        return {}
    token = environ.get("HF_TOKEN") or environ.get("HUGGING_FACE_HUB_TOKEN") or ""
    with suppress(InputError, OSError):
        token = token or read_text(environ.get("HF_TOKEN_PATH") or os.path.join(home, "token"))
    token = token.strip()
    return {"Authorization": f"Bearer {token}"} if token.isascii() and token.isprintable() and token else {}


def _fetch(client: httpx.Client, name: str, revision: str, headers: dict[str, str], cache: str) -> str:
    endpoint = (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
    address = f"{endpoint}/api/models/{name}/revision/{quote(revision, safe='')}?blobs=true"
    answer = downloads.read(client, address, limits.TEXT_BYTES, headers)
    try:
        listing = parse_json(answer.decode(), "the hub")
    except InputError:
        raise ValueError(_MALFORMED) from None
    commit, files = _listing(listing)
    together = sum(each.size for each in files)
    if together > limits.DOWNLOAD_BYTES or len(files) > limits.MODEL_FILES:
        raise ValueError(f"the model has {len(files)} small files with {together} bytes in total")
    snapshot = os.path.join(cache, "snapshots", commit)
    blobs = os.path.join(cache, "blobs")
    for folder in (snapshot, blobs):
        os.makedirs(folder, exist_ok=True)
    with (
        leftovers.temporary_folder(".compatcheck-", cache) as folder,
        late_progress(_("fetching the model"), together) as advance,
    ):
        for each in files:
            blob = os.path.join(blobs, each.digest)
            if not os.path.isfile(blob):
                new = os.path.join(folder, "new")
                _save(client, f"{endpoint}/{name}/resolve/{commit}/{quote(each.path)}", headers, each, new)
                os.replace(new, blob)
            _link(blob, os.path.join(snapshot, *each.path.split("/")))
            advance(each.size)
    return snapshot


def _listing(answer: Any) -> tuple[str, list[_File]]:
    """The commit and the small files. Raises ValueError for an answer of another shape."""
    try:
        if not _COMMIT.fullmatch(answer["sha"]):
            raise ValueError("the hub names no commit of the model")
        small = [each for each in answer["siblings"] if each["rfilename"].endswith(_ENDINGS)]
        files = [
            _File(each["rfilename"], each["size"], (each.get("lfs") or {}).get("sha256") or each["blobId"])
            for each in small
        ]
        if all(_is_sound(each) for each in files) and _can_be_together([each.path for each in files]):
            return answer["sha"], files
    except (AttributeError, LookupError, TypeError):
        pass
    raise ValueError(_MALFORMED)


def _is_sound(file: _File) -> bool:
    parts = file.path.split("/")
    is_inside = not {"", ".", ".."}.intersection(parts) and not re.search(r"[\\:]", file.path)
    is_size = type(file.size) is int and 0 <= file.size <= limits.NUMBER
    return is_inside and file.path.isprintable() and is_size and bool(_COMMIT.fullmatch(file.digest))


def _can_be_together(paths: list[str]) -> bool:
    """Whether no path is there twice, or both a file and a folder."""
    folders = {path[:end] for path in paths for end, letter in enumerate(path) if letter == "/"}
    return len({*paths}) == len(paths) and not folders.intersection(paths)


def _save(client: httpx.Client, url: str, headers: dict[str, str], file: _File, path: str) -> None:
    """Write the content to ``path``. Raises ValueError where it does not have the stated bytes and hash."""
    if len(file.digest) == 64:
        digest = hashlib.sha256()
    else:
        digest = hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)
    with open(path, "wb") as stream:
        for chunk in downloads.chunks(client, url, file.size, headers):
            digest.update(chunk)
            stream.write(chunk)
    if digest.hexdigest() != file.digest:
        raise ValueError(f"the content of {file.path} does not have the hash that the hub lists")


def _link(blob: str, path: str) -> None:
    """Show the blob under the path of its file, as a copy where the system has no links."""
    if os.path.exists(path):
        return
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    with suppress(FileNotFoundError):
        os.unlink(path)
    try:
        os.symlink(os.path.relpath(blob, folder), path)
    except OSError:
        os.link(blob, path)
