"""The programs of LLVM that read profiles and maps of blocks, under whatever version this host has them."""

from __future__ import annotations

import os
import re
from pathlib import Path

from kdyno.base.packages import install_advice
from kdyno.base.process import ToolMissing, attempt

MOST_LISTED = 512 << 20
"""Bytes of what they list of all code of a vmlinux: its basic blocks."""


class LlvmToolMissing(ToolMissing):
    message = "{tool} is not installed, under this name or with a version (llvm-profgen-19)"
    hint = "{way}"


def find_tool(name: str) -> str:
    """Return the newest tool of this name on the PATH, with or without a version in its name. Raise LlvmToolMissing."""
    pattern = re.compile(rf"{re.escape(name)}(-\d+)?")
    folders = [Path(folder) for folder in os.get_exec_path() if Path(folder).is_dir()]
    names = {entry.name for folder in folders for entry in folder.iterdir() if pattern.fullmatch(entry.name)}
    if not names:
        raise LlvmToolMissing(tool=name, way=install_advice("llvm-19", program=f"{name}-19"))
    return names.pop() if len(names) == 1 else max(sorted(names), key=_version)


def _version(tool: str) -> tuple[int, ...]:
    match = re.search(r"LLVM version (\d+(?:\.\d+)*)", attempt([tool, "--version"]).stdout)  # llvm-profdata 14 has none
    return tuple(map(int, match[1].split("."))) if match else ()
