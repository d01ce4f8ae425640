"""The terminal output and the picture of `kdyno lab sizes`. Pure."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping

from kdyno.base.text import clean, format_list
from kdyno.understand.lab.sizes import CallSizes, RoutineCalls, When, sum_by_size

FREQUENT = 4
"""The number of sizes that are listed."""
WIDTH, ROW, LABEL, VALUE, HEADING, EDGE = 760, 15, 110, 190, 26, 12
"""Sizes in pixels; the picture is scaled to the width of the page."""
BAR = WIDTH - LABEL - VALUE
FONT = 'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="11"'
INK, SOFT, CALLS, WORK = "#1b1f24", "#57606a", "#3b6ea8", "#d9822b"


def size_lines(report: CallSizes, when: When | None) -> list[str]:
    """Return the report as lines of text, of one phase or of the whole boot."""
    rows = [f"{'routine':<14} {'calls':>10} {'median':>7} {'90 %':>7} {'99 %':>7} {'aligned':>8}  most frequent sizes"]
    for family in report.families:
        if family.total(when):
            rows.append(_row(family, when))
    return [
        *rows,
        "",
        f"load {clean(format_list(report.load))}, seed {report.seed}: {_phase(when)}",
        f"Linux {report.kernel}, image {report.image[:12]}: exact counts in an emulated guest",
        f"{report.lost:,} calls whose return wasn't seen are left out",
        "calls that a compiler inlined aren't among them; aligned: both addresses are multiples of 8",
        *([f"{report.undirected:,} user copies of no bytes are left out, too"] if report.undirected else []),
        *report.notes,
    ]


def _phase(when: When | None) -> str:
    return {
        "measured": "calls in its measured loops",
        "other": "calls outside of its measured loops",
        None: "all calls of the boot",
    }[when]


def _row(family: RoutineCalls, when: When | None) -> str:
    counts = sum_by_size(family, when)
    total = sum(counts.values())
    aligned = sum(call.count for call in family.calls if when in (None, call.when) and not (call.to | call.from_) % 8)
    frequent = sorted(counts.items(), key=lambda item: -item[1])[:FREQUENT]
    shares = ", ".join(f"{size:,} ({100 * count / total:.0f} %)" for size, count in frequent)
    quantiles = " ".join(f"{quantile(counts, share):>7,}" for share in (0.5, 0.9, 0.99))
    return f"{family.family:<14} {total:>10,} {quantiles} {100 * aligned / total:>6.0f} %  {shares}"


def quantile(counts: Mapping[int, int], share: float) -> int:
    """Return the smallest size up to which at least a share of the calls is."""
    total, below = sum(counts.values()), 0
    for size, count in counts.items():
        below += count
        if below >= share * total:
            return size
    raise ValueError("there are no calls")


def size_classes(counts: Mapping[int, int]) -> list[tuple[str, int, int]]:
    """Return the name, the calls and the bytes of each class of sizes: 0, 1, 2-3, 4-7, ..., from the first with calls
    to the last.
    """
    rows: dict[int, list[int]] = {}
    for size, count in counts.items():
        row = rows.setdefault(size.bit_length(), [0, 0])
        row[0] += count
        row[1] += count * size
    if not rows:
        return []
    return [(_class_name(bits), *rows.get(bits, (0, 0))) for bits in range(min(rows), max(rows) + 1)]


def _class_name(bits: int) -> str:
    low, high = (1 << bits) >> 1, (1 << bits) - 1
    return f"{low:,}" if low >= high else f"{low:,}-{high:,}"


def size_plot(report: CallSizes, when: When | None) -> str:
    """Return bars for each class of sizes of each family: its share of the calls, and of the bytes."""
    parts, y = list[str](), EDGE
    for family in report.families:
        if not family.total(when):
            continue
        drawn = list(_bars(family, when))
        parts.append(f'<g transform="translate({EDGE} {y})">' + "\n".join(drawn) + "</g>")
        y += HEADING + ROW * len(size_classes(sum_by_size(family, when))) + EDGE
    caption = f"{clean(format_list(report.load))}: {_phase(when)}; Linux {report.kernel}, exact counts"
    parts.append(_text(EDGE, y + EDGE, caption, SOFT))
    height = y + 3 * EDGE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 2 * EDGE} {height}" width="100%" role="img" '
        f'aria-label="calls of routines by size" {FONT}>\n'
        f'<rect width="{WIDTH + 2 * EDGE}" height="{height}" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _bars(family: RoutineCalls, when: When | None) -> Iterator[str]:
    classes = size_classes(sum_by_size(family, when))
    calls = max(1, sum(count for _, count, _ in classes))
    work = max(1, sum(size for _, _, size in classes))
    yield _text(0, 12, f"{family.family}, {family.size}: {calls:,} calls", INK, "13")
    yield _text(WIDTH - VALUE + 8, 12, "of calls", CALLS)
    yield _text(WIDTH - VALUE + 98, 12, "of bytes", WORK)
    for place, (name, count, size) in enumerate(classes):
        y = HEADING - 6 + ROW * place
        yield _text(LABEL - 6, y + 10, name, SOFT, anchor="end")
        for offset, share, colour in ((0, count / calls, CALLS), (6, size / work, WORK)):
            yield f'<rect x="{LABEL}" y="{y + offset}" width="{BAR * share:.1f}" height="6" fill="{colour}"/>'
        yield _text(WIDTH - VALUE + 8, y + 10, f"{100 * count / calls:.1f} %", SOFT)
        yield _text(WIDTH - VALUE + 98, y + 10, f"{100 * size / work:.1f} %", SOFT)


def _text(x: float, y: float, text: str, colour: str, size: str = "", anchor: str = "") -> str:
    larger = f' font-size="{size}"' if size else ""
    anchored = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:g}" y="{y:g}" fill="{colour}"{larger}{anchored}>{html.escape(text)}</text>'
