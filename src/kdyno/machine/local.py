"""The machine `local`: this host, on the kernel that it runs. Nothing is built, and nothing boots.

For a round of a variant it sets what the variant's words for the kernel command line say, runs the workload as an
ordinary program, and sets everything back.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sysconfig
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from kdyno import __version__
from kdyno.errors import UserError
from kdyno.frozen import digest
from kdyno.host import host_facts
from kdyno.hostknobs.journal import boot_id, running_state
from kdyno.hostknobs.turn import Refused, turned
from kdyno.hostknobs.words import values_of
from kdyno.instrument.agent import asked_of, find_agent, native_command
from kdyno.instrument.job import PROTOCOL, FileChannel, Job, TestOrder
from kdyno.instrument.stream import MOST_STDERR, MOST_STDOUT, AgentReport, read_stream
from kdyno.machine.base import BootEnd, BootOrder, Description, Limits, MachineSettings, NoShell
from kdyno.machine.conditions import watched
from kdyno.machine.ending import Exit, verdict_on_boot
from kdyno.machine.platforms import Output
from kdyno.march.cpu import Cpu, read_cpu
from kdyno.ownership import is_root
from kdyno.process import ToolMissing, spawned

POLL_SECONDS = 0.05
HEX_BYTES = 100_000
"""Bytes of a command's output in one record."""
NOT_THERE = 127
"""Exit status of a command that isn't there, as shells have it."""
ROUNDS = (
    "replicates are rounds on this running kernel, not boots: what differs from boot to boot (where the kernel and its "
    "data lie) is the same in all of them, and in no interval"
)

RIGHTS = "the workload runs on this host, with the rights of who calls kdyno"


class NoSuchCpus(UserError):
    message = "[machine] names the CPUs {named}, and this process may run on {allowed}"
    hint = "`taskset -p $$` shows which CPUs a shell may use; leave `cpus` out for all of them"


class LocalConfig(MachineSettings):
    """Measures on this host, for variants that need no new kernel."""

    starts_kernels: ClassVar[bool] = False

    type: Literal["local"] = "local"
    lane: Literal["wall"] = "wall"
    cpus: Annotated[tuple[Annotated[int, Field(ge=0, lt=8192)], ...], Field(min_length=1)] | None = None
    """The CPUs that the workload may use; None: all that kdyno itself may."""
    limits: Limits = Limits()
    """Only `total` matters: seconds of a round."""

    def located(self, base: Path) -> Self:  # noqa: ARG002
        return self


