"""order = "FILE": the functions that a file names come first in the kernel's text, in its order; see docs/layout.md."""

from __future__ import annotations

import re
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.base.names import absolute
from kdyno.kernel import lkd
from kdyno.kernel.inputs import MOST_BYTES, InputUnreadable, read_input
from kdyno.kernel.knobs.base import Contribution, Host, Knob, KnobContext
from kdyno.kernel.knobs.layout_seed import ordered

NAME = "order"
"""The name of the knob and of its input."""
FUNCTION = re.compile(rb"[\w.$]+", re.ASCII)
SHOWN = 60
"""Bytes of a line in a message."""


class OrderUnfit(UserError):
    message = "{path} is not a valid function order: {why}"
    hint = "write one function a line, as `ld.lld --symbol-ordering-file` takes it; `#` starts a comment"


def check(value: str | None, host: Host) -> None:  # noqa: ARG001
    """Raise the errors of `check_file`."""
    if value is not None:
        check_file(Path(value))


def contribute(value: str | None, context: KnobContext) -> Contribution:
    """Return the contribution; objects are the same whatever the order is: only lkd reads it."""
    if value is None:
        return Contribution()
    order = read_input(NAME, Path(value), context.state)
    environment = {**lkd.environment(context.linker), lkd.ORDER: order.placeholder}
    return ordered(f'order = "{value}"', context).model_copy(update={"environment": environment, "inputs": (order,)})


def check_file(path: Path) -> None:
    """Raise InputUnreadable, or OrderUnfit for a file that names no function or has lines that are not names."""
    try:
        text = read_whole(path, MOST_BYTES)
    except OSError as error:
        raise InputUnreadable(path=path, name=NAME, why=error.strerror) from error
    names = [line.partition(b"#")[0].strip() for line in text.splitlines()]
    if not any(names):
        raise OrderUnfit(path=path, why="it names no function")
    for number, name in enumerate(names, start=1):
        if name and not FUNCTION.fullmatch(name):
            shown = name[:SHOWN].decode(errors="backslashreplace")
            raise OrderUnfit(path=path, why=f"line {number} is `{shown}`")


def located(value: str | None, base: Path) -> str | None:
    return value if value is None else absolute(value, base)


KNOB = Knob(NAME, contribute, check, located=located)
