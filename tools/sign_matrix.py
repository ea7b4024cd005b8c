"""Publish the matrix as a repository of The Update Framework: keys, roots, archives, and the dates they hold for.

    python tools/sign_matrix.py key KEY                    a new key pair: KEY is private, KEY.pub is not
    python tools/sign_matrix.py root REPO [options]        draft the first or the next root file
    python tools/sign_matrix.py sign REPO --key KEY        add one signature to the draft; the last one publishes it
    python tools/sign_matrix.py publish REPO [options]     compile, archive and sign the matrix
    python tools/sign_matrix.py timestamp REPO [options]   say again that this is the newest: every few days
    python tools/sign_matrix.py check REPO                 what is published, whether it verifies, how long it holds

REPO is a folder that any web server can serve. Nothing here makes a key but `key`. Who holds which key, and what to do
when one is lost or leaks: matrix/SIGNING.md. Needs `compatcheck[update]`, `securesystemslib[crypto]` and babel.
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from securesystemslib.exceptions import StorageError
from securesystemslib.signer import CryptoSigner, SSlibKey
from tuf.api.exceptions import RepositoryError
from tuf.api.metadata import Metadata, MetaFile, Root, Snapshot, TargetFile, Targets, Timestamp
from tuf.api.serialization.json import JSONSerializer

from compatcheck.matrix import ARCHIVE
from compatcheck.matrix.compile import write_compiled

DAYS = {"root": 400, "targets": 180, "snapshot": 30, "timestamp": 14}
"""How long each role's file holds from its signing on."""

WARN_DAYS = {"root": 60, "targets": 30, "snapshot": 7, "timestamp": 4}
"""With less than so many days left, `check` ends with 1."""

PASSPHRASE = "MATRIX_KEY_PASSPHRASE"
MATRIX = Path(__file__).parents[1] / "matrix"
_EPOCH = (1980, 1, 1, 0, 0, 0)


class Refused(Exception):
    """The request cannot be carried out; the text says why."""