class LocalMachine:
    """Runs rounds on this host."""

    def __init__(self, config: LocalConfig, root: Path = Path("/")) -> None:
        self.config = config
        self.root = root

    def describe(self) -> Description:
        """Raises NoSuchCpus."""
        allowed = os.sched_getaffinity(0)
        if self.config.cpus and not allowed.issuperset(self.config.cpus):
            named, may = (", ".join(map(str, sorted(cpus))) for cpus in (self.config.cpus, allowed))
            raise NoSuchCpus(named=named, allowed=may)
        facts = {
            "type": "local",
            "kernel": f"{platform.release()} {platform.version()}",
            "started": boot_id(self.root),
            "cpus": sorted(self.config.cpus or allowed),
        }
        return Description(
            lane=self.config.lane,
            parallel=1,
            facts=facts,
            host=host_facts(),
            limits=self.config.limits,
            channel=FileChannel(path="stream.jsonl"),
            needs_images=False,
            notices=(ROUNDS, RIGHTS),
        )

    def cpu(self) -> Cpu:
        return read_cpu()

    def require_cpu(self, flags: Sequence[str], what: str) -> None:
        """Nothing is compiled for this machine."""

    def require_options(self, kernel: Path, output: Output) -> None:
        """No kernel is started."""

    def require_cmdline(self, words: Sequence[str], what: str) -> None:
        """Raise NeedsBoot, HostLacks or Refused for what can't be set here; `what` wants it, for people."""
        values = values_of(words, self.root)
        for path, value in values.items():
            if not os.access(self.root / path, os.W_OK):
                raise Refused(path=path, value=f"{value} for {what}", why="this user may not")

    def stand_in(self, variant: str, block: int) -> str:  # noqa: ARG002
        return digest(self.describe().facts)

    def converse(self, order: BootOrder) -> int:  # noqa: ARG002
        raise NoShell(type=self.config.type)

    def boot(self, order: BootOrder) -> BootEnd:
        """One round. Raises what setting knobs raises; then they are as they were."""
        values = values_of(order.cmdline, self.root)
        with self._set(values), watched() as conditions:
            end = self._round(order)
        return replace(end, conditions=conditions)

    @contextmanager
    def _set(self, values: Mapping[str, str]) -> Iterator[None]:
        """Only root can set anything, and so has anything to bring back that a killed kdyno left."""
        if not values and not is_root():
            yield
            return
        with turned(running_state(), values, root=self.root):
            yield

    def _round(self, order: BootOrder) -> BootEnd:
        console, stream = order.directory / "console.log", order.directory / "stream.jsonl"
        console.touch()
        start = time.monotonic()
        left = Exit()
        if order.job.command is not None:
            left = self._command(order, order.job.command, stream)
            report = read_stream(stream, asked_of(order.job))
        else:
            reports = []
            for test in order.job.tests:
                part = order.directory / f"{test.name}.jsonl"
                left = self._test(order, test, part)
                reports.append(read_stream(part, asked_of(order.job.model_copy(update={"tests": (test,)}))))
                if left != Exit() or not reports[-1].complete:
                    break
            parts = [order.directory / f"{test.name}.jsonl" for test in order.job.tests[: len(reports)]]
            stream.write_bytes(b"".join(part.read_bytes() for part in parts))
            report = _joined(reports)
        status, reason = verdict_on_boot(left, report, console)
        return BootEnd(status, reason, time.monotonic() - start, 0.0, (), console, stream, report)

    def _test(self, order: BootOrder, test: TestOrder, stream: Path) -> Exit:
        words = native_command(find_agent(), test, order.job.iterations)
        _, left = self._run(order, words, stream, order.directory / "stderr")
        return left

    def _command(self, order: BootOrder, words: Sequence[str], stream: Path) -> Exit:
        said, errors = order.directory / "stdout", order.directory / "stderr"
        try:
            status, left = self._run(order, words, said, errors)
        except ToolMissing as error:
            errors.write_text(str(error), encoding="utf-8")
            said.touch()
            status, left = NOT_THERE, Exit()
        if left != Exit():
            return left  # a stream that has no end
        lines = (f"{json.dumps(record)}\n" for record in _records(order.job, said, errors, status))
        stream.write_text("".join(lines), encoding="utf-8")
        return left

    def _run(self, order: BootOrder, words: Sequence[str], said: Path, errors: Path) -> tuple[int, Exit]:
        """Exit status as shells have it, and how it ended if not by itself. Raises ToolMissing."""
        limit = time.monotonic() + self.config.limits.total
        stopped = None
        with (
            said.open("wb") as out,
            errors.open("wb") as err,
            self._on_cpus(),
            spawned(words, cwd=order.directory, stdout=out, stderr=err, env=_environment(order.directory)) as child,
        ):
            while True:
                try:
                    status = child.wait(POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    if order.cancelled.is_set():
                        return 0, Exit(lost="interrupted")
                    if time.monotonic() > limit:
                        stopped = f"the round took more than {self.config.limits.total:g} s"
                    elif said.stat().st_size > self.config.limits.stream_mb * 1_000_000:
                        stopped = f"it wrote more than {self.config.limits.stream_mb:g} MB"
                    if stopped:
                        return 0, Exit(stopped=stopped)
        return (status if status >= 0 else 128 - status), Exit()

    @contextmanager
    def _on_cpus(self) -> Iterator[None]:
        """What this thread starts runs on the CPUs that are named."""
        if self.config.cpus is None:
            yield
            return
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, self.config.cpus)
        try:
            yield
        finally:
            os.sched_setaffinity(0, allowed)


def _environment(directory: Path) -> dict[str, str]:
    """kdyno's own programs are found, wherever kdyno was called from."""
    path = os.pathsep.join((sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)))
    return {"PATH": path, "TMPDIR": str(directory)}


def _joined(reports: Sequence[AgentReport]) -> AgentReport:
    """What several runs of the agent said, as one."""
    return AgentReport(
        hello=reports[0].hello,
        benchmarks=tuple(benchmark for report in reports for benchmark in report.benchmarks),
        samples=tuple(sample for report in reports for sample in report.samples),
        unsupported={name: why for report in reports for name, why in report.unsupported.items()},
        broken={name: why for report in reports for name, why in report.broken.items()},
        complete=all(report.complete for report in reports),
        fault=next((report.fault for report in reports if report.fault), None),
    )


def _records(job: Job, said: Path, errors: Path, status: int) -> Iterable[dict[str, Any]]:
    """What the agent would send of a command in a guest (crates/proto/src/stream.rs)."""
    records: list[dict[str, Any]] = [
        {
            "type": "hello",
            "agent": f"kdyno {__version__}",
            "kernel": platform.release(),
            "lane": job.lane,
            "cpus": os.cpu_count() or 1,
            "init": False,
        }
    ]
    with said.open("rb") as file:
        content = file.read(MOST_STDOUT + 1)
    pieces = [content[place : place + HEX_BYTES] for place in range(0, len(content), HEX_BYTES)]
    records += [{"type": "output", "stream": "stdout", "hex": piece.hex()} for piece in pieces]
    if last_words := _end_of(errors, MOST_STDERR):
        records.append({"type": "output", "stream": "stderr", "hex": last_words.hex()})
    records.append({"type": "exited", "status": status})
    records.append({"type": "end", "records": len(records)})
    return [{"v": PROTOCOL, **record} for record in records]


def _end_of(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - size, 0))
        return file.read(size)
