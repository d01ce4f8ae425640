"""What localmodconfig says of the loaded modules that it keeps no symbol for: scripts/kconfig/streamline_config.pl."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kdyno.base.errors import Unbuildable
from kdyno.base.text import format_count, format_list
from kdyno.kernel.kconfig import Base

_UNKNOWN = re.compile(r"(\S{1,64}) config not found!!")
"""No Makefile of the source has an object of this name."""
_UNSET = re.compile(r"module (\S{1,64}) did not have configs(?: CONFIG_\w{1,100}){1,50}")
"""The configuration that it began with has no symbol of the module."""


class NoModuleKept(Unbuildable):
    message = "{spec} leaves no loaded module: {why}"
    hint = (
        "pass lsmod=FILE with the output of lsmod, and config=FILE with the configuration of the same machine's kernel"
    )


def check_loaded_modules(base: Base, output: Iterable[str]) -> tuple[str, ...]:
    """Return notes on the loaded modules that the configuration will lack; raise NoModuleKept if it has none of them,
    because such a kernel rarely finds its disk.

    `output` is the lines of all commands that made the configuration.
    """
    if not base.lsmod:
        return ()
    lines = list(output)
    unknown = sorted({match[1] for line in lines if (match := _UNKNOWN.fullmatch(line.strip()))})
    unset = sorted({match[1] for line in lines if (match := _UNSET.fullmatch(line.strip()))})
    notes = tuple(
        f"{format_count(len(modules), 'loaded module')} {why}: {format_list(modules, 8)}"
        for modules, why in (
            (unknown, "not in this source, so the kernel lacks them"),
            (unset, "without a symbol in the configuration that localmodconfig began with"),
        )
        if modules
    )
    listed = {words[0] for line in base.lsmod.split("\n") if (words := line.split()) and words[0] != "Module"}
    if listed and len(unknown) + len(unset) >= len(listed):
        raise NoModuleKept(spec=base.spec, why="; ".join(notes))
    return notes
