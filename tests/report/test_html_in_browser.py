"""The report as a reader has it: in a real Chromium, from a file."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import pytest

from compatcheck.report import render
from compatcheck.report.pages import fragment
from compatcheck.report.subjects import probes
from compatcheck.results.findings import ProbeResult
from tests.conftest import ROOT, run_command
from tests.report.browser import CONTRAST, Browser

pytestmark = pytest.mark.slow

LOG = ROOT / "tests" / "symptoms" / "logs" / "transformers-4.48-nan-from-step-16.log"
NOTEBOOK = """
.out { background: red; }
.out th { text-align: right; padding: 40px; }
.out table tr:nth-child(even) { background: red; color: red; }
.out :not(pre) > code { background: red; }
"""
"""Rules such as a notebook has for what its cells give out."""
NAMES = ("check", "diagnose", "probes", "notebook")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of each kind that needs no probe to run, and one on which two reports stand beside other things."""
    folder = tmp_path_factory.mktemp("pages")
    snapshot = str(ROOT / "compatcheck" / "demo" / "glm-4.json")
    log = folder / ("a_long_name_" * 6) / LOG.name
    log.parent.mkdir()
    log.write_bytes(LOG.read_bytes())
    run_command(sys.executable, "demo", "--format", "html", "-o", "check.html", cwd=folder)
    run_command(
        sys.executable,
        "diagnose",
        str(log),
        "--snapshot",
        snapshot,
        "--format",
        "html",
        "-o",
        "diagnose.html",
        cwd=folder,
    )
    measured = [measurements("fail", 9.0), measurements("watch", 1.5), measurements("pass", 0.2)]
    (folder / "probes.html").write_text(render(probes.document(measured), "html"), encoding="utf-8")
    twice = fragment(probes.document(measured)) * 2
    (folder / "notebook.html").write_text(
        '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<title>x</title><style>{NOTEBOOK}</style><p id="other">Other</p><div class="out">{twice}</div></html>',
        encoding="utf-8",
    )
    return folder


def measurements(outcome: str, theta: float) -> ProbeResult:
    rows = [
        {"case": f"{length} x 64", "variant": "flash", "dtype": dtype, "theta": theta / length, "rho": 1.0}
        for length in (1, 3, 9)
        for dtype in ("float32", "bfloat16")
    ]
    return ProbeResult("matmul", outcome, "error of y 中文", {"rows": [*rows, {**rows[0], "control": True}]}, 0.3)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
def test_pages_fit_a_phone_and_are_drawn(browser: Browser, pages: Path, name: str) -> None:
    browser.resize(390, 844)
    browser.open((pages / f"{name}.html").as_uri())
    assert browser.ask("document.documentElement.scrollWidth") <= 390
    assert len(browser.picture()) > 15_000


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_stands_out_from_its_ground(browser: Browser, pages: Path, dark: bool) -> None:
    browser.resize(1280, 900, dark=dark)
    for name in NAMES:
        browser.open((pages / f"{name}.html").as_uri())
        browser.ask("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        assert browser.ask(CONTRAST) == []


def test_a_fix_is_copied_from_a_file(browser: Browser, pages: Path) -> None:
    browser.open((pages / "check.html").as_uri())
    browser.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    buttons = "document.querySelectorAll('pre.copied button')"
    assert browser.ask(f"{buttons}.length") == 3
    assert browser.ask(f"{buttons}[0].getAttribute('aria-label')") == "Copy torch>=2.5.1"
    browser.ask(f"{buttons}[0].focus()")
    browser.press("Enter")
    browser.ask("new Promise(done => setTimeout(done, 200))")
    assert browser.ask(f"{buttons}[0].textContent") == "Copied"
    assert browser.ask("navigator.clipboard.readText()") == "torch>=2.5.1"


def test_where_nothing_may_be_copied_the_text_is_selected(browser: Browser, pages: Path) -> None:
    browser.open((pages / "check.html").as_uri())
    browser.ask("Object.defineProperty(navigator, 'clipboard', {value: undefined}); document.execCommand = () => false")
    browser.ask("document.querySelectorAll('pre.copied button')[2].click()")
    assert browser.ask("getSelection().toString()") == "torch.backends.cuda.enable_cudnn_sdp(False)"
    assert browser.ask("document.querySelectorAll('pre.copied button')[2].textContent") == "Selected"


def test_a_report_in_a_notebook_leaves_the_rest_as_it_was(browser: Browser, pages: Path) -> None:
    browser.resize(1280, 900, dark=True)
    browser.open((pages / "notebook.html").as_uri())
    colours = "['#other', '.compatcheck'].map(each => getComputedStyle(document.querySelector(each)).color)"
    others, own = browser.ask(colours)
    assert others == "rgb(0, 0, 0)" and own == "rgb(231, 232, 234)"
    assert browser.ask(CONTRAST) == []
    styled = "(each => [each.textAlign, each.paddingLeft])(getComputedStyle(document.querySelector('.bars th')))"
    assert browser.ask(styled) == ["left", "9.6px"]
    browser.ask("document.body.dataset.jpThemeLight = 'true'")
    assert browser.ask(colours)[1] == "rgb(27, 29, 33)"
    assert browser.ask(CONTRAST) == []


def test_bars_stand_on_one_scale_with_the_bound_as_a_line(browser: Browser, pages: Path) -> None:
    browser.open((pages / "probes.html").as_uri())
    widths = browser.ask(
        "[...document.querySelectorAll('table')[0].querySelectorAll('.bar')].map(bar => {"
        " const full = bar.getBoundingClientRect(), [, drawn, bound] = bar.querySelectorAll('rect');"
        " const place = bound.getBoundingClientRect().x - full.x;"
        " return [drawn.getBoundingClientRect().width / full.width, place / full.width]; })"
    )
    shares = [round(width, 2) for width, _ in widths]
    assert shares == [0.66, 0.53, 0.38]
    assert all(abs(place - 0.5) < 0.01 for _, place in widths)


def test_a_page_prints_without_what_paper_cannot_do(browser: Browser, pages: Path) -> None:
    browser.open((pages / "check.html").as_uri())
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.ask("getComputedStyle(document.querySelector('pre.copied button')).display") == "none"
    browser.call("Emulation.setEmulatedMedia", media="")
    printed = base64.b64decode(browser.call("Page.printToPDF", printBackground=False)["data"])
    assert printed.startswith(b"%PDF") and len(printed) > 20_000


def test_the_policy_stops_what_is_not_ours(browser: Browser, pages: Path) -> None:
    """What the browser says of a script that stands in the page without being allowed."""
    text = (pages / "check.html").read_text(encoding="utf-8")
    path = pages / "changed.html"
    path.write_text(text.replace("</main>", "<script>document.title = 'taken'</script></main>"), encoding="utf-8")
    browser.open(path.as_uri())
    assert browser.ask("document.title") != "taken"
    complaints = json.dumps(browser.complaints())
    assert "Content Security Policy" in complaints
    browser.heard.clear()
