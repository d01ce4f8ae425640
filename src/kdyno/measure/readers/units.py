"""Units of measurement: which can be converted into which, which quantity they measure, and which direction is
better.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from kdyno.base.measurement import Direction, Quantity

if TYPE_CHECKING:
    import pint

_DEFINITIONS = """
nano- = 1e-9 = n-
micro- = 1e-6 = u- = µ- = μ-
milli- = 1e-3 = m-
kilo- = 1e3 = k-
capital_kilo- = 1e3 = K-
mega- = 1e6 = M-
giga- = 1e9 = G-
tera- = 1e12 = T-
kibi- = 1024 = Ki-
mebi- = 1048576 = Mi-
gibi- = 1073741824 = Gi-
tebi- = 1099511627776 = Ti-
second = [time] = s = sec
minute = 60 second = min = mins
hour = 3600 second = h = hr
bit = [information] = b
byte = 8 bit = B
bps = bit / second = b/s
Bps = byte / second = B/s
hertz = 1 / second = Hz
joule = [energy] = J
watt = joule / second = W
percent = [share] = % = pct
instruction = [instruction] = instr = insn = inst
cycle = [cycle]
flop = [flop]
FLOPS = flop / second
MIPS = 1e6 instruction / second = _ = mips
tps = transaction / second = transactions/s
qps = query / second = queries/s
rps = request / second = requests/s
fps = frame / second = frames/s
pps = packet / second = packets/s
iops = io / second = IOPS
"""
"""Definitions for pint; its own have `b` for barn and `h` for Planck's constant."""
_WORK = {
    "op": "operation",
    "bogo_op": "bogo_operation bogop",
    "request": "req",
    "transaction": "txn trans",
    "query": "queries",
    "event": "",
    "frame": "",
    "iteration": "iter",
    "packet": "pkt",
    "message": "msg",
    "call": "",
    "io": "",
    "job": "",
    "task": "",
    "test": "",
    "loop": "",
    "file": "",
    "record": "",
    "row": "",
    "run": "",
    "lookup": "",
    "connection": "conn",
    "commit": "",
    "page": "",
}
"""Things that are done, or handled: each with its other names. A page per second may be one that was faulted in."""
_SOUGHT = (set(_WORK) | {"flop", "information"}) - {"page"}
"""More of these per second is better."""
_CHEAP = ({"time"}, {"cycle"}, {"instruction"}, {"energy"})
"""Less of these is better, also per something."""
_SMALL, _BINARY = {"nano", "micro", "milli"}, {"kibi", "mebi", "gibi", "tebi"}
_SMALL_UNITS = {"second", "joule", "watt"}
_BINARY_UNITS = {"bit", "byte", "bps", "Bps"}
_WHOLE_UNITS = {"minute", "hour", "percent"}
"""Units without prefixes."""

LONGEST = 60
"""Characters of a unit."""
_WORD = re.compile(r"[A-Za-zµμ%]{1,20}(?:[ _-][A-Za-z]{1,20})?")
_PER = re.compile(r" ?/ ?| per |_per_")
_SLIP = re.compile(r"(?:[kmgt]i?)?b(?:ps)?", re.IGNORECASE)
"""Bits or bytes, which only the case of a letter tells apart."""
_BRACKETED = re.compile(r"[(\[]([^()\[\]]+)[)\]]$")
_BETTER = re.compile(
    r"(?<![^\W_])(higher|more|bigger|larger|lower|less|fewer|smaller)[ _-](?:(?:is|=)[ _-])?better(?![^\W_])",
    re.IGNORECASE,
)
_UP = "↑⬆▲"
_ARROW = re.compile(rf"([{_UP}↓⬇▼])\ufe0f?[\s)\]]*$")
"""The better direction behind a name: `fps ↑`."""
_MORE = frozenset(("higher", "more", "bigger", "larger"))
_BETWEEN_WORDS = re.compile(r"[_\s.-]+")
_COUNTED = re.compile(
    r"miss(?:es)?$|misses\b|faults\b|switches\b|branches\b|instructions?\b|references\b|migrations\b|interrupts\b|"
    r"\bevents?$|\berrors\b|\bretries\b|\bpages\b|allocations\b|\bcount$|\bsize$|\brss\b|percent",
    re.IGNORECASE,
)
"""Names of things that are counted."""
_HIGHER_NAME = re.compile(
    r"bandwidth|throughput|(?<![a-z])(?:bw|[kmg]?iops|[tqfrp]ps|[kmgt]?flops)(?![a-z])", re.IGNORECASE
)
_LOWER_NAME = re.compile(
    r"latency|elapsed|duration|runtime|(?<![a-z])(?:lat|time|seconds|cpu[_-]cycles)(?![a-z])|(?<![a-z_-])cycles(?![a-z])",
    re.IGNORECASE,
)
_INSTRUCTIONS = re.compile(r"(?<![a-z_-])instructions(?![a-z])", re.IGNORECASE)
_TIME_NAMES = {"time", "elapsed", "duration", "latency", "wall", "real", "user", "sys", "runtime", "lat"}


