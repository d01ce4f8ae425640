"""What the kernel of this host has counted so far: CPU time of everybody and of kdyno's own, throttling, swapping."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from kdyno.boot.host import files

STEAL_LIMIT = 1.0
"""Percent of stolen time from which on times can't be trusted."""
OTHER_LOAD_LIMIT = 0.25
"""CPUs that others may keep busy."""


@dataclass(frozen=True)
class Counters:
    """One reading; only the difference of two readings means anything. None stands for what can't be read here."""

    at: float
    """Seconds of the monotonic clock."""
    busy: float | None
    """Seconds that all CPUs together worked: user, guests, kernel, interrupts."""
    steal: float | None
    """Seconds that the hypervisor kept CPUs waiting that had work to do."""
    own: float | None
    """Seconds of `busy` that a process and all its descendants used, the ended ones among them included."""
    throttled: int | None
    """How often a core or a package was slowed down for its heat, summed over the CPUs that count it."""
    quota_stops: int | None
    """How often a control group's limit of CPU time stopped this process's group, or one around it."""
    swapped: int | None
    """Pages written to swap or read back."""


def read_counters(root: Path = Path("/"), pid: int | None = None) -> Counters:
    """Read them all; `pid` is whose time is `own` (None: this process). Never raises for what isn't there."""
    busy, steal = _cpu_time(root)
    vmstat = files.fields(root / "proc/vmstat")
    return Counters(
        at=time.monotonic(),
        busy=busy,
        steal=steal,
        own=_time_of_tree(root, pid or os.getpid()),
        throttled=files.sum_of(
            files.number(path)
            for path in files.matching(root, "sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_throttle_count")
        ),
        quota_stops=files.sum_of(
            files.fields(group / "cpu.stat").get("nr_throttled") for group in files.cpu_groups(root, pid)
        ),
        swapped=files.sum_of((vmstat.get("pswpin"), vmstat.get("pswpout"))),
    )


def steal_percent(before: Counters, after: Counters) -> float | None:
    """Of the time in which CPUs had work, the share that the hypervisor kept from them; of idle CPUs there is none."""
    if before.busy is None or after.busy is None or before.steal is None or after.steal is None:
        return None
    steal = max(0.0, after.steal - before.steal)
    wanted = max(0.0, after.busy - before.busy) + steal
    return 100 * steal / wanted if wanted else 0.0


def other_load(before: Counters, after: Counters) -> float | None:
    """How many CPUs others kept busy on average: all work, less that of kdyno and what it started."""
    if before.busy is None or after.busy is None or before.own is None or after.own is None:
        return None
    seconds = after.at - before.at
    others = (after.busy - before.busy) - (after.own - before.own)
    return max(0.0, others / seconds) if seconds > 0 else None


def _cpu_time(root: Path) -> tuple[float | None, float | None]:
    """Busy and stolen seconds by the first line of /proc/stat, proc(5); the guests' time is part of the users'."""
    words = (files.text(root / "proc/stat") or "").partition("\n")[0].split()
    if len(words) < 9 or words[0] != "cpu" or not all(files.NUMBER.fullmatch(word) for word in words[1:9]):
        return None, None
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(word) for word in words[1:9])
    ticks = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / ticks, steal / ticks


def _time_of_tree(root: Path, pid: int) -> float | None:
    """Seconds of CPU time of a process, its ended children and its living descendants."""
    processes = {}
    for directory in files.processes(root):
        # The name in parentheses may hold anything; what follows it are the state, the parent and numbers.
        words = (files.text(directory / "stat") or "").rpartition(")")[2].split()
        if len(words) > 14 and all(files.NUMBER.fullmatch(word) for word in (words[1], *words[11:15])):
            processes[int(directory.name)] = int(words[1]), sum(int(word) for word in words[11:15])
    if pid not in processes:
        return None
    family, added = {pid}, {pid}
    while added:
        added = {child for child, (parent, _) in processes.items() if parent in added} - family
        family |= added
    return sum(processes[member][1] for member in family) / os.sysconf("SC_CLK_TCK")
