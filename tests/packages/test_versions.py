"""The total order on which known-bad ranges are stated."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from compatcheck.packages.versions import (
    contains,
    is_vendor_build,
    number_in_range,
    parse_range,
    parse_version,
    sort_key,
)

numbers = st.integers(0, 30)
versions = st.builds(
    lambda epoch, release, pre, post, dev: Version(
        (f"{epoch}!" if epoch else "") + ".".join(map(str, release)) + pre + post + dev
    ),
    st.sampled_from([0, 0, 0, 1]),
    st.lists(numbers, min_size=1, max_size=4),
    st.sampled_from(["", "", "a0", "a3", "b1", "rc1", "rc2"]),
    st.sampled_from(["", "", ".post0", ".post1", ".post12"]),
    st.sampled_from(["", "", ".dev0", ".dev20240601"]),
)


@given(versions, versions)
def test_sort_keys_order_as_versions_do(one: Version, other: Version) -> None:
    assert (sort_key(one) < sort_key(other)) == (one < other)
    assert (sort_key(one) == sort_key(other)) == (one == other)
    assert json.loads(json.dumps(sort_key(one))) == sort_key(one)


@given(versions, versions, versions)
def test_another_bound_never_admits_more(version: Version, low: Version, high: Version) -> None:
    both = contains(parse_range(f">={low},<{high}"), version)
    assert both == (contains(parse_range(f">={low}"), version) and contains(parse_range(f"<{high}"), version))


@given(versions)
def test_a_local_label_never_changes_the_verdict(version: Version) -> None:
    assert parse_version(f"{version}+cu124") == version


@pytest.mark.parametrize(
    ("text", "version", "inside"),
    [
        ("<=2.7.4", "2.7.4.post1", False),
        (">2.6", "2.6.0.post1", True),
        (">=4.36,<4.37", "4.37.0.dev0", True),
        (">=2.4,<2.5", "2.5.0a0+872d972e41.nv24.08", True),
        ("==2.6.0", "2.6.0+cu124", True),
        (">=2.5.0,<2.5.1", "2.5.1rc1", True),
    ],
)
def test_where_specifiers_trap(text: str, version: str, inside: bool) -> None:
    parsed = parse_version(version)
    assert parsed is not None
    assert contains(parse_range(text), parsed) is inside


@pytest.mark.parametrize(
    ("version", "vendor"),
    [
        ("2.5.0a0+872d972e41.nv24.08", True),
        ("2.6.0a0+ecf3bae40a", True),
        ("2.3.0+nv24.2", True),
        ("2.5.0+cu118", False),
        ("2.5.0+cpu.cxx11.abi", False),
        ("2.5.0.dev20240601+cu121", False),
        ("2.4.0+rocm6.1", False),
        ("2.5.0", False),
    ],
)
def test_vendor_builds_are_recognised(version: str, vendor: bool) -> None:
    assert is_vendor_build(version) is vendor


@pytest.mark.parametrize("text", [">=2.5.0;<3", "~=2.5", "!=2.5", ">=", "2.5.0", ">=2.5.0,,<3"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_range(text)


def test_numbers_are_not_versions() -> None:
    assert number_in_range(">=0.9", 0.95)
    assert not number_in_range(">=0.9", 0.10)
