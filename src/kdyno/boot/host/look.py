"""What moves measured times on this host: how it is set, what would be better, and what can be done about it."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from kdyno.base.frozen import Frozen
from kdyno.boot.host import cpus, files
from kdyno.boot.host.counters import OTHER_LOAD_LIMIT, STEAL_LIMIT, other_load, read_counters, steal_percent
from kdyno.boot.host.knobs import KNOBS, HostKnob, KnobFile, knob_files

ROOT = Path("/")
STATES_SHOWN = 3
LONGEST_STATE = 40

Status = Literal["good", "change", "plain", "absent"]
Settable = Literal["yes", "by name", "as root", "no"]


class HostFact(Frozen):
    """One thing that moves times in the wall lane."""

    name: str
    status: Status
    """`plain`: neither good nor bad; `absent`: this host doesn't have it, or doesn't show it."""
    now: str
    wanted: str
    """What it should be for measuring; empty where nothing is better than what is."""
    settable: Settable
    """By `--set`; `no` where it takes something else, which `mend` says."""
    why: str
    mend: str = ""


class HostReport(Frozen):
    """`kdyno doctor --host --json`"""

    facts: tuple[HostFact, ...]
    before_set: dict[str, str]
    """What `--set` changed since the host's last start: the old values, by file."""


def examine_host(root: Path = ROOT, seconds: float = 1.0) -> Iterator[HostFact]:
    """Look at everything; the share of stolen time and the load of others are measured for so many seconds."""
    for knob in KNOBS:
        yield _knob(root, knob)
    yield _isolated(root)
    yield _irqbalance(root)
    yield _swap(root)
    yield _cpu_limit(root)
    yield _throttled(root)
    yield _virtualised(root)
    yield from _measured(root, seconds)


def _knob(root: Path, knob: HostKnob) -> HostFact:
    present = knob_files(root, knob)
    if not present:
        return HostFact(name=knob.name, status="absent", now="", wanted="", settable="no", why=knob.why)
    wanted = {file.setting.label(file.wanted) for file in present if file.wanted is not None}
    bad = [file for file in present if not file.good]
    status: Status = "change" if bad else "good" if wanted else "plain"
    return HostFact(
        name=knob.name,
        status=status,
        now=_together(present),
        wanted=" or ".join(sorted(wanted)),
        settable=_settable(knob, bad),
        why=knob.why,
    )


def _together(present: list[KnobFile]) -> str:
    """What the files of a knob say, the most frequent first: `powersave (6), performance (2)`."""
    states = Counter(file.setting.label(file.value)[:LONGEST_STATE] for file in present)
    if len(states) == 1:
        return next(iter(states)) + (f" ({len(present)} times)" if len(present) > 1 else "")
    shown = [f"{state} ({count})" for state, count in states.most_common(STATES_SHOWN)]
    return ", ".join(shown) + (", ..." if len(states) > STATES_SHOWN else "")


def _settable(knob: HostKnob, bad: list[KnobFile]) -> Settable:
    if not all(os.access(file.path, os.W_OK) for file in bad):
        return "no" if os.geteuid() == 0 else "as root"
    return "yes" if knob.unasked else "by name"


def _isolated(root: Path) -> HostFact:
    alone = cpus.isolated(root)
    return HostFact(
        name="isolated CPUs",
        status="good" if alone else "plain",
        now=cpus.format_list(alone) or "none",
        wanted="",
        settable="no",
        why="on them nothing runs that wasn't put there; worth it on hosts with CPUs to spare",
        mend="isolcpus= on the host's command line, and kdyno under taskset",
    )


def _irqbalance(root: Path) -> HostFact:
    runs = any(files.text(process / "comm") == "irqbalance" for process in files.processes(root))
    return HostFact(
        name="irqbalance",
        status="change" if runs else "good",
        now="runs" if runs else "does not run",
        wanted="does not run",
        settable="no",
        why="it moves interrupts from CPU to CPU while boots are measured",
        mend="sudo systemctl stop irqbalance",
    )


def _swap(root: Path) -> HostFact:
    table = files.text(root / "proc/swaps")
    areas = max(0, len((table or "").splitlines()) - 1)
    return HostFact(
        name="swap",
        status="absent" if table is None else "change" if areas else "good",
        now="on" if areas else "off",
        wanted="off",
        settable="no",
        why="a guest whose memory is on a disk waits for it",
        mend="sudo swapoff -a; sudo swapon -a brings it back",
    )


def _cpu_limit(root: Path) -> HostFact:
    limits = [limit for group in files.cpu_groups(root) if (limit := _limit(group)) is not None]
    stops = read_counters(root).quota_stops or 0
    stopped = f", which stopped it {stops} times" if stops else ""
    return HostFact(
        name="CPU limit",
        status="change" if limits else "good",
        now=f"{min(limits):g} CPUs{stopped}" if limits else "none",
        wanted="none",
        settable="no",
        why="a control group that used its share up stands still until the next period",
        mend="start kdyno outside of the container or service, or lift its limit",
    )


def _limit(group: Path) -> float | None:
    """CPUs' worth of time that a control group may use; None for no limit."""
    if (limit := files.text(group / "cpu.max")) is not None:
        quota, _, period = limit.partition(" ")
    else:
        quota = files.text(group / "cpu.cfs_quota_us") or ""
        period = files.text(group / "cpu.cfs_period_us") or ""
    if not (quota.isdecimal() and period.isdecimal() and len(quota) < 19 and len(period) < 19) or int(period) == 0:
        return None  # `max`, or -1
    return round(int(quota) / int(period), 2)


def _throttled(root: Path) -> HostFact:
    count = read_counters(root).throttled
    return HostFact(
        name="throttling",
        status="absent" if count is None else "plain" if count else "good",
        now=f"{count} times since the host started",
        wanted="never",
        settable="no",
        why="a CPU that gets too hot slows itself down",
        mend="cool it, or switch turbo off",
    )


def _virtualised(root: Path) -> HostFact:
    cpuinfo = files.text(root / "proc/cpuinfo")
    is_guest = " hypervisor" in (cpuinfo or "")
    vendor = files.text(root / "sys/class/dmi/id/sys_vendor") or files.text(root / "sys/hypervisor/type")
    return HostFact(
        name="hypervisor",
        status="absent" if cpuinfo is None else "change" if is_guest else "good",
        now=f"yes ({vendor[:LONGEST_STATE]})" if is_guest and vendor else "yes" if is_guest else "no",
        wanted="no",
        settable="no",
        why="what it does with the CPUs is out of sight, but for stolen time",
        mend="measure on a host of your own, or in the model lane",
    )


def _measured(root: Path, seconds: float) -> Iterator[HostFact]:
    before = read_counters(root)
    time.sleep(seconds)
    after = read_counters(root)
    steal, load = steal_percent(before, after), other_load(before, after)
    yield HostFact(
        name="stolen time",
        status="absent" if steal is None else "change" if steal > STEAL_LIMIT else "good",
        now="" if steal is None else f"{steal:.1f} % just now",
        wanted=f"at most {STEAL_LIMIT:g} %",
        settable="no",
        why="the hypervisor gave CPUs to others that had work here",
        mend="measure when the neighbours are quiet",
    )
    yield HostFact(
        name="other load",
        status="absent" if load is None else "change" if load > OTHER_LOAD_LIMIT else "good",
        now="" if load is None else f"{load:.2f} CPUs just now",
        wanted=f"at most {OTHER_LOAD_LIMIT:g}",
        settable="no",
        why="other programs take caches, memory and turns on the CPU",
        mend="end them; `top` shows which",
    )
