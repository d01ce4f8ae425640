"""The options that a kernel must have to start a box: those of systemd and ssh. Its drivers are not known here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kdyno.boot.platforms import STATES, KernelNotStartable
from kdyno.kernel.files_of import config_of
from kdyno.kernel.kconfig_check import read_config

NEEDS: Mapping[str, str] = {
    **dict.fromkeys(("BINFMT_ELF", "PROC_FS", "SYSFS", "TMPFS", "DEVTMPFS", "EPOLL"), "systemd needs it"),
    **dict.fromkeys(("CGROUPS", "INOTIFY_USER", "SIGNALFD", "TIMERFD", "FHANDLE"), "systemd needs it"),
    **dict.fromkeys(("UNIX", "NET"), "systemd and ssh need it"),
    "INET": "ssh needs it",
    "UNIX98_PTYS": "ssh needs it",
    "BLOCK": "the root file system is on a disk",
}
"""By symbol of Kconfig: the reason. Sources: systemd's README, sshd(8)."""


def require_needs(kernel: Path) -> None:
    """Raise KernelNotStartable if the kernel's configuration, where it is known, lacks what every box needs."""
    path = config_of(kernel)
    if path is None:
        return
    config = read_config(path.read_text(encoding="utf-8", errors="replace"))
    missing = {symbol: config.get(symbol, "n") for symbol in NEEDS if config.get(symbol, "n") not in ("y", "m")}
    if missing:
        raise KernelNotStartable(
            what=kernel,
            platform="a box",
            where=path,
            list="\n".join(
                f"  CONFIG_{symbol}=y (here: {STATES.get(state, state)}): {NEEDS[symbol]}"
                for symbol, state in missing.items()
            ),
            way_out='take a configuration that starts the box: `config = "file:..."`; docs/metal.md shows how',
        )
