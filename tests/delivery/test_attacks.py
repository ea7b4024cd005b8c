"""What an attacker between the publisher and the user can do: nothing that makes a check use another matrix.

The attacks are those of https://theupdateframework.github.io/specification/latest/#goals-for-specific-attacks-to-protect-against
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import socket
import threading
import time
from collections.abc import Callable
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import httpx
import pytest
from tuf.api.exceptions import SlowRetrievalError

from compatcheck.delivery._http import HttpFetcher
from compatcheck.matrix import ARCHIVE
from tests.delivery.conftest import IDS, SIGN, Client, Misbehaviour, Publisher, Server, answer, run


def flipped(handler: SimpleHTTPRequestHandler, content: bytes) -> None:
    middle = len(content) // 2
    answer(handler, content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])


def edited(handler: SimpleHTTPRequestHandler, content: bytes) -> None:
    """Metadata with another version, and the signatures it had."""
    told = json.loads(content)
    told["signed"]["version"] += 1
    answer(handler, json.dumps(told).encode())


def unsigned(handler: SimpleHTTPRequestHandler, content: bytes) -> None:
    answer(handler, json.dumps({**json.loads(content), "signatures": []}).encode())


def cut(handler: SimpleHTTPRequestHandler, content: bytes) -> None:
    """Half of it, announced as all there is."""
    answer(handler, content[: len(content) // 2])


def broken_off(handler: SimpleHTTPRequestHandler, content: bytes) -> None:
    """Half of it, and the line goes dead."""
    answer(handler, content[: len(content) // 2], len(content))


def endless(handler: SimpleHTTPRequestHandler, _: bytes) -> None:
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b" " * 65536)


def nested(handler: SimpleHTTPRequestHandler, _: bytes) -> None:
    answer(handler, b"[" * 16000)


def of_the_first_edition(name: str) -> Misbehaviour:
    """The file of that name, in place of the one that is asked for."""

    def send(handler: SimpleHTTPRequestHandler, _: bytes) -> None:
        answer(handler, (handler.server.folder / name).read_bytes())  # type: ignore[attr-defined]

    return send


@pytest.mark.parametrize(
    "ending, send, status, said",
    [
        (ARCHIVE, flipped, 5, "does not match the signature"),
        (ARCHIVE, cut, 5, "does not match the signature"),
        (ARCHIVE, endless, 5, "does not match the signature"),
        (ARCHIVE, broken_off, 2, "try again"),
        ("timestamp.json", edited, 5, "have not signed"),
        ("timestamp.json", unsigned, 5, "have not signed"),
        ("timestamp.json", flipped, 5, "refused"),
        ("timestamp.json", cut, 5, "cannot be trusted"),
        ("timestamp.json", endless, 5, "does not match the signature"),
        ("timestamp.json", nested, 5, "cannot be trusted"),
        ("timestamp.json", broken_off, 2, "try again"),
        ("2.snapshot.json", edited, 5, "does not match the signature"),
        ("2.snapshot.json", of_the_first_edition("metadata/1.snapshot.json"), 5, "does not match the signature"),
        ("2.targets.json", edited, 5, "does not match the signature"),
        ("2.targets.json", of_the_first_edition("metadata/1.targets.json"), 5, "does not match the signature"),
        ("2.root.json", of_the_first_edition("metadata/1.root.json"), 5, "older data than before"),
        ("2.root.json", of_the_first_edition("metadata/timestamp.json"), 5, "cannot be trusted"),
    ],
)
def test_what_is_tampered_with_is_refused(
    client: Client, publisher: Publisher, server: Server, ending: str, send: Misbehaviour, status: int, said: str
) -> None:
    client.update()
    publisher.publish(3)
    server.misbehave[ending] = send
    done = client.update()
    assert (done.status, said in done.text) == (status, True), done.text
    assert "the current matrix stays in use" in done.text and len(done.text.splitlines()) == 1
    assert client.listed() == IDS[:2]
    server.misbehave.clear()
    assert client.update().status == 0
    assert client.listed() == IDS


def test_an_archive_that_is_signed_as_too_large_is_not_fetched(
    client: Client, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compatcheck.files.limits.FETCHED_BYTES", 1000)
    done = client.update()
    assert done.status == 5 and "more than 1000" in done.text
    assert not any("/targets/" in path for path in server.asked)


def earlier_repository(publisher: Publisher, _: Publisher) -> None:
    """Everything as it was before the last edition."""
    shutil.rmtree(publisher.repo)
    shutil.copytree(publisher.repo.with_name("earlier"), publisher.repo)


def older_snapshot(publisher: Publisher, _: Publisher) -> None:
    """The key of the dates has leaked: a new timestamp for the snapshot of before."""
    (publisher.repo / "metadata" / "2.snapshot.json").unlink()
    with_the_online_key(publisher, SIGN._renew_timestamp)


def older_targets(publisher: Publisher, _: Publisher) -> None:
    """The same, with a new snapshot of the older list of targets."""
    (publisher.repo / "metadata" / "2.targets.json").unlink()
    with_the_online_key(publisher, SIGN._renew_snapshot)


def with_the_online_key(publisher: Publisher, sign: Callable[..., None]) -> None:
    files = SIGN.Files(publisher.repo)
    signer = SIGN._signer(str(publisher.keys / "online"))
    sign(files, files.load("root").signed, signer, argparse.Namespace(days=[]))


def renew(publisher: Publisher, *options: str) -> None:
    key = publisher.keys / "online"
    assert publisher.run("timestamp", publisher.repo, "--online-key", key, *options) == 0


def held_back(publisher: Publisher, _: Publisher) -> None:
    renew(publisher, "--days", "timestamp=-1")


def of_another(publisher: Publisher, other: Publisher) -> None:
    """Another publisher's repository, whole and well signed, with higher versions."""
    for count in (2, 3, 2):
        other.publish(count)
    shutil.rmtree(publisher.repo)
    shutil.copytree(other.repo, publisher.repo)


