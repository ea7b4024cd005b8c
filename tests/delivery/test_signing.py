"""The script that signs: what it refuses, and what it says of a repository."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.delivery.conftest import SIGN, Publisher


def test_a_private_key_is_its_owners_and_never_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = tmp_path / "key"
    assert SIGN.main(["key", str(key)]) == 0
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    content = key.read_bytes()
    assert SIGN.main(["key", str(key)]) == 2
    assert "exists" in capsys.readouterr().err and key.read_bytes() == content


def test_a_passphrase_is_asked_for_again(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MATRIX_KEY_PASSPHRASE", "correct horse")
    publisher.key("locked")
    publisher.root("--online-key", publisher.pub("locked"))
    publisher.publish(3, online="locked")
    monkeypatch.setenv("MATRIX_KEY_PASSPHRASE", "wrong")
    assert publisher.run("timestamp", publisher.repo, "--online-key", publisher.keys / "locked") == 2


def test_a_root_file_needs_as_many_signatures_as_it_says(publisher: Publisher) -> None:
    publisher.root("--days", "root=300", signers=("one",))
    second = publisher.repo / "metadata" / "2.root.json"
    assert not second.exists() and (publisher.repo / "root.draft.json").exists()
    assert publisher.run("sign", publisher.repo, "--key", publisher.keys / "one") == 0
    assert not second.exists()
    assert publisher.run("sign", publisher.repo, "--key", publisher.keys / "two") == 0
    assert second.exists() and not (publisher.repo / "root.draft.json").exists()


def test_new_root_keys_are_no_use_without_the_old_ones(publisher: Publisher) -> None:
    for name in ("three", "four"):
        publisher.key(name)
    new = (publisher.pub("three"), publisher.pub("four"))
    publisher.root("--root-key", *new, "--threshold", "2", signers=("three", "four"))
    assert not (publisher.repo / "metadata" / "2.root.json").exists()


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("root", "{repo}", "--threshold", "3"), "3 of 2 root keys"),
        (("root", "{keys}"), "the first root file needs"),
        (("sign", "{repo}", "--key", "{keys}/one"), "there is no draft"),
        (("timestamp", "{repo}", "--online-key", "{keys}/targets"), "not the root's for timestamp"),
        (("timestamp", "{repo}", "--online-key", "env:NO_SUCH_KEY"), "holds no key"),
        (("timestamp", "{repo}", "--online-key", "{keys}/one.pub"), "sign_matrix: "),
        (("publish", "{repo}", "--targets-key", "{keys}/one", "--online-key", "{keys}/online"), "for targets"),
        (("check", "{keys}"), "has no root file"),
    ],
)
def test_what_cannot_be_is_refused(
    publisher: Publisher, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    files = {path: path.read_bytes() for path in publisher.repo.rglob("*") if path.is_file()}
    assert publisher.run(*(each.format(repo=publisher.repo, keys=publisher.keys) for each in arguments)) == 2
    assert said in capsys.readouterr().err
    assert {path: path.read_bytes() for path in files} == files


def test_a_stranger_signs_no_draft(publisher: Publisher, capsys: pytest.CaptureFixture[str]) -> None:
    publisher.root(signers=())
    assert publisher.run("sign", publisher.repo, "--key", publisher.keys / "online") == 2
    assert "is no root key" in capsys.readouterr().err


def test_check_tells_what_holds_and_for_how_long(publisher: Publisher, capsys: pytest.CaptureFixture[str]) -> None:
    assert publisher.run("check", publisher.repo) == 0
    told = capsys.readouterr().out
    assert "timestamp 1" in told and '"entries": 2' in told
    online = ("--online-key", publisher.keys / "online")
    assert publisher.run("timestamp", publisher.repo, *online, "--days", "timestamp=3") == 0
    assert publisher.run("check", publisher.repo) == 1
    assert "3 days left" in capsys.readouterr().out
    publisher.key("later")
    publisher.root("--online-key", publisher.pub("later"))
    assert publisher.run("check", publisher.repo) == 1
    assert "do not verify" in capsys.readouterr().out


def test_renewing_the_dates_renews_the_snapshot_in_time(publisher: Publisher) -> None:
    metadata = publisher.repo / "metadata"
    online = ("--online-key", publisher.keys / "online")
    assert publisher.run("timestamp", publisher.repo, *online) == 0
    assert not (metadata / "2.snapshot.json").exists()
    publisher.publish(3, "snapshot=10")
    assert publisher.run("timestamp", publisher.repo, *online) == 0
    assert (metadata / "3.snapshot.json").exists()


def test_dates_are_signed_for_no_matrix_of_a_stranger(publisher: Publisher, capsys: pytest.CaptureFixture[str]) -> None:
    listed = publisher.repo / "metadata" / "1.targets.json"
    (publisher.repo / "metadata" / "2.targets.json").write_text(
        listed.read_text("utf-8").replace('"version": 1', '"version": 2'), encoding="utf-8"
    )
    online = ("--online-key", publisher.keys / "online")
    assert publisher.run("timestamp", publisher.repo, *online) == 2
    assert "not signed by the root's keys" in capsys.readouterr().err


def test_the_same_matrix_makes_the_same_archive(publisher: Publisher) -> None:
    publisher.publish(2)
    assert len(list((publisher.repo / "targets").iterdir())) == 1


def test_it_runs_as_it_is_documented() -> None:
    command = [sys.executable, str(ROOT / "tools" / "sign_matrix.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for verb in ("key", "root", "sign", "publish", "timestamp", "check"):
        assert f"sign_matrix.py {verb} " in done.stdout
