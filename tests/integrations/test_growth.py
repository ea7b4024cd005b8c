"""The growth rule on series whose nature is known: leaks are found, and nothing healthy is called one."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compatcheck.integrations._memory_readings import CUDA_FLOOR, PROCESS_FLOOR, GrowthWatch
from compatcheck.symptoms.growth import Floor, grows, slope, trend

BASE = 50e6
MIB = float(1 << 20)
Series = Callable[[int, random.Random], float]


def alarmed(series: Series, seed: int, floor: Floor = CUDA_FLOOR, readings: int = 200) -> bool:
    watch, dice = GrowthWatch(20, 4, floor), random.Random(seed)
    return any(watch.feed(series(step, dice)) is not None for step in range(readings))


HEALTHY: dict[str, Series] = {
    "flat": lambda step, dice: BASE,
    "noisy": lambda step, dice: BASE + dice.gauss(0, 2e6),
    "alternating": lambda step, dice: BASE + 8e6 * (step % 2),
    "period of five": lambda step, dice: BASE + 3e6 * (step % 5),
    "decaying": lambda step, dice: BASE + 40e6 * math.exp(-step / 10),
    "late settling": lambda step, dice: BASE + 40e6 * (1 - math.exp(-step / 12)) + dice.gauss(0, 1e4),
    "one step": lambda step, dice: BASE + 30e6 * (step > 30) + dice.gauss(0, 1e4),
    "two steps": lambda step, dice: BASE + 30e6 * (step > 17) + 30e6 * (step > 37),
    "a jump every epoch": lambda step, dice: BASE + 5e6 * (step // 100) + dice.gauss(0, 1e5),
    "random walk that returns": lambda step, dice: BASE + 5e6 * math.sin(step / 9) + dice.gauss(0, 1e5),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_no_healthy_series_is_called_a_leak(name: str) -> None:
    assert not [seed for seed in range(40) if alarmed(HEALTHY[name], seed)]


@pytest.mark.parametrize("per_step", [64 << 10, 1 << 20, 16 << 20])
def test_a_leak_is_found_in_every_run(per_step: int) -> None:
    def leaking(step: int, dice: random.Random) -> float:
        return BASE + per_step * step + dice.gauss(0, per_step / 2)

    assert all(alarmed(leaking, seed) for seed in range(40))


def test_a_leak_shows_through_a_transient_that_still_decays() -> None:
    assert all(alarmed(lambda step, dice: BASE + MIB * step + 20e6 * math.exp(-step / 8), seed) for seed in range(5))


def test_the_slope_found_is_the_leak_planted() -> None:
    watch = GrowthWatch(20, 4, CUDA_FLOOR)
    found = [growth for step in range(60) if (growth := watch.feed(BASE + 65536 * step + 512 * (step % 3)))]
    assert found[0].slope == pytest.approx(65536, rel=0.01)


def test_growth_of_a_process_below_its_floor_is_no_leak() -> None:
    assert not alarmed(lambda step, dice: 4e9 + 0.5 * MIB * step, 0, PROCESS_FLOOR, 60)
    assert alarmed(lambda step, dice: 4e8 + 2 * MIB * step, 0, PROCESS_FLOOR, 60)


def test_a_window_that_rests_in_its_middle_is_no_growth() -> None:
    rising = [BASE + MIB * step for step in range(21)]
    resting = [*rising[:7], *[rising[6]] * 7, *[rising[6] + MIB * step for step in range(1, 8)]]
    assert grows(rising, CUDA_FLOOR) and not grows(resting, CUDA_FLOOR)


def test_a_share_of_a_large_total_is_too_small_to_count() -> None:
    rising = [4e9 + 1e5 * step for step in range(20)]
    assert not grows(rising, CUDA_FLOOR) and grows([reading - 3.9e9 for reading in rising], CUDA_FLOOR)


def test_the_trend_is_mann_kendall_s_with_its_correction_for_ties() -> None:
    assert trend([1, 1, 2, 2, 3, 3]) == pytest.approx(11 / math.sqrt((6 * 5 * 17 - 3 * 2 * 1 * 9) / 18))
    assert trend([1, 2, 3, 4]) == pytest.approx(5 / math.sqrt(4 * 3 * 13 / 18))


PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
READINGS = st.lists(st.integers(0, 1 << 40), min_size=9, max_size=24)


@PATIENT
@given(READINGS)
def test_a_series_and_its_mirror_are_never_both_growing(readings: list[int]) -> None:
    assert not (grows(readings, CUDA_FLOOR) and grows(readings[::-1], CUDA_FLOOR))


@PATIENT
@given(READINGS, st.integers(0, 1 << 30))
def test_trend_and_slope_do_not_depend_on_where_the_series_stands(readings: list[int], offset: int) -> None:
    moved = [reading + offset for reading in readings]
    assert trend(moved) == trend(readings) and slope(moved) == pytest.approx(slope(readings), rel=1e-6, abs=1e-3)


@PATIENT
@given(READINGS)
def test_turning_a_series_round_turns_trend_and_slope_round(readings: list[int]) -> None:
    assert trend(readings[::-1]) == -trend(readings) and slope(readings[::-1]) == -slope(readings)


@PATIENT
@given(st.integers(0, 1 << 40), st.integers(9, 24))
def test_a_constant_series_has_neither_trend_nor_slope(value: int, count: int) -> None:
    assert (trend([value] * count), slope([value] * count)) == (0, 0) and not grows([value] * count, CUDA_FLOOR)
