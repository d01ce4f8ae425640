"""The verdict on the end of a boot, from its files: a pure decision, the same for every machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kdyno.base.measurement import BootStatus
from kdyno.boot.console import diagnose, read_console, refused_setting
from kdyno.measure.guest.stream import AgentReport

DEADLY_AFTER_END = ("BUG", "oops", "soft lock-up", "hung task", "RCU stall", "out of memory")


@dataclass(frozen=True)
class Exit:
    """The end of a boot as the machine observed it."""

    stopped: str | None = None
    """The exceeded limit, if the boot was ended for it."""
    lost: str | None = None
    """The failure of the machine, if not the kernel ended the boot."""


def verdict_on_boot(left: Exit, report: AgentReport, console: Path) -> tuple[BootStatus, str]:
    """Return status and reason; the reason is empty for `ok`.

    Lost comes first: the files of a killed emulator say nothing about the kernel. Then follow the kernel's last
    messages, the exceeded limit, and faults of the stream.
    """
    if left.lost:
        return "lost", left.lost
    messages = read_console(console)
    died_of = diagnose(messages)
    if report.complete:
        if died_of and died_of.startswith(DEADLY_AFTER_END):
            return "failed", died_of
        if refused := refused_setting(messages):
            return "failed", refused  # it would be measured without what the variant asks for
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
