"""The knobs that can be turned: in which files they are, what to write there for measuring, and why.

What to turn follows pyperf's `system tune`. Sources: the kernel's Documentation/admin-guide/pm/cpufreq.rst,
intel_pstate.rst and amd-pstate.rst, sysctl/kernel.rst, mm/transhuge.rst, core-api/irq/irq-affinity.rst.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from kdyno.boot.host import cpus, files

Wanted = Callable[[Path], str | None]
"""From a host's root: what to write; None if nothing is better than what is there."""


@dataclass(frozen=True)
class Setting:
    """One kind of file of a knob."""

    pattern: str
    """Path below the root, with wildcards."""
    wanted: Wanted
    form: re.Pattern[str]
    """What all values look like. A file that says anything else is as good as absent."""
    reads: Callable[[str], str] = str
    """Turns the content of a file into the value that one would write there."""
    spelled: Callable[[str], str] = str
    """Turns a value into the spelling in which values are compared."""
    also_good: frozenset[str] = frozenset()
    words: Mapping[str, str] = field(default_factory=dict)
    """What values mean, for people."""

    def label(self, value: str) -> str:
        """A value in words for people."""
        spelled = self.spelled(value)
        return self.words.get(spelled, spelled)

    def same(self, value: str, other: str) -> bool:
        return self.spelled(value) == self.spelled(other)

    def can_be(self, value: str) -> bool:
        """Whether the knob's file may have this value."""
        return self.form.fullmatch(value) is not None

    def value(self, path: Path) -> str | None:
        """What stands in a file now; None if it can't be read, or is no value."""
        content = files.text(path)
        value = None if content is None else self.reads(content)
        return value if value is not None and self.can_be(value) else None


@dataclass(frozen=True)
class HostKnob:
    """One thing that moves times and can be set while the host runs."""

    name: str
    settings: tuple[Setting, ...]
    why: str
    unasked: bool = True
    """Set by `--set` without names; the others change what is measured, or more than this host's speed."""


@dataclass(frozen=True)
class KnobFile:
    """One file of a knob, as it is now."""

    knob: HostKnob
    setting: Setting
    path: Path
    value: str
    wanted: str | None

    @property
    def good(self) -> bool:
        if self.wanted is None or self.value in self.setting.also_good:
            return True
        return self.setting.same(self.value, self.wanted)


def _constantly(value: str) -> Wanted:
    return lambda _root: value


def _bracketed(content: str) -> str:
    """`always [madvise] never` is madvise."""
    chosen = re.search(r"\[([^\s\[]+)\]", content)
    return chosen[1] if chosen else content


def _nothing(_root: Path) -> None:
    """Of knobs whose values variants say."""


def _blanks(value: str) -> str:
    """Several numbers of one setting with one blank between them, however the kernel prints them."""
    return " ".join(value.split())


def _irq_list(root: Path) -> str | None:
    return cpus.format_list(cpus.housekeeping(root)) or None if cpus.isolated(root) else None


def _irq_mask(root: Path) -> str | None:
    return cpus.format_mask(cpus.housekeeping(root)) if cpus.isolated(root) and cpus.housekeeping(root) else None


def _one_of(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words))


NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
"""Of a governor, or of a preference, which may also be a number. The kernel keeps at most 20 characters of them."""
NUMBER = re.compile(r"[0-9]{1,10}")
MASK = re.compile(r"[0-9a-fA-F,]{1,4096}")
LIST = re.compile(r"[0-9,-]{1,65536}")
SYSCTL_VALUE = re.compile(r"[!-~]([ -~\t]{0,998}[!-~])?")
FILE_NAME = re.compile(r"[A-Za-z0-9_./-]{1,200}")
"""All characters of the paths below."""

CPU = "sys/devices/system/cpu"
KERNEL = "proc/sys/kernel"

THP = "sys/kernel/mm/transparent_hugepage"
THP_SIZES = f"{THP}/hugepages-*kB"
"""One directory for each size, since Linux 6.8."""
GOVERNORS = f"{CPU}/cpufreq/policy*/scaling_governor"
SYSCTLS = "proc/sys"
QUEUES = "sys/block/*/queue"
"""One directory for each disk."""

