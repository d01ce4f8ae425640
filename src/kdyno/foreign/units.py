"""Units of measurement: what can be converted into what, and which direction is better."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kdyno.measurement import Direction


@dataclass(frozen=True)
class Unit:
    """One way to write a quantity."""

    shown: str
    dimension: str
    scale: float
    """How many of the dimension's own unit it is: 1e-3 for ms."""


_TIMES = {
    "ns": (1e-9, "nsec nsecs nanosec nanosecond nanoseconds"),
    "us": (1e-6, "µs μs usec usecs microsec microsecond microseconds"),
    "ms": (1e-3, "msec msecs millisec millisecond milliseconds"),
    "s": (1.0, "sec secs second seconds"),
    "min": (60.0, "minute minutes"),
    "h": (3600.0, "hour hours"),
}
_BYTES = {"B": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
_COUNTS = {
    "instr": "instruction instructions insn insns",
    "cycles": "cycle",
    "B/instr": "",
    "B/cycle": "",
    "ops": "op operations",
}


def _table() -> dict[str, Unit]:
    table: dict[str, Unit] = {}
    for shown, (scale, others) in _TIMES.items():
        for name in (shown, *others.split()):
            table[name] = Unit(shown, "time", scale)
    for shown, scale in _BYTES.items():
        table[shown] = Unit(shown, "bytes", scale)
        table[f"{shown}/s"] = Unit(f"{shown}/s", "bytes per second", scale)
    for shown, names in _COUNTS.items():
        for name in (shown, *names.split()):
            table[name] = Unit(shown, shown, 1.0)
    for prefix, scale in (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9)):
        table[f"{prefix}ops/s"] = Unit(f"{prefix}ops/s", "operations per second", scale)
    return table


_SPELLINGS = _table()
_FOLDED = {name.lower(): unit for name, unit in reversed(_SPELLINGS.items())}
_PER_SECOND = re.compile(r" ?(?:/ ?|per[ _]|p(?=s$))(?:s|secs?|seconds?)$")
_BRACKETED = re.compile(r"[(\[]([^()\[\]]+)[)\]]$")
_HIGHER = re.compile(r"/s$|per second|^B/|^[kMG]?(flops|ips|hz|fps|ops)$|^mflops$", re.IGNORECASE)
_LOWER_DIMENSIONS = {"time", "instr", "cycles"}
_HIGHER_NAME = re.compile(
    r"bandwidth|throughput|\bops\b|_?per_sec|\bscore\b|\bfps\b|flops|\bbw[_ ]|rate\b", re.IGNORECASE
)
_LOWER_NAME = re.compile(r"latency|\blat[_ ]|\btime\b|elapsed|duration|seconds|misses|faults|switches", re.IGNORECASE)


def find(text: str) -> Unit | None:
    """Look a unit up by any of its spellings; None if it is not in the table."""
    text = _PER_SECOND.sub("/s", " ".join(text.split()))
    return _SPELLINGS.get(text) or _FOLDED.get(text.lower())


def shown(text: str) -> str:
    """The unit as kdyno writes it; unknown ones stay as they are."""
    unit = find(text)
    return unit.shown if unit else text.strip()


def factor(source: str, target: str) -> float | None:
    """What values in `source` are multiplied with to be in `target`; None if there is no such number."""
    if source == target:
        return 1.0
    source_unit, target_unit = find(source), find(target)
    if source_unit is None or target_unit is None or source_unit.dimension != target_unit.dimension:
        return None
    return source_unit.scale / target_unit.scale


def direction(unit: str, benchmark: str) -> Direction | None:
    """Guess which direction is better: from the unit, else from the benchmark's name; None if neither tells."""
    if _HIGHER.search(shown(unit)):
        return "higher"
    if (listed := find(unit)) and listed.dimension in _LOWER_DIMENSIONS:
        return "lower"
    if _HIGHER_NAME.search(benchmark):
        return "higher"
    return "lower" if _LOWER_NAME.search(benchmark) else None


def of_column(column: str) -> str:
    """The unit in the name of a column: `time_ms`, `time (ms)`, `latency [us]`; empty if there is none."""
    column = column.strip()
    if (bracketed := _BRACKETED.search(column)) and (unit := bracketed[1].strip()):
        return shown(unit)
    last = re.split(r"[_\s.-]+", column)[-1]
    return shown(last) if last != column and len(last) > 1 and find(last) else ""
