"""Heat maps of routines: the fastest candidate by size and offset, as one SVG without scripts. Pure."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass

from kdyno.base.text import clean
from kdyno.kernel.routines.families import Mode
from kdyno.understand.lab.verdicts import FixedCell, LabTimes, RoutineTimesReport, Winner

CELL_WIDTH, CELL_HEIGHT, LABEL_WIDTH, HEADING, GAP, EDGE = 37, 20, 64, 24, 14, 12
"""Sizes in pixels; the picture is scaled to the width of the page."""
LEGEND_LINE = 16
FONT = 'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="11"'
INK, SOFT, OWN_COLOUR, OPEN_COLOUR = "#1b1f24", "#57606a", "#dfe2e6", "#f4f1e6"
FASTER, FASTEST = (214, 238, 220), (23, 113, 63)
"""The colours of a small gain and of one of FULL."""
FULL = 0.6
"""The reduction of cycles that gets the full colour."""
DARK = 0.3
"""The reduction from which text is white."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class _Drawing:
    """Parts of an SVG, with their size in pixels."""

    parts: tuple[str, ...]
    width: int
    height: int


def heat_map(report: LabTimes) -> str:
    """Return the picture of all families, one below the other."""
    parts, y, width = list[str](), EDGE, 0
    for family in report.families:
        drawing = _family(family)
        parts.append(f'<g transform="translate({EDGE} {y})">' + "\n".join(drawing.parts) + "</g>")
        y += drawing.height + 2 * GAP
        width = max(width, drawing.width)
    caption = f"lane wall, cycles of the core per call, {report.cpu}; {report.source}; {report.blocks} blocks"
    parts.append(_text(EDGE, y, clean(caption), SOFT))
    width, height = max(width, 7 * len(caption)) + 2 * EDGE, y + EDGE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="100%" role="img" '
        f'aria-label="the fastest routines by size and offset" {FONT}>\n'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _family(family: RoutineTimesReport) -> _Drawing:
    letters = {candidate.name: LETTERS[place] for place, candidate in enumerate(family.candidates)}
    parts = [_text(0, 12, f"{family.family}: a kernel takes {letters[family.own]}, {family.own}", INK, "14")]
    y, width = HEADING, 0
    for mode in dict.fromkeys(cell.mode for cell in family.fixed):
        panel = _panel(family, mode, letters)
        parts.append(f'<g transform="translate(0 {y})">' + "\n".join(panel.parts) + "</g>")
        y += panel.height + GAP
        width = max(width, panel.width)
    y += LEGEND_LINE // 2
    for text in _legend(letters, family):
        parts.append(_text(0, y, text, SOFT))
        y += LEGEND_LINE
        width = max(width, 7 * len(text))
    return _Drawing(tuple(parts), width, y - LEGEND_LINE // 2)


def _legend(letters: dict[str, str], family: RoutineTimesReport) -> Iterator[str]:
    names = [f"{letter} {name}" for name, letter in letters.items()]
    yield "; ".join(names)
    yield "number: change of cycles in percent; grey: the kernel's own is best; pale: no clear difference"
    yield f"columns: {family.size}; rows: offsets {family.offsets_meaning}"


def _short(size: int) -> str:
    """Return `4,096` or `16K`: a column is narrow."""
    return f"{size:,}" if size < 10_000 or size % 1024 else f"{size // 1024}K"


def _panel(family: RoutineTimesReport, mode: Mode, letters: dict[str, str]) -> _Drawing:
    cells = [cell for cell in family.fixed if cell.mode == mode]
    sizes = list(dict.fromkeys(cell.size for cell in cells))
    offsets = list(dict.fromkeys(cell.offsets for cell in cells))
    parts = [_text(0, 13, mode, INK)]
    parts += [
        _text(LABEL_WIDTH + CELL_WIDTH * column + CELL_WIDTH / 2, 13, _short(size), SOFT, anchor="middle")
        for column, size in enumerate(sizes)
    ]
    for cell in cells:
        x = LABEL_WIDTH + CELL_WIDTH * sizes.index(cell.size)
        parts.append(_cell(cell, x, HEADING - 4 + CELL_HEIGHT * offsets.index(cell.offsets), letters))
    parts += [
        _text(LABEL_WIDTH - 6, HEADING + 10 + CELL_HEIGHT * row, f"{to},{from_}", SOFT, anchor="end")
        for row, (to, from_) in enumerate(offsets)
    ]
    return _Drawing(tuple(parts), LABEL_WIDTH + CELL_WIDTH * len(sizes), HEADING - 4 + CELL_HEIGHT * len(offsets))


def _cell(cell: FixedCell, x: int, y: int, letters: dict[str, str]) -> str:
    winner = cell.winner
    gain = 1 - winner.ratio if winner.is_faster else 0.0
    text = letters[winner.name] + (f"{round(-100 * gain)}" if winner.is_faster else "")
    colour = "#ffffff" if gain >= DARK else INK if winner.is_faster else SOFT
    title = _tooltip(winner)
    return (
        f"<g><title>{html.escape(title)}</title>"
        f'<rect x="{x}" y="{y}" width="{CELL_WIDTH - 1}" height="{CELL_HEIGHT - 1}" fill="{_colour(winner, gain)}"/>'
        f"{_text(x + (CELL_WIDTH - 1) / 2, y + 14, text, colour, anchor='middle')}</g>"
    )


def _tooltip(winner: Winner) -> str:
    """Return the cycles of the kernel's own choice, and those of another one that was chosen."""
    own = f"own {winner.own_cycles:.1f}"
    return own if winner.is_own else f"{winner.cycles:.1f}, {own}: {winner.verdict}"


def _colour(winner: Winner, gain: float) -> str:
    if not winner.is_faster:
        return OWN_COLOUR if winner.is_own else OPEN_COLOUR
    part = min(gain / FULL, 1.0)
    mixed = (round(low + (high - low) * part) for low, high in zip(FASTER, FASTEST, strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def _text(x: float, y: float, text: str, colour: str, size: str = "", anchor: str = "") -> str:
    larger = f' font-size="{size}"' if size else ""
    anchored = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:g}" y="{y:g}" fill="{colour}"{larger}{anchored}>{html.escape(text)}</text>'
