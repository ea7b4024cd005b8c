"""A real headless Chromium, spoken to over a pair of pipes by the Chrome DevTools Protocol.

https://chromedevtools.github.io/devtools-protocol/; the pipes are those of ``--remote-debugging-pipe``.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowRight": 39, "ArrowDown": 40}


def find() -> str | None:
    """The browser named by ``CHROMIUM``, else one on the path."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page. Whatever it asks the network for, and whatever its scripts complain of, is kept in ``heard``."""

    def __init__(self, reading: int, writing: int) -> None:
        self.reading, self.writing = os.fdopen(reading, "rb"), os.fdopen(writing, "wb")
        self.number = 0
        self.session: str | None = None
        self.heard: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        self.writing.write(json.dumps({**message, **({"sessionId": self.session} if self.session else {})}).encode())
        self.writing.write(b"\0")
        self.writing.flush()
        while True:
            answer = self._read()
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer)
                result: dict[str, Any] = answer["result"]
                return result

    def _read(self) -> dict[str, Any]:
        text = bytearray()
        while not text.endswith(b"\0"):
            byte = self.reading.read(1)
            assert byte, "the browser ended"
            text += byte
        message: dict[str, Any] = json.loads(text[:-1])
        if "method" in message:
            self.heard.append(message)
        return message

    def open(self, address: str) -> None:
        """A page, loaded anew even where only the part behind the # differs."""
        for each in ("about:blank", address):
            self.heard.clear()
            self.call("Page.navigate", url=each)
            self._await_load()

    def _await_load(self) -> None:
        while not any(each["method"] == "Page.loadEventFired" for each in self.heard):
            self._read()

    def ask(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, *keys: str) -> None:
        for key in keys:
            code = {"key": key, "code": key, "windowsVirtualKeyCode": _KEYS[key]}
            text = {"text": "\r"} if key == "Enter" else {}
            self.call("Input.dispatchKeyEvent", type="keyDown", **code, **text)
            self.call("Input.dispatchKeyEvent", type="keyUp", **code)

    def follow(self, key: str) -> None:
        """A key that leads to another page."""
        self.heard.clear()
        self.press(key)
        self._await_load()

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        small = width < 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=small)
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def picture(self) -> bytes:
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def complaints(self) -> list[dict[str, Any]]:
        """Exceptions, and what the browser logged as an error."""
        thrown = [each["params"] for each in self.heard if each["method"] == "Runtime.exceptionThrown"]
        logged = [each["params"]["entry"] for each in self.heard if each["method"] == "Log.entryAdded"]
        return thrown + [each for each in logged if each["level"] == "error"]

    def requested(self) -> list[str]:
        return [
            each["params"]["request"]["url"] for each in self.heard if each["method"] == "Network.requestWillBeSent"
        ]


@contextmanager
def started(program: str, folder: Path) -> Iterator[Browser]:
    """The program with a profile of its own below a folder; it and what it started are gone afterwards."""
    to_browser, writing = os.pipe()
    reading, from_browser = os.pipe()
    flags = "--headless=new --no-sandbox --disable-gpu --no-first-run --disable-background-networking"
    shell = f'exec "$0" {flags} --remote-debugging-pipe --user-data-dir="$1" 3<&{to_browser} 4>&{from_browser}'
    with open(folder / "chromium.log", "wb") as log:
        process = subprocess.Popen(
            ["bash", "-c", shell, program, str(folder / "profile")],
            pass_fds=(to_browser, from_browser),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield Browser(reading, writing)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


CONTRAST = """(() => {
    const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    function parts(colour) {
        paint.clearRect(0, 0, 1, 1);
        paint.fillStyle = colour;
        paint.fillRect(0, 0, 1, 1);
        return [...paint.getImageData(0, 0, 1, 1).data];
    }
    function light(colour) {
        const linear = colour.slice(0, 3).map(v => v / 255)
            .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    }
    function ground(node) {
        for (; node; node = node.parentElement) {
            const found = parts(getComputedStyle(node).backgroundColor);
            if (found[3] > 0) return found;
        }
        return [255, 255, 255, 255];
    }
    const faint = new Set();
    for (const node of document.querySelectorAll("body *")) {
        const speaks = [...node.childNodes].some(child => child.nodeType === 3 && child.textContent.trim());
        if (!speaks || !node.getClientRects().length || node.closest("svg, noscript, script")) continue;
        const [a, b] = [light(parts(getComputedStyle(node).color)), light(ground(node))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) faint.add(`${node.tagName}.${node.className} ${ratio.toFixed(2)}`);
    }
    return [...faint];
})()"""
"""The kinds of text that stand out less than WCAG AA asks for, 4.5 to 1: https://www.w3.org/TR/WCAG22/#contrast-minimum."""
