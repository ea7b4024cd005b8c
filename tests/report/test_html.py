"""The report as a file: whole, escaped, alike for the same input, and with everything on it that a reader needs."""

from __future__ import annotations

import json
import re
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment, Location
from compatcheck.environment.snapshot import read_snapshot
from compatcheck.inference.inferred import Inferred
from compatcheck.pipelines.check import check
from compatcheck.probes import _criterion
from compatcheck.report import pages
from compatcheck.report import render as render_document
from compatcheck.report.document import Exit
from compatcheck.report.pages import _error_bars
from compatcheck.report.subjects import check as verdict
from compatcheck.report.subjects import diagnosis as diagnoses
from compatcheck.report.subjects import pins as moves
from compatcheck.report.subjects import probes as measurements
from compatcheck.results.cases import Case, Contrast, Said, Sighting
from compatcheck.results.diagnoses import Ask, Diagnosis, Evidence, Explanation
from compatcheck.results.findings import (
    Finding,
    ProbeResult,
    Remark,
    Remedy,
    Report,
    Status,
    Step,
    Suppressed,
    VersionMap,
)
from compatcheck.results.logs import Crash, Curve, Hit, Log, Moment, Run, Signature
from compatcheck.results.pins import Choice, Moved, PinReport, Trial
from tests.conftest import ROOT, run_command
from tests.report.page import HOSTILE, Page

DEMO = ROOT / "compatcheck" / "demo" / "glm-4.json"


@pytest.fixture(scope="module")
def demo() -> Report:
    return check(read_snapshot(str(DEMO)), matrix.load())


def render(report: Report, form: str, *, exit_reason: str, **options: bool) -> str:
    return render_document(verdict.document(report, Exit(exit_reason), **options), form)


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


def test_what_is_copied_holds_no_word_of_the_language(tmp_path: Path, demo: Report) -> None:
    done = run_command(sys.executable, "demo", "--lang", "zh", "--format", "html", cwd=tmp_path)
    assert copyable(done.stdout) == copyable(render(demo, "html", exit_reason=""))
    assert '<p class="step">固定版本</p>' in done.stdout and ">Pin<" not in done.stdout


def test_the_environment_is_told_with_each_cuda_version_apart(demo: Report) -> None:
    told = words(render(demo, "html", exit_reason=""))
    for each in (
        "torch built with CUDA11.8",
        "driver535.104.05",
        "CUDA supported by the driver12.2",
        "toolkit (nvcc)none",
        "cuDNN9.1.0.70",
        "NCCLnot known",
        "1 × NVIDIA A100-SXM4-80GB (sm 8.0, 80 GiB)",
        "datasets3.2.0",
    ):
        assert each in told


