"""SHA-256 of many files on all cores, remembered between runs by what the file system says of each file."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from compatcheck.files import limits
from compatcheck.files.reading import open_bytes, open_text

if TYPE_CHECKING:
    from io import FileIO

_CHUNK = 1 << 20
_REMEMBERED_FROM = 8 << 20
_WORTH_THREADS = 32 << 20
_RACY_NS = 2_000_000_000
_VERSION = 1


class Hashes(NamedTuple):
    """The hash of each file that could be read, and the error of each that could not."""

    known: Mapping[str, str]
    errors: Mapping[str, OSError]


class _Stopped(Exception):
    pass


def hash_files(paths: Iterable[str], advance: Callable[[int], None] | None = None, cache: str | None = None) -> Hashes:
    """Hash files, the largest first, as many at once as this process may use cores.

    ``advance`` is called with the bytes each step has done, from several threads. ``cache`` is the file of remembered
    hashes, by default the one of this user; whatever is wrong with it only costs time. Small files are not remembered.
    """
    known: dict[str, str] = {}
    errors: dict[str, OSError] = {}
    sizes: dict[str, int] = {}
    for path in paths:
        try:
            sizes[path] = os.path.getsize(path)
        except OSError as error:
            errors[path] = error
    if any(size >= _REMEMBERED_FROM for size in sizes.values()):
        cache = default_cache() if cache is None else cache
    remembered = _load(cache) if cache else {}
    fresh: dict[str, list[Any]] = {}
    stop = threading.Event()

    def work(path: str) -> None:
        key = _key(os.stat(path))
        if key in remembered:
            known[path] = remembered[key][0]
            if advance:
                advance(sizes[path])
            return
        digest = _digest(path, stop, advance)
        known[path] = digest
        if sizes[path] >= _REMEMBERED_FROM and _key(os.stat(path)) == key and _is_settled(path):
            fresh[key] = [digest, int(time.time())]

    try:
        threads = min(cores(), len(sizes)) if sum(sizes.values()) >= _WORTH_THREADS else 1
        _run(work, sorted(sizes, key=lambda path: -sizes[path]), threads, stop, errors)
    finally:
        if fresh and cache:
            _save(cache, {**_load(cache), **fresh})
    return Hashes(known, errors)


def cores() -> int:
    """The cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _run(
    work: Callable[[str], None], paths: list[str], threads: int, stop: threading.Event, errors: dict[str, OSError]
) -> None:
    def guarded(path: str) -> None:
        try:
            work(path)
        except OSError as error:
            errors[path] = error
        except _Stopped:
            pass

    if threads < 2:
        for path in paths:
            guarded(path)
        return
    from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

    with ThreadPoolExecutor(threads, thread_name_prefix="hash") as pool:
        try:
            done, _ = wait([pool.submit(guarded, path) for path in paths], return_when=FIRST_EXCEPTION)
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
    for future in done:
        future.result()


def _digest(path: str, stop: threading.Event, advance: Callable[[int], None] | None) -> str:
    import hashlib

    digest = hashlib.sha256()
    buffer = bytearray(_CHUNK)
    view = memoryview(buffer)
    with cast("FileIO", open_bytes(path, buffering=0)) as stream:
        while count := stream.readinto(buffer):
            if stop.is_set():
                raise _Stopped
            digest.update(view[:count])
            if advance:
                advance(count)
    return digest.hexdigest()


def _key(status: os.stat_result) -> str:
    return f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"


def _is_settled(path: str) -> bool:
    """A file written in the last moments may change again within one tick of its clock."""
    return time.time_ns() - os.stat(path).st_mtime_ns > _RACY_NS


def default_cache() -> str:
    from compatcheck.files.storage import cache_folder

    return os.path.join(cache_folder(), "hashes.json")


def _load(cache: str) -> dict[str, list[Any]]:
    """What is remembered; nothing where the file is missing, unreadable or not ours."""
    try:
        with open_text(cache, errors="strict") as stream:
            stated = json.loads(stream.read(limits.HASHES_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(stated, dict) or stated.get("version") != _VERSION or not isinstance(stated.get("files"), dict):
        return {}
    return {key: value for key, value in stated["files"].items() if _is_entry(value)}


def _is_entry(value: object) -> bool:
    if not isinstance(value, list) or len(value) != 2:
        return False
    digest, at = value
    whole = isinstance(digest, str) and len(digest) == 64 and all(each in "0123456789abcdef" for each in digest)
    return whole and isinstance(at, int)


def _save(cache: str, files: Mapping[str, list[Any]]) -> None:
    """Replace the cache in one step; a full disk or a folder that cannot be written leaves things as they were."""
    from compatcheck.files.storage import write_note

    newest = sorted(files.items(), key=lambda item: -item[1][1])[: limits.REMEMBERED_HASHES]
    write_note(cache, json.dumps({"version": _VERSION, "files": dict(newest)}))