@dataclass(frozen=True)
class QuantityUnit:
    """One way to write a quantity."""

    shown: str
    of: pint.Unit | None
    """Pint's unit; None for data of an unknown size: the unit `mb`."""
    per: str
    """The denominator that pint doesn't know: `page_table` of `ns/page_table`."""
    dimensions: Mapping[str, int]
    """Dimension -> 1 or -1: {"information": 1, "time": -1} for MB/s."""


@cache
def _registry() -> pint.UnitRegistry[float]:
    import pint  # takes 0.1 s, which `kdyno --help` can do without

    registry: pint.UnitRegistry[float] = pint.UnitRegistry(None, on_redefinition="raise")
    for line in _DEFINITIONS.strip().splitlines():
        registry.define(line)
    for word, others in _WORK.items():
        registry.define(" = ".join((word, f"[{word}]", "_", *others.split())))
    return registry


def find(text: str) -> QuantityUnit | None:
    """Return the unit of this spelling; None if it is not a unit, or not a certain one."""
    text = text.strip()
    return _find(" ".join(text.split())) if 0 < len(text) <= LONGEST else None


@lru_cache(4096)
def _find(text: str) -> QuantityUnit | None:
    above, *below = _PER.split(text)
    if not below and above.lower().endswith("flops"):
        above = above.upper()  # 1 MFLOPS is so many per second, and so is `Mflops`
    if len(below) > 1 or not all(_WORD.fullmatch(part) for part in (above, *below)):
        return None
    top = _unit_of_word(above, many=True)
    if top is None or not below:
        return top
    bottom = _unit_of_word(below[0], many=False)
    if bottom is None:
        other = below[0].lower()
        return QuantityUnit(f"{top.shown}/{other}", top.of, other, {**top.dimensions, "something": -1})
    if "time" in top.dimensions and "time" in bottom.dimensions:
        return None
    dimensions = {**top.dimensions, **{name: -power for name, power in bottom.dimensions.items()}}
    pint_unit = None if top.of is None or bottom.of is None else top.of / bottom.of
    return QuantityUnit(f"{top.shown}/{bottom.shown}", pint_unit, "", dimensions)


def _unit_of_word(text: str, *, many: bool) -> QuantityUnit | None:
    """Return the unit that one word is, exactly as written, or else in another case if it is unambiguous."""
    word = re.sub("[ -]", "_", text)
    lower = word.lower()
    if (exact := _parse_unit(word)) is None and _SLIP.fullmatch(word):
        power = {"time": -1} if lower.endswith("ps") else {}
        return QuantityUnit(text, None, "", {"information": 1, **power})
    candidates = (exact, *(_parse_unit(other) for other in (lower, lower.capitalize(), word.upper())))
    name = next((candidate for candidate in candidates if candidate is not None), None)
    if name is None:
        return None
    prefix, base = name
    registry = _registry()
    pint_unit = registry.Unit(prefix + base)
    powers: Mapping[str, Any] = pint_unit.dimensionality
    dimensions = {dimension.strip("[]"): 1 if power > 0 else -1 for dimension, power in powers.items()}
    symbol = registry.get_symbol(base)
    plural = symbol == base and many and base.islower()
    ending = ("ies" if base.endswith("y") else "s") if plural else ""
    stem = symbol[:-1] if ending == "ies" else symbol
    shown_prefix = registry.get_symbol(prefix + base).removesuffix(symbol) if prefix else ""
    return QuantityUnit(f"{shown_prefix}{stem}{ending}".replace("_", " "), pint_unit, "", dimensions)


def _parse_unit(word: str) -> tuple[str, str] | None:
    """Return (prefix, unit) in pint's names; None if it is not a unit, and for prefixes that nobody gives it."""
    parses = [(prefix, base) for prefix, base, _ in _registry().parse_unit_name(word)]
    return next((parse for parse in sorted(parses, key=lambda parse: bool(parse[0])) if _is_sensible(*parse)), None)


def _is_sensible(prefix: str, base: str) -> bool:
    if not prefix:
        return True
    if prefix in _SMALL:
        return base in _SMALL_UNITS
    if prefix in _BINARY:
        return base in _BINARY_UNITS
    return base != "second" and base not in _WHOLE_UNITS


def format_unit(text: str) -> str:
    """Return the unit as kdyno writes it; unknown ones are unchanged."""
    unit = find(text)
    return unit.shown if unit else text.strip()


