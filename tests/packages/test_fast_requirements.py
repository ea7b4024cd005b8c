from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.requirements import InvalidRequirement, Requirement

from compatcheck.environment import Target
from compatcheck.installed import declared
from compatcheck.packages.fast_requirements import acquits, parse

numbers = st.sampled_from(["0", "1", "1.0", "1.0.0", "1.0.1", "1.1", "1.1.0.0", "1.1.2", "2", "2.0", "2.1.0", "10.1"])
stages = st.sampled_from(["", "", "", "", "a0", "b1", "rc1", ".post0", ".post1", ".dev0", "rc1.post1.dev2"])
locals_ = st.sampled_from(["", "", "+cu118", "+1", "+872d97.nv24.8"])
versions = st.builds(str.__add__, st.builds(str.__add__, numbers, stages), locals_)
operands = st.one_of(st.builds(str.__add__, numbers, stages), numbers.map(lambda text: f"{text}.*"), versions)
operators = st.sampled_from([">=", "<=", "<", ">", "==", "!=", "~=", "==="])
clauses = st.lists(st.builds(str.__add__, operators, operands), max_size=3).map(",".join)

strings = st.sampled_from(["linux", "win32", "Linux", "Windows", "nt", "posix", "x86_64", "cpython", "PyPy"])
pythons = st.sampled_from(["2.7", "3", "3.8", "3.11", "3.11.7", "3.12", "3.13", "3.13.0rc1", "4"])
quoted = st.sampled_from(["'{}'", '"{}"'])
word_names = st.sampled_from(
    [
        "sys_platform",
        "platform_system",
        "os_name",
        "platform_machine",
        "implementation_name",
        "platform_python_implementation",
    ]
)
word_comparisons = st.builds(
    lambda name, operator, quote, value: f"{name} {operator} {quote.format(value)}",
    word_names,
    st.sampled_from(["==", "!=", "in", "not in"]),
    quoted,
    strings,
)
version_comparisons = st.builds(
    lambda name, operator, quote, value: f"{name} {operator} {quote.format(value)}",
    st.sampled_from(["python_version", "python_full_version"]),
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
    quoted,
    pythons,
)
extras = st.sampled_from(["extra == 'dev'", 'extra == "tensor-or"', "extra == ''", "extra != 'dev'", "'dev' == extra"])
comparisons = st.one_of(word_comparisons, version_comparisons, extras)
joined = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.builds("{} and {}".format, inner, inner),
        st.builds("{} or {}".format, inner, inner),
        inner.map("({})".format),
    ),
    max_leaves=4,
)
targets = st.sampled_from(["3.11.7", "3.13.0rc1", "3.8.0"])
names = st.sampled_from(["torch", "Torch", "torch[cu]", "absent"])
plain = st.builds(str.__add__, names, clauses)
lines = st.one_of(
    plain,
    st.builds("{}; {}".format, plain, joined),
    st.builds("{} ({}) ; {}".format, names, clauses, joined),
    st.builds("torch @ https://example.org/a;b ; {}".format, joined),
)
TARGET = Target("python", "3.11.7", "/", (), "")


def accepted_by_packaging(requirement: Requirement, version: str, markers: dict[str, str]) -> bool:
    if requirement.marker is not None and not requirement.marker.evaluate(markers):
        return True
    return requirement.name.lower() == "torch" and requirement.specifier.contains(version, prereleases=True)


@settings(max_examples=3000, deadline=None)
@given(lines, versions, targets)
def test_what_the_filter_acquits_packaging_accepts(line: str, version: str, python: str) -> None:
    try:
        requirement = Requirement(line)
    except InvalidRequirement:
        return
    markers = declared.marker_environment(TARGET._replace(version=python))
    simple = parse(line)
    skipped = not declared.requires_dist(f"Requires-Dist: {line}\n".encode())
    if skipped or (simple is not None and acquits(simple, {"torch": version}, markers)):
        assert accepted_by_packaging(requirement, version, dict(markers))


@settings(max_examples=1500, deadline=None)
@given(lines, targets)
def test_what_is_called_missing_without_packaging_is_missing(line: str, python: str) -> None:
    try:
        requirement = Requirement(line)
    except InvalidRequirement:
        return
    markers = declared.marker_environment(TARGET._replace(version=python))
    simple = parse(line)
    if simple is not None and declared._surely_applies(simple, markers):
        assert requirement.marker is None or requirement.marker.evaluate(dict(markers))


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("torch", "2.5.0"),
        ("torch>=2.0.0", "2.13.0+cpu"),
        ("torch<3,>=2.4", "2.5.0a0+872d972e41.nv24.08"),
        ("torch~=2.4", "2.5.1"),
        ("torch==2.5.*", "2.5.1+cu124"),
        ("torch (>=2.2.0)", "2.5.0"),
        ("torch!=2.0.1,>=1.13", "2.0.0.post4"),
        ("absent; python_version < '3.8'", "1"),
        ('absent; platform_system == "Windows" and python_version >= "3.8"', "1"),
        ('absent; sys_platform == "win32" or python_version < "3"', "1"),
        ('absent; python_version in "2.6 2.7"', "1"),
    ],
)
def test_the_common_forms_need_no_packaging(line: str, version: str) -> None:
    simple = parse(line)
    assert simple is not None
    assert acquits(simple, {"torch": version}, declared.marker_environment(TARGET))


@pytest.mark.parametrize(
    "line",
    [
        "a; extra == 'dev'",
        'a>=1; python_version < "3.11" and extra == "dev"',
        "a; (os_name == 'nt' or os_name == 'java') and extra == 'x'",
        'a[b]>=1,<2 ; extra=="dev"',
    ],
)
def test_lines_of_an_extra_are_skipped(line: str) -> None:
    assert declared.requires_dist(f"Requires-Dist: {line}\n".encode()) == []


@pytest.mark.parametrize("line", ["a; extra == 'x' or os_name == 'posix'", "a; extra == ''", "a"])
def test_lines_that_may_apply_without_an_extra_are_kept(line: str) -> None:
    assert declared.requires_dist(f"Requires-Dist: {line}\n".encode()) == [line]
