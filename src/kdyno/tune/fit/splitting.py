"""Which of many symbols a kernel can't do without, with few kernels. A generator that asks for trials.

All are switched off together. Where that kernel fails, each half is tried on top of what is known to do, and a group
that does is never opened: a culprit among n symbols costs about 2 log2(n) kernels (Hwang: A method for detecting all
defective members in a population by group testing, JASA 1972). Each kernel that passes has all that was found before
switched off, so that symbols which fail only together are found, too.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class WontDo:
    """The answer to a trial that failed."""

    why: str
    is_built: bool = True
    """False: its configuration alone said so, which takes seconds, and no kernel was spent on it."""


Trials = Generator[tuple[str, ...], WontDo | None, None]
"""Asks for a kernel without the symbols that it yields; the answer is why that one won't do, None if it does."""


@dataclass
class Splitting:
    """The state of a search; `run` carries it out, and leaves here what it found."""

    most: int
    """Kernels that may be built."""
    disabled: tuple[str, ...] = ()
    """What a kernel that passed was without: the last one that did."""
    culprits: dict[str, str] = field(default_factory=dict)
    """By symbol, why a kernel without it won't do."""
    untried: dict[str, str] = field(default_factory=dict)
    """Symbols that there was no kernel left for, and why the last kernel without them, and others, wouldn't do."""
    kernels: int = 0
    """How many were built."""

    def run(self, symbols: Sequence[str]) -> Trials:
        if symbols:
            yield from self._without(tuple(symbols), "")

    def _without(self, group: tuple[str, ...], why: str) -> Trials:
        """Switch off what can be of the group; `why` a larger group failed."""
        if self.kernels == self.most:
            self.untried |= dict.fromkeys(group, why)
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
                yield from self._without(half, failure.why)
