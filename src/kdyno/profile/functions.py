"""Finding the function at an address, among the functions of a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdyno.measure.guest.pmu_parts import Function

NOWHERE = -1


class FunctionMap:
    """The functions of a record, in the order of addresses; they don't overlap."""

    def __init__(self, functions: Sequence[Function]) -> None:
        order = sorted(range(len(functions)), key=lambda index: functions[index].address)
        self._order = np.array(order, np.int64)
        self._starts = np.array([functions[index].address for index in order], np.uint64)
        self._sizes = np.array([functions[index].size for index in order], np.uint64)

    def find(self, addresses: NDArray[Any]) -> NDArray[np.int64]:
        """Return the index of the function of each address; NOWHERE for an address outside functions."""
        if not len(self._starts):
            return np.full(len(addresses), NOWHERE)
        index = np.searchsorted(self._starts, addresses, side="right") - 1
        inside = (index >= 0) & (addresses - self._starts[index] < self._sizes[index])
        return np.where(inside, self._order[index], NOWHERE)

    def is_start(self, addresses: NDArray[Any]) -> NDArray[np.bool_]:
        """Return whether each address is the start of a function."""
        return np.isin(addresses, self._starts[self._sizes > 0])


def plain_name(name: str) -> str:
    """Return the name in the source, without suffixes as in `vfs_read.cold` and `do_sys_poll.constprop.0`."""
    return name.partition(".")[0] or name