def factor(source: str, target: str) -> float | None:
    """Return the factor that converts values in `source` to `target`; None if there is none."""
    if source == target:
        return 1.0
    source_unit, target_unit = find(source), find(target)
    if source_unit is None or target_unit is None:
        return None
    if source_unit.of is None or target_unit.of is None:
        return 1.0 if source_unit.shown == target_unit.shown else None
    if source_unit.per != target_unit.per or source_unit.of.dimensionality != target_unit.of.dimensionality:
        return None
    exact = _registry().convert(1.0, source_unit.of, target_unit.of)
    return float(f"{exact:.15g}")  # prefixes such as 1e-6 are not exact


def direction(unit: str, benchmark: str) -> Direction | None:
    """Return the better direction, if it is certain: by the unit, else by the benchmark's name; else None."""
    if known := find(unit):
        return _direction_of(known)
    if stated := _BETTER.search(benchmark[-LONGEST:]):
        return "higher" if stated[1].lower() in _MORE else "lower"
    if arrow := _ARROW.search(benchmark[-LONGEST:]):
        return "higher" if arrow[1] in _UP else "lower"
    higher = bool(_HIGHER_NAME.search(benchmark))
    lower = bool(_LOWER_NAME.search(benchmark) or _INSTRUCTIONS.search(benchmark))
    if higher == lower or _PER.search(unit[:LONGEST]) or _COUNTED.search(unit):
        return None
    return "higher" if higher else "lower"


def _direction_of(unit: QuantityUnit) -> Direction | None:
    above = {name for name, power in unit.dimensions.items() if power > 0}
    below = {name for name, power in unit.dimensions.items() if power < 0}
    if below == {"time"}:
        return "higher" if above and above <= _SOUGHT else None
    if above == {"information"} and below in ({"cycle"}, {"instruction"}):
        return "higher"
    if above in _CHEAP and not below & {"instruction", "cycle"}:
        return "lower"
    return None


def quantity(unit: str, benchmark: str, direction: Direction | None = None) -> Quantity:
    """Return whether values are times, cycles and rates, or numbers of things; uncertain ones count as the first.

    A number of things of which more is better is taken for a rate, since nobody calls it `fewer`.
    """
    known = find(unit)
    per_instruction = known is not None and known.dimensions.get("instruction") == -1
    return "speed" if direction == "higher" and not per_instruction else _quantity(unit, benchmark)


def _quantity(unit: str, benchmark: str) -> Quantity:
    if known := find(unit):
        return "speed" if {"time", "cycle"} & set(known.dimensions) else "count"
    if unit.strip():
        above, *below = _PER.split(" ".join(unit[:LONGEST].split()))
        return "count" if not below and _COUNTED.search(above) else "speed"
    if _HIGHER_NAME.search(benchmark) or _LOWER_NAME.search(benchmark):
        return "speed"
    return "count" if _COUNTED.search(benchmark) else "speed"


def unit_of_column(column: str) -> str:
    """Return the unit in the name of a column: `time_ms`, `time (ms)`, `ops_per_sec`; empty if there is none."""
    column = column.strip()
    if (bracketed := _BRACKETED.search(column)) and (unit := _BETTER.sub("", bracketed[1]).strip(" ,;")):
        before = column[: bracketed.start()].strip()
        return format_unit(before) if find(before) and not find(unit) else format_unit(unit)
    *words, last = _BETWEEN_WORDS.split(column[-LONGEST:])
    if len(column) > LONGEST:
        words = words[1:]  # the first one is cut
    if len(last) == LONGEST:
        return ""
    if column.isupper():
        last = last.lower()
    if words[-1:] and words[-1].lower() == "per":
        return _unit_of_rate(words[:-1], last)
    if "/" in last:
        above, _, below = last.partition("/")
        return _unit_of_rate([*words, above], below)
    return _unit_of_last_word(words, last)


def _unit_of_rate(above: list[str], below: str) -> str:
    """Return the unit of `MB_per_s`: the last words before `per` that are a unit; the denominator alone if none are."""
    for count in (2, 1):
        if len(above) >= count and find(text := f"{' '.join(above[-count:])}/{below}"):
            return format_unit(text)
    time = find(below)
    return f"{above[-1]}/{time.shown}" if above and time and set(time.dimensions) == {"time"} else ""


def _unit_of_last_word(words: list[str], last: str) -> str:
    """Return the unit that a name ends in. `ops_s` may be a rate or the time of operations, so it is not used."""
    unit = find(last)
    if unit is None or (words and last.lower() == "min"):
        return ""
    if unit.shown == "s" and words:
        what = find(words[-1])
        if what and set(what.dimensions) == {"information"}:
            return format_unit(f"{words[-1]}/s")
        is_time = words[-1].lower() in _TIME_NAMES if len(last) == 1 else what is None
        return "s" if is_time else ""
    if len(last) == 1 and last != "s":
        return ""
    return "" if set(unit.dimensions) & set(_WORK) and "time" not in unit.dimensions else unit.shown
