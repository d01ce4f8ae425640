"""The differential flame graph: one SVG without scripts, and without styles that could affect the page around it.

It has two graphs on one scale: the variant above the baseline. Widths are instructions per unit of work. Both graphs
have the colours of the difference, so that a frame of only one kernel is visible.
"""

from __future__ import annotations

import html
from dataclasses import astuple, dataclass

from kdyno.base.text import clean
from kdyno.measure.guest.pmu_parts import STACK_EXCEPTION
from kdyno.understand.explain.figures import amount, change, relative
from kdyno.understand.explain.layout import Box, boxes
from kdyno.understand.explain.model import Explanation, Pair
from kdyno.understand.explain.tree import Amount, Frame, Side

WIDTH, EDGE = 1160, 10
"""Sizes in pixels; the graph is scaled to the width of the page."""
ROW, HEADING, GAP, LEGEND = 17, 26, 14, 40
CHARACTER = 6.7
"""The width of a character of FONT in pixels."""
FONT = 'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="11"'
NARROWEST = 0.6
"""The width in pixels below which a frame is left out."""
INK, SOFT, PLAIN = "#1b1f24", "#57606a", (238, 236, 231)
GREW, SHRANK = (232, 92, 80), (88, 146, 214)
ONLY = {"variant": "#8f1d14", "baseline": "#123f7a"}
"""The outlines of frames that only one kernel has."""
DASHED = 10
"""The width in pixels from which an outline is dashed."""
FULL = 0.01
"""Differences up to this share of the baseline's total don't get the full colour."""
PREFIX = {STACK_EXCEPTION: "exception: "}


@dataclass(frozen=True)
class Caption:
    """The names in the graph."""

    benchmark: str
    baseline: str
    variant: str
    unit: str

    @classmethod
    def of(cls, explanation: Explanation) -> Caption:
        return cls(explanation.benchmark, explanation.baseline, explanation.variant, explanation.unit)


def flame_graph(root: Frame, caption: Caption) -> str:
    """Draw a merged tree. The same tree gives the same text. A tree without instructions gets a message."""
    caption = Caption(*(clean(text) for text in astuple(caption)))
    widest = max(root.total.variant, root.total.baseline)
    scale = (WIDTH - 2 * EDGE) / widest if widest > 0 else 0.0
    parts: list[str] = []
    y = 0.0
    sides: tuple[tuple[Side, str], ...] = (("variant", caption.variant), ("baseline", caption.baseline))
    graphs = [(side, name, *boxes(root, side, NARROWEST / scale if scale else 1)) for side, name in sides]
    drawn = [box.frame for _, _, placed, _ in graphs for box in placed]
    full = max([FULL * root.total.baseline, *(abs(frame.total.difference) for frame in drawn)])
    for side, name, placed, left_out in graphs:
        rows = max((box.row for box in placed), default=0) + 1
        parts.append(_text(EDGE, y + 18, _heading(root, side, name, left_out, caption), INK, "13"))
        floor = y + HEADING + ROW * rows
        parts += [_frame(box, floor, scale, full, caption, side) for box in placed]
        y = floor + GAP
    parts.append(_legend(y, full, caption))
    height = round(y + LEGEND)
    label = f"{caption.benchmark}: differential flame graph of {caption.variant} against {caption.baseline}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="100%" role="img" '
        f'aria-label="{_escaped(label)}" {FONT}>\n'
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _heading(root: Frame, side: Side, name: str, left_out: int, caption: Caption) -> str:
    role = " (baseline)" if side == "baseline" else ""
    heading = f"{name}{role}: {amount(root.total.of(side))} kernel instructions per {caption.unit}"
    if not root.total.of(side):
        heading = f"{name}{role}: no stacks on record"
    return f"{heading}; {left_out} frames too small to show" if left_out else heading


def _frame(box: Box, floor: float, scale: float, full: float, caption: Caption, side: Side) -> str:
    """Return a frame as a nested SVG, which cuts its text off at its edge."""
    frame = box.frame
    x, width = EDGE + box.x * scale, max(box.width * scale, NARROWEST)
    alone = not (frame.total.baseline and frame.total.variant)
    dashes = 'stroke-width="2" stroke-dasharray="4 2"' if width >= DASHED else 'stroke-width="1"'
    outline = f'stroke="{ONLY[side]}" {dashes}' if alone else 'stroke="#fff"'
    fits = int((width - 6) / CHARACTER)
    name = _frame_name(frame)
    shown = name if len(name) <= fits else f"{name[: fits - 1]}…" if fits >= 3 else ""
    text = _text(4, 12, shown, INK) if shown else ""
    return (
        f'<svg x="{x:.2f}" y="{floor - ROW * (box.row + 1):.0f}" width="{width:.2f}" height="{ROW}">'
        f"<title>{_escaped(_tooltip(frame, caption))}</title>"
        f'<rect width="100%" height="{ROW}" fill="{_colour(frame.total.difference, full)}" {outline}/>{text}</svg>'
    )


def _frame_name(frame: Frame) -> str:
    """Return the name with the callees that are counted as its own code: `ksys_read + fput`."""
    return clean(PREFIX.get(frame.kind, "") + " + ".join([frame.name, *sorted(frame.absorbed)]))


def _tooltip(frame: Frame, caption: Caption) -> str:
    lines = [_frame_name(frame)]
    if frame.names - {frame.name}:
        lines[0] += f" ({', '.join(clean(name) for name in sorted(frame.names))})"
    if frame.absorbed:
        lines.append("counted together: one of the kernels doesn't call what is after the +")
    lines.append(f"instructions per {caption.unit}, {caption.baseline} → {caption.variant}")
    lines.append(f"with what it calls: {_both(frame.total)}")
    lines.append(f"its own code: {_both(frame.own)}")
    return "\n".join(lines)


def _both(value: Amount) -> str:
    percent = relative(Pair(baseline=value.baseline, variant=value.variant))
    difference = ", ".join(filter(None, (change(value.difference), percent)))
    return f"{amount(value.baseline)} → {amount(value.variant)} ({difference})"


def _legend(y: float, full: float, caption: Caption) -> str:
    """Return the scale of colours with its ends."""
    steps, cell = 9, 26
    cells = [
        f'<rect x="{EDGE + 130 + cell * step}" y="{y + 6:.0f}" width="{cell}" height="12" '
        f'fill="{_colour(full * (step / (steps - 1) * 2 - 1), full)}"/>'
        for step in range(steps)
    ]
    unit = f"instr/{caption.unit}"
    right = EDGE + 130 + cell * steps
    return (
        _text(EDGE, y + 16, f"{change(-full)} {unit}".rjust(18), SOFT)
        + "".join(cells)
        + _text(right + 6, y + 16, f"{change(full)} {unit}; outlined: only this kernel has it", SOFT)
    )


def _colour(difference: float, full: float) -> str:
    """Return the colour of a difference: grey for none, red for growth, blue for reduction."""
    part = min(abs(difference) / full, 1.0) if full > 0 else 0.0
    end = GREW if difference > 0 else SHRANK
    mixed = (round(plain + (full_colour - plain) * part) for plain, full_colour in zip(PLAIN, end, strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def _text(x: float, y: float, text: str, colour: str, size: str = "") -> str:
    larger = f' font-size="{size}"' if size else ""
    return f'<text x="{x:g}" y="{y:g}" fill="{colour}" xml:space="preserve"{larger}>{_escaped(text)}</text>'


def _escaped(text: str) -> str:
    return html.escape(text, quote=True)
