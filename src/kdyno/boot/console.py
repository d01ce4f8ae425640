"""Reading a console: the reasons of failures, from a table of the kernel's messages."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from kdyno.base import regex
from kdyno.base.text import clean

TAIL_BYTES = 4_000_000
SAID = 300
"""The most characters of a kernel message in a reason."""


@dataclass(frozen=True)
class Symptom:
    """A message of the kernel, and its meaning for the boot."""

    reason: str
    pattern: regex.Pattern


def _symptom(reason: str, pattern: str) -> Symptom:
    return Symptom(reason, regex.compile_pattern(f"(?m){pattern}"))


SYMPTOMS: tuple[Symptom, ...] = (
    # The most specific first: an oops is the cause of the panic that follows it, and a root that can't be
    # mounted panics. Texts: init/do_mounts.c, kernel/panic.c, mm/oom_kill.c, kernel/watchdog.c, kernel/hung_task.c,
    # arch/x86/kernel/dumpstack.c, lib/bug.c of Linux 6.12.
    _symptom("root not mounted", r"Unable to mount root fs on.*$"),
    _symptom("BUG", r"kernel BUG at .*$"),
    _symptom("oops", r"(?:BUG: (?:unable to handle|kernel NULL pointer).*|Oops: .*|general protection fault.*)$"),
    _symptom("out of memory", r"(?:Out of memory: Killed process.*|System is deadlocked on memory.*)$"),
    _symptom("soft lock-up", r"watchdog: BUG: soft lockup.*$"),
    _symptom("hung task", r"INFO: task .* blocked for more than \d+ seconds.*$"),
    _symptom("RCU stall", r"rcu: INFO: .* (?:self-)?detected stall.*$"),
    _symptom("agent", r"^kdyno-agent: .*$"),
    _symptom("panic", r"Kernel panic - not syncing.*$"),
)

REFUSED_SETTING = _symptom("setting refused", r"Failed to set sysctl parameter '.*$")
"""Of a parameter sysctl.NAME=VALUE (fs/proc/proc_sysctl.c). The kernel goes on without it."""
REPORTS: tuple[Symptom, ...] = (
    # A kernel continues after these. KFENCE: mm/kfence/report.c, lockdep: kernel/locking/lockdep.c, lib/dump_stack.c.
    _symptom("KFENCE", r"BUG: KFENCE: .*$"),
    _symptom("KASAN", r"BUG: KASAN: .*$"),
    _symptom("UBSAN", r"UBSAN: .*$"),
    _symptom("lockdep", r"WARNING: (?:possible .*|inconsistent lock state|suspicious RCU usage|bad unlock balance.*)$"),
    _symptom(
        "lockdep", r"(?:WARNING: .*\block.*|BUG: MAX_LOCKDEP_.*|turning off the locking correctness validator.*)$"
    ),
    _symptom("hard lock-up", r"Watchdog detected hard LOCKUP.*$"),
    _symptom("BUG", r"BUG: .*$"),
    _symptom("warning", r"WARNING: .*$"),
)
"""The most specific first."""
MOST_FINDINGS = 50
"""The most different messages to list; all are counted."""
TELLING = regex.compile_pattern("|".join(f"(?:{symptom.pattern.pattern})" for symptom in (*SYMPTOMS, *REPORTS)))
STAMP = regex.compile_pattern(r"^(?:\[[^\]\n]{0,40}\] ?)+")

WARNING = regex.compile_pattern(r"(?m)^(?:\[[^\]\n]{0,40}\] ?)*(WARNING: .+)$")
"""Warnings of WARN() (kernel/panic.c of Linux 6.12) and lockdep, with an optional time and thread before them."""
MOST_WARNINGS = 20


def read_console(path: Path) -> str:
    """Return the last TAIL_BYTES of a console as text; bytes that are not UTF-8 become replacement characters."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            return file.read().decode(errors="replace").replace("\r\n", "\n")
    except FileNotFoundError:
        return ""


def warnings_of(console: str) -> tuple[str, ...]:
    """Return the lines of kernel warnings, at most MOST_WARNINGS."""
    return tuple(
        "".join(c for c in (match[1] or "")[:SAID] if c.isprintable()).strip()
        for match in islice(WARNING.finditer(console), MOST_WARNINGS)
    )


@dataclass(frozen=True)
class ConsoleMessage:
    """A message of the kernel that indicates a fault."""

    reason: str
    text: str
    """The message, cleaned and shortened, without the time."""
    times: int
    """The number of occurrences."""


def findings(console: str) -> tuple[ConsoleMessage, ...]:
    """Return all SYMPTOMS and REPORTS in a console, in the order of their first occurrence. Pure.

    A line counts once, for its most specific pattern. Messages of the agent don't count. After MOST_FINDINGS different
    messages the last finding represents all others.
    """
    times: dict[tuple[str, str], int] = {}
    surplus = 0
    for line in console.split("\n"):
        if not (reason := _reason_of(line)):
            continue
        key = (reason, _visible_text(line))
        if key in times or len(times) < MOST_FINDINGS:
            times[key] = times.get(key, 0) + 1
        else:
            surplus += 1
    listed = [ConsoleMessage(reason, text, number) for (reason, text), number in times.items()]
    return (*listed, *([ConsoleMessage("others", "further messages", surplus)] if surplus else []))


def _reason_of(line: str) -> str:
    """Return the reason in a line; empty if the line indicates no fault."""
    if not TELLING.search(line):
        return ""
    reasons = (symptom.reason for symptom in (*SYMPTOMS, *REPORTS) if symptom.pattern.search(line))
    reason = next(reasons, "")
    return "" if reason == "agent" else reason


def _visible_text(line: str) -> str:
    stamp = STAMP.search(line[:SAID])
    return clean(line[len(stamp[0] or "") if stamp else 0 :][:SAID])


def diagnose(console: str) -> str | None:
    """Return the reason of a kernel's failure, with its line; None if the console has no such line."""
    return next(filter(None, (_first(symptom, console) for symptom in SYMPTOMS)), None)


def refused_setting(console: str) -> str | None:
    """Return the first setting that the kernel refused to make, with its reason; None if it made all."""
    return _first(REFUSED_SETTING, console)


def _first(symptom: Symptom, console: str) -> str | None:
    match = symptom.pattern.search(console)
    if not match:
        return None
    text = "".join(c for c in (match[0] or "")[:SAID] if c.isprintable())
    return f"{symptom.reason}: {text.strip()}"
