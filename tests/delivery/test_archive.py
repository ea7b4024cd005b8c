"""Archives that should not be unpacked, and such as are signed and still no matrix for this version."""

from __future__ import annotations

import json
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from compatcheck.delivery import Archive, unpack
from compatcheck.errors import DataError
from compatcheck.files import limits
from tests.delivery.conftest import IDS, SIGN, Client, Publisher

FILE = stat.S_IFREG | 0o644
Damage = Callable[[Path, Path], None]


def archive_of(folder: Path, *members: tuple[str, int]) -> Archive:
    """A zip of a good member, and members of a name and Unix mode besides."""
    path = folder / "matrix-1.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, mode in (("tables/good.json", FILE), *members):
            member = zipfile.ZipInfo(name)
            member.external_attr = mode << 16
            opened.writestr(member, "/etc/passwd" * 20)
    return Archive(str(path), "matrix-1.zip")


def test_what_is_unpacked_is_what_was_packed(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    unpack(archive_of(tmp_path, ("index.json", FILE), ("about.json", 0)), str(inside))
    files = {str(path.relative_to(inside)): path.read_text() for path in inside.rglob("*") if path.is_file()}
    assert files == dict.fromkeys(("tables/good.json", "index.json", "about.json"), "/etc/passwd" * 20)


@pytest.mark.parametrize(
    "members, said",
    [
        ([("../../outside", FILE)], "is not a plain file inside the archive"),
        ([("tables/../../outside", FILE)], "is not a plain file inside the archive"),
        ([("/outside", FILE)], "is not a plain file inside the archive"),
        ([("..\\outside", FILE)], "is not a plain file inside the archive"),
        ([("c:outside", FILE)], "is not a plain file inside the archive"),
        ([("outside\n", FILE)], "is not a plain file inside the archive"),
        ([("link", stat.S_IFLNK | 0o777)], "is not a plain file inside the archive"),
        ([("pipe", stat.S_IFIFO | 0o644)], "is not a plain file inside the archive"),
        ([("folder/", stat.S_IFDIR | 0o755)], "is not a plain file inside the archive"),
        ([("tables/good.json/x", FILE)], "overwrites another"),
        ([(f"n{n}", FILE) for n in range(2001)], "more than 2000 files"),
    ],
)
def test_a_member_that_is_no_plain_file_inside_is_refused(
    tmp_path: Path, members: list[tuple[str, int]], said: str
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    with pytest.raises(DataError, match=f"refused: .*{said}"):
        unpack(archive_of(tmp_path, *members), str(tmp_path / "a" / "b"))
    found = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert found <= {"matrix-1.zip", "good.json"}


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_stands_there_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="twice"):
        unpack(archive_of(tmp_path, ("tables/good.json", FILE)), str(tmp_path))


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ARCHIVE_BYTES", 439)
    with pytest.raises(DataError, match="or 439 bytes"):
        unpack(archive_of(tmp_path, ("index.json", FILE)), str(tmp_path))
    assert not (tmp_path / "index.json").exists()


@pytest.mark.parametrize("damage", [b"", b"no zip", None], ids=["empty", "no zip", "a byte of it"])
def test_damage_is_told(tmp_path: Path, damage: bytes | None) -> None:
    archive = archive_of(tmp_path)
    content = Path(archive.path).read_bytes()
    changed = content[:50] + bytes([content[50] ^ 255]) + content[51:]
    Path(archive.path).write_bytes(changed if damage is None else damage)
    with pytest.raises(DataError, match="damaged"):
        unpack(archive, str(tmp_path))


def without(name: str) -> Damage:
    return lambda folder, _: (folder / name).unlink()


def changed(name: str, old: bytes, new: bytes) -> Damage:
    def damage(folder: Path, _: Path) -> None:
        content = (folder / name).read_bytes()
        assert old in content
        (folder / name).write_bytes(content.replace(old, new, 1))

    return damage


def with_revision(folder: Path, _: Path) -> None:
    """A revision that would name a folder elsewhere."""
    for name in ("about.json", "index.json"):
        told = json.loads((folder / name).read_text("utf-8"))
        (folder / name).write_text(json.dumps({**told, "revision": "../../evil"}), encoding="utf-8")


@pytest.mark.parametrize(
    "damage, status, said",
    [
        (lambda folder, _: (folder / "Outside").write_text("x"), 5, "is not a plain file inside the archive"),
        (with_revision, 5, "do not belong together"),
        (without("index.json"), 5, "index.json"),
        (without("entries.jsonl"), 5, "entries.jsonl"),
        (without("about.json"), 5, "about.json"),
        (without("tables/small.json"), 5, "do not belong together"),
        (changed("about.json", b"2026-03", b"2026-09"), 5, "do not belong together"),
        (changed("entries.jsonl", b'"impact":', b'"invented":1,"impact":'), 2, "upgrade compatcheck"),
        (changed("tables/small.json", b"{", b"["), 5, "small.json"),
        (changed("ranking.jsonl", b"[", b"[0,"), 5, "do not belong together"),
    ],
)
def test_a_bad_matrix_is_refused_though_it_is_signed(
    client: Client,
    publisher: Publisher,
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: Damage,
    status: int,
    said: str,
) -> None:
    client.update()
    write = SIGN.write_archive

    def damaged(folder: Path, archive: Path) -> None:
        damage(folder, archive)
        write(folder, archive)

    monkeypatch.setattr(SIGN, "write_archive", damaged)
    publisher.publish(3)
    done = client.update()
    assert (done.status, said in done.text) == (status, True), done.text
    assert "the current matrix stays in use" in done.text and len(done.text.splitlines()) == 1
    assert len(list((data / "revisions").iterdir())) == 1
    assert client.listed() == IDS[:2]
