"""The meaning of a column's name: columns that are made from others, or count, are not measurements."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from kdyno.base.text import format_list
from kdyno.measure.readers import units
from kdyno.measure.readers.status import counts_a_status

Meaning = Literal["mean", "sd", "n", "derived", "extreme", "counter", "measured", ""]

NOT_MEASURED = frozenset(("derived", "extreme", "counter", "sd", "n"))
"""Meanings of columns that are neither measurements nor variants."""

MEANS = ("mean", "average", "avg", "m", "amean", "hmean", "arithmetic_mean", "median")
SDS = ("sd", "stddev", "std", "std_dev", "stdev", "standard_deviation", "s", "sigma")
SIZES = ("n", "count", "runs", "samples", "size", "replicates")
BASELINES = ("baseline", "base", "generic", "vanilla", "default", "stock", "control", "reference", "before", "old")
"""Names of references for comparison, the surest first."""
_MEASURED = frozenset(
    (
        *("time", "elapsed", "duration", "latency", "lat", "wall", "real", "runtime", "throughput", "bandwidth", "bw"),
        *("rate", "score", "result", "value", "measurement", "seconds", "cycles", "instructions", "iops", "tps", "qps"),
        *("rps", "fps", "ops", "faults", "misses"),
    )
)
"""Words in the names of measurements that no kernel is called."""
_RESOURCES = frozenset(("user", "sys", "system", "read", "write", "memory", "mem", "rss", "cpu", "energy", "power"))
"""Such words that may well stand in the name of a kernel together with other words: `CPU family`."""
_COUNTERS = frozenset(
    (
        *("no", "nr", "num", "number", "idx", "index", "id", "run", "runs", "iter", "iteration", "iterations"),
        *("trial", "rep", "repeat", "sample"),
    )
)
_EXTREMES = frozenset(
    (
        *("min", "max", "minimum", "maximum", "range", "best", "worst", "fastest", "slowest", "low", "high", "lowest"),
        *("highest", "lower", "upper", "iqr", "mad", "var", "variance", "cv", "cov", "rsd", "relsd", "sem", "se"),
        *("stderr", "error", "err", "ci", "confidence", "quartile", "percentile"),
    )
)
_PERCENTILE = re.compile(
    r"p\d{1,2}(?:[._]?\d+)?|\d{1,2}(?:[._]\d+)?(?:th|st|nd|rd|_?%|_?percent)?_?(?:ile|percentile)|q[1-3]"
)
_DERIVED = frozenset(
    (
        *("rel", "relative", "ratio", "speedup", "speed_up", "slowdown", "slow_down", "factor", "x", "times", "delta"),
        *(
            "diff",
            "difference",
            "change",
            "gain",
            "improvement",
            "improvements",
            "overhead",
            "regression",
            "normalized",
        ),
        *("normalised", "norm", "percent", "percentage", "pct", "significance", "significant", "sig", "p", "p_value"),
        *("pvalue", "q", "t", "z", "f", "effect", "effect_size", "verdict", "rank", "ranking", "place", "winner"),
        *("index", "loss", "saving", "savings"),
    )
)
_FILLERS = frozenset(
    (
        *("in", "to", "of", "over", "from", "the", "std", "dev", "performance", "speed", "usage", "total", "avg"),
        *("mean", "per", "peak", "random", "rand", "seq", "sequential"),
    )
)
_COMPARED = re.compile(
    r"(?:.*\s)?(?:vs\.?|versus|relative to|compared (?:to|with)|over baseline|against)(?:\s.*)?|.*[%×]\s*(?:of|vs).*",
    re.IGNORECASE,
)
_SIGNS = re.compile(r"[ΔδΣ∆%×±√]|\bx\b|[+-]/[+-]", re.IGNORECASE)
_VERSION = re.compile(
    r"(?<!\d)\d++\.\d|\b(?:linux|kernel|patch(?:ed)?|next|master|gcc|clang|llvm|lto|thinlto|pgo)\b|-O\d|\bv\d",
    re.IGNORECASE,
)
_SUMS = frozenset(("geomean", "geometric_mean", "gmean", "total", "sum", "overall"))
"""Names of rows that sum up the others."""
_WORD = re.compile(r"[a-z0-9]+|[^\W\d_]+")


def bare(heading: str) -> str:
    """Return the name of a column in small letters, without the unit in brackets at its end."""
    name = " ".join(heading.split())
    if name.endswith((")", "]")):
        before = re.split(r"[(\[]", name, maxsplit=1)[0].strip()
        name = before or name.strip("()[]")
    return name.lower()


_NUMBERED = re.compile(r"(?P<statistic>[a-z]{2}.*?)[._ -]?\d{1,3}")
"""A name that a program, or a person, numbered, since another column has it: `stddev2`, `std.1` of pandas."""


def meaning(heading: str) -> Meaning:
    """Return the meaning of a column by its name; empty if the name doesn't show it, as those of kernels don't."""
    name = bare(heading)
    own = _own_meaning(name)
    if own in ("", "measured") and (numbered := _NUMBERED.fullmatch(name)):
        unnumbered = _own_meaning(numbered["statistic"])
        return own if unnumbered in ("", "measured", "counter") else unnumbered
    return own


def _own_meaning(name: str) -> Meaning:
    words = _WORD.findall(name)
    joined = "_".join(words)
    unit_gone = joined.rpartition("_")[0] if units.unit_of_column(name) and len(words) > 1 else joined
    for kind, names in (("mean", MEANS), ("sd", SDS), ("n", SIZES)):
        if joined in names or unit_gone in names:
            return kind  # type: ignore[return-value]
    if name in ("σ", "±", "± σ", "+/-"):
        return "sd"
    if name in ("#", "№") or joined in _COUNTERS or unit_gone in _COUNTERS or counts_a_status(name):
        return "counter"
    if _is_derived(name, words, joined):
        return "derived"
    if _is_extreme(words, joined, unit_gone):
        return "extreme"
    if _is_measured(words):
        return "measured"
    return ""


_LAST_NUMBER = re.compile(r"\d{1,3}\Z")
_RUN_WORDS = frozenset(
    ("run", "iter", "iteration", "trial", "rep", "repeat", "repetition", "sample", "round", "try", "r")
)


def is_run(heading: str) -> bool:
    """Return whether a column numbers the runs of a measurement, by its name."""
    return "_".join(_WORD.findall(bare(heading))).removesuffix("s") in _RUN_WORDS


def numbered_runs(headings: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that are runs of one measurement, by their names: `run1`, `run2`, ...; none unless there are
    two of them, and they count up from 0 or 1. Bare numbers may as well be those of threads.
    """
    runs: dict[int, str] = {}
    for heading in headings:
        name = bare(heading)
        number = _LAST_NUMBER.search(name)
        if number and name[: number.start()].rstrip(" \t_#.-") in _RUN_WORDS:
            runs.setdefault(int(number[0]), heading)
    first = min(runs, default=0)
    return (
        tuple(runs.values())
        if len(runs) > 1 and first < 2 and list(runs) == list(range(first, first + len(runs)))
        else ()
    )


