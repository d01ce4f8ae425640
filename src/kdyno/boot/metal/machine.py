"""The machine `metal`: each boot starts from the box's own kernel, and ends with a restart into it.

kdyno copies the kernel and the agent to the box, starts the kernel by kexec or by the boot loader, and runs the agent
there by ssh. Its records are read like those of a guest.
"""

from __future__ import annotations

import atexit
import hashlib
import secrets
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from shutil import which

from kdyno.base.cpu import Cpu, read_cpu
from kdyno.base.errors import UserError
from kdyno.base.frozen import digest
from kdyno.base.process import spawn
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import BootEnd, BootOrder, CpuLacks, Description, NoShell
from kdyno.boot.conditions import conditions_between
from kdyno.boot.ending import Exit, verdict_on_boot
from kdyno.boot.host.core_pmu import require_core_pmu
from kdyno.boot.metal.box import DIRECTORY, MARK, BoxState, RemoteBox, Starter
from kdyno.boot.metal.box_console import BoxConsole
from kdyno.boot.metal.facts import AT_EACH_BOOT, ONCE, box_facts, copy_files, host_facts_of
from kdyno.boot.metal.firmware import FirmwareStarter
from kdyno.boot.metal.kexec import KexecStarter
from kdyno.boot.metal.knobs import require_knobs, set_knobs
from kdyno.boot.metal.lease import BoxHeld, Lease
from kdyno.boot.metal.needs import require_needs
from kdyno.boot.metal.settings import STREAM, MetalConfig
from kdyno.boot.metal.ssh import FAILED, BoxFailed, BoxFull, BoxUnreachable, BoxUntrusted, Ssh
from kdyno.boot.metal.way_back import REACHED_AGAIN_SECONDS, WayBack
from kdyno.boot.platforms import Output
from kdyno.boot.watch import POLL_SECONDS, Watch
from kdyno.kernel.built_kernels.header import read_header
from kdyno.measure.guest.agent import expected_records, find_agent
from kdyno.measure.guest.job import FileChannel
from kdyno.measure.guest.stream import read_stream
from kdyno.measure.workload.needs import Needs

RESTARTS = "panic=10"
"""The parameter that lets a kernel restart the box 10 s after a panic, which brings its own kernel back."""
CONNECTIONS_LOST = (BoxUnreachable, BoxUntrusted)

RUN_AGENT = """
place=$1/work
rm -rf "$place" && mkdir -p "$place" && cd "$place" && cat >job.json || exit
TMPDIR=$place "$2" do job.json | cat
"""


class CommandMissing(UserError):
    message = "`{key}` in [machine] names {program}, which is not a program of this host"
    hint = "install it, or correct `{key}`"


class PackagesMissing(UserError):
    message = "the workload requires Debian packages that are not installed on {host}: {missing}"
    hint = "install them there: apt-get install {missing_words}"


@dataclass(frozen=True)
class _Installed:
    """The files of a boot on the box, and the identity of its kernel."""

    agent: str
    kernel: str
    initrd: str | None
    words: tuple[str, ...]
    mark: str
    release: str
    version_end: str


