"""The site as a reader has it: in a real Chromium, from a file, with the keyboard."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.report.pages.site._scenarios import GPUS, SETUPS
from tests.report.browser import CONTRAST, Browser

pytestmark = pytest.mark.slow

SHOWN = "[...document.querySelectorAll('#entries > li:not([hidden])')].map(row => row.dataset.id)"
COUNT = "document.getElementById('count').textContent"
FOCUSED = "document.activeElement.id || document.activeElement.getAttribute('aria-label') || ''"


def test_search_and_filters_narrow_the_list(browser: Browser, site: Path, entries: list[dict[str, Any]]) -> None:
    browser.open((site / "index.html").as_uri())
    assert len(browser.ask(SHOWN)) == len(entries)

    browser.ask("document.getElementById('q').focus()")
    browser.type("ＣＣ-2024-0001")
    naming = [e["id"] for e in entries if "CC-2024-0001" in json.dumps(e, default=str)]
    shown = browser.ask(SHOWN)
    assert "CC-2024-0001" in shown and set(shown) <= set(naming)
    assert browser.ask(COUNT) == f"{len(shown)} of {len(entries)} entries"
    assert browser.ask("location.hash").startswith("#q=")

    browser.open((site / "index.html").as_uri() + "#package=deepspeed&impact=silent-wrong")
    wanted = {e["id"] for e in entries if "deepspeed" in e["packages"] and e["impact"] == "silent-wrong"}
    assert set(browser.ask(SHOWN)) == wanted != set()


def test_a_gpu_hides_what_cannot_happen_on_it(browser: Browser, site: Path) -> None:
    browser.open((site / "index.html").as_uri() + "#gpu=T4")
    assert "CC-2024-0001" not in browser.ask(SHOWN)
    browser.open((site / "index.html").as_uri() + "#gpu=A100")
    assert "CC-2024-0001" in browser.ask(SHOWN)


def test_a_pasted_error_line_finds_its_entry(browser: Browser, site: Path, entries: list[dict[str, Any]]) -> None:
    """Another line than the one that stands in the entry, so that the expression has to find it."""
    browser.open((site / "index.html").as_uri())
    lines = [(e["id"], pattern["example"]) for e in entries for pattern in e.get("error_patterns", ())]
    assert lines
    trial = """(async (lines) => {
        const field = document.getElementById("q"), missed = [];
        for (const [id, line] of lines) {
            field.value = `unheard-of-word\\n[rank0]: ${line}`;
            field.form.dispatchEvent(new Event("input"));
            if (document.querySelector(`[data-id="${id}"]`).hidden) missed.push(id);
        }
        return missed;
    })"""
    assert browser.ask(f"{trial}({json.dumps(lines)})") == []


def test_the_keyboard_alone_reaches_an_entry(browser: Browser, site: Path) -> None:
    browser.open((site / "index.html").as_uri())
    for _ in range(30):
        browser.press("Tab")
        if browser.ask(FOCUSED) == "q":
            break
    browser.type("CC-2024-0001")
    for _ in range(10):
        browser.press("Tab")
        if browser.ask("document.activeElement.closest('#entries') !== null"):
            break
    browser.follow("Enter")
    assert browser.ask("location.pathname").endswith("entries/CC-2024-0001.html")


def test_id_behind_the_address_leads_to_the_entry(browser: Browser, site: Path) -> None:
    browser.open((site / "index.html").as_uri() + "#CC-2024-0001")
    for _ in range(100):
        if browser.ask("location.pathname").endswith("entries/CC-2024-0001.html"):
            break
        time.sleep(0.05)
    else:
        pytest.fail("the page of the entry was not opened")


def test_a_cell_of_the_map_tells_its_findings(browser: Browser, site: Path) -> None:
    browser.open((site / "map.html").as_uri())
    assert "cells known bad" in browser.ask(COUNT)
    browser.ask("document.querySelector('#grid button[tabindex=\"0\"]').focus()")
    browser.press("ArrowRight", "ArrowDown", "ArrowDown")
    before = browser.ask(FOCUSED)
    cell = "document.querySelectorAll('#grid tbody tr')[2].querySelectorAll('button')[1]"
    assert before == browser.ask(f"{cell}.getAttribute('aria-label')")
    browser.press("Enter")
    assert browser.ask(FOCUSED) == "cell"
    torch, other = before.partition(":")[0].split(", ")
    assert browser.ask("document.querySelector('#cell h2').textContent") == f"{torch} with {other}"
    browser.press("Escape")
    assert browser.ask(FOCUSED) == before


def test_the_map_shows_what_the_matcher_says(browser: Browser, site: Path) -> None:
    """Each cell of one view, against the environment judged whole."""
    browser.open((site / "map.html").as_uri() + "#beside=deepspeed&gpu=V100&setup=full%2C+bf16%2C+ZeRO-2")
    told = browser.ask(
        "[...document.querySelectorAll('#grid button')].map(cell => [cell.getAttribute('aria-label'), cell.className])"
    )
    assert len(told) > 100
    scenarios = {each.label: each.facts for each in (*GPUS, *SETUPS)}
    known = matrix.load()
    runtimes = known.table("torch-cuda-builds")["default"]
    for label, kind in told[::7]:
        torch, deepspeed = (part.split(" ")[1] for part in label.partition(":")[0].split(", "))
        runtime = runtimes.get(".".join(torch.split(".")[:2]))
        facts = {
            "distributions": {"torch": torch, "deepspeed": deepspeed},
            "platform": {"system": "Linux", "machine": "x86_64"},
            **({"cuda": {"runtime": runtime}} if runtime else {}),
            **scenarios["V100"],
            **scenarios["full, bf16, ZeRO-2"],
        }
        findings = matrix.judge(known, Environment(facts)).findings
        bad = {f.id for f in findings if f.status == "affected"}
        may = {f.id for f in findings if f.status == "possible"}
        assert (f"{len(bad)} known bad" in label) == bool(bad), (label, bad)
        assert (f"{len(may)} may be bad" in label) == bool(may), (label, may)
        assert kind.startswith("bad") == bool(bad)


@pytest.mark.parametrize("name", ["index.html", "map.html", "entries/CC-2024-0001.html"])
def test_pages_fit_a_phone(browser: Browser, site: Path, name: str) -> None:
    browser.resize(390, 844)
    browser.open((site / name).as_uri())
    assert browser.ask("document.documentElement.scrollWidth") <= 390
    assert len(browser.picture()) > 5_000


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_stands_out_from_its_ground(browser: Browser, site: Path, dark: bool) -> None:
    """WCAG AA asks for 4.5 to 1: https://www.w3.org/TR/WCAG22/#contrast-minimum."""
    browser.resize(1280, 900, dark=dark)
    for name in ("index.html", "map.html", "entries/CC-2024-0001.html"):
        browser.open((site / name).as_uri())
        assert browser.ask(CONTRAST) == []
