"""An entry tried in two environments that are really built, of wheels of a few hundred bytes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.errors import InputError
from compatcheck.results.findings import ProbeResult
from tools.matrix.reproduce import judge, record, record_name, reproduce, require

from ..advice.tiny_wheels import write_wheel

ENTRY: dict[str, Any] = {
    "id": "CC-2099-0001",
    "title": "helper 1.0 cannot be imported",
    "packages": ["helper"],
    "probe": {"name": "package_imports", "request": {"statements": ["import helper"]}},
    "reproduce": {"python": sys.executable, "bad": ["helper==1.0", "other"], "good": ["helper==1.1", "other"]},
}


@pytest.fixture
def links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels as the only source of uv, with a cache of its own."""
    write_wheel(tmp_path / "links", "helper", "1.0", code="from other import missing\n")
    write_wheel(tmp_path / "links", "helper", "1.1")
    write_wheel(tmp_path / "links", "other", "2.0")
    (tmp_path / "uv.toml").write_text("no-index = true\nfind-links = ['links']\n", encoding="utf-8")
    for name in [name for name in os.environ if name.startswith("UV_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "links"


@pytest.mark.usefixtures("links")
def test_an_entry_is_reproduced_where_its_probe_fails_in_bad_and_passes_in_good() -> None:
    told: list[str] = []
    shape = record(reproduce(ENTRY, on_line=told.append))
    assert (shape["verdict"], shape["entry"]) == ("reproduced", ENTRY["id"])
    assert shape["bad"]["distributions"] == {"helper": "1.0", "other": "2.0"}
    assert shape["good"]["distributions"] == {"helper": "1.1", "other": "2.0"}
    assert (shape["bad"]["probe"]["outcome"], shape["good"]["probe"]["outcome"]) == ("fail", "pass")
    assert "cannot import name 'missing'" in shape["why"]
    assert shape["platform"]["python"] == "{}.{}.{}".format(*sys.version_info[:3])
    assert [line for line in told if line.startswith("CC-")] == [
        "CC-2099-0001, the bad environment",
        "CC-2099-0001, the good environment",
    ]


@pytest.mark.usefixtures("links")
def test_a_record_is_json_without_folders_of_this_machine() -> None:
    shape = record(reproduce(ENTRY))
    text = json.dumps(shape, allow_nan=False)
    assert "compatcheck-environment" not in text and os.path.expanduser("~") + os.sep not in text
    assert "child" not in shape["bad"]["probe"]["measured"]
    assert record_name(shape) == f"{shape['date']}-reproduce-cc-2099-0001.json"


@pytest.mark.usefixtures("links")
def test_an_environment_that_cannot_be_built_leaves_the_entry_untried() -> None:
    recipe = {**ENTRY["reproduce"], "good": ["helper==9.9"]}
    shape = record(reproduce({**ENTRY, "reproduce": recipe}))
    assert shape["verdict"] == "not tried" and shape["good"] is None
    assert shape["bad"]["probe"]["outcome"] == "fail"
    assert (
        shape["why"].startswith("the good environment: resolving the requirements: ") and "helper==9.9" in shape["why"]
    )


def test_a_probe_of_a_later_version_leaves_the_entry_untried() -> None:
    shape = record(reproduce({**ENTRY, "probe": {"name": "of_tomorrow"}}))
    assert (shape["verdict"], shape["bad"]) == ("not tried", None)
    assert "no probe of_tomorrow" in shape["why"]


@pytest.mark.parametrize(
    "bad, good, verdict, why",
    [
        ("fail", "pass", "reproduced", "seen in bad"),
        ("pass", "pass", "not reproduced", "no failure in the bad environment: pass, seen in bad"),
        ("watch", "pass", "not reproduced", "no failure in the bad environment: watch, seen in bad"),
        ("fail", "fail", "not reproduced", "no pass in the good environment: fail, seen in good"),
        ("fail", "watch", "not reproduced", "no pass in the good environment: watch, seen in good"),
        ("skip", "pass", "not tried", "the probe was undecided in the bad environment: skip, seen in bad"),
        ("crash", "fail", "not tried", "the probe was undecided in the bad environment: crash, seen in bad"),
        ("fail", "timeout", "not tried", "the probe was undecided in the good environment: timeout, seen in good"),
    ],
)
def test_nothing_less_counts(bad: Any, good: Any, verdict: str, why: str) -> None:
    assert judge(ProbeResult("p", bad, "seen in bad"), ProbeResult("p", good, "seen in good")) == (verdict, why)


def test_an_entry_without_environments_is_refused() -> None:
    bare = {key: value for key, value in ENTRY.items() if key != "reproduce"}
    with pytest.raises(InputError, match=r"CC-2099-0001: it has no \[reproduce\] table"):
        require([ENTRY, bare])
    with pytest.raises(InputError, match="it is withdrawn"):
        require([{"id": "CC-2099-0001", "title": "t", "withdrawn": {"on": "2099-01-01", "reason": "never so"}}])


@pytest.mark.slow
@pytest.mark.network
def test_an_entry_of_the_matrix_is_reproduced_on_real_releases() -> None:
    done = reproduce(matrix.find_entry(matrix.load(), "CC-2026-1321"))
    assert done.verdict == "reproduced", done.why
    assert done.bad and done.good and done.good.distributions["hydra-core"] == "1.3.0"
