"""Which inlined copy of a function an instruction belongs to: the calls that it was inlined through."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kdyno.base.llvm_tools import find_tool
from kdyno.base.process import attempt, failure

SECONDS = 300


def copies(addresses: Sequence[int], vmlinux: Path) -> list[int]:
    """A number for each address, the same for instructions of one copy of a function.

    Raises LlvmToolMissing and ToolFailed.
    """
    words = [find_tool("llvm-symbolizer"), f"--obj={vmlinux}", "--inlines", "--output-style=LLVM"]
    done = attempt(words, stdin="".join(f"{address:#x}\n" for address in addresses), timeout=SECONDS)
    if done.returncode != 0:
        raise failure(words, done.returncode, done.stderr)
    return read_copies(done.stdout, len(addresses))


def read_copies(text: str, number: int) -> list[int]:
    """Of what the symbolizer prints of `number` addresses: for each its frames, the innermost first, and an empty line.

    A frame is a line with a function and one with a place in the source. The innermost place is that of the
    instruction; all else is the copy that it is in. Pure.
    """
    ids: dict[str, int] = {}
    numbers = []
    for answer in text.split("\n\n")[:number]:
        function, _, rest = answer.strip().partition("\n")
        _, _, callers = rest.partition("\n")
        numbers.append(ids.setdefault(f"{function}\n{callers}", len(ids)))
    return numbers + [-1] * (number - len(numbers))
