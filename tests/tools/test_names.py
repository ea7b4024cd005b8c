"""Which releases are said to have a name: in runs, and only where the text of the others tells that they do not."""

from __future__ import annotations

from packaging.version import Version

from tools.tables._names import Names, rows


def history(*releases: dict[str, str]) -> Names:
    """Releases 1.0, 2.0 and so on of a package whose modules bind the names given."""
    found = Names()
    for number, modules in enumerate(releases, 1):
        kept = {module: dict.fromkeys(text.split(), 2) for module, text in modules.items()}
        found.add(Version(f"{number}.0"), kept)
    return found


def test_each_run_of_releases_is_told_with_the_first_release_that_is_without() -> None:
    table = rows(history({"pkg": "a b"}, {"pkg": "a c"}, {"pkg": "a"}, {"pkg": "a b c"}))
    assert table == {"pkg": {"<2.0 >=4.0": "b", ">=2.0,<3.0 >=4.0": "c"}}


def test_a_module_that_comes_and_goes_has_a_row_of_its_own() -> None:
    whole = {"pkg": "a", "pkg.old": "x", "pkg.old.deep": "y"}
    assert rows(history(whole, {"pkg": "a"})) == {"pkg.old": {"<2.0": "."}}


def test_of_a_release_in_which_a_module_may_hold_anything_no_name_is_said_to_be_missing() -> None:
    assert rows(history({"pkg": "a"}, {"pkg": "*"}, {"pkg": "a"})) == {}
    assert rows(history({"pkg": "a"}, {"pkg": "*"}, {"pkg": "b"})) == {
        "pkg": {"<2.0 ?>=2.0,<3.0": "a", ">=3.0 ?>=2.0,<3.0": "b"}
    }


def test_of_a_folder_of_hundreds_only_what_went_is_told() -> None:
    many = {f"pkg.models.m{number}": "m" for number in range(80)}
    first = {"pkg": "a", "pkg.models": "m", **many, "pkg.models.x": "m", "pkg.models.x.modeling": "Old Same"}
    second = {**first, "pkg.models.x.modeling": "New Same"}
    assert rows(history(first, second), near=9) == {"pkg.models.x.modeling": {"<2.0": "Old"}}


def test_name_that_came_to_a_deep_module_is_told_of_a_core_package() -> None:
    first = {"pkg": "a", "pkg.models": "m", "pkg.models.x": "m", "pkg.models.x.layers": "Same"}
    second = {**first, "pkg.models.x.layers": "New Same _private"}
    assert rows(history(first, second)) == {}
    assert rows(history(first, second), near=9) == {"pkg.models.x.layers": {">=2.0": "New _private"}}
