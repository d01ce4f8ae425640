"""Joining long tables, with one unit for each benchmark and one order of measuring."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from pandas.api.types import union_categoricals  # type: ignore[import-untyped]

from kdyno.base.arrays import Labels, Values
from kdyno.measure.readers import units
from kdyno.measure.readers.errors import MixedUnits
from kdyno.measure.readers.readings import Frame

MOST_DECIMALS = 12
MOST_EXACT = 2.0**50
"""Above it, almost every number is a multiple of any step."""
ROUNDING = 2.0**-48
"""The relative error that reading and scaling may add to a number."""
LEAST_TIME = 1e8
"""Larger numbers are seconds since 1970, smaller ones dates such as 20250301."""
_NO_DATE = re.compile(r"\d{1,2}:\d\d|\d{9}")


def join_tables(parts: list[Frame]) -> Frame:
    """Put tables one below the other; columns that are not in all of them are left out."""
    if len(parts) == 1:
        return parts[0]
    common = [column for column in parts[0] if all(column in part for part in parts)]
    return pd.DataFrame(
        {
            column: union_categoricals([part[column] for part in parts])
            if isinstance(parts[0][column].dtype, pd.CategoricalDtype)
            else np.concatenate([part[column].to_numpy() for part in parts])
            for column in common
        }
    )


def with_order(table: Frame) -> Frame:
    """Turn `order`, or a `day` with the time of day, into places in the order of measuring, if that is possible.

    A `day` that shows no date is dropped: it is a time of some day, or seconds since 1970.
    """
    positions = {}
    for source in ("order", "day"):
        if source in table and (order_of_category := _positions(table[source], source)) is not None:
            positions[source] = order_of_category[table[source].cat.codes.to_numpy()]
    if "day" in table and all(_NO_DATE.match(str(name)) for name in table["day"].cat.categories):
        table = table.drop(columns="day")
    order = next(iter(positions.values()), None)
    return table.drop(columns="order", errors="ignore") if order is None else table.assign(order=order)


def _positions(column: Any, role: str) -> Labels | None:
    """Return the place of each category in the order of measuring; None if they don't show it, as days without a
    time.
    """
    names = pd.Series(column.cat.categories.astype(str))
    numbers = pd.to_numeric(names, errors="coerce")
    if numbers.isna().any():
        numbers = pd.to_datetime(names, errors="coerce", format="mixed", utc=True)
        if numbers.isna().any() or (role == "day" and (numbers == numbers.dt.normalize()).all()):
            return None
    elif role == "day" and numbers.min() < LEAST_TIME:
        return None
    return numbers.rank(method="dense").to_numpy().astype(np.int64) - 1  # type: ignore[no-any-return]


def printed_step(values: Values) -> float:
    """Return the smallest 1e-k, k from 0 to 12, that divides all values; 0 if none does, or digits run out."""
    for digits in range(MOST_DECIMALS + 1):
        scaled = values * 10.0**digits
        if scaled.max(initial=0) > MOST_EXACT:
            return 0.0
        if (np.abs(scaled - np.rint(scaled)) <= scaled * ROUNDING).all():
            return 10.0**-digits
    return 0.0


def unify_units(table: Frame) -> Frame:
    """Convert the values of every benchmark into the unit that comes first for it. Raise MixedUnits."""
    names = [str(name) for name in table["unit"].cat.categories]
    if len(names) == 1:
        return table
    codes, benchmark = table["unit"].cat.codes.to_numpy(), table["benchmark"].cat.codes.to_numpy()
    both = benchmark.astype(np.int64) * len(names) + codes
    used, first = np.unique(both, return_index=True)
    target: dict[int, int] = {}
    factors = np.ones(len(table["benchmark"].cat.categories) * len(names))
    for code in used[np.argsort(first)].tolist():
        number, unit = divmod(code, len(names))
        wanted = target.setdefault(number, unit)
        factor = units.factor(names[unit], names[wanted])
        if factor is None:
            name = table["benchmark"].cat.categories[number]
            raise MixedUnits(benchmark=name, unit=names[wanted], other=names[unit])
        factors[code] = factor
    if (factors[used] == 1).all():
        return table
    targets = np.array([target.get(number, 0) for number in range(len(table["benchmark"].cat.categories))])
    return table.assign(
        value=table["value"].to_numpy() * factors[both], unit=pd.Categorical.from_codes(targets[benchmark], names)
    )