KNOBS = (
    HostKnob(
        "governor",
        (Setting(GOVERNORS, _constantly("performance"), NAME),),
        "others choose the frequency by the load of the moment before",
    ),
    HostKnob(
        "energy",
        (Setting(f"{CPU}/cpufreq/policy*/energy_performance_preference", _constantly("performance"), NAME),),
        "the CPU itself trades speed for power, differently from boot to boot",
    ),
    HostKnob(
        "turbo",
        (
            Setting(f"{CPU}/intel_pstate/no_turbo", _constantly("1"), _one_of("0", "1"), words={"0": "on", "1": "off"}),
            Setting(f"{CPU}/cpufreq/boost", _constantly("0"), _one_of("0", "1"), words={"1": "on", "0": "off"}),
        ),
        "the top frequencies depend on heat and on what other cores do",
    ),
    HostKnob(
        "aslr",
        (
            Setting(
                f"{KERNEL}/randomize_va_space",
                _constantly("2"),
                _one_of("0", "1", "2"),
                words={"0": "off", "1": "without the heap", "2": "full"},
            ),
        ),
        "QEMU's own addresses alone; fixed ones repeat one accident in every boot",
    ),
    HostKnob(
        "nmi-watchdog",
        (Setting(f"{KERNEL}/nmi_watchdog", _constantly("0"), _one_of("0", "1"), words={"0": "off", "1": "on"}),),
        "it interrupts every CPU and takes a hardware counter",
    ),
    HostKnob(
        "perf-rate",
        (Setting(f"{KERNEL}/perf_event_max_sample_rate", _constantly("1"), NUMBER),),
        "samples per second that perf may take; each is an interrupt",
    ),
    HostKnob(
        "irqs",
        (
            Setting("proc/irq/default_smp_affinity", _irq_mask, MASK, spelled=cpus.mask_as_list),
            Setting("proc/irq/[0-9]*/smp_affinity_list", _irq_list, LIST, spelled=cpus.same_list),
        ),
        "interrupts on isolated CPUs disturb what runs there",
    ),
    HostKnob(
        "smt",
        (
            Setting(
                f"{CPU}/smt/control",
                _constantly("off"),
                _one_of("on", "off", "forceoff", "notsupported", "notimplemented"),
                also_good=frozenset({"forceoff", "notsupported", "notimplemented"}),
                words={
                    "forceoff": "off for good",
                    "notsupported": "CPUs show no siblings",
                    "notimplemented": "the kernel has none",
                },
            ),
        ),
        "a sibling thread shares the core's caches and units; off takes half of the CPUs away",
        unasked=False,
    ),
    HostKnob(
        "thp",
        (
            Setting(
                f"{THP}/enabled",
                _constantly("never"),
                _one_of("always", "madvise", "never"),
                reads=_bracketed,
            ),
        ),
        "whether a guest gets huge pages depends on free memory; never is repeatable, but slower",
        unasked=False,
    ),
)

RUN_KNOBS = (
    HostKnob(
        "page-size",
        (
            Setting(f"{THP}/enabled", _nothing, _one_of("always", "madvise", "never"), reads=_bracketed),
            Setting(
                f"{THP_SIZES}/enabled", _nothing, _one_of("always", "inherit", "madvise", "never"), reads=_bracketed
            ),
        ),
        "which sizes of pages anonymous memory gets",
    ),
    HostKnob("governor", (Setting(GOVERNORS, _nothing, NAME),), "how the kernel chooses the frequency"),
    HostKnob(
        "sysctl",
        tuple(Setting(f"{SYSCTLS}{'/*' * depth}", _nothing, SYSCTL_VALUE, spelled=_blanks) for depth in range(2, 7)),
        "a setting of the kernel's",
    ),
    HostKnob(
        "block",
        (
            Setting(f"{QUEUES}/scheduler", _nothing, NAME, reads=_bracketed),
            Setting(f"{QUEUES}/read_ahead_kb", _nothing, NUMBER),
        ),
        "in which order a disk gets its requests, and how much is read ahead",
    ),
)
"""What variants of a run on the machine `local` may set, each for its own rounds."""


def knob_files(root: Path, knob: HostKnob) -> list[KnobFile]:
    """The files of a knob that are there and can be read."""
    readable = []
    for setting in knob.settings:
        wanted = setting.wanted(root)
        for path in files.matching(root, setting.pattern):
            if (value := setting.value(path)) is not None:
                readable.append(KnobFile(knob, setting, path, value, wanted))
    return readable


def owner_of(path: str, knobs: Sequence[HostKnob] = KNOBS) -> tuple[HostKnob, Setting] | None:
    """The knob and the setting that a path below the root belongs to; None for a path that is no knob's."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not FILE_NAME.fullmatch(path):
        return None
    for knob in knobs:
        for setting in knob.settings:
            if len(pure.parts) == setting.pattern.count("/") + 1 and pure.match(setting.pattern):
                return knob, setting
    return None
