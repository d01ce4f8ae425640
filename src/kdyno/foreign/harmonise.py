"""Making the columns of long tables mean one thing: one unit for each benchmark, one order of measuring."""

from __future__ import annotations

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from kdyno.foreign import units
from kdyno.foreign.errors import MixedUnits
from kdyno.foreign.long_form import Frame


def with_order(table: Frame) -> Frame:
    """Turn `order`, or a `day` with the time of day, into places in the order of measuring, where that can be."""
    source = "order" if "order" in table else "day" if "day" in table else None
    if source is None:
        return table
    names = pd.Series(table[source].cat.categories.astype(str))
    numbers = pd.to_numeric(names, errors="coerce")
    if numbers.isna().any():
        numbers = pd.to_datetime(names, errors="coerce", format="mixed", utc=True)
        if source == "day" and not numbers.isna().any() and (numbers == numbers.dt.normalize()).all():
            return table
    elif source == "day":
        return table
    if numbers.isna().any():
        return table.drop(columns="order", errors="ignore")
    place = numbers.rank(method="dense").to_numpy().astype(np.int64) - 1
    return table.assign(order=place[table[source].cat.codes.to_numpy()])


def in_one_unit(table: Frame) -> Frame:
    """Convert the values of every benchmark into the unit that comes first for it. Raises MixedUnits."""
    names = [str(each) for each in table["unit"].cat.categories]
    if len(names) == 1:
        return table
    codes, benchmark = table["unit"].cat.codes.to_numpy(), table["benchmark"].cat.codes.to_numpy()
    both = benchmark.astype(np.int64) * len(names) + codes
    used, first = np.unique(both, return_index=True)
    target: dict[int, int] = {}
    factors = np.ones(len(table["benchmark"].cat.categories) * len(names))
    for code in used[np.argsort(first)].tolist():
        of, unit = divmod(code, len(names))
        wanted = target.setdefault(of, unit)
        factor = units.factor(names[unit], names[wanted])
        if factor is None:
            raise MixedUnits(benchmark=table["benchmark"].cat.categories[of], one=names[wanted], other=names[unit])
        factors[code] = factor
    if (factors[used] == 1).all():
        return table
    by = np.array([target.get(at, 0) for at in range(len(table["benchmark"].cat.categories))])
    return table.assign(
        value=table["value"].to_numpy() * factors[both], unit=pd.Categorical.from_codes(by[benchmark], names)
    )
