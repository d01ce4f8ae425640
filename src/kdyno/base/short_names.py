"""Names that fit in a column, shortened in the middle so that each still belongs to one name only. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rich.cells import cell_len

GAP = "…"
"""The mark in place of the omitted characters."""
MOST_WINDOWS = 64
"""Parts of a name's middle that are tried, so that thousands of long names take seconds at most."""
LONG_ENDS = 8
"""Characters that all names have in common at their ends are shortened first if they are so many."""


def shorten_names(names: Sequence[str], width: int) -> Mapping[str, str]:
    """Return the text to show for each name, at most `width` columns wide if `width` is at least 6.

    A name that fits is shown whole. If all others begin and end alike, these ends are shortened. Else the beginning and
    the end of a name are shown, as evenly as possible, with `…` between them; if other names begin and end like this,
    too, uneven parts are taken, then a part of the middle as well, and last the place of the name among `names`. So two
    names are never shown alike.
    """
    distinct = tuple(dict.fromkeys(names))
    shown = {name: name for name in distinct if cell_len(name) <= width}
    long_names = [name for name in distinct if name not in shown]
    unique = _Unique(distinct)
    ends = _common_ends(long_names)
    taken = set(distinct)
    for place, name in enumerate(distinct, start=1):
        if name in shown:
            continue
        candidates = (part for part in _candidates(name, width, ends) if part.text not in taken)
        first = next((part.text for part in candidates if unique.has_parts(name, *part.places)), "")
        shown[name] = first or _numbered(name, place, width)
        taken.add(shown[name])
    return {name: shown[name] for name in distinct}


@dataclass(frozen=True)
class _ShortName:
    text: str
    places: tuple[int, int, int, int]
    """The characters that are shown: so many of the beginning, from one place to another, so many of the end."""


class _Unique:
    """Answers whether only one of the names has certain parts at certain places."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._counts: dict[tuple[int, int, int, int], Counter[tuple[str, str, str]]] = {}

    def has_parts(self, name: str, head: int, start: int, end: int, tail: int) -> bool:
        """Return whether no other name has the same first `head` characters, the same ones from `start` to `end`, and
        the same last `tail`.
        """
        part = partial(_parts, head=head, start=start, end=end, tail=tail)
        counts = self._counts.setdefault((head, start, end, tail), Counter())
        if not counts:
            counts.update(map(part, self._names))
        return counts[part(name)] == 1


def _parts(name: str, *, head: int, start: int, end: int, tail: int) -> tuple[str, str, str]:
    return name[:head], name[start:end], name[len(name) - tail :] if tail <= len(name) else name


def _common_ends(names: Sequence[str]) -> tuple[int, int]:
    """Return how many characters all names have in common at the beginning, and at the end, up to a place between
    words, which is left out; 0 for too few.
    """
    if len(names) < 2:
        return 0, 0
    head, tail = _common_start(names), _common_start([name[::-1] for name in names])
    return (head, tail) if head + tail >= LONG_ENDS and head + tail < min(map(len, names)) else (0, 0)


def _common_start(texts: Sequence[str]) -> int:
    """Return how many characters come before the last one that ends a word, of those that all texts begin with."""
    first, last = min(texts), max(texts)
    common = next(
        (place for place, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first)
    )
    return max((place for place, character in enumerate(first[:common]) if not character.isalnum()), default=0)


def _candidates(name: str, width: int, ends: tuple[int, int]) -> Iterator[_ShortName]:
    """Yield shortened forms of a name, the most readable first."""
    if any(ends):
        yield from _with_core(name, width, *ends)
    for head, tail in _splits(name, width - 1):
        yield _ShortName(f"{name[:head]}{GAP}{name[len(name) - tail :]}", (head, 0, 0, tail))
    for end_width in ((width - 2) // 3, 1):
        yield from _with_window(name, width, end_width)


def _with_window(name: str, width: int, end_width: int) -> Iterator[_ShortName]:
    """Yield the forms with a part of the middle, and `end_width` columns of the beginning and of the end."""
    head, tail = _fitting(name, end_width), _fitting(name[::-1], end_width)
    window = width - 2 - 2 * end_width
    if not head or not tail or window < 1:
        return
    starts = range(head + 1, len(name) - tail)
    for start in starts[:: max(1, window // 2, len(starts) // MOST_WINDOWS)]:
        end = start + _fitting(name[start : len(name) - tail - 1], window)
        text = f"{name[:head]}{GAP}{name[start:end]}{GAP}{name[len(name) - tail :]}"
        yield _ShortName(text, (head, start, end, tail))


def _with_core(name: str, width: int, head: int, tail: int) -> Iterator[_ShortName]:
    """Yield the form with all that is between the first `head` characters and the last `tail`, if it fits."""
    end = len(name) - tail
    core = name[head:end]
    space = width - cell_len(core)
    if space < bool(head) + bool(tail):
        return
    right_width = 0 if not tail else space if not head else min(space // 2, cell_len(name[end:]))
    left = _fitting(name[:head], max(0, space - right_width - 1))
    right = _fitting(name[end:][::-1], max(0, right_width - 1))
    before = f"{name[:left]}{GAP}" if head else ""
    after = f"{GAP}{name[len(name) - right :]}" if tail else ""
    yield _ShortName(f"{before}{core}{after}", (left, head, end, right))


def _splits(name: str, width: int) -> list[tuple[int, int]]:
    """Return how many characters at the beginning and the end fit together, the most even pair first."""
    pairs = []
    for head in range(1, len(name)):
        remaining_width = width - cell_len(name[:head])
        if remaining_width < 1:
            break
        if tail := _fitting(name[:head:-1], remaining_width):
            pairs.append((head, tail))
    return sorted(pairs, key=lambda pair: abs(pair[0] - pair[1]))


def _fitting(text: str, width: int) -> int:
    """Return how many of the first characters of a text fit in `width` columns."""
    columns = 0
    for number, character in enumerate(text):
        columns += cell_len(character)
        if columns > width:
            return number
    return len(text)


def _numbered(name: str, place: int, width: int) -> str:
    number = f"{GAP}{place}"
    return f"{name[: _fitting(name, max(0, width - len(number)))]}{number}"
