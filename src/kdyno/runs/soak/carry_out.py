"""Carries out a soak: one boot of an image with all loads at once, which is followed and recorded."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from kdyno.base.errors import UserError
from kdyno.base.files import copy_whole, write_whole
from kdyno.base.state import State, translate_disk_full
from kdyno.base.stop_signals import stops_set
from kdyno.base.talk import Advance, Talk
from kdyno.base.text import clean, format_list
from kdyno.base.threads import ThreadCall, ThreadCalls
from kdyno.base.version import __version__
from kdyno.boot.base import BootEnd, BootLimits, BootOrder, Description, MachineBackend
from kdyno.boot.console import TAIL_BYTES, findings, read_console
from kdyno.boot.ktap import read_ktap, rest_of
from kdyno.boot.registry import default_machine, open_machine
from kdyno.kernel.image import Image
from kdyno.kernel.images import configuration_of, content_digest
from kdyno.measure.guest.job import Soak
from kdyno.measure.guest.soak import MemoryLook, SoakReport
from kdyno.measure.guest.stream_records import (
    FailedRecord,
    MemoryRecord,
    RecordReader,
    StreamFault,
    TallyRecord,
    failure_of,
    look_of,
    tally_of,
)
from kdyno.measure.workload.needs import OF_ROOT
from kdyno.runs.checks import WORDS as KUNIT_WORDS
from kdyno.runs.checks import has_kunit
from kdyno.runs.soak.growth import blocks_of, megabytes, slopes
from kdyno.runs.soak.loads import LANE, SoakLoad, needs
from kdyno.runs.soak.record import (
    ConsoleFinding,
    Rest,
    SoakedKernel,
    SoakKunit,
    SoakLoadOutcome,
    SoakMachine,
    SoakMemory,
    SoakRecord,
    ToldFailure,
)
from kdyno.runs.soak.verdict import decide, undecided

SHORTEST_EVERY = 10
"""The shortest time between two looks at memory in seconds, in a soak of up to MOST_LOOKS looks."""
MOST_LOOKS = 2000
BOOT_SECONDS = 600.0
"""The time until the agent reports: KUnit's suites may come before it."""
TEAR_DOWN_SECONDS = 600.0
"""The time for the steps after the soak."""
SPACE_MB = 500
SMALLEST_MB = 512
POLL_SECONDS = 0.5
WARNINGS_SHOW = "loglevel=5"
"""`quiet`, which all guests get, keeps warnings from the console."""
EMULATED_WORDS = (
    # An emulated CPU that waits for the host looks to the kernel like a timer that is dead, or a CPU that hangs.
    "no_timer_check",
    "watchdog_thresh=60",
    "rcupdate.rcu_cpu_stall_timeout=120",
)
SAID = 300
"""The number of characters that are kept of a failed load's output."""
DETECTORS = (
    "DEBUG_ATOMIC_SLEEP",
    "DEBUG_LIST",
    "DETECT_HUNG_TASK",
    "HARDLOCKUP_DETECTOR",
    "KASAN",
    "KCSAN",
    "KFENCE",
    "KUNIT",
    "PROVE_LOCKING",
    "SCHED_STACK_END_CHECK",
    "SOFTLOCKUP_DETECTOR",
    "UBSAN",
    "WQ_WATCHDOG",
)


class KernelUnfit(UserError):
    message = "image {image} cannot be soaked: its kernel lacks {missing}, which the loads' root file system needs"
    hint = "build it with these symbols =y (docs/workloads.md), or name loads without packages by --use"


