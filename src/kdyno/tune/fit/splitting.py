"""Finds the symbols that a kernel needs with few kernels. A generator that asks for trials.

All symbols are switched off together. If that kernel fails, each half is tried on top of the symbols that are known to
be unnecessary. A group that passes is never split: a culprit among n symbols costs about 2 log2(n) kernels (Hwang: A
method for detecting all defective members in a population by group testing, JASA 1972). In each kernel that passes all
unnecessary symbols are off, so that symbols which fail only together are found, too.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class WontDo:
    """The answer to a trial that failed."""

    why: str
    is_built: bool = True
    """False if its configuration failed, which takes seconds, and no kernel was built."""


Trials = Generator[tuple[str, ...], WontDo | None, None]
"""Asks for a kernel without the symbols that it yields. The answer is the failure of the kernel, or None."""


@dataclass
class Splitting:
    """The state of a search. `run` carries it out, and stores its results here."""

    most: int
    """The most kernels that may be built."""
    disabled: tuple[str, ...] = ()
    """The symbols that are off in the last kernel that passed."""
    culprits: dict[str, str] = field(default_factory=dict)
    """By symbol, why a kernel without it fails."""
    untried: dict[str, str] = field(default_factory=dict)
    """By symbol that was not tried alone, why the last kernel without it and others failed."""
    kernels: int = 0
    """The number of kernels that were built."""

    def run(self, symbols: Sequence[str]) -> Trials:
        """Carry out the search among these symbols."""
        if symbols:
            yield from self._disable(tuple(symbols), "")

    def _disable(self, group: tuple[str, ...], reason: str) -> Trials:
        """Switch off the unnecessary symbols of the group; `reason` is why a larger group failed."""
        if self.kernels == self.most:
            self.untried |= dict.fromkeys(group, reason)
            return
        failure = yield (*self.disabled, *group)
        self.kernels += failure is None or failure.is_built
        if failure is None:
            self.disabled = (*self.disabled, *group)
        elif len(group) == 1:
            self.culprits[group[0]] = failure.why
        else:
            middle = len(group) // 2
            for half in (group[:middle], group[middle:]):
                yield from self._disable(half, failure.why)
