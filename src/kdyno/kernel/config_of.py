"""The configuration that a bzImage was built with, if one lies at its place."""

from __future__ import annotations

from pathlib import Path

from kdyno.base.files import read_whole
from kdyno.kernel.knobs.kconfig import MOST_BYTES

BUILD_TREE = ("arch", "x86", "boot", "bzImage")


def config_of(kernel: Path) -> Path | None:
    """Return `config-RELEASE` next to `vmlinuz-RELEASE`, `config` next to an image, or .config of the build tree."""
    _, dash, release = kernel.name.partition("-")
    candidates = [kernel.with_name(f"config-{release}" if dash else "config")]
    if kernel.parts[-len(BUILD_TREE) :] == BUILD_TREE:
        config = kernel.parents[len(BUILD_TREE) - 1] / ".config"
        # One that was changed after the build says nothing about the kernel.
        if config.is_file() and config.stat().st_mtime <= kernel.stat().st_mtime:
            candidates.append(config)
    return next((path for path in candidates if _is_config(path)), None)


def _is_config(path: Path) -> bool:
    """Return whether it is a kernel configuration: many other files are called `config`."""
    try:
        return b"\nCONFIG_X86=y\n" in read_whole(path, MOST_BYTES)
    except OSError:
        return False
