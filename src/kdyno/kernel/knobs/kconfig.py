"""kconfig = {HZ_1000 = true} and fragments = ["small.config"]: symbols of the kernel configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.base.names import all_absolute
from kdyno.base.text import clean
from kdyno.kernel.knobs.base import Contribution, Host, KconfigRequest, Knob, KnobContext
from kdyno.kernel.recipe import KconfigValue

SYMBOL = re.compile(r"(?:CONFIG_)?([A-Za-z0-9_]+)")
SET = re.compile(r"CONFIG_([A-Za-z0-9_]+)=(.*)")
UNSET = re.compile(r"# CONFIG_([A-Za-z0-9_]+) is not set")
BARE = re.compile(r"[ymn]|0[xX][0-9A-Fa-f]+|-?[0-9]+")
"""Values that .config writes without quotes."""
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
COMMANDS = re.compile(r"[$`;&|<>\\\x00-\x1f\x7f]")
"""Characters that begin, end or redirect a command. Make includes all values as they are, and puts some into commands.
"""
ARGUMENTS = ("INITRAMFS_SOURCE",)
"""Symbols whose words are arguments of a script of the kernel: that one takes `-o FILE`, to write to."""
SHOWN = 80
"""Characters of a value, in messages."""
MOST_BYTES = 10_000_000
"""Bytes of a configuration or a fragment; a .config with all options is 0.3 MB."""


class SymbolUnfit(UserError):
    message = "`{symbol}` is not a valid name of a Kconfig symbol"
    hint = "letters, digits and underscores, with or without CONFIG_"


class ValueUnfit(UserError):
    message = "CONFIG_{symbol} can't be {value!r}"
    hint = 'a value is true, false, "y", "m", "n", a number or a text on one line'


class ValueRuns(UserError):
    message = "{by} sets CONFIG_{symbol} to {value}: {why}"
    hint = (
        "make puts values of the configuration into commands as they are: none may hold $ ` ; & | < > or \\, and words "
        "for the kernel command line can go into `cmdline` of the recipe instead"
    )


class FragmentMissing(UserError):
    message = "can't read the Kconfig fragment {path}: {why}"
    hint = "check the path: those in an experiment are relative to its file"


class FragmentUnfit(UserError):
    """A line of a fragment is not valid. The line itself isn't shown: such a file may be anything, such as a key."""

    message = "{path}:{line}: line {line} is not a line of Kconfig"
    hint = "write CONFIG_SYMBOL=value, or `# CONFIG_SYMBOL is not set`, or a comment"


def check(value: Mapping[str, KconfigValue], host: Host) -> None:  # noqa: ARG001
    """Raise SymbolUnfit, ValueUnfit and ValueRuns."""
    refuse_commands(_all_inline(value))


def contribute(value: Mapping[str, KconfigValue], context: KnobContext) -> Contribution:  # noqa: ARG001
    """Return the symbols that are written in the recipe itself."""
    return Contribution(asks=_all_inline(value))


def check_fragments(value: Sequence[str], host: Host) -> None:  # noqa: ARG001
    """Raise FragmentMissing, FragmentUnfit and ValueRuns."""
    read_fragments(value)


def contribute_fragments(value: Sequence[str], context: KnobContext) -> Contribution:  # noqa: ARG001
    """Return the files of fragments; their content counts, not their names."""
    return Contribution(asks=read_fragments(value))


def read_fragments(paths: Sequence[str]) -> tuple[KconfigRequest, ...]:
    """Return the asks of all fragments that a recipe names. Raise ValueRuns."""
    asks = tuple(request for path in paths for request in read_fragment(Path(path)))
    refuse_commands(asks)
    return asks


def _all_inline(value: Mapping[str, KconfigValue]) -> tuple[KconfigRequest, ...]:
    return tuple(_inline(name, asked) for name, asked in value.items())


def _inline(name: str, value: KconfigValue) -> KconfigRequest:
    symbol = SYMBOL.fullmatch(name)
    if symbol is None:
        raise SymbolUnfit(symbol=name)
    return KconfigRequest(symbol=symbol[1], value=spelled(symbol[1], value), by="kconfig")


def spelled(symbol: str, value: KconfigValue) -> str:
    """Return the value as .config spells it."""
    if isinstance(value, bool):
        return "y" if value else "n"
    text = str(value)
    if BARE.fullmatch(text):
        return text
    if not text.isprintable():
        raise ValueUnfit(symbol=symbol, value=value)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def refuse_commands(asks: Iterable[KconfigRequest]) -> None:
    """Raise ValueRuns if one of these values could be, or change, a command of the build."""
    for request in asks:
        if why := why_runs(request.symbol, request.value):
            raise ValueRuns(by=request.by, symbol=request.symbol, value=clean(request.value)[:SHOWN], why=why)


def why_runs(symbol: str, value: str) -> str:
    """Return how a value, as .config spells it, could get at a command of the build; empty if it can't. Pure.

    Kbuild writes it to include/config/auto.conf without quotes, and the top Makefile includes that.
    """
    text = re.sub(r"\\(.)", r"\1", quoted[1]) if (quoted := QUOTED.fullmatch(value)) else value
    if match := COMMANDS.search(text):
        return f"it holds {clean(match[0])}, which a command could come of"
    if symbol in ARGUMENTS and any(word.startswith("-") for word in text.split()):
        return "a word that begins with - is an option there, of a script that writes files"
    return ""


def read_fragment(path: Path) -> list[KconfigRequest]:
    """Return the asks of a fragment file."""
    try:
        text = read_whole(path, MOST_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise FragmentMissing(path=path, why=getattr(error, "strerror", None) or "it is not text") from error
    return parse_fragment(text, f"fragment {clean(path.name)}")


def parse_fragment(text: str, origin: str) -> list[KconfigRequest]:
    """Return the asks of a fragment, each with its origin (`fragment small.config`) and line as the one who asked."""
    asks = []
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        by = f"{origin}:{number}"
        if match := SET.fullmatch(line):
            asks.append(KconfigRequest(symbol=match[1], value=match[2].strip(), by=by))
        elif match := UNSET.fullmatch(line):
            asks.append(KconfigRequest(symbol=match[1], value="n", by=by))
        elif line and not line.startswith("#"):
            raise FragmentUnfit(path=origin, line=number)
    return asks


KNOB = Knob("kconfig", contribute, check)
FRAGMENTS = Knob("fragments", contribute_fragments, check_fragments, located=all_absolute)
