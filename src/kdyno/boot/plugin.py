"""A check that this QEMU loads kdyno's plugin: it may lack plugins, or have another version of their interface."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kdyno.base.process import ToolHangs, attempt

OUR_WORD = "kdyno-pmu:"
"""The prefix of every message of the plugin."""
TIME_LIMIT = 30.0


NO_MACHINE = ("-no-user-config", "-M", "none", "-display", "none")
"""The words for a system emulator that starts nothing."""


def why_no_plugin(qemu: Sequence[str], plugin: Path, program: Sequence[str] = ()) -> str | None:
    """Let QEMU load the plugin without options, which the plugin refuses. Return why it failed; None if it loaded.

    A user-mode emulator needs a `program`, which it doesn't start.
    """
    command = [*qemu, "-plugin", str(plugin).replace(",", ",,"), *program]
    try:
        done = attempt(command, cwd=Path("/"), timeout=TIME_LIMIT)
    except ToolHangs:
        return f"it loaded the plugin, but did not end within {TIME_LIMIT:g} s"
    output = (done.stdout + done.stderr).strip()
    if OUR_WORD in output:
        return None
    return f"it ended with status {done.returncode}: {output[-300:] or 'without a message'}"
