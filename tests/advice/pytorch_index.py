"""A stand-in for the index of PyTorch's own builds that the real uv takes for the real one.

uv asks for https://download.pytorch.org through a proxy. This is the proxy, and it answers itself, with a certificate
of an authority made for the occasion; it lets nothing else through. What other indexes serve lies in a folder.
"""

from __future__ import annotations

import contextlib
import ssl
import subprocess
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

HOST = "download.pytorch.org"


class Wheel(NamedTuple):
    """A distribution without content, and what it requires."""

    name: str
    version: str
    requires: tuple[str, ...] = ()


@contextlib.contextmanager
def serve(folder: Path, builds: Mapping[str, Sequence[Wheel]], others: Sequence[Wheel]) -> Iterator[dict[str, str]]:
    """The variables by which uv finds ``builds``, by label, on the project's index, and ``others`` on the default."""
    for label, wheels in builds.items():
        _write_index(folder / "whl" / label, wheels)
    _write_index(folder / "default", others)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*_certificate(folder))

    class Index(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(folder))  # type: ignore[arg-type]

        def log_message(self, *args: object) -> None:
            """Tests read no log."""

    class Proxy(BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            if self.path != f"{HOST}:443":
                self.send_error(403)
                return
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError), context.wrap_socket(self.connection, server_side=True) as inside:
                Index(inside, self.client_address, self.server)

        def log_message(self, *args: object) -> None:
            """Tests read no log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield {
            "HTTPS_PROXY": f"http://127.0.0.1:{server.server_port}",
            "SSL_CERT_FILE": str(folder / "authority.pem"),
            "UV_DEFAULT_INDEX": (folder / "default").as_uri(),
            "UV_CACHE_DIR": str(folder / "cache"),
            "UV_NO_CONFIG": "1",
        }
        server.shutdown()


def _write_index(folder: Path, wheels: Sequence[Wheel]) -> None:
    for name in {wheel.name for wheel in wheels}:
        (folder / name).mkdir(parents=True)
        files = [_write_wheel(folder / name, wheel) for wheel in wheels if wheel.name == name]
        links = "".join(f'<a href="{file.replace("+", "%2B")}">{file}</a>' for file in files)
        (folder / name / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>", encoding="utf-8")


def _write_wheel(folder: Path, wheel: Wheel) -> str:
    stem = f"{wheel.name.replace('-', '_')}-{wheel.version}"
    lines = ["Metadata-Version: 2.1", f"Name: {wheel.name}", f"Version: {wheel.version}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in wheel.requires]
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{stem}.dist-info/METADATA", "\n".join([*lines, ""]))
        archive.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{stem}.dist-info/RECORD", "")
    return f"{stem}-py3-none-any.whl"


def _certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for the host and its key, signed by ``authority.pem``."""
    (folder / "names").write_text(f"subjectAltName=DNS:{HOST}\n", encoding="utf-8")
    signed = "-CA authority.pem -CAkey authority.key -CAcreateserial -extfile names"
    for command in (
        "req -x509 -days 2 -newkey rsa:2048 -nodes -subj /CN=authority -keyout authority.key -out authority.pem",
        f"req -newkey rsa:2048 -nodes -subj /CN={HOST} -keyout host.key -out host.csr",
        f"x509 -req -days 2 -in host.csr -out host.pem {signed}",
    ):
        subprocess.run(["openssl", *command.split()], cwd=folder, check=True, capture_output=True)
    return folder / "host.pem", folder / "host.key"
