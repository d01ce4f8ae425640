"""The knobs that can be set: their files, the values for measuring, and the reasons.

The choice of knobs follows pyperf's `system tune`. Sources: the kernel's Documentation/admin-guide/pm/cpufreq.rst,
intel_pstate.rst and amd-pstate.rst, sysctl/kernel.rst, mm/transhuge.rst, core-api/irq/irq-affinity.rst.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from kdyno.boot.host import cpus, files

Wanted = Callable[[Path], str | None]
"""A function from a host's root to the value to write; None if the present value is fine."""


@dataclass(frozen=True)
class Setting:
    """One kind of file of a knob."""

    pattern: str
    """The path below the root, with wildcards."""
    wanted: Wanted
    form: re.Pattern[str]
    """The pattern of valid values. A file with another content counts as absent."""
    reads: Callable[[str], str] = str
    """Converts the content of a file to the value to write."""
    spelled: Callable[[str], str] = str
    """Converts a value to the spelling for comparisons."""
    also_good: frozenset[str] = frozenset()
    words: Mapping[str, str] = field(default_factory=dict)
    """The descriptions of values, for people."""

    def label(self, value: str) -> str:
        """Return the description of a value."""
        spelled = self.spelled(value)
        return self.words.get(spelled, spelled)

    def same(self, value: str, other: str) -> bool:
        return self.spelled(value) == self.spelled(other)

    def can_be(self, value: str) -> bool:
        """Return whether a value is valid for the knob."""
        return self.form.fullmatch(value) is not None

    def value(self, path: Path) -> str | None:
        """Return the present value of a file; None if it is unreadable or invalid."""
        content = files.text(path)
        value = None if content is None else self.reads(content)
        return value if value is not None and self.can_be(value) else None


@dataclass(frozen=True)
class HostKnob:
    """A setting that affects times and can be changed while the host runs."""

    name: str
    settings: tuple[Setting, ...]
    why: str
    unasked: bool = True
    """Whether `--set` without names sets it. The others change what is measured, or more than the speed of the host."""


@dataclass(frozen=True)
class KnobFile:
    """One file of a knob, with its present value."""

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


def _constant(value: str) -> Wanted:
    return lambda _root: value


def _selected_word(content: str) -> str:
    """Return the selected word: `madvise` of `always [madvise] never`."""
    chosen = re.search(r"\[([^\s\[]+)\]", content)
    return chosen[1] if chosen else content


def _no_value(_root: Path) -> None:
    """Return None: variants set the values of these knobs."""


def _join_blanks(value: str) -> str:
    """Join the numbers of one setting by single blanks, however the kernel prints them."""
    return " ".join(value.split())


def _irq_list(root: Path) -> str | None:
    return cpus.format_list(cpus.housekeeping(root)) or None if cpus.isolated(root) else None


def _irq_mask(root: Path) -> str | None:
    return cpus.format_mask(cpus.housekeeping(root)) if cpus.isolated(root) and cpus.housekeeping(root) else None


def _one_of(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words))


NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
"""A governor, or a preference, which may also be a number. The kernel stores at most 20 characters of them."""
NUMBER = re.compile(r"[0-9]{1,10}")
MASK = re.compile(r"[0-9a-fA-F,]{1,4096}")
LIST = re.compile(r"[0-9,-]{1,65536}")
SYSCTL_VALUE = re.compile(r"[!-~]([ -~\t]{0,998}[!-~])?")
FILE_NAME = re.compile(r"[A-Za-z0-9_./-]{1,200}")
"""The characters of the paths below."""

CPU = "sys/devices/system/cpu"
KERNEL = "proc/sys/kernel"

THP = "sys/kernel/mm/transparent_hugepage"
THP_SIZES = f"{THP}/hugepages-*kB"
"""A directory for each size, since Linux 6.8."""
GOVERNORS = f"{CPU}/cpufreq/policy*/scaling_governor"
SYSCTLS = "proc/sys"
QUEUES = "sys/block/*/queue"
"""A directory for each disk."""

