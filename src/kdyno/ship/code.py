"""The code of a shipped kernel beside that of the judged image: are their functions the same, at the same places?"""

from __future__ import annotations

import re

from kdyno.base.frozen import Frozen

FUNCTION = re.compile(r"^([0-9a-f]+) ([0-9a-f]+) [tTwW] (\S+)$", re.MULTILINE)


class CodeComparison(Frozen):
    """The functions of two kernels, by name, address and size. Two links of one recipe agree in all of them."""

    functions: int
    """The number of functions in the judged image."""
    moved: int
    """Functions that lie at another address in the shipped kernel."""
    resized: int
    """Functions that have another size there, or aren't there."""

    @property
    def is_same(self) -> bool:
        return not (self.moved or self.resized)


def compare_code(judged: str, shipped: str) -> CodeComparison:
    """Compare what `nm -S` lists of two kernels. Pure."""
    before, after = _functions(judged), _functions(shipped)
    return CodeComparison(
        functions=len(before),
        moved=sum(name in after and after[name][0] != place[0] for name, place in before.items()),
        resized=sum(name not in after or after[name][1] != place[1] for name, place in before.items()),
    )


def _functions(symbols: str) -> dict[str, tuple[int, int]]:
    """Return address and size of the functions by name; of several with one name, in the order of their addresses."""
    listed = sorted((name, int(address, 16), int(size, 16)) for address, size, name in FUNCTION.findall(symbols))
    functions: dict[str, tuple[int, int]] = {}
    before, number = "", 0
    for name, address, size in listed:
        number = number + 1 if name == before else 0
        before = name
        functions[f"{name}:{number}"] = address, size
    return functions
