"""The machine `local`: this host, with its running kernel. Nothing is built, and nothing boots.

For a round of a variant it applies the variant's kernel parameters to the running kernel, runs the workload as an
ordinary program, and restores the previous settings.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from kdyno.base.cpu import Cpu, read_cpu
from kdyno.base.errors import UserError
from kdyno.base.frozen import digest
from kdyno.base.host import host_facts
from kdyno.base.lanes import HOST_CLOCK, TIMED_LANE, Clock, RealTimeLaneName
from kdyno.base.ownership import is_root
from kdyno.base.packages import detect_names, missing_packages, way_to_install
from kdyno.base.process import spawn
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import BootEnd, BootLimits, BootOrder, Description, MachineSettings, NoShell
from kdyno.boot.conditions import watched
from kdyno.boot.ending import Exit, verdict_on_boot
from kdyno.boot.host.core_pmu import require_core_pmu
from kdyno.boot.host.journal import boot_id, running_state
from kdyno.boot.host.turn import KnobRefused, turned
from kdyno.boot.host.words import values_of
from kdyno.boot.platforms import Output
from kdyno.measure.guest.agent import expected_records, find_agent
from kdyno.measure.guest.job import FileChannel
from kdyno.measure.guest.stream import read_stream
from kdyno.measure.workload.needs import Needs

POLL_SECONDS = 0.05
ROUNDS = (
    "replicates are rounds on this running kernel, not boots: what differs from boot to boot (where the kernel and its "
    "data lie) is the same in all of them, and in no interval"
)

RIGHTS = "the workload runs on this host, with the rights of the user of kdyno"


class NoSuchCpus(UserError):
    message = "[machine] has the CPUs {named}, but this process may only run on {allowed}"
    hint = "`taskset -p $$` prints the CPUs that a shell may use; remove `cpus` to use all of them"


class NotInstalled(UserError):
    message = "the workload requires Debian packages that are not installed on this host: {missing}"
    hint = "{way}"


class LocalConfig(MachineSettings):
    """The settings for measuring on this host, for variants that need no new kernel."""

    starts_kernels: ClassVar[bool] = False
    own_clock: ClassVar[Clock | None] = HOST_CLOCK

    type: Literal["local"] = "local"
    lane: RealTimeLaneName = TIMED_LANE.name
    cpus: Annotated[tuple[Annotated[int, Field(ge=0, lt=8192)], ...], Field(min_length=1)] | None = None
    """The CPUs that the workload may use; None: all that kdyno itself may use."""
    limits: BootLimits = BootLimits()
    """Only `total`, the time of a round, and `stream_mb`, its output, apply; the others are for guests."""

    def located(self, base: Path) -> Self:  # noqa: ARG002
        return self


class LocalMachine:
    """Runs rounds on this host."""

    def __init__(self, config: LocalConfig, root: Path = Path("/")) -> None:
        self.config = config
        self.root = root

    def describe(self) -> Description:
        """Describe this host. Raises NoSuchCpus and CorePmuMissing."""
        require_core_pmu(self.config.lane, "this host", self.root)
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
        """Accept any flags: nothing is compiled for this machine."""

    def require_options(self, kernel: Path, output: Output) -> None:
        """Accept any kernel: none is started."""

    def require_cmdline(self, words: Sequence[str], what: str) -> None:
        """Raise NeedsBoot, HostLacks or KnobRefused for parameters that cannot be set here; `what` describes their
        user.
        """
        values = values_of(words, self.root)
        for path, value in values.items():
            if not os.access(self.root / path, os.W_OK):
                raise KnobRefused(path=path, value=f"{value} for {what}", why="this user may not")

    def provide(self, needs: Needs, state: State, talk: Talk) -> None:  # noqa: ARG002
        """Check that packages are installed; nothing is installed or unpacked. Raises NotInstalled."""
        if not needs.packages:
            return
        if detect_names() == "unknown":
            programs = ", ".join(needs.packages)
            talk.say(
                f"note: kdyno cannot check on this host that the workload's programs are installed: Debian's {programs}"
            )
        elif missing := missing_packages(needs.packages):
            raise NotInstalled(missing=", ".join(missing), way=way_to_install(*missing))

    def stand_in(self, variant: str, block: int) -> str:  # noqa: ARG002
        return digest(self.describe().facts)

    def converse(self, order: BootOrder) -> int:  # noqa: ARG002
        raise NoShell(type=self.config.type)

    def boot(self, order: BootOrder) -> BootEnd:
        """Run one round. Raises what setting knobs raises; then the knobs are unchanged."""
        values = values_of(order.cmdline, self.root)
        with self._set(values), watched() as conditions:
            end = self._round(order)
        return replace(end, conditions=conditions)

    @contextmanager
    def _set(self, values: Mapping[str, str]) -> Iterator[None]:
        """Set knobs while the body runs. Only root can set knobs, and only root restores those of a killed kdyno."""
        if not values and not is_root():
            yield
            return
        with turned(running_state(), values, root=self.root):
            yield

    def _round(self, order: BootOrder) -> BootEnd:
        """Let the agent do the job as in a guest, but as an ordinary program."""
        console, stream = order.directory / "console.log", order.directory / "stream.jsonl"
        job = order.directory / "job.json"
        job.write_bytes(order.job.model_copy(update={"channel": FileChannel(path=str(stream))}).encode())
        start = time.monotonic()
        left = self._run(order, (str(find_agent()), "do", str(job)), console, stream)
        report = read_stream(stream, expected_records(order.job))
        status, reason = verdict_on_boot(left, report, console)
        return BootEnd(status, reason, time.monotonic() - start, 0.0, (), console, stream, report)

    def _run(self, order: BootOrder, words: Sequence[str], console: Path, stream: Path) -> Exit:
        """Run the agent, and return its end. Its output besides the records is the console of the round."""
        limit = time.monotonic() + self.config.limits.total
        environment = _environment(order.directory)
        with (
            console.open("wb") as log,
            self._on_cpus(),
            spawn(words, cwd=order.directory, stdout=log, stderr=log, env=environment) as agent,
        ):
            while True:
                try:
                    agent.wait(POLL_SECONDS)
                    return Exit()
                except subprocess.TimeoutExpired:
                    if order.cancelled.is_set():
                        return Exit(lost="interrupted")
                    if time.monotonic() > limit:
                        return Exit(stopped=f"the round took more than {self.config.limits.total:g} s")
                    if stream.exists() and stream.stat().st_size > self.config.limits.stream_mb * 1_000_000:
                        return Exit(stopped=f"it wrote more than {self.config.limits.stream_mb:g} MB")

    @contextmanager
    def _on_cpus(self) -> Iterator[None]:
        """Run programs that this thread starts on the named CPUs."""
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
    """Return the environment of the workload: that of the user, with kdyno's programs first on PATH.

    Variables of kdyno are removed: KDYNO_STORE may contain a password.
    """
    theirs = {name: value for name, value in os.environ.items() if not name.startswith("KDYNO_")}
    path = os.pathsep.join((sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)))
    return {**theirs, "PATH": path, "TMPDIR": str(directory)}
