"""From the rows of a long table to the units of replication: a boot counts once, however often it was read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kdyno.base.arrays import Labels
from kdyno.judge.foreign.factors import codes_of
from kdyno.judge.stats.observations import ReplicateSample
from kdyno.measure.readers import units
from kdyno.measure.readers.errors import BlockTwiceInFile
from kdyno.measure.readers.frames import printed_step, unify_units, with_order
from kdyno.measure.readers.readings import Frame

LOOKED_AT = 10_000
"""Values of a benchmark that are enough to find its rounding step."""

RowNumbers = Mapping[tuple[str, str], Labels]
"""(benchmark, variant) -> the rows of it, in the order of the file."""


@dataclass(frozen=True)
class MeasuredBenchmark:
    """One benchmark of a long table."""

    name: str
    unit: str
    direction: str
    """The direction in the table; empty if it has none."""
    samples: Mapping[str, ReplicateSample]
    """Samples by variant, in the order of the file."""
    days: Mapping[str, frozenset[str]]
    """By variant: the days on which it was measured; empty if none are given."""
    boots: Mapping[str, int]
    """By variant: the number of boots; empty if no column distinguishes boots."""
    row_ranges: Mapping[str, tuple[int, int]]
    """By variant: its first and its last row."""
    readings: Mapping[str, ReplicateSample] | None
    """The samples as they would be without a column for boots; None if that has no meaning."""
    step: float
    """The values were printed as multiples of this; 0 if that is not known."""


def sum_up_replicates(table: Frame) -> tuple[list[MeasuredBenchmark], tuple[str, ...]]:
    """Sum up to one value for each boot, or block, or row, whichever the table knows, by the median.

    Return the benchmarks in the order of the file, and notes on the summing up. Raise MixedUnits and BlockTwiceInFile.
    """
    notes: list[str] = []
    names = _ordered_names(table["benchmark"])
    variants = _ordered_names(table["variant"])
    as_printed, numbers_before = table, _row_numbers(table)
    before = _drop_lone_layouts(unify_units(with_order(table)))
    table = _sum_up(_with_boot_labels(before), notes)
    row_numbers = numbers_before if len(table) == len(before) else _row_numbers(table)
    samples = _samples(table, row_numbers)
    readings = _samples(before.drop(columns="boot"), numbers_before) if "boot" in before else {}
    benchmarks = []
    for name in names:
        groups = {variant: row_numbers[name, variant] for variant in variants if (name, variant) in row_numbers}
        rows = {variant: table.iloc[numbers] for variant, numbers in groups.items()} if _has_words(table) else {}
        first = table.iloc[next(iter(groups.values()))[0]]
        printed = [numbers_before[name, variant] for variant in groups]
        benchmarks.append(
            MeasuredBenchmark(
                name=name,
                unit=units.format_unit(str(first["unit"])),
                direction=str(first["direction"]) if "direction" in table else "",
                samples={variant: samples[name, variant] for variant in groups},
                days={variant: _days(own) for variant, own in rows.items() if "day" in own},
                boots={variant: own["boot"].nunique() for variant, own in rows.items() if "boot" in own},
                row_ranges={
                    variant: (int(numbers[0]), int(numbers[-1]))
                    for variant, numbers in zip(groups, printed, strict=True)
                },
                readings={variant: readings[name, variant] for variant in groups}
                if readings and "block" not in before
                else None,
                step=_step(as_printed, printed, str(first["unit"])),
            )
        )
    return benchmarks, tuple(notes)


def _samples(table: Frame, row_numbers: RowNumbers) -> dict[tuple[str, str], ReplicateSample]:
    """Return the values of each (benchmark, variant)."""
    roles = {"block": "blocks", "order": "order", "layout": "clusters", "boot_label": "boots"}
    labels = {kind: _labels(table[role]) for role, kind in roles.items() if role in table}
    values = table["value"].to_numpy()
    return {
        names: ReplicateSample(values=values[numbers], **{kind: own[numbers] for kind, own in labels.items()})
        for names, numbers in row_numbers.items()
    }


def _with_boot_labels(table: Frame) -> Frame:
    """Number the boots: those of different variants are different ones, whatever their names."""
    if "boot" not in table:
        return table
    names = ["variant", *(role for role in ("run", "block", "layout", "boot") if role in table)]
    return table.assign(boot_label=codes_of(table, names)[0])


def _step(table: Frame, groups: Sequence[Labels], unit: str) -> float:
    """Return the rounding step of a benchmark's values as they were printed, in its `unit`."""
    most = max(1, LOOKED_AT // len(groups))
    rows = np.concatenate([numbers[:: -(-len(numbers) // most)] for numbers in groups])
    values, codes = table["value"].to_numpy()[rows], table["unit"].cat.codes.to_numpy()[rows]
    steps = {str(table["unit"].cat.categories[code]): printed_step(values[codes == code]) for code in np.unique(codes)}
    return max(step * (units.factor(printed, unit) or 0.0) for printed, step in steps.items())


def _days(rows: Frame) -> frozenset[str]:
    return frozenset(rows["day"].astype(str).str[:10])


def _has_words(table: Frame) -> bool:
    return "day" in table or "boot" in table


def _ordered_names(column: Any) -> list[str]:
    """Return the names of a column of categories, in the order in which they come."""
    return [str(name) for name in column.unique()]


def _row_numbers(table: Frame) -> dict[tuple[str, str], Labels]:
    benchmark, variant = table["benchmark"].cat, table["variant"].cat
    wide = len(variant.categories)
    codes = benchmark.codes.to_numpy().astype(np.int64) * wide + variant.codes.to_numpy()
    if codes.max(initial=0) < 2**15:
        codes = codes.astype(np.int16)  # sorted by radix
    order = np.argsort(codes, kind="stable")
    used, first = np.unique(codes[order], return_index=True)
    ends = [*first[1:], len(order)]
    return {
        (str(benchmark.categories[code // wide]), str(variant.categories[code % wide])): order[start:end]
        for code, start, end in zip(used.tolist(), first, ends, strict=True)
    }


def _labels(column: Any) -> Labels:
    """Return whole numbers for a column: its own if it has them."""
    if not hasattr(column, "cat"):
        return column.to_numpy().astype(np.int64)  # type: ignore[no-any-return]
    names = [str(name) for name in column.cat.categories]
    plain = all(re.fullmatch("0|[1-9][0-9]{0,14}", name) for name in names)
    numbers = np.array([int(name) for name in names] if plain else range(len(names)), dtype=np.int64)
    return numbers[column.cat.codes.to_numpy()]  # type: ignore[no-any-return]


def _drop_lone_layouts(table: Frame) -> Frame:
    """Drop the layouts if some variant has only one: they then can't be distinguished from the variant."""
    if "layout" not in table or table.groupby("variant", observed=True)["layout"].nunique().min() > 1:
        return table
    return table.drop(columns="layout")


def _sum_up(table: Frame, notes: list[str]) -> Frame:
    """Return one row for each unit of replication."""
    what = ["benchmark", "variant"]
    if "run" in table and "block" in table and table["run"].nunique() > 1:
        own = (table["run"].astype(str) + " " + table["block"].astype(str)).astype("category")
        table = table.assign(block=own)
    within = [role for role in ("block", "boot", "layout") if role in table]
    if "boot" in within:
        before = len(table)
        table = _medians(table, what + within)
        if len(table) < before:
            notes.append(
                f"each boot counts once, with the median of its values ({before:,} rows, {len(table):,} medians)"
            )
    if "block" not in within:
        return table
    doubled = table.duplicated([*what, "block"], keep=False)
    if not doubled.any():
        return table
    if "boot" not in within and "iteration" not in table:
        first = table[doubled].iloc[0]
        same = table[(table[[*what, "block"]] == first[[*what, "block"]]).all(axis=1)]
        raise BlockTwiceInFile(
            variant=first["variant"], benchmark=first["benchmark"], block=str(first["block"]), count=len(same)
        )
    before = len(table)
    table = table.drop(columns="boot_label", errors="ignore")  # a median may be of several boots
    table = _medians(table, [*what, *(role for role in within if role != "boot")])
    notes.append(
        f"a variant counts once in a block, with the median of its values ({before:,} values, {len(table):,} medians)"
    )
    return table


def _medians(table: Frame, keys: list[str]) -> Frame:
    summed_up = {*keys, "value", "order", "iteration", "run"}
    rest = {column: "first" for column in table if column not in summed_up}
    how = {"value": "median", **({"order": "min"} if "order" in table else {}), **rest}
    return table.groupby(keys, observed=True, sort=False).agg(how).reset_index()
