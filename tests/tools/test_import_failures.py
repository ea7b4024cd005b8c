"""The table of imports that fail, made from packages of a few lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from compatcheck.matrix.compile import read_toml
from tools.tables import import_failures

PROVIDER = {"1.0": "old = kept = 1\n", "1.1": "kept = 1\n", "2.0": "kept = new = 1\n", "2.1": "new = 1\n"}


def put(folder: Path, package: str, version: str, source: str, requires: str = "") -> None:
    place = folder / package / version
    info = place / f"{package}-{version}.dist-info"
    (place / package).mkdir(parents=True)
    info.mkdir()
    (place / package / "__init__.py").write_text(source)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n{requires}")
    (info / "RECORD").write_text(f"{package}/__init__.py,,\n")


def rows_of(tmp_path: Path, sources: dict[str, str]) -> list[list[str]]:
    for version, source in PROVIDER.items():
        put(tmp_path, "accelerate", version, source)
    for version, source in sources.items():
        put(tmp_path, "peft", version, source, "Requires-Dist: accelerate\n")
    import_failures.followed(tmp_path, ["peft"])
    table = tmp_path / "table.toml"
    table.write_text(import_failures.render(tmp_path, ["peft"]))
    return read_toml(table).get("peft", {}).get("accelerate", [])


def test_a_row_spans_the_releases_that_ask_and_those_that_lack(tmp_path: Path) -> None:
    taking_old = "from accelerate import old\nfrom accelerate import kept\n"
    assert rows_of(tmp_path, {"0.1": taking_old, "0.2": f"# the same\n{taking_old}", "0.3": "import accelerate\n"}) == [
        ["0.1", "0.2", ">=1.1,<=2.1", "accelerate.old", "import peft"]
    ]


def test_what_is_missing_first_is_named(tmp_path: Path) -> None:
    assert rows_of(tmp_path, {"0.1": "import accelerate\nx = accelerate.kept\ny = accelerate.new\n"}) == [
        ["0.1", "0.1", ">=1.0,<=1.1", "accelerate.new", "import peft"],
        ["0.1", "0.1", "==2.1", "accelerate.kept", "import peft"],
    ]


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    from accelerate import old\nexcept ImportError:\n    old = None\n",
        "import accelerate\nif hasattr(accelerate, 'old'):\n    from accelerate import old\n",
        "def later():\n    from accelerate import old\n",
        "import tensorboard\nif tensorboard.on:\n    from accelerate import old\n",
        "import importlib.util\nif importlib.util.find_spec('tensorboard') is None:\n    from accelerate import old\n",
        "import importlib.util\nif importlib.util.find_spec('tensorboard'):\n    from accelerate import old\n",
    ],
)
def test_what_a_guard_spares_or_something_else_decides_has_no_row(tmp_path: Path, source: str) -> None:
    assert rows_of(tmp_path, {"0.1": source}) == []


@pytest.mark.parametrize(
    ("guard", "between"), [(">= version.parse('2.1')", "==2.1"), ("< version.parse('2.0')", "==1.1")]
)
def test_a_guard_on_the_version_bounds_the_row(tmp_path: Path, guard: str, between: str) -> None:
    source = (
        "import importlib.metadata\nfrom packaging import version\n"
        f"if version.parse(importlib.metadata.version('accelerate')) {guard}:\n"
        "    from accelerate import old\n"
    )
    assert rows_of(tmp_path, {"0.1": source}) == [["0.1", "0.1", between, "accelerate.old", "import peft"]]


def test_a_third_package_that_is_not_demanded_is_not_there_where_nothing_else_is(tmp_path: Path) -> None:
    guarded = "try:\n    import tensorboard\nexcept ImportError:\n    from accelerate import old\n"
    assert rows_of(tmp_path, {"0.1": guarded}) == []
    alone = import_failures.Pair(tmp_path, "peft", "accelerate").failure("0.1", "2.1")
    assert alone is not None
    assert alone.demand == import_failures.Demand("accelerate", "old")


def test_a_release_between_that_does_not_fail_parts_two_rows(tmp_path: Path) -> None:
    taking_old = "from accelerate import old\n"
    assert rows_of(tmp_path, {"0.1": taking_old, "0.2": "import accelerate\n", "0.3": taking_old}) == [
        ["0.1", "0.1", ">=1.1,<=2.1", "accelerate.old", "import peft"],
        ["0.3", "0.3", ">=1.1,<=2.1", "accelerate.old", "import peft"],
    ]


def test_a_row_that_an_entry_tells_names_it() -> None:
    failure = import_failures.Failure(import_failures.Demand("accelerate", "old"), "import peft")
    cell = import_failures.Cell("0.1", "0.3", "1.0", "3.0", failure)
    told = [import_failures.Told("CC-2026-9999", {"peft": "<0.3", "accelerate": ">=2.0"}, partly=False)]
    releases = {"peft": ["0.1", "0.2", "0.3"], "accelerate": ["1.0", "2.0", "3.0"]}
    assert [(*each[:4], each.told) for each in import_failures._marked([cell], told, releases)] == [
        ("0.1", "0.2", "1.0", "1.0", ""),
        ("0.1", "0.2", "2.0", "3.0", "CC-2026-9999"),
        ("0.3", "0.3", "1.0", "3.0", ""),
    ]


def test_the_rows_of_packages_that_are_not_followed_stay(tmp_path: Path) -> None:
    rows_of(tmp_path, {"0.1": "from accelerate import old\n"})
    row = ["0.5", "0.6", "==2.1", "accelerate.old", "import trl"]
    before = {"releases": {"trl": "0.5 0.6", "accelerate": "1.0 1.1 2.0 2.1"}, "trl": {"accelerate": [row]}}
    table = tmp_path / "table.toml"
    table.write_text(import_failures.render(tmp_path, ["peft"], before))
    found = read_toml(table)
    assert found["trl"] == before["trl"]
    assert set(found["peft"]) == {"accelerate"}
    assert found["releases"] == {**before["releases"], "peft": "0.1"}


def test_rows_do_not_stay_beside_releases_that_they_were_not_made_for(tmp_path: Path) -> None:
    rows_of(tmp_path, {"0.1": "import accelerate\n"})
    row = ["0.5", "0.6", "==2.0", "accelerate.old", "import trl"]
    before = {"releases": {"trl": "0.5 0.6", "accelerate": "1.0 1.1 2.0"}, "trl": {"accelerate": [row]}}
    with pytest.raises(SystemExit, match=r"lay out trl: .* accelerate 2\.1"):
        import_failures.render(tmp_path, ["peft"], before)
