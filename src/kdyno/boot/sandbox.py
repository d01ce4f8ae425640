"""A check that this QEMU supports its sandbox, which leaves few system calls to a guest that breaks out."""

from __future__ import annotations

from pathlib import Path

from kdyno.base.process import ToolHangs, attempt

SANDBOX = ("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny")
"""The same options as libvirt: no other programs, users or scheduling, and no obsolete system calls."""
TIME_LIMIT = 30.0


def why_no_sandbox(qemu: str) -> str | None:
    """Let QEMU start in its sandbox and end. Return why it failed; None if it works.

    QEMU may be built without seccomp, or the kernel or a container may refuse it.
    """
    command = [qemu, *SANDBOX, "-nodefaults", "-no-user-config", "-M", "none", "-display", "none", "-monitor", "stdio"]
    try:
        done = attempt(command, cwd=Path("/"), stdin="quit\n", timeout=TIME_LIMIT)
    except ToolHangs:
        return f"it did not end within {TIME_LIMIT:g} s"
    if done.returncode == 0:
        return None
    output = (done.stdout + done.stderr).strip()
    return f"it ended with status {done.returncode}: {output[-300:] or 'without a message'}"
