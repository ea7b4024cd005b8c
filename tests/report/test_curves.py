"""Curves as a terminal and as an SVG show them."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from compatcheck.report import curves
from compatcheck.results.logs import Curve

NAN = math.nan
LOSS = Curve("loss", "", tuple((float(n), 2.0 - n / 50 if n < 60 else 0.0) for n in range(1, 101)), 60.0)
NORM = Curve("grad_norm", "", tuple((float(n), 0.5 + n % 3 if n < 60 else NAN) for n in range(1, 101)), 60.0)
MEMORY = Curve("memory", "MiB", tuple((float(n), 9000.0 + n) for n in range(1, 101)), 60.0)
EVAL = Curve("eval_loss", "", ((25.0, 1.5), (50.0, 1.2), (75.0, NAN)), 60.0)
ALL = (LOSS, NORM, EVAL, MEMORY)
SPACE = "{http://www.w3.org/2000/svg}"
any_curve = st.builds(
    lambda name, values, onset: Curve(name, "MiB", tuple((float(n), v) for n, v in enumerate(values)), onset),
    st.text(max_size=10),
    st.lists(st.floats(width=32) | st.just(NAN), max_size=80),
    st.none() | st.floats(-5, 100),
)


def test_a_terminal_shows_each_curve_on_one_scale_of_steps_with_the_onset_below() -> None:
    rows = curves.terminal(ALL).split("\n")
    loss, norm, evaluation, memory, onset, axis = rows
    start = 13
    assert onset.index("^") == norm.index("×")
    assert loss[start] == "█" and loss[onset.index("^") + 1] == "▁"
    assert memory[start] == "▁" and "9001 to 9100 MiB" in memory
    assert "41 ×" in norm and "began at 60" in onset
    assert evaluation[start : onset.index("^")].count(" ") > 5
    assert axis.split() == ["step", "1", "100"]


def test_a_curve_that_was_never_finite_says_so_and_no_curve_is_nothing() -> None:
    assert "never finite" in curves.terminal([Curve("loss", "", ((1.0, NAN), (2.0, NAN)))])
    assert curves.terminal([]) == "" and curves.terminal([Curve("loss", "", ())]) == ""


def test_the_picture_stands_alone_and_speaks_to_those_who_hear_it() -> None:
    text = curves.svg(ALL, title="loss 0.0 <with> grad_norm nan")
    root = ElementTree.fromstring(text)
    assert root.get("role") == "img"
    named = (root.get("aria-labelledby") or "").split()
    title, description = root.find(f"{SPACE}title"), root.find(f"{SPACE}desc")
    assert title is not None and description is not None
    assert named == [title.get("id"), description.get("id")]
    assert title.text == "loss 0.0 <with> grad_norm nan"
    assert "the symptom began at step 60" in (description.text or "")
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|<script|<image|href", text)


def test_the_onset_and_what_is_not_finite_are_drawn_where_they_are() -> None:
    root = ElementTree.fromstring(curves.svg([NORM]))
    (onset,) = [line for line in root.iter(f"{SPACE}line") if line.get("class") == "onset"]
    gone = [float(line.get("x1") or 0) for line in root.iter(f"{SPACE}line") if line.get("class") == "gone"]
    (drawn,) = root.iter(f"{SPACE}polyline")
    points = [tuple(map(float, pair.split(","))) for pair in (drawn.get("points") or "").split()]
    assert len(points) == 59 and len(gone) == 41
    assert min(gone) == float(onset.get("x1") or 0) > max(x for x, _ in points)


def test_one_spike_does_not_flatten_the_rest() -> None:
    values = [1.0 + (n % 7) / 10 for n in range(200)]
    values[100] = 1e6
    root = ElementTree.fromstring(curves.svg([Curve("loss", "", tuple((float(n), v) for n, v in enumerate(values)))]))
    (drawn,) = root.iter(f"{SPACE}polyline")
    heights = {float(pair.split(",")[1]) for pair in (drawn.get("points") or "").split()}
    assert len(heights) >= 7


@given(st.lists(any_curve, max_size=4), st.integers(20, 200))
def test_any_curve_can_be_drawn(drawn: list[Curve], width: int) -> None:
    ElementTree.fromstring(curves.svg(drawn, title="x"))
    assert all(len(row) <= width + 90 for row in curves.terminal(drawn, width).split("\n"))
