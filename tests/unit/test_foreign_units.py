"""Units, and which direction is better."""

from __future__ import annotations

import pytest

from kdyno.foreign import units


@pytest.mark.parametrize(
    ("source", "target", "factor"),
    [
        ("us", "ns", 1e3),
        ("µs", "ms", 1e-3),
        ("microseconds", "usec", 1.0),
        ("Seconds", "ms", 1e3),
        ("KB/sec", "MB/s", 1e-3),
        ("MiB/s", "MB/s", 1.048576),
        ("furlongs", "furlongs", 1.0),
        ("ns", "MB/s", None),
        ("furlongs", "m", None),
        ("", "ns", None),
    ],
)
def test_units_are_converted_where_they_measure_the_same(source: str, target: str, factor: float | None) -> None:
    assert units.factor(source, target) == (None if factor is None else pytest.approx(factor))


@pytest.mark.parametrize(
    ("unit", "benchmark", "way"),
    [
        ("ns", "anything", "lower"),
        ("instr", "lat_pipe", "lower"),
        ("cycles", "", "lower"),
        ("B/instr", "bw_pipe", "higher"),
        ("MB/s", "", "higher"),
        ("bogo ops/s", "pipe", "higher"),
        ("requests per second", "", "higher"),
        ("MFLOPS", "", "higher"),
        ("", "throughput", "higher"),
        ("", "page-faults", "lower"),
    ],
)
def test_the_direction_follows_from_the_unit_or_else_the_name(unit: str, benchmark: str, way: str) -> None:
    assert units.direction(unit, benchmark) == way


def test_where_nothing_tells_the_direction_none_is_made_up() -> None:
    assert units.direction("", "thing") is None


@pytest.mark.parametrize(
    ("column", "unit"),
    [("time_ms", "ms"), ("time (ms)", "ms"), ("Latency [usec]", "us"), ("time", ""), ("value", ""), ("tests_s", "")],
)
def test_the_unit_in_a_column_s_name_is_found(column: str, unit: str) -> None:
    assert units.of_column(column) == unit