@dataclass(frozen=True)
class SoakOrder:
    """The image, the loads and the settings of a soak."""

    image: Image
    loads: tuple[SoakLoad, ...]
    hours: float
    cpus: int
    memory_mb: int | None
    """None: the sum of what the loads need."""
    seed: int
    words: tuple[str, ...] = ()
    """Words for the kernel command line."""
    soak_variant: tuple[str, ...] = ()
    variant_of: str | None = None

    @property
    def seconds(self) -> int:
        return max(1, round(self.hours * 3600))

    @property
    def every(self) -> int:
        """The time between two looks at memory, in seconds."""
        return min(max(SHORTEST_EVERY, self.seconds // MOST_LOOKS), max(1, self.seconds // 60))


def carry_out(order: SoakOrder, state: State, talk: Talk) -> tuple[SoakRecord, Path]:
    """Soak the image, and return the record and its path. Ctrl-C ends the guest, and the record reports that.

    Raises KernelUnfit, NoSpace and what machines raise.
    """
    machine, about = _open_machine(order, state, talk)
    programs = tuple(load.program(len(order.loads)) for load in order.loads)
    job = about.job(1, programs=programs).model_copy(update={"soak": Soak(seconds=order.seconds, every=order.every)})
    kunit = has_kunit(order.image)
    emulated = EMULATED_WORDS if about.is_emulated else ()
    words = (WARNINGS_SHOW, *emulated, *(KUNIT_WORDS if kunit else ()), *order.words)
    state.require_space(SPACE_MB)
    cancelled = Event()
    started = datetime.now(UTC)
    with state.scratch("soak") as scratch, stops_set(cancelled), ThreadCalls() as calls:
        boot = BootOrder(
            name=f"{order.image.record.key[:12]}, soak",
            kernel=order.image.program,
            cmdline=words,
            job=job,
            seed=order.seed,
            directory=scratch,
            vmlinux=order.image.vmlinux,
            cancelled=cancelled,
        )
        call = calls.start(machine.boot, boot)
        try:
            with talk.working("soaking") as advance:
                _follow(call, scratch / "stream.jsonl", order.seconds, advance, talk)
        except BaseException:
            cancelled.set()
            raise
        end = call.result()
        record = _record(order, about, words, started, end, kunit=kunit)
        return record, _keep(record, end.console, state)


def _open_machine(order: SoakOrder, state: State, talk: Talk) -> tuple[MachineBackend, Description]:
    """Open the machine with the root file system of the loads. Raises KernelUnfit, and what machines raise."""
    record, load_needs = order.image.record, needs(order.loads)
    config = configuration_of(order.image)
    lacking = [symbol for symbol, value in load_needs.kconfig.items() if value is True and config.get(symbol) != "y"]
    if load_needs.packages and (missing := [symbol for symbol in lacking if symbol in OF_ROOT.kconfig]):
        raise KernelUnfit(image=record.key[:12], missing=format_list([f"CONFIG_{symbol}" for symbol in missing], 20))
    if lacking:
        talk.warn(f"note: the kernel lacks {format_list(lacking, 10)}, which a load needs: it may fail")
    total = BOOT_SECONDS + order.seconds + TEAR_DOWN_SECONDS
    limits = BootLimits(
        boot=BOOT_SECONDS,
        silence=max(300.0, 10.0 * order.every),
        total=total,
        console_mb=TAIL_BYTES / 1e6,
    )
    memory = order.memory_mb or max(SMALLEST_MB, load_needs.memory_mb or 0)
    settings = default_machine(lane=LANE, cpus=order.cpus, memory_mb=memory, limits=limits)
    settings.require_cpus(config, f"image {record.key[:12]}")
    machine = open_machine(settings)
    machine.require_options(order.image.program, "stream")
    machine.require_cpu(record.needs, f"image {record.key[:12]}")
    machine.require_cmdline(order.words, "--append")
    machine.provide(load_needs, state, talk)
    about = machine.describe()
    for notice in about.notices:
        talk.warn(f"note: {notice}")
    return machine, about


def _follow(call: ThreadCall[BootEnd], stream: Path, seconds: int, advance: Advance, talk: Talk) -> None:
    """Show the progress of the soak, and each failure when it is reported, until the boot has ended."""
    advance(0, seconds, "booting")
    with ExitStack() as opened:
        reader: RecordReader | None = None
        rounds: dict[str, int] = {}
        while not call.has_ended():
            time.sleep(POLL_SECONDS)
            if reader is None and stream.exists():
                reader = RecordReader(opened.enter_context(stream.open("rb")))
            if reader:
                for line in _report_failures(reader, rounds, seconds, advance):
                    talk.warn(line)


def _report_failures(reader: RecordReader, rounds: dict[str, int], seconds: int, advance: Advance) -> Iterator[str]:
    """Yield a line for each failure that is new in the stream.

    Faults of the stream are reported when all of it is read.
    """
    try:
        for record in reader.ready():
            match record:
                case FailedRecord():
                    failure = failure_of(record)
                    phase_end = f"{failure.phase} ended with status {failure.status}"
                    yield f"{failure.program}: {phase_end}: {_tail(failure.tail)}"
                case TallyRecord():
                    rounds[record.program] = tally_of(record).rounds
                case MemoryRecord():
                    look = look_of(record)
                    advance(min(int(look.elapsed), seconds), seconds, f"{sum(rounds.values()):,} rounds")
    except StreamFault:
        return


def _record(
    order: SoakOrder, about: Description, words: tuple[str, ...], started: datetime, end: BootEnd, *, kunit: bool
) -> SoakRecord:
    """Return the record of the soak. Pure except for the files of the boot."""
    image, report = order.image.record, end.report.soak or SoakReport()
    console = read_console(end.console)
    memory = soak_memory(report.looks, order.seconds)
    loads = tuple(_outcome(load, report) for load in order.loads)
    console_findings = tuple(
        ConsoleFinding(reason=finding.reason, said=finding.text, times=finding.times)
        for finding in findings(rest_of(console) if kunit else console)
    )
    own_tests = _kunit(console) if kunit else None
    verdict, reasons = decide((end.status, end.reason), loads, memory, console_findings, own_tests)
    config = configuration_of(order.image)
    lived_seconds = max((look.elapsed for look in report.looks if not look.at_rest), default=0.0)
    if end.report.complete:
        lived_seconds = order.seconds
    return SoakRecord(
        id=f"{started:%Y%m%dT%H%M%SZ}-{image.key[:12]}",
        verdict=verdict,
        reasons=reasons,
        undecided=undecided(memory.slopes),
        kdyno=__version__,
        started=started,
        hours_asked=order.hours,
        hours_lived=round(lived_seconds / 3600, 4),
        boot=end.status if end.status == "ok" else f"{end.status}: {clean(end.reason)}",
        kernel=SoakedKernel(
            image=image.key,
            soak_variant=order.soak_variant,
            variant_of=order.variant_of,
            release=image.release,
            source=image.source.origin,
            source_identity=image.source.identity,
            compiler=image.toolchain.banner,
            files={str(name): digest for name, digest in image.files.items()},
            detectors={symbol: config.get(symbol) == "y" for symbol in DETECTORS},
        ),
        machine=SoakMachine(
            facts=about.facts,
            host=about.host,
            conditions=end.conditions,
            words=words,
            seed=order.seed,
            cpus_online=end.report.hello.cpus if end.report.hello else None,
        ),
        loads=loads,
        memory=memory,
        console=console_findings,
        console_sha256=content_digest(end.console) if end.console.exists() else "",
        kunit=own_tests,
    )


def soak_memory(looks: Sequence[MemoryLook], seconds: int) -> SoakMemory:
    """Return the summary of looks at memory. Pure."""
    resting = [look for look in looks if look.at_rest]
    rest_at_begin = _rest(resting[0]) if resting else None
    rest_at_end = _rest(resting[-1]) if len(resting) > 1 else None
    kept_mb = (
        {field: mb - rest_at_begin.mb.get(field, mb) for field, mb in rest_at_end.mb.items()}
        if rest_at_begin and rest_at_end
        else None
    )
    blocks = blocks_of(looks, seconds)
    return SoakMemory(before=rest_at_begin, after=rest_at_end, blocks=blocks, slopes=slopes(blocks, kept_mb))


def _rest(look: MemoryLook) -> Rest:
    mb = {field: megabytes(kb) for field, kb in look.kb.items()}
    return Rest(mb=mb, tasks=look.tasks, files=look.files, tainted=look.tainted)


def _outcome(load: SoakLoad, report: SoakReport) -> SoakLoadOutcome:
    tally = report.tallies.get(load.name)
    rounds = tally.rounds if tally else 0
    return SoakLoadOutcome(
        load=load.name,
        parameters={name: str(value) for name, value in {**load.workload.parameters, **load.values}.items()},
        rounds=rounds,
        failures=tally.failures if tally else 0,
        mean_seconds=round(tally.elapsed / rounds, 3) if tally and rounds else None,
        longest_seconds=round(tally.longest, 3) if tally and rounds else None,
        progress=tally.progress if tally else "running",
        told=tuple(
            ToldFailure(phase=failure.phase, round=failure.round, status=failure.status, said=_tail(failure.tail))
            for failure in report.failures
            if failure.program == load.name
        ),
    )


def _kunit(console: str) -> SoakKunit:
    ktap = read_ktap(console)
    return SoakKunit(
        suites=ktap.suites,
        passed=ktap.passed,
        failed=ktap.failed,
        skipped=ktap.skipped,
        failures=ktap.failures,
        fault=ktap.fault,
    )


def _tail(output: bytes) -> str:
    return clean(output.decode(errors="replace"))[-SAID:]


def _keep(record: SoakRecord, console: Path, state: State) -> Path:
    """Write the record and the console to the state directory. Raises DiskFull."""
    path = state.soaks / f"{record.id}.json"
    with translate_disk_full(path):
        if console.exists():
            copy_whole(console, path.with_suffix(".console"))
        write_whole(path, text_of(record))
    return path


def text_of(record: SoakRecord) -> str:
    """Return the text of the record's file."""
    return json.dumps(record.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"
