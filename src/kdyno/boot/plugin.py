"""Does this QEMU load kdyno's plugin? One may be built without plugins, or speak another version of their interface."""

from __future__ import annotations

from pathlib import Path

from kdyno.base.process import ToolHangs, attempt

OUR_WORD = "kdyno-pmu:"
"""What every message of the plugin begins with."""
TIME_LIMIT = 30.0


def why_no_plugin(qemu: str, plugin: Path) -> str | None:
    """Let QEMU load the plugin without options, which the plugin refuses; None if it came so far, otherwise why not."""
    command = [qemu, "-no-user-config", "-M", "none", "-display", "none", "-plugin", str(plugin).replace(",", ",,")]
    try:
        done = attempt(command, cwd=Path("/"), timeout=TIME_LIMIT)
    except ToolHangs:
        return f"it took the plugin and did not end within {TIME_LIMIT:g} s"
    output = (done.stdout + done.stderr).strip()
    if OUR_WORD in output:
        return None
    return f"it ended with status {done.returncode}: {output[-300:] or 'it said nothing'}"