def split_statistic(heading: str) -> tuple[str, Meaning]:
    """Return the rest of a column's name, and the statistic that its last or first word is: `vanilla sd` is the sd of
    `vanilla`; the whole name and nothing if it has no such word.
    """
    words = heading.replace("_", " ").split()
    if len(words) > 1:
        for rest, word in ((words[:-1], words[-1]), (words[1:], words[0])):
            kind = meaning(word.strip("()[]"))
            if kind in ("mean", "sd", "n", "extreme"):
                return " ".join(rest), kind
    return heading, ""


def name_statistics(headings: Sequence[str]) -> tuple[str, ...]:
    """Return the headings with the name of the column to the left before each deviation, size or extreme that several
    columns are called: `vanilla`, `sd`, `patched`, `sd` are `vanilla`, `vanilla sd`, `patched`, `patched sd`.
    """
    statistics = {
        place: numbered["statistic"] if (numbered := _NUMBERED.fullmatch(bare(name))) else name.strip()
        for place, name in enumerate(headings)
        if meaning(name) in ("sd", "n", "extreme")
    }
    owners: dict[int, str] = {}
    for place, name in enumerate(headings):
        owners[place] = owners.get(place - 1, "") if place in statistics else name
    by_name: dict[str, list[str]] = {}
    for place, name in statistics.items():
        by_name.setdefault(name.lower(), []).append(owners[place])
    return tuple(
        f"{owners[place]} {statistics[place]}"
        if place in statistics and len(own := by_name[statistics[place].lower()]) > 1 and len(set(own)) == len(own)
        else name
        for place, name in enumerate(headings)
    )


