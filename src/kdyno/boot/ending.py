"""How a boot ended, from what was left behind: a pure decision, the same for every machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kdyno.base.measurement import BootStatus
from kdyno.boot.console import diagnose, read_console
from kdyno.measure.guest.stream import AgentReport

DEADLY_AFTER_END = ("BUG", "oops", "soft lock-up", "hung task", "RCU stall", "out of memory")


@dataclass(frozen=True)
class Exit:
    """What the machine itself knows of the end."""

    stopped: str | None = None
    """The limit that the boot broke, if it was ended for that."""
    lost: str | None = None
    """What happened to the machine, if it was not the kernel that ended."""


def verdict_on_boot(left: Exit, report: AgentReport, console: Path) -> tuple[BootStatus, str]:
    """Status and reason; the reason is empty for `ok`.

    Lost comes first: what a killed emulator leaves behind says nothing about the kernel. Then what the kernel said when
    it died, then the limit that it broke, then what is wrong with the stream.
    """
    if left.lost:
        return "lost", left.lost
    died_of = diagnose(read_console(console))
    if report.complete:
        if died_of and died_of.startswith(DEADLY_AFTER_END):
            return "failed", died_of
        return "ok", ""
    if died_of:
        return "failed", died_of
    if left.stopped:
        return "failed", left.stopped
    if report.fault and report.hello:
        return "failed", report.fault
    if report.hello is None:
        return "failed", f"the guest ended before the agent said hello{_fault(report)}"
    return "failed", "the guest ended before the agent was done"


def _fault(report: AgentReport) -> str:
    return f" ({report.fault})" if report.fault and report.fault != "no stream" else ""