def of_another_with_a_new_root(publisher: Publisher, other: Publisher) -> None:
    """The same, with a root file that claims to follow ours."""
    other.root(signers=("one", "two"))
    of_another(publisher, other)


@pytest.mark.parametrize(
    "attack, said",
    [
        (earlier_repository, "older data than before"),
        (older_snapshot, "older data than before"),
        (older_targets, "older data than before"),
        (held_back, "has expired"),
        (of_another, "have not signed"),
        (of_another_with_a_new_root, "have not signed"),
    ],
)
def test_the_past_and_the_foreign_are_refused(
    client: Client,
    publisher: Publisher,
    matrices: dict[int, Path],
    tmp_path: Path,
    attack: Callable[[Publisher, Publisher], None],
    said: str,
) -> None:
    shutil.copytree(publisher.repo, publisher.repo.with_name("earlier"))
    publisher.publish(3)
    client.update()
    attack(publisher, Publisher(tmp_path / "other", matrices))
    done = run("update")
    assert (done.status, said in done.text) == (5, True), done.text
    assert "the current matrix stays in use" in done.text
    assert client.listed() == IDS


@pytest.mark.parametrize("role", ["root", "timestamp", "snapshot", "targets"])
def test_each_date_counts(client: Client, publisher: Publisher, role: str) -> None:
    client.update()
    if role == "root":
        publisher.root("--days", "root=-1")
    else:
        publisher.publish(3, f"{role}=-1")
    done = run("update")
    assert done.status == 5 and "has expired" in done.text and role in done.text
    assert client.listed() == IDS[:2]


def test_keys_are_replaced_by_those_who_hold_the_old_ones(client: Client, publisher: Publisher) -> None:
    """Both root keys and that of the dates, in two steps; the client knows the first root file alone."""
    client.update()
    for name in ("three", "four", "later"):
        publisher.key(name)
    new = (publisher.pub("three"), publisher.pub("four"))
    publisher.root("--root-key", *new, "--threshold", "2", signers=("one", "two", "three", "four"))
    publisher.root("--online-key", publisher.pub("later"), signers=("three", "four"))
    publisher.publish(3, online="later")
    assert client.update().status == 0
    assert client.listed() == IDS


def test_a_replaced_key_signs_nothing_any_more(client: Client, publisher: Publisher) -> None:
    client.update()
    renew(publisher)
    old = (publisher.repo / "metadata" / "timestamp.json").read_bytes()
    publisher.key("later")
    publisher.root("--online-key", publisher.pub("later"))
    publisher.publish(3, online="later")
    (publisher.repo / "metadata" / "timestamp.json").write_bytes(old)
    done = run("update")
    assert done.status == 5 and "have not signed" in done.text
    assert client.listed() == IDS[:2]


@pytest.mark.parametrize("start", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\n"], ids=["headers", "content"])
def test_a_server_that_drips_is_given_up(start: bytes) -> None:
    def drip() -> None:
        connection = listener.accept()[0]
        with connection, contextlib.suppress(OSError):
            connection.sendall(start)
            while True:
                connection.sendall(b"x")
                time.sleep(0.02)

    with socket.create_server(("127.0.0.1", 0)) as listener, httpx.Client() as client:
        threading.Thread(target=drip, daemon=True).start()
        with pytest.raises(SlowRetrievalError, match=r"0\.3 s"):
            HttpFetcher(client, file_seconds=0.3).download_bytes(
                f"http://127.0.0.1:{listener.getsockname()[1]}/x", 1 << 20
            )
