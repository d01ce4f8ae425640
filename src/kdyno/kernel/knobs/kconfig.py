"""kconfig = {HZ_1000 = true} and fragments = ["small.config"]: symbols of the kernel configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from kdyno.errors import UserError
from kdyno.kernel.knobs.base import Ask, Context, Contribution, Knob
from kdyno.kernel.recipe import KconfigValue
from kdyno.names import all_absolute

SYMBOL = re.compile(r"(?:CONFIG_)?([A-Za-z0-9_]+)")
SET = re.compile(r"CONFIG_([A-Za-z0-9_]+)=(.*)")
UNSET = re.compile(r"# CONFIG_([A-Za-z0-9_]+) is not set")
BARE = re.compile(r"[ymn]|0[xX][0-9A-Fa-f]+|-?[0-9]+")
"""Values that .config writes without quotes."""


class SymbolUnfit(UserError):
    message = "`{symbol}` is no name of a Kconfig symbol"
    hint = "letters, digits and underscores, with or without CONFIG_"


class ValueUnfit(UserError):
    message = "CONFIG_{symbol} can't be {value!r}"
    hint = 'a value is true, false, "y", "m", "n", a number or a text on one line'


class FragmentMissing(UserError):
    message = "can't read the Kconfig fragment {path}: {why}"
    hint = "paths in an experiment are relative to its file"


class FragmentUnfit(UserError):
    message = "{path}:{line}: `{text}` is no line of Kconfig"
    hint = "a line is CONFIG_SYMBOL=value, or `# CONFIG_SYMBOL is not set`, or a comment"


def contribute(value: Mapping[str, KconfigValue], context: Context) -> Contribution:  # noqa: ARG001
    """Symbols written into the recipe itself."""
    return Contribution(asks=tuple(_inline(name, asked) for name, asked in value.items()))


def contribute_fragments(value: Sequence[str], context: Context) -> Contribution:  # noqa: ARG001
    """Files of fragments; their content counts, not their names."""
    return Contribution(asks=read_fragments(value))


def read_fragments(paths: Sequence[str]) -> tuple[Ask, ...]:
    """The asks of all fragments that a recipe names."""
    return tuple(ask for path in paths for ask in read_fragment(Path(path).expanduser()))


def _inline(name: str, value: KconfigValue) -> Ask:
    symbol = SYMBOL.fullmatch(name)
    if symbol is None:
        raise SymbolUnfit(symbol=name)
    return Ask(symbol=symbol[1], value=spelled(symbol[1], value), by="kconfig")


def spelled(symbol: str, value: KconfigValue) -> str:
    """The value as .config spells it."""
    if isinstance(value, bool):
        return "y" if value else "n"
    text = str(value)
    if BARE.fullmatch(text):
        return text
    if not text.isprintable():
        raise ValueUnfit(symbol=symbol, value=value)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def read_fragment(path: Path) -> list[Ask]:
    """The asks of a fragment file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FragmentMissing(path=path, why=getattr(error, "strerror", None) or "it is not text") from error
    return parse_fragment(text, f"fragment {path.name}")


def parse_fragment(text: str, origin: str) -> list[Ask]:
    """The asks of a fragment, each with its origin (`fragment small.config`) and line as the one who asked."""
    asks = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        by = f"{origin}:{number}"
        if match := SET.fullmatch(line):
            asks.append(Ask(symbol=match[1], value=match[2].strip(), by=by))
        elif match := UNSET.fullmatch(line):
            asks.append(Ask(symbol=match[1], value="n", by=by))
        elif line and not line.startswith("#"):
            raise FragmentUnfit(path=origin, line=number, text=line)
    return asks


KNOB = Knob("kconfig", contribute)
FRAGMENTS = Knob("fragments", contribute_fragments, located=all_absolute)
