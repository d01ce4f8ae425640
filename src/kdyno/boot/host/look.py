"""Examining the host for everything that affects measured times: present states, better ones, and how to get there."""

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
    """A setting or state of the host that affects times in the wall lane."""

    name: str
    status: Status
    """`plain`: neither good nor bad; `absent`: this host lacks it, or hides it."""
    now: str
    wanted: str
    """The state for measuring; empty if the present state is fine."""
    settable: Settable
    """Whether `--set` can set it; if `no`, `mend` describes the action."""
    why: str
    mend: str = ""


class HostReport(Frozen):
    """The output of `kdyno doctor --host --json`."""

    facts: tuple[HostFact, ...]
    before_set: dict[str, str]
    """The old values by file that `--set` changed since the host's last start."""


def examine_host(root: Path = ROOT, seconds: float = 1.0) -> Iterator[HostFact]:
    """Yield all facts. Stolen time and the load of other processes are measured for so many seconds."""
    for knob in KNOBS:
        yield knob_fact(root, knob)
    yield _isolation(root)
    yield _irqbalance(root)
    yield _swap(root)
    yield _cpu_limit(root)
    yield _throttling(root)
    yield _virtualisation(root)
    yield from _measure_load(root, seconds)


def knob_fact(root: Path, knob: HostKnob) -> HostFact:
    """Return the state of one knob."""
    present = knob_files(root, knob)
    if not present:
        return HostFact(name=knob.name, status="absent", now="", wanted="", settable="no", why=knob.why)
    wanted = {file.setting.label(file.wanted) for file in present if file.wanted is not None}
    bad = [file for file in present if not file.good]
    status: Status = "change" if bad else "good" if wanted else "plain"
    return HostFact(
        name=knob.name,
        status=status,
        now=_summarise(present),
        wanted=" or ".join(sorted(wanted)),
        settable=_settable(knob, bad),
        why=knob.why,
    )


def _summarise(present: list[KnobFile]) -> str:
    """Summarise the values of a knob's files, the most frequent first: `powersave (6), performance (2)`."""
    states = Counter(file.setting.label(file.value)[:LONGEST_STATE] for file in present)
    if len(states) == 1:
        return next(iter(states)) + (f" ({len(present)} times)" if len(present) > 1 else "")
    shown = [f"{state} ({count})" for state, count in states.most_common(STATES_SHOWN)]
    return ", ".join(shown) + (", ..." if len(states) > STATES_SHOWN else "")


def _settable(knob: HostKnob, bad: list[KnobFile]) -> Settable:
    if not all(os.access(file.path, os.W_OK) for file in bad):
        return "no" if os.geteuid() == 0 else "as root"
    return "yes" if knob.unasked else "by name"


def _isolation(root: Path) -> HostFact:
    alone = cpus.isolated(root)
    return HostFact(
        name="isolated CPUs",
        status="good" if alone else "plain",
        now=cpus.format_list(alone) or "none",
        wanted="",
        settable="no",
        why="the scheduler puts nothing on them; useful on hosts with spare CPUs",
        mend="add isolcpus= to the host's command line, and run kdyno under taskset",
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
        why="a guest waits for swapped memory",
        mend="sudo swapoff -a; sudo swapon -a restores it",
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
        why="a control group that has used its share stops until the next period",
        mend="start kdyno outside of the container or service, or remove its limit",
    )


def _limit(group: Path) -> float | None:
    """Return the limit of a control group in CPUs; None for no limit."""
    if (limit := files.text(group / "cpu.max")) is not None:
        quota, _, period = limit.partition(" ")
    else:
        quota = files.text(group / "cpu.cfs_quota_us") or ""
        period = files.text(group / "cpu.cfs_period_us") or ""
    if not (quota.isdecimal() and period.isdecimal() and len(quota) < 19 and len(period) < 19) or int(period) == 0:
        return None  # `max`, or -1
    return round(int(quota) / int(period), 2)


def _throttling(root: Path) -> HostFact:
    count = read_counters(root).throttled
    return HostFact(
        name="throttling",
        status="absent" if count is None else "plain" if count else "good",
        now=f"{count} times since the host started",
        wanted="never",
        settable="no",
        why="a hot CPU reduces its frequency",
        mend="improve the cooling, or switch turbo off",
    )


def _virtualisation(root: Path) -> HostFact:
    cpuinfo = files.text(root / "proc/cpuinfo")
    is_guest = " hypervisor" in (cpuinfo or "")
    vendor = files.text(root / "sys/class/dmi/id/sys_vendor") or files.text(root / "sys/hypervisor/type")
    return HostFact(
        name="hypervisor",
        status="absent" if cpuinfo is None else "change" if is_guest else "good",
        now=f"yes ({vendor[:LONGEST_STATE]})" if is_guest and vendor else "yes" if is_guest else "no",
        wanted="no",
        settable="no",
        why="the hypervisor's use of the CPUs is invisible, except for stolen time",
        mend="measure on physical hardware, or in the model lane",
    )


def _measure_load(root: Path, seconds: float) -> Iterator[HostFact]:
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
        why="the hypervisor gave busy CPUs of this host to other guests",
        mend="measure when the other guests are idle",
    )
    yield HostFact(
        name="other load",
        status="absent" if load is None else "change" if load > OTHER_LOAD_LIMIT else "good",
        now="" if load is None else f"{load:.2f} CPUs just now",
        wanted=f"at most {OTHER_LOAD_LIMIT:g}",
        settable="no",
        why="other programs use caches, memory and CPU time",
        mend="stop them; `top` lists them",
    )
