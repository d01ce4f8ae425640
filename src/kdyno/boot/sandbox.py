"""Can this QEMU confine itself? A guest that breaks out of an emulator that can finds few system calls left to it."""

from __future__ import annotations

from pathlib import Path

from kdyno.base.process import ToolHangs, attempt

SANDBOX = ("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny")
"""What libvirt says, too: no other program, no other user, no other scheduling, no system calls of long ago."""
TIME_LIMIT = 30.0


def why_no_sandbox(qemu: str) -> str | None:
    """Let QEMU confine itself and end; None if it does so, otherwise why not.

    One may be built without seccomp, or the kernel or the container around it may refuse.
    """
    command = [qemu, *SANDBOX, "-nodefaults", "-no-user-config", "-M", "none", "-display", "none", "-monitor", "stdio"]
    try:
        done = attempt(command, cwd=Path("/"), stdin="quit\n", timeout=TIME_LIMIT)
    except ToolHangs:
        return f"it did not end within {TIME_LIMIT:g} s"
    if done.returncode == 0:
        return None
    output = (done.stdout + done.stderr).strip()
    return f"it ended with status {done.returncode}: {output[-300:] or 'it said nothing'}"
