"""Fetching a newer matrix where everybody is honest, and where something else is amiss than the data."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from compatcheck.delivery import only_one
from compatcheck.matrix import loading
from tests.conftest import Wheel, bare_environment, run_command, uv
from tests.delivery.conftest import IDS, Client, Publisher, Server, run


def test_a_newer_matrix_is_fetched_and_used(client: Client, publisher: Publisher, server: Server) -> None:
    assert client.listed() == IDS[:1]
    done = client.update()
    assert done.status == 0 and "of 2026-02-01, 2 entries" in done.text and "now in use" in done.text
    assert client.listed() == IDS[:2]
    publisher.publish(3)
    assert "now in use" in client.update().text
    assert client.listed() == IDS


def test_the_address_and_the_root_are_remembered(client: Client, publisher: Publisher, server: Server) -> None:
    client.update()
    publisher.publish(3)
    assert run("update").status == 0
    assert client.listed() == IDS
    server.asked.clear()
    assert "already in use" in run("update").text
    assert not any("targets/" in path for path in server.asked)


def test_another_address_of_the_same_matrix_is_remembered(client: Client, data: Path) -> None:
    client.update()
    elsewhere = client.url.replace("127.0.0.1", "localhost")
    assert "already in use" in client.update("--url", elsewhere, "--root", str(client.root)).text
    assert json.loads((data / "current.json").read_text(encoding="utf-8"))["url"] == elsewhere
    assert client.listed() == IDS[:2]


def test_a_matrix_is_public_once_the_dates_are_signed(client: Client, publisher: Publisher) -> None:
    client.update()
    publisher.publish(3, online=None)
    assert "already in use" in client.update().text
    online = ("--online-key", publisher.keys / "online")
    assert publisher.run("timestamp", publisher.repo, *online) == 0
    assert client.update().status == 0
    assert client.listed() == IDS


def test_the_environment_names_the_repository(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPATCHECK_MATRIX_URL", client.url)
    monkeypatch.setenv("COMPATCHECK_MATRIX_ROOT", str(client.root))
    assert run("update").status == 0
    assert client.listed() == IDS[:2]


def test_an_older_one_than_the_bundled_is_not_used(client: Client, publisher: Publisher) -> None:
    publisher.publish(1)
    done = client.update()
    assert done.status == 0 and "the bundled matrix" in done.text
    assert client.listed() == IDS[:1]


@pytest.mark.parametrize(
    "arguments, said",
    [
        ((), "no public repository exists yet; pass a repository with --url"),
        (("--url", "{url}"), "pass the publisher's root.json with --root"),
        (("--url", "{url}", "--root", "nosuch.json"), "nosuch.json: No such file"),
        (("--url", "{url}", "--root", __file__), "pass the publisher's root.json"),
        (("--url", "ftp://example.org/matrix"), "not an http or https address"),
        (("--url", "http://[::1"), "not an http or https address"),
        (("--url", "matrix"), "not an http or https address"),
    ],
)
def test_what_is_lacking_is_said(client: Client, arguments: tuple[str, ...], said: str) -> None:
    done = run("update", *(each.format(url=client.url) for each in arguments))
    assert done.status == 2 and said in done.text and len(done.text.splitlines()) == 1
    assert client.listed() == IDS[:1]


def test_a_checkout_is_not_updated(monkeypatch: pytest.MonkeyPatch, data: Path, client: Client) -> None:
    monkeypatch.setattr(loading, "_COMPILED", str(data))
    done = client.update()
    assert done.status == 2 and "this is a checkout" in done.text
    assert not data.exists()


def test_a_server_that_is_down_is_no_reason_to_distrust(client: Client, server: Server) -> None:
    client.update()
    server.shutdown()
    server.server_close()
    done = run("update")
    assert done.status == 2 and "try again later" in done.text and len(done.text.splitlines()) == 1
    assert client.listed() == IDS[:2]


def test_a_password_in_the_address_is_not_shown(client: Client) -> None:
    for address in ("http://someone:secret@127.0.0.1:1/matrix", client.url.replace("//", "//someone:secret@")):
        assert "secret" not in run("update", "--url", address, "--root", str(client.root)).text
    assert client.listed() == IDS[:2]


@pytest.mark.parametrize("place, status", [("elsewhere.json", 0), ("1.targets.json", 2)], ids=["once", "for ever"])
def test_a_redirect_is_followed_a_few_times(client: Client, server: Server, place: str, status: int) -> None:
    def elsewhere(handler: SimpleHTTPRequestHandler, _: bytes) -> None:
        handler.send_response(302)
        handler.send_header("Location", f"{server.url}/metadata/{place}")
        handler.end_headers()

    (server.folder / "metadata" / "elsewhere.json").write_bytes(
        (server.folder / "metadata" / "1.targets.json").read_bytes()
    )
    server.misbehave["metadata/1.targets.json"] = elsewhere
    done = client.update()
    assert done.status == status, done.text
    assert len(server.asked) < 15


def test_another_form_needs_another_compatcheck(
    client: Client, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compatcheck.matrix.ARCHIVE", "matrix-0.zip")
    done = client.update()
    assert done.status == 2 and "the repository has no matrix-0.zip" in done.text and "upgrade compatcheck" in done.text


def test_two_updates_do_not_meet(client: Client, data: Path) -> None:
    with only_one(str(data)):
        done = client.update()
    assert done.status == 2 and "another update" in done.text
    assert client.listed() == IDS[:1]
    assert client.update().status == 0


FULL_DISK = """
import resource, sys
from compatcheck.matrix import loading
from compatcheck.cli import main
loading._COMPILED = sys.argv.pop(1)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
del sys.argv[1]
main()
"""


@pytest.mark.parametrize("most_bytes", [300, 2500, 4700], ids=["the trusted files", "the archive", "a file of it"])
def test_a_full_disk_leaves_the_old_matrix(
    client: Client, publisher: Publisher, bundled: Path, data: Path, most_bytes: int
) -> None:
    client.update()
    publisher.publish(3)
    command = [sys.executable, "-c", FULL_DISK, str(bundled), str(most_bytes), "matrix", "update"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "File too large" in done.stderr, done.stderr
    assert "the current matrix stays in use" in done.stderr and len(done.stderr.splitlines()) == 1
    assert client.listed() == IDS[:2]
    assert run("update").status == 0
    assert client.listed() == IDS


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
@pytest.mark.parametrize("most_bytes", [300, 2500, 4700], ids=["the trusted files", "the archive", "a file of it"])
def test_a_killed_update_leaves_the_old_matrix_and_the_next_one_tidies_up(
    client: Client, publisher: Publisher, bundled: Path, data: Path, most_bytes: int
) -> None:
    client.update()
    publisher.publish(3)
    code = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n" + FULL_DISK
    command = [sys.executable, "-c", code, str(bundled), str(most_bytes), "matrix", "update"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGXFSZ, done.stderr
    assert client.listed() == IDS[:2]
    assert run("update").status == 0
    assert client.listed() == IDS
    pointer = json.loads((data / "current.json").read_text(encoding="utf-8"))
    assert {path.name for path in (data / "revisions").iterdir()} == {pointer["folder"], pointer["previous"]}


def test_a_mirror_serves_the_same_and_half_a_copy_changes_nothing(
    client: Client, publisher: Publisher, server: Server, tmp_path: Path
) -> None:
    """A mirror is a copy of the files; one that was stopped midway lacks what its newest dates name."""
    mirror = tmp_path / "mirror"
    shutil.copytree(publisher.repo, mirror)
    server.folder = mirror
    assert "now in use" in client.update().text
    publisher.publish(3)
    shutil.copy(publisher.repo / "metadata" / "timestamp.json", mirror / "metadata")
    done = run("update")
    assert done.status == 2 and "the current matrix stays in use" in done.text, done.text
    assert client.listed() == IDS[:2]
    shutil.copytree(publisher.repo, mirror, dirs_exist_ok=True)
    assert run("update").status == 0
    assert client.listed() == IDS


def test_what_nobody_reads_any_more_is_removed(client: Client, publisher: Publisher, data: Path) -> None:
    (data / "revisions" / "new-left-by-a-crash").mkdir(parents=True)
    for count in (3, 2, 3):
        publisher.publish(count)
        assert client.update().status == 0
    kept = {path.name for path in (data / "revisions").iterdir()}
    pointer = json.loads((data / "current.json").read_text(encoding="utf-8"))
    assert kept == {pointer["folder"], pointer["previous"]}


def test_the_installed_command_updates_itself(
    wheel: Wheel, tmp_path: Path, publisher: Publisher, server: Server, matrices: dict[int, Path]
) -> None:
    later = tmp_path / "later"
    (later / "deepspeed").mkdir(parents=True)
    shutil.copytree(matrices[3] / "tables", later / "tables")
    source = next((matrices[3] / "deepspeed").iterdir())
    text = source.read_text(encoding="utf-8").replace("reviewed = 2026-03-01", "reviewed = 2999-01-01")
    (later / "deepspeed" / source.name).write_text(text, encoding="utf-8")
    publisher.matrices = {3: later}
    publisher.publish(3)
    environ = {"XDG_DATA_HOME": str(tmp_path / "data")}
    named = ("--url", server.url, "--root", str(publisher.root_file))
    python = bare_environment(tmp_path / "venv")
    uv("pip", "install", "--python", str(python), f"compatcheck[update] @ {wheel.path.as_uri()}")
    done = run_command(python, "matrix", "update", *named, cwd=tmp_path, **environ)
    assert done.returncode == 0 and "now in use" in done.stdout, done.stderr
    listed = run_command(python, "matrix", "list", cwd=tmp_path, **environ)
    assert listed.stdout.split()[0] == source.stem and len(listed.stdout.splitlines()) == 1
