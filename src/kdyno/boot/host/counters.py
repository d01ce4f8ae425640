"""Counters of this host's kernel: CPU time of all processes and of kdyno, throttling, swapping."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from kdyno.boot.host import files

STEAL_LIMIT = 1.0
"""The percentage of stolen time above which times are unreliable."""
OTHER_LOAD_LIMIT = 0.25
"""The number of CPUs that other processes may keep busy."""


@dataclass(frozen=True)
class Counters:
    """One reading of all counters. Only differences of readings have a meaning. None: not readable on this host."""

    at: float
    """The monotonic clock, in seconds."""
    busy: float | None
    """The time that all CPUs together worked, in seconds: user, guests, kernel, interrupts."""
    steal: float | None
    """The time that busy CPUs waited for the hypervisor, in seconds."""
    own: float | None
    """The part of `busy` of a process and all its descendants, ended ones included, in seconds."""
    throttled: int | None
    """The number of times a core or a package was throttled by heat, summed over the CPUs that count it."""
    quota_stops: int | None
    """The number of times a CPU limit stopped the control group of this process, or a parent of it."""
    swapped: int | None
    """The number of pages written to swap or read from it."""


def read_counters(root: Path = Path("/"), pid: int | None = None) -> Counters:
    """Read all counters. `own` is the time of `pid` (None: this process). Missing files never raise."""
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
    """Return the stolen share of the time in which CPUs had work, in percent; None if they were idle."""
    if before.busy is None or after.busy is None or before.steal is None or after.steal is None:
        return None
    steal = max(0.0, after.steal - before.steal)
    wanted = max(0.0, after.busy - before.busy) + steal
    return 100 * steal / wanted if wanted else 0.0


def other_load(before: Counters, after: Counters) -> float | None:
    """Return the mean number of CPUs that other processes kept busy: all work except that of kdyno's processes."""
    if before.busy is None or after.busy is None or before.own is None or after.own is None:
        return None
    seconds = after.at - before.at
    others = (after.busy - before.busy) - (after.own - before.own)
    return max(0.0, others / seconds) if seconds > 0 else None


def _cpu_time(root: Path) -> tuple[float | None, float | None]:
    """Return busy and stolen seconds from the first line of /proc/stat, proc(5). User time includes guests."""
    words = (files.text(root / "proc/stat") or "").partition("\n")[0].split()
    if len(words) < 9 or words[0] != "cpu" or not all(files.NUMBER.fullmatch(word) for word in words[1:9]):
        return None, None
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(word) for word in words[1:9])
    ticks = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / ticks, steal / ticks


def _time_of_tree(root: Path, pid: int) -> float | None:
    """Return the CPU time of a process, its ended children and its living descendants, in seconds."""
    processes = {}
    for directory in files.processes(root):
        # The name in parentheses may contain any character; the state, the parent and numbers follow it.
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
