"""Long tables made one: joined, in one unit for each benchmark, with one order of measuring."""

from __future__ import annotations

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from pandas.api.types import union_categoricals  # type: ignore[import-untyped]

from kdyno.foreign import units
from kdyno.foreign.errors import MixedUnits
from kdyno.foreign.readings import Frame


def joined(parts: list[Frame]) -> Frame:
    """Put tables one below the other; columns that not all of them have are left out."""
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