def _is_derived(name: str, words: Sequence[str], joined: str) -> bool:
    if joined in _DERIVED or (words and words[0] in _DERIVED and _is_common(words[1:])):
        return True
    if words and words[-1] in _DERIVED - {"x", "p", "q", "t", "z", "f", "index"} and _is_common(words[:-1]):
        return True
    without = _SIGNS.sub(" ", name)
    if without != name and _is_common(_WORD.findall(without)):
        return bool(re.search(r"[Δδ∆×]", name)) or not _is_measured(_WORD.findall(without))
    return bool(_COMPARED.fullmatch(name))


def _is_extreme(words: Sequence[str], joined: str, unit_gone: str) -> bool:
    if _PERCENTILE.fullmatch(joined) or _PERCENTILE.fullmatch(unit_gone):
        return True
    extreme = [word for word in words if word in _EXTREMES]
    return bool(extreme) and _is_common([word for word in words if word not in _EXTREMES])


def _is_common(words: Sequence[str]) -> bool:
    """Return whether no word of a name can belong to a kernel: all are words of measurements and statistics."""
    common = _MEASURED | _RESOURCES | _DERIVED | _EXTREMES | set(BASELINES) | _FILLERS
    return all(word in common or bool(units.find(word)) or word.isdecimal() for word in words)


def _is_measured(words: Sequence[str]) -> bool:
    """Return whether a name is that of a measurement: `latency`, `real1`, `read_ns`."""
    stems = [word.rstrip("0123456789") or word for word in words]
    return any(stem in _MEASURED for stem in stems) or (not _RESOURCES.isdisjoint(stems) and _is_common(stems))


def is_statistic(name: str) -> bool:
    """Return whether a row of this name is made from other rows, or is used to make others: `geomean`, `stddev`,
    `max`.
    """
    joined = "_".join(_WORD.findall(name.lower()))
    return len(joined) > 2 and (joined in _SUMS or joined in MEANS or meaning(name) in ("sd", "extreme", "derived"))


def is_summary_of_variants(name: str) -> bool:
    """Return whether a row of this name in a column of variants sums up those above it. Kernels may be called `best`,
    `high` and `x`.
    """
    joined = "_".join(_WORD.findall(name.lower()))
    return len(joined) > 2 and joined in {*_SUMS, *MEANS, *SDS, "min", "max", "minimum", "maximum"}


def sums_note(names: Sequence[str]) -> str:
    """Return the note on rows that were left out."""
    return f"rows that weren't read, since they sum up others: {format_list(list(dict.fromkeys(names)))}"


def is_sum(name: str) -> bool:
    """Return whether a row of this name is the sum or the mean of other benchmarks: `total`, `geomean`."""
    return "_".join(_WORD.findall(name.lower())) in _SUMS


def looks_like_a_variant(heading: str) -> bool:
    """Return whether a name looks like that of a kernel, a compiler, or one of two that are compared."""
    return bool(_VERSION.search(heading)) or not set(_WORD.findall(heading.lower())).isdisjoint(
        {*BASELINES, "after", "new", "tuned"}
    )
