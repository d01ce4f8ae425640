"""The fragment of a fit, and its report on a terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from kdyno.base.text import clean, format_count, format_signed
from kdyno.tune.fit.model import FitSymbol, Fitted
from kdyno.tune.fit.symbols import Why

IN_WORDS: dict[Why, str] = {
    "load": "stay: the load ran code of them",
    "asked": "stay: the agent, the machine, the workload or --keep needs them",
    "dependency": "stay: another one that stays depends on them",
    "selected": "stay: another one that stays selects them",
    "culprit": "stay: without them the kernel doesn't build, boot or pass",
    "untried": "stay: no kernel was left to try them with",
    "kind": "stay: of a kind that coverage can't judge",
    "choice": "stay: members of a choice",
    "derived": "stay: Kconfig sets them by others",
    "no code": "stay: no code that could be seen to run",
    "never": "off: none of their code ran",
    "start": "off: only the start of the kernel ran code of them",
    "along": "off: they went with others",
}
"""The sentence for each reason, in the order of the list."""


def fragment_text(fitted: Fitted) -> str:
    """Return a Kconfig fragment: symbols that are off or set with their reasons, then those that stay as comments."""
    assert fitted.after
    boots = format_count(len(fitted.seeds), "boot")
    head = [
        f"# Made by `kdyno fit-config {' '.join(fitted.load)}`: for this load, and for no other.",
        f"# Linux {fitted.source}, configuration {fitted.config}, {fitted.toolchain}.",
        *(f"# On top of {fragment}." for fragment in fitted.fragments),
        f"# {fitted.before.symbols:,} symbols before, {fitted.after.symbols:,} after; "
        f"bzImage {fitted.before.bzimage:,} B, then {fitted.after.bzimage:,} B.",
        f"# The kernel was built, and passed the load in {boots} (lane {fitted.lane}).",
    ]
    off_lines = [line for symbol in fitted.off for line in (f"# {symbol.text}", f"# CONFIG_{symbol.name} is not set")]
    set_lines = [
        line
        for symbol in fitted.set_alone
        for line in (f"# {symbol.text}; what selected it went", f"CONFIG_{symbol.name}=y")
    ]
    stays = [f"#   {symbol.name}: {symbol.text}" for symbol in fitted.stays]
    return "\n".join(
        [
            *map(clean, head),
            "",
            *map(clean, [*off_lines, *set_lines]),
            "",
            "# What stays, and why:",
            *map(_comment, stays),
            "",
        ]
    )


def _comment(line: str) -> str:
    return f"#   {clean(line.removeprefix('#'))}"


def lines(fitted: Fitted, top: int) -> list[str]:
    """Return the lines for a terminal: both kernels, the number of symbols by reason, and the first `top` that went."""
    counts = {reason: [symbol for symbol in fitted.symbols if symbol.why == reason] for reason in IN_WORDS}
    table = [
        f"{len(symbols):>6,}  {IN_WORDS[reason]}{_examples(symbols, reason)}"
        for reason, symbols in counts.items()
        if symbols
    ]
    modules = (
        [f"{format_count(fitted.modules, 'symbol')} are modules, of which nothing is known"] if fitted.modules else []
    )
    switched_on = [f"switched on by that: {', '.join(fitted.switched_on)}"] if fitted.switched_on else []
    return [*_kernels(fitted), "", *table, *modules, *switched_on, *_went(fitted, top)]


def _kernels(fitted: Fitted) -> list[str]:
    before, after = fitted.before, fitted.after
    if after is None:
        return [f"no symbol can be left out of image {before.key[:12]} for {' '.join(fitted.load)}"]
    rows = [
        ("symbols", before.symbols, after.symbols),
        ("bzImage, bytes", before.bzimage, after.bzimage),
        ("machine code, bytes", before.text, after.text),
        *((f"{total.name} symbols, bytes", total.before, total.after or 0) for total in fitted.sizes),
    ]
    return [
        f"image {before.key[:12]}, and {after.key[:12]} for {' '.join(fitted.load)}; "
        f"{format_count(fitted.kernels, 'kernel')} built",
        f"{'':<24} {'before':>12} {'after':>12} {'change':>9}",
        *(
            f"{name:<24} {whole_size:>12,} {small_size:>12,} {format_signed(small_size / whole_size - 1):>7} %"
            for name, whole_size, small_size in rows
            if whole_size
        ),
    ]


def _examples(symbols: list[FitSymbol], reason: Why) -> str:
    """Return a line for each symbol that is a culprit or untried: there are few of them."""
    if reason not in ("culprit", "untried"):
        return ""
    return "".join(f"\n          {symbol.name}: {clean(symbol.text)}" for symbol in symbols)


def _went(fitted: Fitted, top: int) -> Iterable[str]:
    off_symbols = [symbol for symbol in fitted.off if symbol.why != "along"]
    if not off_symbols:
        return []
    more = [f"and {len(off_symbols) - top:,} more (--top N)"] if len(off_symbols) > top else []
    return ["", "off:", *(f"  {symbol.name:<28} {clean(symbol.text)}" for symbol in off_symbols[:top]), *more]