class Files(NamedTuple):
    """Where the parts of a repository lie."""

    folder: Path

    @property
    def metadata(self) -> Path:
        return self.folder / "metadata"

    @property
    def draft(self) -> Path:
        return self.folder / "root.draft.json"

    def newest(self, role: str) -> Path | None:
        """The published file of a role with the highest version."""
        if role == "timestamp":
            path = self.metadata / "timestamp.json"
            return path if path.exists() else None
        found = {int(path.name.split(".")[0]): path for path in self.metadata.glob(f"*.{role}.json")}
        return found[max(found)] if found else None

    def load(self, role: str) -> Any:
        path = self.newest(role)
        if path is None:
            raise Refused(f"{self.folder} has no {role} file yet")
        return Metadata.from_file(str(path))


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options) or 0)
    except (Refused, RepositoryError, StorageError, OSError, ValueError) as error:
        print(f"sign_matrix: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    def verb(name: str, run: Any, subject: str, help: str) -> argparse.ArgumentParser:
        made = verbs.add_parser(name, help=help)
        made.add_argument(subject, type=Path)
        made.set_defaults(run=run)
        return made

    verb("key", make_key, "path", "make a key pair")
    root = verb("root", draft_root, "repo", "draft a root file; what is not named stays as in the last one")
    root.add_argument("--root-key", type=Path, nargs="+", metavar="PUB", help="public keys of those who sign roots")
    root.add_argument("--threshold", type=int, help="how many of them have to")
    root.add_argument("--targets-key", type=Path, nargs="+", metavar="PUB", help="public keys that sign the matrix")
    root.add_argument("--online-key", type=Path, nargs="+", metavar="PUB", help="public keys that sign the dates")
    verb("sign", sign_root, "repo", "sign the draft").add_argument("--key", required=True)
    publish = verb("publish", publish_matrix, "repo", "compile and sign the matrix")
    publish.add_argument("--matrix", type=Path, default=MATRIX, help="the folder of sources (default: this checkout's)")
    publish.add_argument("--targets-key", required=True, metavar="KEY", help="a file, or env:NAME")
    timestamp = verb("timestamp", renew_timestamp, "repo", "sign the dates again")
    publish.add_argument("--online-key", metavar="KEY", help="else the verb timestamp makes it public, elsewhere")
    timestamp.add_argument("--online-key", required=True, metavar="KEY", help="a file, or env:NAME")
    verb("check", check, "repo", "verify what is published")
    for made in (root, publish, timestamp):
        made.add_argument("--days", type=_days, action="append", default=[], metavar="ROLE=N", help="hold for N days")
    return parser


def _days(text: str) -> tuple[str, float]:
    role, _, days = text.partition("=")
    if role not in DAYS:
        raise argparse.ArgumentTypeError(f"a role is one of {', '.join(DAYS)}")
    return role, float(days)


def make_key(options: argparse.Namespace) -> None:
    """A new key pair: the private one readable by its owner alone, and encrypted if a passphrase is given."""
    secret = _passphrase(f"passphrase for {options.path} (empty: none): ")
    private = Ed25519PrivateKey.generate()
    encryption = serialization.BestAvailableEncryption(secret) if secret else serialization.NoEncryption()
    pem = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    with open(os.open(options.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(pem)
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    _public_path(options.path).write_bytes(public)
    print(f"{_public_path(options.path)}: key id {SSlibKey.from_crypto(private.public_key()).keyid}")


def draft_root(options: argparse.Namespace) -> None:
    """The first root file, or the one after the last, with the keys that are named in place of the old ones."""
    files = Files(options.repo)
    before = files.newest("root")
    roles = {"root": options.root_key, "targets": options.targets_key, "snapshot": options.online_key}
    roles["timestamp"] = options.online_key
    if before is None:
        if not all(roles.values()):
            raise Refused("the first root file needs --root-key, --targets-key and --online-key")
        root = Root(version=1, consistent_snapshot=True)
    else:
        root = Metadata[Root].from_file(str(before)).signed
        root.version += 1
    for role, paths in roles.items():
        if paths:
            for keyid in list(root.roles[role].keyids):
                root.revoke_key(keyid, role)
            for path in paths:
                root.add_key(_public(path), role)
    threshold = options.threshold or root.roles["root"].threshold
    if not 1 <= threshold <= len(root.roles["root"].keyids):
        raise Refused(f"{threshold} of {len(root.roles['root'].keyids)} root keys cannot be")
    root.roles["root"].threshold = threshold
    root.expires = _expiry("root", options)
    files.folder.mkdir(parents=True, exist_ok=True)
    _write(Metadata(root), files.draft)
    print(
        f"{files.draft}: version {root.version}, to be signed by {threshold} root keys, holds to {root.expires.date()}"
    )


def sign_root(options: argparse.Namespace) -> None:
    """Add a signature to the draft. Once the old and the new keys have signed enough, it is published."""
    files = Files(options.repo)
    if not files.draft.exists():
        raise Refused("there is no draft; make one with the verb root")
    draft = Metadata[Root].from_file(str(files.draft))
    last = files.newest("root")
    before = Metadata[Root].from_file(str(last)).signed if last else None
    signer = _signer(options.key)
    asked = set(draft.signed.roles["root"].keyids) | set(before.roles["root"].keyids if before else ())
    if signer.public_key.keyid not in asked:
        raise Refused(f"{options.key} is no root key, neither of the draft nor of the last root file")
    draft.sign(signer, append=True)
    result = draft.signed.get_root_verification_result(before, draft.signed_bytes, draft.signatures)
    if not result.verified:
        _write(draft, files.draft)
        print(f"signed by {len(draft.signatures)}; more signatures are needed")
        return
    path = files.metadata / f"{draft.signed.version}.root.json"
    files.metadata.mkdir(exist_ok=True)
    _write(draft, path)
    files.draft.unlink()
    print(f"{path}: published; ship it as the root of trust of new releases")


def publish_matrix(options: argparse.Namespace) -> None:
    """Compile the matrix and sign its archive; with the online key also that this is the newest."""
    files = Files(options.repo)
    root = files.load("root").signed
    with tempfile.TemporaryDirectory() as folder:
        compiled = Path(folder, "compiled")
        about = write_compiled(Path(options.matrix), Path(compiled))
        archive = Path(folder, ARCHIVE)
        write_archive(compiled, archive)
        target = TargetFile.from_file(ARCHIVE, str(archive))
        custom = {key: about[key] for key in ("format", "revision", "entries", "date")}
        target.unrecognized_fields["custom"] = custom
        place = files.folder / "targets" / f"{target.hashes['sha256']}.{ARCHIVE}"
        place.parent.mkdir(exist_ok=True)
        shutil.copyfile(archive, place)
    targets = files.load("targets") if files.newest("targets") else Metadata(Targets())
    targets.signed.targets[ARCHIVE] = target
    _sign(targets, "targets", root, _signer(options.targets_key), options)
    _write(targets, files.metadata / f"{targets.signed.version}.targets.json")
    if options.online_key:
        _renew_snapshot(files, root, _signer(options.online_key), options)
    print(f"matrix {custom['revision']} of {custom['date']}, {custom['entries']} entries, {target.length} bytes")


def renew_timestamp(options: argparse.Namespace) -> None:
    """Sign that what is published is the newest; and the snapshot for a new matrix, or after half the time it holds."""
    files = Files(options.repo)
    root = files.load("root").signed
    signer = _signer(options.online_key)
    if _holds(files, root):
        _renew_timestamp(files, root, signer, options)
    else:
        _renew_snapshot(files, root, signer, options)


def _holds(files: Files, root: Root) -> bool:
    """Whether the last snapshot can stay: it is of the newest matrix, by a key that counts, and far from its end."""
    if not files.newest("snapshot"):
        return False
    snapshot = files.load("snapshot")
    newest = snapshot.signed.meta["targets.json"].version == files.load("targets").signed.version
    return newest and _verifies(root, snapshot) and _days_left(snapshot.signed) >= DAYS["snapshot"] / 2


def _renew_snapshot(files: Files, root: Root, signer: CryptoSigner, options: argparse.Namespace) -> None:
    path = files.newest("targets")
    if path is None:
        raise Refused("no matrix was published yet")
    snapshot = files.load("snapshot") if files.newest("snapshot") else Metadata(Snapshot())
    targets = Metadata.from_file(str(path))
    if not _verifies(root, targets):
        raise Refused(f"{path} is not signed by the root's keys for targets")
    version = targets.signed.version
    snapshot.signed.meta["targets.json"] = MetaFile.from_data(version, path.read_bytes(), ["sha256"])
    _sign(snapshot, "snapshot", root, signer, options)
    _write(snapshot, files.metadata / f"{snapshot.signed.version}.snapshot.json")
    _renew_timestamp(files, root, signer, options)


def _renew_timestamp(files: Files, root: Root, signer: CryptoSigner, options: argparse.Namespace) -> None:
    path = files.newest("snapshot")
    assert path is not None
    timestamp = files.load("timestamp") if files.newest("timestamp") else Metadata(Timestamp())
    version = Metadata.from_file(str(path)).signed.version
    timestamp.signed.snapshot_meta = MetaFile.from_data(version, path.read_bytes(), ["sha256"])
    _sign(timestamp, "timestamp", root, signer, options)
    _write(timestamp, files.metadata / "timestamp.json")
    print(f"timestamp {timestamp.signed.version} holds to {timestamp.signed.expires.date()}")


def check(options: argparse.Namespace) -> int:
    """Print each role's version and date; 1 where one does not verify or is about to expire."""
    files = Files(options.repo)
    root = files.load("root").signed
    worst = 0
    for role, warn in WARN_DAYS.items():
        loaded = files.load(role)
        left = _days_left(loaded.signed)
        faults = [] if _verifies(root, loaded) else ["its signatures do not verify"]
        faults += [f"{left:.0f} days left"] if left < warn else []
        told = "; ".join(faults) or "good"
        print(f"{role} {loaded.signed.version}, holds to {loaded.signed.expires.date()}: {told}")
        worst = max(worst, bool(faults))
    for name, target in files.load("targets").signed.targets.items():
        print(f"{name}: {target.length} bytes, {json.dumps(target.custom)}")
    return worst


def write_archive(folder: Path, archive: Path) -> None:
    """The files of a folder as a zip: the same bytes for the same files."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            member = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _EPOCH)
            member.external_attr = 0o100644 << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            opened.writestr(member, path.read_bytes())


def _sign(metadata: Metadata[Any], role: str, root: Root, signer: CryptoSigner, options: argparse.Namespace) -> None:
    """The next version of a role's file, signed by a key that the root names for it."""
    if signer.public_key.keyid not in root.roles[role].keyids:
        raise Refused(f"the key {signer.public_key.keyid[:12]} is not the root's for {role}")
    if metadata.signatures:
        metadata.signed.version += 1
    metadata.signed.expires = _expiry(role, options)
    metadata.sign(signer)


def _expiry(role: str, options: argparse.Namespace) -> datetime:
    days = {**DAYS, **dict(options.days)}[role]
    return datetime.now(timezone.utc).replace(microsecond=0) + timedelta(days=days)


def _days_left(signed: Any) -> float:
    return float((signed.expires - datetime.now(timezone.utc)).total_seconds() / 86400)


def _verifies(root: Root, metadata: Metadata[Any]) -> bool:
    role = metadata.signed.type
    return root.get_verification_result(role, metadata.signed_bytes, metadata.signatures).verified


def _write(metadata: Metadata[Any], path: Path) -> None:
    """The file in one step, so that a server never serves half of it."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(metadata.to_bytes(JSONSerializer(compact=False)))
    temporary.replace(path)


def _signer(named: str) -> CryptoSigner:
    """The private key in a file, or in the environment variable of ``env:NAME``."""
    if named.startswith("env:"):
        pem = os.environ.get(named[4:], "").encode()
        if not pem.strip():
            raise Refused(f"the environment variable {named[4:]} holds no key")
    else:
        pem = Path(named).read_bytes()
    try:
        private = serialization.load_pem_private_key(pem, None)
    except TypeError:
        private = serialization.load_pem_private_key(pem, _passphrase(f"passphrase of {named}: "))
    if not isinstance(private, Ed25519PrivateKey):
        raise Refused(f"{named} is no Ed25519 key; make one with the verb key")
    return CryptoSigner(private, SSlibKey.from_crypto(private.public_key()))


def _public(path: Path) -> SSlibKey:
    public = serialization.load_pem_public_key(path.read_bytes())
    if not isinstance(public, Ed25519PublicKey):
        raise Refused(f"{path} is no Ed25519 key; clients can verify no other without further libraries")
    return SSlibKey.from_crypto(public)


def _public_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.pub")


def _passphrase(prompt: str) -> bytes:
    told = os.environ.get(PASSPHRASE)
    return (getpass.getpass(prompt) if told is None and sys.stdin.isatty() else told or "").encode()


if __name__ == "__main__":
    sys.exit(main())
