"""Units, and which direction is better."""

from __future__ import annotations

import pytest

from kdyno.measure.readers import units


@pytest.mark.parametrize(
    ("source", "target", "factor"),
    [
        ("us", "ns", 1e3),
        ("µs", "ms", 1e-3),
        ("microseconds", "usec", 1.0),
        ("Seconds", "ms", 1e3),
        ("KB/sec", "MB/s", 1e-3),
        ("Gb/s", "GB/s", 0.125),
        ("Mbit/s", "MB/s", 0.125),
        ("Mbps", "Mb/s", 1.0),
        ("MBps", "kbytes/sec", 1e3),
        ("KB", "B", 1000.0),
        ("KiB", "B", 1024.0),
        ("mbit", "Mb", 1.0),
        ("mb/s", "MB/s", None),  # bits or bytes?
        ("mb/s", "mb/s", 1.0),
        ("MB", "MB/s", None),
        ("tps", "transactions per second", 1.0),
        ("kIOPS", "io/s", 1e3),
        ("GFlops", "MFLOP/s", 1e3),
        ("MHz", "kHz", 1e3),
        ("ns/op", "us per operation", 1e-3),
        ("ns/page table", "us/page table", 1e-3),
        ("ns/page table", "us/pipe", None),
        ("ops/s", "requests/s", None),
        ("MSEC", "s", 1e-3),
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
        ("", "schbench avg rps", "higher"),
        ("", "pktgen pps", "higher"),
        ("tps", "", "higher"),
        ("kqps", "", "higher"),
        ("mbps", "", "higher"),
        ("jobs/min", "", "higher"),
        ("ns/op", "", "lower"),
        ("cycles/byte", "", "lower"),
        ("ns/page table", "", "lower"),
        ("Joules", "", "lower"),
        ("B/cycle", "", "higher"),
        ("", "instructions:u", "lower"),
    ],
)
def test_the_direction_follows_from_the_unit_or_else_the_name(unit: str, benchmark: str, way: str) -> None:
    assert units.direction(unit, benchmark) == way


@pytest.mark.parametrize(
    ("unit", "benchmark"),
    [
        *(("", name) for name in ("thing", "score", "size", "page-faults", "latency under throughput")),
        *((unit, "") for unit in ("misses/s", "faults/s", "interrupts/s", "errors/s", "pages/s", "frobs/s")),
        *((unit, "") for unit in ("MB", "ops", "Hz", "%", "W", "instr/cycle", "cycles/instr", "MIPS", "s/s")),
    ],
)
def test_where_the_direction_is_not_certain_none_is_made_up(unit: str, benchmark: str) -> None:
    assert units.direction(unit, benchmark) is None


@pytest.mark.parametrize(
    ("unit", "benchmark", "what"),
    [
        *((unit, "", "speed") for unit in ("ns", "cycles", "ops/s", "MB/s", "B/cycle", "cycles/byte", "ns/op", "MHz")),
        *((unit, "", "count") for unit in ("instr", "B/instr", "KiB", "bytes", "misses", "page-faults", "%", "J")),
        ("", "context-switches", "count"),
        ("", "cache-misses:u", "count"),
        ("", "instructions", "count"),
        ("", "page fault latency", "speed"),
        ("us", "page faults", "speed"),
        ("", "score", "speed"),
    ],
)
def test_numbers_of_things_are_told_from_times_and_rates(unit: str, benchmark: str, what: str) -> None:
    assert units.quantity(unit, benchmark) == what


@pytest.mark.parametrize(
    "text",
    [
        *(
            "__import__('os')",
            "ns**9**9**9",
            "9" * 50,
            "s" * 100_000,
            "second.__class__",
            "ns/op/op",
            "/s",
            "s/",
            "n s",
        ),
        *("{0}", "(ns)", "1e9 s", "ns\x00", "s per", "[time]", "op * 2", "-1 s"),
    ],
)
def test_what_is_no_unit_stays_the_text_that_it_is(text: str) -> None:
    assert units.find(text) is None
    assert units.format_unit(text) == text
    assert units.factor(text, "ns") is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *(("KB/sec", "KB/s"), ("kbytes/s", "kB/s"), ("Mbps", "Mb/s"), ("bogo-ops per second", "bogo ops/s")),
        *(("request/sec", "requests/s"), ("us per iteration", "us/iteration"), ("insns", "instr"), ("queries/s",) * 2),
    ],
)
def test_a_unit_is_shown_in_one_way(text: str, shown: str) -> None:
    assert units.format_unit(text) == shown


@pytest.mark.parametrize(
    ("column", "unit"),
    [
        *(
            ("time_ms", "ms"),
            ("time (ms)", "ms"),
            ("Latency [usec]", "us"),
            ("time", ""),
            ("value", ""),
            ("tests_s", ""),
        ),
        *(("ops_per_sec", "ops/s"), ("events_per_second", "events/s"), ("requests_per_second", "requests/s")),
        *(("requests/sec", "requests/s"), ("req/s", "requests/s"), ("bogo ops/s", "bogo ops/s"), ("MB_per_s", "MB/s")),
        *(("tps", "transactions/s"), ("qps", "queries/s"), ("iops", "IOPS"), ("fps", "frames/s"), ("MFLOPS", "MFLOPS")),
        *(("ns_per_op", "ns/op"), ("ns/op", "ns/op"), ("us per iteration", "us/iteration"), ("time_per_op", "")),
        *(
            ("cycles/byte", "cycles/B"),
            ("misses_per_sec", "misses/s"),
            ("MB_s", "MB/s"),
            ("ops_sec", ""),
            ("ops_s", ""),
        ),
        *(("time_s", "s"), ("elapsed_seconds", "s"), ("TIME_MS", "ms"), ("latency_min", ""), ("net_Mbps", "Mb/s")),
        *(
            ("ns", "ns"),
            ("s", "s"),
            ("B", ""),
            ("cycles", "cycles"),
            ("instructions", "instr"),
            ("x" * 59 + "_ms", "ms"),
        ),
    ],
)
def test_the_unit_in_a_column_s_name_is_found(column: str, unit: str) -> None:
    assert units.unit_of_column(column) == unit