KNOBS = (
    HostKnob(
        "governor",
        (Setting(GOVERNORS, _constant("performance"), NAME),),
        "other governors choose the frequency from the recent load",
    ),
    HostKnob(
        "energy",
        (Setting(f"{CPU}/cpufreq/policy*/energy_performance_preference", _constant("performance"), NAME),),
        "the CPU itself trades speed for power, differently from boot to boot",
    ),
    HostKnob(
        "turbo",
        (
            Setting(f"{CPU}/intel_pstate/no_turbo", _constant("1"), _one_of("0", "1"), words={"0": "on", "1": "off"}),
            Setting(f"{CPU}/cpufreq/boost", _constant("0"), _one_of("0", "1"), words={"1": "on", "0": "off"}),
        ),
        "the highest frequencies depend on heat and on the other cores",
    ),
    HostKnob(
        "aslr",
        (
            Setting(
                f"{KERNEL}/randomize_va_space",
                _constant("2"),
                _one_of("0", "1", "2"),
                words={"0": "off", "1": "without the heap", "2": "full"},
            ),
        ),
        "only affects QEMU's addresses; fixed addresses repeat one random layout in every boot",
    ),
    HostKnob(
        "nmi-watchdog",
        (Setting(f"{KERNEL}/nmi_watchdog", _constant("0"), _one_of("0", "1"), words={"0": "off", "1": "on"}),),
        "the watchdog interrupts every CPU, and occupies a hardware counter",
    ),
    HostKnob(
        "perf-rate",
        (Setting(f"{KERNEL}/perf_event_max_sample_rate", _constant("1"), NUMBER),),
        "the limit of samples per second of perf; each sample is an interrupt",
    ),
    HostKnob(
        "irqs",
        (
            Setting("proc/irq/default_smp_affinity", _irq_mask, MASK, spelled=cpus.mask_as_list),
            Setting("proc/irq/[0-9]*/smp_affinity_list", _irq_list, LIST, spelled=cpus.same_list),
        ),
        "interrupts on isolated CPUs disturb the programs there",
    ),
    HostKnob(
        "smt",
        (
            Setting(
                f"{CPU}/smt/control",
                _constant("off"),
                _one_of("on", "off", "forceoff", "notsupported", "notimplemented"),
                also_good=frozenset({"forceoff", "notsupported", "notimplemented"}),
                words={
                    "forceoff": "off for good",
                    "notsupported": "CPUs have no siblings",
                    "notimplemented": "not implemented by the kernel",
                },
            ),
        ),
        "a sibling thread shares the caches and units of its core; off removes half of the CPUs",
        unasked=False,
    ),
    HostKnob(
        "thp",
        (
            Setting(
                f"{THP}/enabled",
                _constant("never"),
                _one_of("always", "madvise", "never"),
                reads=_selected_word,
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
            Setting(f"{THP}/enabled", _no_value, _one_of("always", "madvise", "never"), reads=_selected_word),
            Setting(
                f"{THP_SIZES}/enabled",
                _no_value,
                _one_of("always", "inherit", "madvise", "never"),
                reads=_selected_word,
            ),
        ),
        "the page sizes of anonymous memory",
    ),
    HostKnob("governor", (Setting(GOVERNORS, _no_value, NAME),), "the algorithm that chooses the frequency"),
    HostKnob(
        "sysctl",
        tuple(
            Setting(f"{SYSCTLS}{'/*' * depth}", _no_value, SYSCTL_VALUE, spelled=_join_blanks) for depth in range(2, 7)
        ),
        "a setting of the kernel",
    ),
    HostKnob(
        "block",
        (
            Setting(f"{QUEUES}/scheduler", _no_value, NAME, reads=_selected_word),
            Setting(f"{QUEUES}/read_ahead_kb", _no_value, NUMBER),
        ),
        "the order of a disk's requests, and the size of its read-ahead",
    ),
)
"""The knobs that variants of a run on the machine `local` may set, each for its own rounds."""


def knob_files(root: Path, knob: HostKnob) -> list[KnobFile]:
    """Return the existing, readable files of a knob."""
    readable = []
    for setting in knob.settings:
        wanted = setting.wanted(root)
        for path in files.matching(root, setting.pattern):
            if (value := setting.value(path)) is not None:
                readable.append(KnobFile(knob, setting, path, value, wanted))
    return readable


def owner_of(path: str, knobs: Sequence[HostKnob] = KNOBS) -> tuple[HostKnob, Setting] | None:
    """Return the knob and the setting of a path below the root; None if the path does not belong to a knob."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not FILE_NAME.fullmatch(path):
        return None
    for knob in knobs:
        for setting in knob.settings:
            if len(pure.parts) == setting.pattern.count("/") + 1 and pure.match(setting.pattern):
                return knob, setting
    return None
