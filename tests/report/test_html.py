"""The report as a file: whole, escaped, alike for the same input, and with everything on it that a reader needs."""

from __future__ import annotations

import re
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from compatcheck import facts, matrix
from compatcheck.model import (
    Choice,
    Environment,
    Facts,
    Finding,
    Location,
    Moved,
    PinReport,
    ProbeResult,
    Remark,
    Remedy,
    Report,
    Suppressed,
    Trial,
    VersionMap,
)
from compatcheck.observation import (
    Crash,
    Curve,
    Diagnosis,
    Dropped,
    Explanation,
    Hit,
    Log,
    Moment,
    Run,
    Signature,
)
from compatcheck.pipelines.check import check
from compatcheck.report import html, render
from tests.conftest import ROOT, run_command
from tests.report.page import HOSTILE, Page

DEMO = ROOT / "compatcheck" / "demo" / "glm-4.json"


@pytest.fixture(scope="module")
def demo() -> Report:
    return check(facts.load_file(str(DEMO)), matrix.load())


def words(text: str) -> str:
    return " ".join("".join(Page(text).words).split())


def copyable(text: str) -> list[str]:
    return [unescape(each) for each in re.findall(r'<pre class="copied"><code>(.*?)</code>', text, re.DOTALL)]


def test_the_command_writes_one_file_that_loads_nothing(tmp_path: Path) -> None:
    done = run_command(sys.executable, "demo", "--format", "html", "-o", "report.html", cwd=tmp_path)
    assert done.returncode == 1 and done.stdout == ""
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.loads == [] and page.handlers == [] and len(text) < 100_000
    assert all(address.startswith("https://") for address in page.links)
    assert "default-src 'none'" in unescape(text) and not re.search(r"url\(|@import", text)
    assert words(text).index("1 known fault") < words(text).index("The environment")


def test_every_way_out_can_be_copied(demo: Report) -> None:
    text = render(demo, "html", exit_reason="")
    assert copyable(text) == [
        "torch>=2.5.1",
        "from_pretrained(..., attn_implementation='eager')",
        "torch.backends.cuda.enable_cudnn_sdp(False)",
    ]
    told = words(text)
    for remedy in demo.findings[0].remedies:
        assert remedy.why in told
    for address in demo.findings[0].evidence:
        assert address in Page(text).links


def test_the_environment_is_told_with_each_cuda_version_apart(demo: Report) -> None:
    told = words(render(demo, "html", exit_reason=""))
    for each in (
        "torch built with CUDA11.8",
        "driver535.104.05",
        "driver offers CUDA12.2",
        "toolkit (nvcc)none",
        "cuDNN9.1.0.70",
        "NCCLnot known",
        "1 × NVIDIA A100-SXM4-80GB (sm 8.0, 80 GiB)",
        "datasets3.2.0",
    ):
        assert each in told


def hostile_report() -> Report:
    probe = ProbeResult(HOSTILE, "fail", HOSTILE, {"rows": [_row(float("inf")), _row(0.3), _row("nan")]}, 1.5)
    remedy = Remedy("pins", HOSTILE, {HOSTILE: HOSTILE}, steps=(HOSTILE, HOSTILE))
    finding = Finding(
        HOSTILE,
        HOSTILE,
        "confirmed",
        HOSTILE,
        HOSTILE,
        (HOSTILE,),
        HOSTILE,
        (),
        (remedy, Remedy("code", HOSTILE, code=HOSTILE, steps=(HOSTILE,))),
        ("https://example.org/" + HOSTILE, "javascript:alert(1)", "records/x.json"),
        HOSTILE,
        probe=probe,
        location=Location(HOSTILE, 3),
    )
    possible = finding._replace(status="possible", missing=(HOSTILE,), partly={HOSTILE: HOSTILE}, probe=None)
    environment = Environment(
        {
            "python": HOSTILE,
            "platform": {"system": HOSTILE},
            "distributions": {HOSTILE: HOSTILE, "torch": HOSTILE},
            "cuda": {"driver": HOSTILE},
            "gpus": [{"name": HOSTILE}],
            "target": {"prefix": HOSTILE, "selected_by": HOSTILE},
            "training": {HOSTILE: {HOSTILE: HOSTILE}, "framework": HOSTILE},
            "model": {"name": HOSTILE, "file_problems": [{"path": HOSTILE, "problem": HOSTILE}]},
            "environ": {HOSTILE: HOSTILE},
        },
        {"cuda.toolkit": HOSTILE},
        {f"training.{HOSTILE}.{HOSTILE}": Location(HOSTILE, 1)},
    )
    refuted = finding._replace(status="refuted")
    return Report(
        environment,
        (finding, possible, refuted),
        HOSTILE,
        1,
        HOSTILE,
        suppressed=(Suppressed(finding, "ignore", HOSTILE),),
        remarks=(Remark(HOSTILE, Location(HOSTILE, 2)),),
    )