def hostile_report() -> Report:
    probe = ProbeResult(HOSTILE, "fail", HOSTILE, {"rows": [_row(float("inf")), _row(0.3), _row("nan")]}, 1.5)
    remedy = Remedy(
        "pins", HOSTILE, {HOSTILE: HOSTILE}, steps=(Step("pin", (HOSTILE,)), Step("set", (HOSTILE,), HOSTILE, HOSTILE))
    )
    finding = Finding(
        HOSTILE,
        HOSTILE,
        "confirmed",
        HOSTILE,
        HOSTILE,
        (HOSTILE,),
        HOSTILE,
        (),
        (remedy, Remedy("code", HOSTILE, code=HOSTILE, steps=(Step("code", (HOSTILE,)),))),
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


def hostile_values() -> tuple[Report, PinReport, list[ProbeResult], Diagnosis]:
    """A report of each kind whose every text is `HOSTILE`."""
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
        choices=(Choice(HOSTILE, (moved,), (Step("set", (HOSTILE,)),), True),),
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
    log = Log(HOSTILE, (run, run._replace(readings=9)), (), (hit,), Environment({}), (HOSTILE,))
    spoken, ask = (Evidence(HOSTILE, at),), (Ask(HOSTILE, HOSTILE, HOSTILE, 0.5),)
    explained = Explanation(finding, 0.6, "likely", "affected", spoken, spoken, ask, (HOSTILE,))
    case = Case(
        report.environment,
        (Said(HOSTILE, HOSTILE, at, "stated", HOSTILE),),
        (Contrast(HOSTILE, HOSTILE, HOSTILE, at),),
        sightings=(Sighting("loss-nan", HOSTILE, at, "words", HOSTILE),),
        hits=(hit,),
        texts=((HOSTILE, HOSTILE),),
    )
    judge = (HOSTILE, 1, HOSTILE, True)
    diagnosis = Diagnosis(case, (log,), log, run, (explained,), spoken, (HOSTILE,), (HOSTILE,), Inferred(), *judge)
    return report._replace(maps=(drawn,)), pins, [probe], diagnosis


def hostile_pages() -> dict[str, str]:
    report, pins, measured, diagnosis = hostile_values()
    documents = (verdict.document(report, refuted=True), moves.document(pins), measurements.document(measured))
    return {
        "check": render(report, "html", exit_reason=HOSTILE, refuted=True),
        "probes": render_document(measurements.document(measured), "html"),
        "pins": render_document(moves.document(pins), "html"),
        "diagnosis": render_document(diagnoses.document(diagnosis), "html"),
        "element": "".join(map(pages.fragment, documents)),
    }


@pytest.mark.parametrize("name", ["check", "probes", "pins", "diagnosis", "element"])
def test_nothing_breaks_out_of_a_page(name: str) -> None:
    text = hostile_pages()[name]
    page = Page(text)
    assert page.handlers == [] and page.loads == [] and "img" not in page.seen
    assert page.seen.count("script") == text.startswith("<!DOCTYPE")
    assert all(address.startswith(("https://example.org/", "#explanation-")) for address in page.links)
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
    assert "Nothing new in what was given, 1 suppressed" in told and "1 not counted" in told
    assert "CC-2024-0001, by ignore: we pad nothing" in told
    assert "the ignore of CC-2024-0002 has expired, pyproject.toml:9" in told


def test_missing_facts_are_named_with_how_to_state_them(demo: Report) -> None:
    finding = demo.findings[0]._replace(status="possible", missing=("gpus", "training.attention"))
    text = render(demo._replace(findings=(finding,)), "html", exit_reason="")
    assert "--assume gpus=VALUE\n--assume training.attention=VALUE" in copyable(text)
    assert "In what was given: 1 possible, none certain" in words(text)


def test_the_same_report_gives_the_same_bytes(demo: Report) -> None:
    assert render(demo, "html", exit_reason="x") == render(demo, "html", exit_reason="x")


def test_several_reports_go_on_one_page(demo: Report) -> None:
    """A notebook shows each as an element: no id twice, no rule for what lies outside."""
    element = pages.fragment(verdict.document(demo))
    page = Page("<div>" + element * 2 + "</div>")
    assert page.ids == [] and "script" not in page.seen
    style = re.findall(r"<style>(.*?)</style>", pages.fragment(verdict.document(demo)), re.DOTALL)[0].replace(
        "svg, svg", "svg svg"
    )
    selectors = [each.strip() for rule in re.findall(r"([^{}]+)\{", style) for each in rule.split(",")]
    assert all(".compatcheck" in each or each.startswith("@media") for each in selectors)


def test_a_log_is_told_with_its_curves_and_the_step_where_it_began(tmp_path: Path) -> None:
    log = str(ROOT / "tests" / "symptoms" / "logs" / "transformers-4.48-nan-from-step-16.log")
    done = run_command(
        sys.executable, "diagnose", log, "--snapshot", str(DEMO), "--format", "html", "-o", "log.html", cwd=tmp_path
    )
    assert done.returncode == 1, done.stderr
    text = (tmp_path / "log.html").read_text(encoding="utf-8")
    told = words(text)
    assert told.index("Loss 0.0 with grad_norm nan") < told.index("What the log shows") < told.index("Possible causes")
    assert "about step 16, line 165" in told and "You do not need to go back to torch 2.4.1" in told
    assert text.count('class="onset"') == text.count('class="frame"') == 3
    assert re.search(r'<svg class="curves" [^>]*aria-label="[^"]*the symptom began at step 16"', text)
    assert "torch>=2.5.1" in copyable(text)


REPORT = """Loss is 0.0 and grad_norm is nan from step 1.
torch 2.5.0, transformers 4.48.0, A100, bf16, sdpa, batch size 2, padding
export HF_TOKEN=hf_aBcDeFgHiJkLmNoPqRsTuVwX
pip install --index-url https://me:hunter2@pkgs.example.org/simple torch
<script>alert(1)</script>
"""


def page_of(tmp_path: Path, text: str) -> str:
    (tmp_path / "report.txt").write_text(text, encoding="utf-8")
    run_command(sys.executable, "diagnose", "report.txt", "--format", "html", "-o", "x.html", cwd=tmp_path)
    return (tmp_path / "x.html").read_text(encoding="utf-8")


def test_the_passages_that_were_read_are_marked_and_lead_to_explanations(tmp_path: Path) -> None:
    page = page_of(tmp_path, REPORT)
    assert re.search('<mark class="symptom-mark"[^>]*>Loss is 0.0 and grad_norm is nan', page)
    linked = re.search('<mark class="fact-mark"[^>]*>torch 2.5.0[^<]*</mark> <a href="#(explanation-1)">', page)
    assert linked and f'id="{linked[1]}"' in page


def test_a_page_shows_no_secret_of_the_text(tmp_path: Path) -> None:
    page = page_of(tmp_path, REPORT.replace("torch\n<", "torch==2.5.0\n<"))
    assert "hf_aBc" not in page and "hunter2" not in page and "<script>alert" not in page


def test_of_a_long_text_only_the_neighbourhood_is_shown(tmp_path: Path) -> None:
    filler = "".join(f"nothing to see in line {number}\n" for number in range(200))
    page = page_of(tmp_path, f"{filler}{REPORT}{filler}")
    assert "nothing to see in line 199" in page and "nothing to see in line 100" not in page
    assert "Loss is 0.0 and grad_norm is nan" in words(page)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ProbeResult]:
    """The page of a probe that ran, and its result."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("probe")
    asked = ("probe", "cross_entropy", "--device", "cpu", "--python", sys.executable, "--format")
    done = run_command(sys.executable, *asked, "html", "-o", "probe.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    shape = json.loads(run_command(sys.executable, *asked, "json", cwd=folder).stdout)["probes"][0]
    result = ProbeResult(shape["name"], shape["outcome"], shape["why"], shape["measured"], shape["seconds"])
    return (folder / "probe.html").read_text(encoding="utf-8"), result


def test_a_probe_is_told_with_every_error_against_its_bound(measured: tuple[str, ProbeResult]) -> None:
    text, result = measured
    told = words(text)
    rows = [row for row in result.measured["rows"] if not row.get("control") and "recorded" not in row]
    worst = max(row["theta"] for row in rows)
    assert "The probe passes" in told and result.why.partition(" (remembered")[0] in told and f"{worst:.2g}" in told
    for row in result.measured["rows"]:
        assert row["variant"] in told and row["dtype"] in told
    largest: dict[tuple[str, str], float] = {}
    for row in rows:
        kind = (row["variant"], row["dtype"])
        largest[kind] = max(largest.get(kind, 0.0), row["theta"])
    drawn = re.findall(r'<tr><th scope="row">([^<]+)</th><td>([^<]+)</td>.*?class="number">([^<]+)<', text)
    assert {(variant, dtype): error for variant, dtype, error in drawn} == {k: f"{v:.2g}" for k, v in largest.items()}
    nearest = max(rows, key=lambda row: row["theta"])
    assert nearest["case"] in told


def test_pins_are_told_with_what_was_measured_before_and_after(measured: tuple[str, ProbeResult]) -> None:
    after = measured[1]
    rows = [{**row, "theta": "inf" if not row.get("control") else row["theta"]} for row in after.measured["rows"]]
    before = after._replace(outcome="fail", why="3 elements are not finite", measured={"rows": rows})
    report = PinReport(
        (Moved("torch", "2.5.0", "2.5.1", ("CC-2024-0001",), 1), Moved("triton", "3.1.0", "3.1.1")),
        {"CC-2024-0001": "Attention breaks"},
        1,
        2,
        True,
        trials=(Trial("CC-2024-0001", "Attention breaks", before, after),),
    )
    text = render_document(moves.document(report), "html")
    told = words(text)
    assert "Verified pins" in told and "1 of these probes failed before the change" in told
    assert copyable(text) == ["torch==2.5.1"] and "Also changes (1)" in told
    assert told.index("not finite fails") < told.index(after.why)
    refuted = report._replace(trials=(Trial(None, "imports", None, before),), unverified="it fails")
    assert "A probe fails in the pinned set" in words(render_document(moves.document(refuted), "html"))


def test_the_bounds_are_those_of_the_probes() -> None:
    assert (_error_bars.BOUND, _error_bars.FAILS) == (_criterion.WATCH_THETA, _criterion.FAIL_THETA)
    assert (_error_bars.RATIO_BOUND, _error_bars.RATIO_FAILS) == (_criterion.WATCH_RHO, _criterion.FAIL_RHO)


def test_a_listing_of_probes_is_a_page(tmp_path: Path) -> None:
    done = run_command(sys.executable, "probe", "--list", "--format", "html", cwd=tmp_path)
    assert done.returncode == 0 and "attention_masked" in words(done.stdout)
    assert Page(done.stdout).loads == []


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("affected", "All nearby versions of torch and peft are also known bad"),
        ("possible", "All nearby versions of torch and peft may also be bad"),
        (None, "No nearby version of torch and peft has a known fault"),
    ],
)
def test_a_map_that_shows_no_difference_is_a_sentence(demo: Report, status: Status | None, said: str) -> None:
    cell: dict[str, Status] = {"CC-2024-0001": status} if status else {}
    names, entries = ("torch", "peft"), {"CC-2024-0001": ("Attention breaks", "divergence")}
    drawn = VersionMap(names, ("2.5.0", "2.4.1"), ("0.14.0",), ((cell, cell),), entries, ("2.5.0", "0.14.0"))
    text = render(demo._replace(maps=(drawn,)), "html", exit_reason="")
    assert said in words(text) and 'class="grid"' not in text


def test_a_map_says_in_words_what_its_signs_show(demo: Report) -> None:
    bad: dict[str, Status] = {"CC-2024-0001": "affected"}
    may: dict[str, Status] = {"CC-2024-0002": "possible"}
    entries = {"CC-2024-0001": ("Attention breaks", "divergence"), "CC-2024-0002": ("It hangs", "hang")}
    cells = ((may, bad), ({}, bad))
    drawn = VersionMap(
        ("torch", "peft"),
        ("2.5.1", "2.5.0"),
        ("0.14.0", "0.13.2"),
        cells,
        entries,
        ("2.5.0", "0.14.0"),
        ("2.5.1", "0.13.2"),
    )
    text = render(demo._replace(maps=(drawn,)), "html", exit_reason="")
    told = words(text)
    assert "you are here; known bad: CC-2024-0001" in told and "may be bad: CC-2024-0002" in told
    assert "go here" in told and "It hangs CC-2024-0002" in told
    assert (
        '<th scope="col" class="version">2.5.1</th>' in text and '<th scope="row" class="version">0.13.2</th>' in text
    )
