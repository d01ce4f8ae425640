"""The properties of this host, for the record."""

from __future__ import annotations

import contextlib
import os
import platform
from pathlib import Path
from typing import Any


def host_facts() -> dict[str, Any]:
    """Return CPU model, number of CPUs, memory in MB, kernel, distribution; facts that can't be read are left out."""
    facts: dict[str, Any] = {"kernel": platform.release(), "cpus": os.cpu_count()}
    facts["cpu"] = _field(Path("/proc/cpuinfo"), "model name")
    if memory := _field(Path("/proc/meminfo"), "MemTotal"):
        facts["memory_mb"] = int(memory.split()[0]) // 1024
    with contextlib.suppress(OSError):
        facts["distribution"] = platform.freedesktop_os_release().get("PRETTY_NAME")
    return {name: value for name, value in facts.items() if value is not None}


def _field(path: Path, name: str) -> str | None:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), None)
