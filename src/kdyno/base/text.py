"""Text to show: text from guests made safe, since it may hold anything, and numbers with as many digits as people
read.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence

from kdyno.base.names import printable

ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor movement
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # window titles, clipboard
    r"|\x1b[ -/]*[0-~]"
)
UNSHOWN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Unicode categories that steer instead of show: controls, direction overrides, invisible separators."""
LINE_ENDS = re.compile(r"[\t\n\v\f\r]+")


def clean(text: str) -> str:
    """Return the text as one line: escape sequences gone, controls as `\\x07`, line ends as spaces."""
    return _visible(" ".join(_strip_escapes(text).split()))


def clean_line(text: str) -> str:
    """Return the text as one line whose columns stay: like `clean`, but spaces are kept."""
    return _visible(LINE_ENDS.sub(" ", _strip_escapes(text)))


def clean_lines(text: str) -> str:
    """Return a whole console cleaned, its lines and tabs kept."""
    lines = _strip_escapes(text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(_visible(line.replace("\t", "        ")) for line in lines)


def cut(text: str, most: int) -> str:
    """Return the text itself, or its beginning and its end if it has more characters."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} [... {len(text) - 2 * half:,} characters left out ...] {text[-half:]}"


def harmless_json(text: str) -> str:
    """Return the same JSON in a form that no terminal obeys: characters that steer are written as `\\u009b`.

    In JSON only strings hold such characters, and the ASCII controls are escaped anyway.
    """
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(_json_escape(c) if c > "~" and unicodedata.category(c) in UNSHOWN else c for c in text)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[position]:02x}{units[position + 1]:02x}" for position in range(0, len(units), 2))


def _strip_escapes(text: str) -> str:
    return ESCAPES.sub("", printable(text))


def _visible(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(_escape_character(c) if unicodedata.category(c) in UNSHOWN else c for c in line)


def _escape_character(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def p_value(p: float | None) -> str:
    """Return `0.032`; values below one in ten thousand are not distinguished: `< 0.0001`."""
    if p is None:
        return ""
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def number(value: float) -> str:
    """Return a number with four digits, with k, M or G for large numbers."""
    for limit, unit, suffix in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e5, 1e3, "k")):
        if value >= limit:
            return f"{value / unit:.4g}{suffix}" if value < 1e4 * unit else f"{value / unit:,.0f}{suffix}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def confidence(coverage: float) -> str:
    """Return how surely an interval covers the truth: `95 %`, `99.85 %`."""
    return f"{100 * coverage:.4g} %"


def percent(fraction: float) -> str:
    """Return a size in percent, without sign: one decimal, or two digits below 1 %. 0.031 -> `3.1`, 0.00062 ->
    `0.062`.
    """
    size = abs(100 * fraction)
    if size < 1:
        size = float(f"{size:.1e}")
    if size == 0:
        return "0"
    if size >= 1000:
        return f"{size:.1e}"
    return f"{size:.{1 if size >= 1 else min(1 - math.floor(math.log10(size)), 6)}f}"


def limit(fraction: float) -> str:
    """Return a limit that somebody chose, in percent: 0.01 -> `1`, 0.005 -> `0.5`."""
    return f"{100 * fraction:.4g}"


def format_signed(fraction: float) -> str:
    """Return a size in percent with its sign: `-3.1`, `+0.62`, `0`."""
    return ("" if fraction == 0 else "-" if fraction < 0 else "+") + percent(fraction)


def format_count(number: int, what: str) -> str:
    """Return a number with its noun: `1 block`, `1,200 blocks`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def format_list(names: Sequence[str], most: int = 4) -> str:
    """Return `a, b and 3 more`; names with commas in them are separated by semicolons."""
    between = "; " if any(", " in name for name in names) else ", "
    if len(names) <= most:
        return between.join(names)
    return f"{between.join(names[:most])} and {len(names) - most} more"