def _row(theta: Any) -> dict[str, Any]:
    return {"dtype": HOSTILE, "variant": HOSTILE, "case": HOSTILE, "theta": theta, "rho": 1.0, "tensor": HOSTILE}


def hostile_pages() -> dict[str, str]:
    report = hostile_report()
    finding = report.findings[0]
    probe = finding.probe
    assert probe is not None
    at = Location(HOSTILE, 1)
    moved = Moved(HOSTILE, HOSTILE, HOSTILE, (HOSTILE,), 1)
    drawn = VersionMap(
        (HOSTILE, HOSTILE),
        (HOSTILE,),
        (HOSTILE,),
        (({HOSTILE: "affected"},),),
        {HOSTILE: (HOSTILE, HOSTILE)},
        (HOSTILE, HOSTILE),
        (HOSTILE, HOSTILE),
    )
    pins = PinReport(
        (moved, moved._replace(entries=())),
        {HOSTILE: HOSTILE},
        1,
        1,
        True,
        choices=(Choice(HOSTILE, (moved,), (HOSTILE,), True),),
        left=(finding,),
        possible=(report.findings[1],),
        notes=(HOSTILE,),
        trials=(Trial(HOSTILE, HOSTILE, probe, probe),),
        unverified=HOSTILE,
        maps=(drawn,),
    )
    moment = Moment(at, 3.0, values={HOSTILE: 1.0})
    signature = Signature(HOSTILE, HOSTILE, details=(HOSTILE,))
    curve = Curve(HOSTILE, HOSTILE, ((1.0, 2.0), (2.0, float("nan"))), 2.0, HOSTILE)
    run = Run(
        signature, 1, 2, 3, moment, moment, moment, (signature,), (curve,), Crash(HOSTILE, HOSTILE, at, (HOSTILE,))
    )
    hit = Hit(HOSTILE, HOSTILE, at)
    log = Log(HOSTILE, (run, run._replace(readings=9)), (), (hit,), Facts({}), (HOSTILE,))
    explained = Explanation(finding, "affected", (HOSTILE,), (HOSTILE,), (HOSTILE,), hit)
    dropped = (Dropped(HOSTILE, HOSTILE, (HOSTILE,), hit),)
    diagnosis = Diagnosis(
        (log,), log, run, (explained,), 2, dropped, report.environment, False, HOSTILE, 1, HOSTILE, True
    )
    return {
        "check": html.render(report._replace(maps=(drawn,)), exit_reason=HOSTILE, refuted=True),
        "probes": html.render_probes([probe]),
        "pins": html.render_pins(pins),
        "diagnosis": html.render_diagnosis(diagnosis),
        "element": html.fragment(report) + html.fragment(pins) + html.fragment([probe]),
    }


@pytest.mark.parametrize("name", ["check", "probes", "pins", "diagnosis", "element"])
def test_nothing_breaks_out_of_a_page(name: str) -> None:
    text = hostile_pages()[name]
    page = Page(text)
    assert page.handlers == [] and page.loads == [] and "img" not in page.seen
    assert page.seen.count("script") == text.startswith("<!DOCTYPE")
    assert all(address.startswith("https://example.org/") for address in page.links)
    assert "onerror=alert(2)" in words(text)
    if name != "probes":
        assert "javascript:alert(1)" in words(text)


def test_what_is_set_aside_and_what_settings_want_a_look_is_told(demo: Report) -> None:
    kept = demo._replace(
        findings=(),
        suppressed=(Suppressed(demo.findings[0], "ignore", "we pad nothing"),),
        remarks=(Remark("the ignore of CC-2024-0002 has expired", Location("pyproject.toml", 9)),),
    )
    told = words(render(kept, "html", exit_reason=""))
    assert "No known fault" in told and "1 not counted" in told
    assert "CC-2024-0001, by ignore: we pad nothing" in told
    assert "the ignore of CC-2024-0002 has expired, pyproject.toml:9" in told


def test_missing_facts_are_named_with_how_to_state_them(demo: Report) -> None:
    finding = demo.findings[0]._replace(status="possible", missing=("gpus", "training.attention"))
    text = render(demo._replace(findings=(finding,)), "html", exit_reason="")
    assert "--assume gpus=VALUE\n--assume training.attention=VALUE" in copyable(text)
    assert "No known fault, as far as the facts go" in words(text)


def test_the_same_report_gives_the_same_bytes(demo: Report) -> None:
    assert render(demo, "html", exit_reason="x") == render(demo, "html", exit_reason="x")


def test_several_reports_go_on_one_page(demo: Report) -> None:
    """A notebook shows each as an element: no id twice, no rule for what lies outside."""
    page = Page("<div>" + html.fragment(demo) * 2 + "</div>")
    assert page.ids == [] and "script" not in page.seen
    style = re.findall(r"<style>(.*?)</style>", html.fragment(demo), re.DOTALL)[0].replace("svg, svg", "svg svg")
    selectors = [each.strip() for rule in re.findall(r"([^{}]+)\{", style) for each in rule.split(",")]
    assert all(".compatcheck" in each or each.startswith("@media") for each in selectors)
