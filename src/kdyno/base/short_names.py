"""Names that fit in a column, shortened in the middle so that each still belongs to one name only. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from rich.cells import cell_len

GAP = "…"
"""What takes the place of the characters that are left out."""


def shorten_names(names: Sequence[str], width: int) -> Mapping[str, str]:
    """Return the text to show for each name, at most `width` columns wide if `width` is at least 6.

    A name that fits is shown whole. Of the others the beginning and the end are shown, as evenly as possible, with `…`
    between them; if other names begin and end like this, too, uneven parts are taken, then a part of the middle as
    well, and last the place of the name among `names`. So two names are never shown alike.
    """
    distinct = tuple(dict.fromkeys(names))
    shown = {name: name for name in distinct if cell_len(name) <= width}
    unique = _Unique(distinct)
    taken = set(distinct)
    for place, name in enumerate(distinct, start=1):
        if name in shown:
            continue
        candidates = (text for text, is_unique in _candidates(name, width, unique) if is_unique and text not in taken)
        shown[name] = next(candidates, "") or _numbered(name, place, width)
        taken.add(shown[name])
    return shown


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


def _candidates(name: str, width: int, unique: _Unique) -> Iterator[tuple[str, bool]]:
    """Yield shortened forms of a name, the most readable first, and whether no other name has their parts."""
    for head, tail in _splits(name, width - 1):
        yield f"{name[:head]}{GAP}{name[len(name) - tail :]}", unique.has_parts(name, head, 0, 0, tail)
    end_width = (width - 2) // 3
    head, tail = _fitting(name, end_width), _fitting(name[::-1], end_width)
    if head == 0 or tail == 0:
        return
    for start in range(head + 1, len(name) - tail):
        end = start + _fitting(name[start : len(name) - tail - 1], width - 2 - 2 * end_width)
        text = f"{name[:head]}{GAP}{name[start:end]}{GAP}{name[len(name) - tail :]}"
        yield text, unique.has_parts(name, head, start, end, tail)


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