class MetalMachine:
    """Boots images on a box."""

    def __init__(self, config: MetalConfig) -> None:
        self.config = config
        self.ssh = Ssh(config.host, config.ssh_config)
        self.box = RemoteBox(self.ssh)
        self.starter: Starter = (
            KexecStarter(self.ssh) if config.boot == "kexec" else FirmwareStarter(self.ssh, DIRECTORY)
        )
        self.console = BoxConsole(config.console, int(config.limits.console_mb * 1e6))
        self.way_back = WayBack(config, self.box, Lease(self.ssh, DIRECTORY))

    @cached_property
    def _own(self) -> BoxState:
        """Return the state of the box with its own kernel. Raises what ssh raises, BoxHeld, BoxLacks, BoxGone and
        BoxOfOtherArchitecture.
        """
        state = self.box.look()
        if state.mark is not None:
            self.way_back.hold()
            self.way_back.talk.say(f"{self.config.host} runs a kernel of a kdyno that was killed: it restarts")
            state = self.way_back.bring_back("a kernel of another run ran") or state
        self.box.require_usable(state, self.config.arch, self.starter)
        return state

    @cached_property
    def _root(self) -> Path:
        """Return a directory with copied files of the box. Raises what ssh raises."""
        directory = tempfile.TemporaryDirectory(prefix="kdyno-box-")
        atexit.register(directory.cleanup)
        root = Path(directory.name)
        copy_files(self.ssh, ONCE, root)
        return root

    def describe(self) -> Description:
        for key, command in (("reset", self.config.reset), ("console", self.config.console)):
            if command and which(command[0]) is None:
                raise CommandMissing(key=key, program=command[0])
        own, root, config = self._own, self._root, self.config
        require_core_pmu(config.lane, config.host, root)
        require_knobs(root, config.knobs, config.host, own.release)
        facts = {
            **({"set": sorted(config.knobs)} if config.knobs else {}),
            "cmdline": [*own.own_words, RESTARTS],
            "agent": hashlib.sha256(find_agent().read_bytes()).hexdigest(),
            **box_facts(root),
        }
        return config.description(facts, {"kernel": own.release, **host_facts_of(root)})

    def cpu(self) -> Cpu:
        return read_cpu(self._root / "proc/cpuinfo")

    def require_cpu(self, flags: Sequence[str], what: str) -> None:
        cpu = self.cpu()
        if missing := sorted(set(flags) - cpu.flags):
            raise CpuLacks(what=what, missing=", ".join(missing), cpu=cpu.name)

    def require_options(self, kernel: Path, output: Output) -> None:
        """Accept any kernel: which drivers a box needs is not known."""

    def require_cmdline(self, words: Sequence[str], what: str) -> None:
        """Accept any parameters: each boot has its own."""

    def provide(self, needs: Needs, state: State, talk: Talk) -> None:  # noqa: ARG002
        """Check that the packages are installed on the box. Raises PackagesMissing and what ssh raises."""
        self.way_back.talk = talk
        if not needs.packages:
            return
        script = self.ssh.script(MISSING_PACKAGES, *needs.packages)
        named = self.ssh.run(script, most=10_000).output.split()
        if missing := [package for package in needs.packages if package in named]:
            words = " ".join(missing)
            raise PackagesMissing(host=self.config.host, missing=", ".join(missing), missing_words=words)

    def stand_in(self, variant: str, block: int) -> str:
        return digest([variant, block])

    def converse(self, order: BootOrder) -> int:  # noqa: ARG002
        raise NoShell(type=self.config.type)

    def let_go(self) -> None:
        self.way_back.let_go()

    def boot(self, order: BootOrder) -> BootEnd:
        """Start the kernel, measure, and bring the box's own kernel back. Raises what ssh raises, BoxHeld, BoxFull,
        BoxFailed, BoxGone and ResetFailed.
        """
        start = time.monotonic()
        console, stream = order.directory / "console.log", order.directory / "stream.jsonl"
        console.touch()
        stream.touch()
        try:
            self.way_back.hold_again()
            installed = self._install(order, self._own)
        except BoxUnreachable as error:
            if self.box.wait(lambda _: True, REACHED_AGAIN_SECONDS, order.cancelled.is_set) is None:
                raise  # nothing was started there
            report = read_stream(stream, expected_records(order.job))
            return BootEnd("lost", str(error), time.monotonic() - start, None, (), console, stream, report)
        with self.console.recording(console, self.way_back.talk):
            try:
                left, ready, conditions = self._start_and_measure(order, installed, console, stream, start)
            except CONNECTIONS_LOST as error:
                left, ready, conditions = Exit(lost=str(error)), None, {}
            except BoxHeld:
                raise  # the box is another's: it is not restarted
            except BaseException:
                self.way_back.end_boot(order)
                raise
            self.way_back.end_boot(order)
        report = read_stream(stream, expected_records(order.job))
        status, reason = verdict_on_boot(left, report, console)
        seconds = time.monotonic() - start
        end = BootEnd(status, reason, seconds, ready, installed.words, console, stream, report)
        return replace(end, conditions=conditions)

    def _install(self, order: BootOrder, own: BoxState) -> _Installed:
        """Copy the files of a boot to the box.

        Raises KernelNotStartable, NotABootableKernel, BoxFull, BoxFailed and what ssh raises.
        """
        assert order.kernel is not None
        require_needs(order.kernel)
        content = order.kernel.read_bytes()
        banner = read_header(content, order.kernel).banner
        release = banner.partition(" ")[0]
        agent = find_agent()
        names = [f"{DIRECTORY}/{name}" for name in ("agent", f"kernel-{hashlib.sha256(content).hexdigest()[:12]}")]
        for source, target in zip((agent, order.kernel), names, strict=True):
            self.ssh.copy(source, target)
        initrd = self.box.initrd(release)
        self.starter.store(names[1], initrd)
        words = [*own.own_words, RESTARTS]
        if initrd is None:
            words = [self.box.root_word() if word.startswith("root=") else word for word in words]
        mark = secrets.token_hex(6)
        words += [*order.cmdline, f"{MARK}{mark}"]
        return _Installed(names[0], names[1], initrd, tuple(words), mark, release, banner.partition(") ")[2])

    def _start_and_measure(
        self, order: BootOrder, installed: _Installed, console: Path, stream: Path, start: float
    ) -> tuple[Exit, float | None, dict[str, float]]:
        """Return the end of the boot, the seconds until the agent answered, and the conditions during the workload."""
        before = self.box.look()
        self.way_back.lease.drop()  # the restart ends its session; its file stays for this process
        self.way_back.leaving = before.boot_id  # also if the connection breaks: the box may have obeyed
        try:
            self.starter.start(installed.agent, installed.kernel, installed.initrd, installed.words, installed.mark)
        except (BoxFailed, BoxFull):
            self.way_back.leaving = ""
            raise
        limit = self.config.limits.boot
        state = self.way_back.wait(lambda state: state.boot_id != before.boot_id, limit, order.cancelled.is_set)
        if order.cancelled.is_set():
            return Exit(lost="interrupted"), None, {}
        if state is None:
            return self._why_silent(before), None, {}
        if state.mark != installed.mark:
            if not self.starter.has_started(installed.mark):
                return Exit(lost="the boot loader of the box did not start it"), None, {}
            return Exit(stopped="it did not come up: the box restarted into its own kernel"), None, {}
        if state.release != installed.release or not installed.version_end.startswith(state.version):
            return Exit(lost=f"the box runs {state.release} {state.version}, not {installed.release}"), None, {}
        self.way_back.lease.take()
        set_knobs(self.ssh, self.config.knobs, state.release)
        ready = time.monotonic() - start
        with self._watch_conditions(order.directory) as conditions:
            left = self._measure(order, installed, console, stream, state)
        if left == Exit() and not self.config.console:
            self.box.save_kernel_messages(console)
        return left, ready, conditions

    def _why_silent(self, before: BoxState) -> Exit:
        """Return why no new kernel answered in time."""
        with suppress(*CONNECTIONS_LOST):
            if self.box.look(seconds=20.0).boot_id == before.boot_id:
                return Exit(lost="the box did not leave its own kernel: `systemctl list-jobs` there may say why")
        self.way_back.is_silent = True
        return Exit(stopped=f"hung at boot: no answer by ssh within {self.config.limits.boot:g} s")

    def _measure(self, order: BootOrder, installed: _Installed, console: Path, stream: Path, state: BoxState) -> Exit:
        """Run the agent on the box, and return how it ended."""
        job = order.directory / "job.json"
        job.write_bytes(order.job.model_copy(update={"channel": FileChannel(path=STREAM)}).encode())
        command = self.ssh.words(self.ssh.script(RUN_AGENT, DIRECTORY, installed.agent))
        watch = Watch(console, stream, self.config.limits.for_programs(order.job.programs))
        stopped = None
        with (
            job.open("rb") as orders,
            stream.open("wb") as records,
            console.open("ab") as log,
            spawn(command, stdin=orders, stdout=records, stderr=log) as child,
        ):
            watch.bound(child.pid, 0)
            while child.poll() is None:
                if order.cancelled.is_set():
                    return Exit(lost="interrupted")
                if stopped := watch.broken_limit():
                    break
                time.sleep(POLL_SECONDS)
            status = child.poll()
        if stopped := watch.cut() or stopped:
            return Exit(stopped=stopped)
        return Exit() if status != FAILED else self._why_cut(order, state)

    def _why_cut(self, order: BootOrder, before: BoxState) -> Exit:
        """Return why a connection broke in the middle of a measurement: by the kernel's fault, or by the network's."""
        state = self.box.wait(lambda _: True, REACHED_AGAIN_SECONDS, order.cancelled.is_set)
        if order.cancelled.is_set():
            return Exit(lost="interrupted")
        if state is None:
            self.way_back.is_silent = True
            return Exit(stopped=f"hung, or without network: no answer by ssh for {REACHED_AGAIN_SECONDS:g} s")
        if state.boot_id != before.boot_id:
            return Exit(stopped="the kernel ended in the middle of the measurement: the box has restarted")
        return Exit(lost="the connection to the box broke; its kernel still runs")

    @contextmanager
    def _watch_conditions(self, directory: Path) -> Iterator[dict[str, float]]:
        """Yield a dict that is filled with the box's conditions when the body ends."""
        conditions: dict[str, float] = {}
        roots = directory / "before", directory / "after"
        times = []
        for number, root in enumerate(roots):
            if number:
                yield conditions
            root.mkdir()
            with suppress(*CONNECTIONS_LOST):
                copy_files(self.ssh, AT_EACH_BOOT, root)
            times.append(time.monotonic())
        conditions.update(conditions_between(*roots, times[1] - times[0]))


MISSING_PACKAGES = """
for package; do
    [ "$(dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
done
"""
