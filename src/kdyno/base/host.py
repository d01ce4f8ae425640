"""The properties of a host, for the record: of this one, or of one whose files were copied below a directory."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

LONGEST = 200
"""The most characters of a name: the files may be those of another host, which nobody vouches for."""
KILOBYTES = re.compile(r"([0-9]{1,15}) kB")


def host_facts() -> dict[str, Any]:
    """Return CPU model, number of CPUs, memory in MB, kernel, distribution; facts that can't be read are left out."""
    return {"kernel": platform.release(), "cpus": os.cpu_count(), **described_host(Path("/"))}


def described_host(root: Path) -> dict[str, Any]:
    """Return CPU model, memory in MB and distribution by the files below a root; what can't be read is left out."""
    memory = KILOBYTES.fullmatch(proc_field(root / "proc/meminfo", "MemTotal") or "")
    name = proc_field(root / "etc/os-release", "PRETTY_NAME", "=")
    facts = {
        "cpu": proc_field(root / "proc/cpuinfo", "model name"),
        "memory_mb": int(memory[1]) // 1024 if memory else None,
        "distribution": name and name.strip("\"'"),
    }
    return {fact: value for fact, value in facts.items() if value is not None}


def proc_field(path: Path, name: str, separator: str = ":") -> str | None:
    """Return the value of the first line with this name; None if there is none, or the file can't be read."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    pairs = (line.partition(separator) for line in lines)
    return next((value.strip()[:LONGEST] for key, found, value in pairs if found and key.strip() == name), None)
