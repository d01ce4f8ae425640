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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from shutil import which

from kdyno.base.cpu import Cpu, read_cpu
from kdyno.base.errors import InfrastructureError, KdynoError, UserError
from kdyno.base.frozen import digest
from kdyno.base.process import attempt, quote, spawn
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import BootEnd, BootOrder, CpuLacks, Description, NoShell
from kdyno.boot.conditions import conditions_between
from kdyno.boot.ending import Exit, verdict_on_boot
from kdyno.boot.metal.box import DIRECTORY, MARK, BoxState, RemoteBox, SilenceNotice, Starter
from kdyno.boot.metal.facts import AT_EACH_BOOT, ONCE, box_facts, copy_files, host_facts_of
from kdyno.boot.metal.firmware import FirmwareStarter
from kdyno.boot.metal.kexec import KexecStarter
from kdyno.boot.metal.knobs import require_knobs, set_knobs
from kdyno.boot.metal.lease import BoxHeld, Lease
from kdyno.boot.metal.needs import require_needs
from kdyno.boot.metal.settings import STREAM, MetalConfig
from kdyno.boot.metal.ssh import FAILED, BoxFailed, BoxFull, BoxUnreachable, BoxUntrusted, Ssh, UnknownHostKey
from kdyno.boot.platforms import Output
from kdyno.boot.watch import POLL_SECONDS, Watch, bound_files
from kdyno.kernel.built_kernels.header import read_header
from kdyno.measure.guest.agent import expected_records, find_agent
from kdyno.measure.guest.job import FileChannel
from kdyno.measure.guest.stream import read_stream
from kdyno.measure.workload.needs import Needs

RESTARTS = "panic=10"
"""The parameter that lets a kernel restart the box 10 s after a panic, which brings its own kernel back."""
RESET_SECONDS = 120.0
LAST_LOOK_SECONDS = 20.0
SILENT_SECONDS = 45.0
"""How long a box is silent, in seconds, before kdyno reports it."""
SLOWER = 1.5
"""How much longer than the longest silence of this run before it is reported again."""
STILL_RUNS = "may still run the kernel of this boot; a restart brings its own one back"
CONNECTIONS_LOST = (BoxUnreachable, BoxUntrusted)
REACHED_AGAIN_SECONDS = 60.0
"""How long the box is looked for after a connection broke, in seconds."""

RUN_AGENT = """
place=$1/work
rm -rf "$place" && mkdir -p "$place" && cd "$place" && cat >job.json || exit
TMPDIR=$place "$2" do job.json | cat
"""


class BoxGone(InfrastructureError):
    message = "{host} did not come back within {seconds:g} s ({what}); it was left as it is"
    hint = "{way}"


class ResetFailed(InfrastructureError):
    message = "the command that resets {host} failed: {command}: {why}"
    hint = "run it by hand, and correct `reset` in [machine]"


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
        self.lease = Lease(self.ssh, DIRECTORY)
        self.talk = Talk(quiet=True)
        self._leaving = ""
        """The boot ID of the box when it was last told to start another kernel."""
        self._is_silent = False
        """Whether the box did not answer when it was last waited for."""
        self._usual_silence = 0.0
        """The longest silence in seconds after which the box came back."""

    @cached_property
    def _own(self) -> BoxState:
        """Return the state of the box with its own kernel. Raises what ssh raises, BoxHeld, BoxLacks, BoxGone and
        BoxOfOtherArchitecture.
        """
        state = self.box.look()
        if state.mark is not None:
            self._hold()
            self.talk.say(f"{self.config.host} runs a kernel of a kdyno that was killed: it restarts")
            state = self._bring_back("a kernel of another run ran") or state
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
        self.talk = talk
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

    def boot(self, order: BootOrder) -> BootEnd:
        """Start the kernel, measure, and bring the box's own kernel back. Raises what ssh raises, BoxHeld, BoxFull,
        BoxFailed, BoxGone and ResetFailed.
        """
        start = time.monotonic()
        console, stream = order.directory / "console.log", order.directory / "stream.jsonl"
        console.touch()
        stream.touch()
        try:
            self._hold_again()
            installed = self._install(order, self._own)
        except BoxUnreachable as error:
            if self.box.wait(lambda _: True, REACHED_AGAIN_SECONDS, order.cancelled.is_set) is None:
                raise  # nothing was started there
            report = read_stream(stream, expected_records(order.job))
            return BootEnd("lost", str(error), time.monotonic() - start, None, (), console, stream, report)
        with self._record_console(console):
            try:
                left, ready, conditions = self._start_and_measure(order, installed, console, stream, start)
            except CONNECTIONS_LOST as error:
                left, ready, conditions = Exit(lost=str(error)), None, {}
            except BoxHeld:
                raise  # the box is another's: it is not restarted
            except BaseException:
                self._end_boot(order)
                raise
            self._end_boot(order)
        report = read_stream(stream, expected_records(order.job))
        status, reason = verdict_on_boot(left, report, console)
        seconds = time.monotonic() - start
        end = BootEnd(status, reason, seconds, ready, installed.words, console, stream, report)
        return replace(end, conditions=conditions)

    def _hold(self) -> None:
        """Take the lease of the box, and give it back when this process ends."""
        atexit.unregister(self.lease.release)
        self.lease.take()
        atexit.register(self.lease.release)

    def _hold_again(self) -> None:
        """Take the lease as `_hold` does; if the connection breaks, a second time."""
        try:
            self._hold()
        except BoxUnreachable:
            if self.box.wait(lambda _: True, REACHED_AGAIN_SECONDS) is None:
                raise
            self._hold()

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
        self.lease.drop()  # the restart ends its session; its file stays for this process
        self._leaving = before.boot_id  # also if the connection breaks: the box may have obeyed
        try:
            self.starter.start(installed.agent, installed.kernel, installed.initrd, installed.words, installed.mark)
        except (BoxFailed, BoxFull):
            self._leaving = ""
            raise
        limit = self.config.limits.boot
        state = self._wait(lambda state: state.boot_id != before.boot_id, limit, order.cancelled.is_set)
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
        self.lease.take()
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
        self._is_silent = True
        return Exit(stopped=f"hung at boot: no answer by ssh within {self.config.limits.boot:g} s")

    def _measure(self, order: BootOrder, installed: _Installed, console: Path, stream: Path, state: BoxState) -> Exit:
        """Run the agent on the box, and return how it ended."""
        job = order.directory / "job.json"
        job.write_bytes(order.job.model_copy(update={"channel": FileChannel(path=STREAM)}).encode())
        command = self.ssh.words(self.ssh.script(RUN_AGENT, DIRECTORY, installed.agent))
        watch = Watch(console, stream, self.config.limits)
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
            self._is_silent = True
            return Exit(stopped=f"hung, or without network: no answer by ssh for {REACHED_AGAIN_SECONDS:g} s")
        if state.boot_id != before.boot_id:
            return Exit(stopped="the kernel ended in the middle of the measurement: the box has restarted")
        return Exit(lost="the connection to the box broke; its kernel still runs")

    @contextmanager
    def _record_console(self, console: Path) -> Iterator[None]:
        """Write the output of the user's command to the console's file while the body runs."""
        if not self.config.console:
            yield
            return
        with console.open("ab") as log, spawn(self.config.console, stdout=log) as child:
            bound_files(child.pid, int(self.config.limits.console_mb * 1e6))
            yield

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

    def _end_boot(self, order: BootOrder) -> None:
        """Bring the box's own kernel back; after an interrupt only begin to. Raises BoxGone, ResetFailed and
        UnknownHostKey.
        """
        try:
            if not order.cancelled.is_set() and self._bring_back("a boot had ended", order.cancelled.is_set):
                return
        except UnknownHostKey:
            self.talk.warn(f"{self.config.host} is left as it is, and {STILL_RUNS}")
            raise
        try:
            is_back = self._is_back(self.box.look(seconds=LAST_LOOK_SECONDS))
            self.lease.release()
            if not is_back:
                self.box.restart()
        except KdynoError:
            self.talk.warn(f"{self.config.host} does not answer: it {STILL_RUNS}")
        else:
            self.talk.say(f"{self.config.host} restarts into its own kernel")

    def _bring_back(self, what: str, is_over: Callable[[], bool] = lambda: False) -> BoxState | None:
        """Restart the box into its own kernel, unless it has restarted already; reset it if it hangs. Return None if
        the wait is over before. Raises BoxGone, ResetFailed and BoxHeld.
        """
        self.lease.drop()
        seconds = self.config.limits.boot
        is_silent, self._is_silent = self._is_silent, False
        if is_silent and not self.config.reset:
            self.talk.warn(
                f"{self.config.host} does not answer, and may restart by itself: waiting {seconds:g} s for it"
            )
        state = self._wait_for_own_kernel(LAST_LOOK_SECONDS if is_silent and self.config.reset else seconds, is_over)
        if state is None and self.config.reset and not is_over():
            self._reset()
            state = self._wait_for_own_kernel(seconds, is_over)
        if state is not None:
            self._hold_again()
            return state
        if is_over():
            return None
        way = "switch it off and on: a restart brings its own kernel back"
        if not self.config.reset:
            way += "; `reset` in [machine] names a command that does it"
        raise BoxGone(host=self.config.host, seconds=self.config.limits.boot, what=what, way=way)

    def _wait_for_own_kernel(self, seconds: float, is_over: Callable[[], bool]) -> BoxState | None:
        """Return the state of the box when its own kernel runs again; None if it doesn't in time. A box that can be
        reached is told once to restart.
        """
        was_told = False

        def is_back(state: BoxState) -> bool:
            nonlocal was_told
            if self._is_back(state):
                return True
            if not was_told:
                self.box.restart()
                was_told = True
            return False

        return self._wait(is_back, seconds, is_over)

    def _wait(
        self, is_wanted: Callable[[BoxState], bool], seconds: float, is_over: Callable[[], bool]
    ) -> BoxState | None:
        """Wait as the box does, and report a silence that is longer than that of other restarts in this run."""
        silences = []

        def report(silence: float, left: float) -> None:
            silences.append(silence)
            self.talk.say(
                f"{self.config.host} has not answered for {silence:.0f} s: waiting up to {max(left, 0):.0f} s more"
            )

        start = time.monotonic()
        notice = SilenceNotice(max(SILENT_SECONDS, SLOWER * self._usual_silence), report)
        state = self.box.wait(is_wanted, seconds, is_over, notice)
        if state is not None and silences:
            self._usual_silence = time.monotonic() - start
        return state

    def _is_back(self, state: BoxState) -> bool:
        """Return whether the box runs its own kernel, and wasn't told to leave it."""
        return state.mark is None and state.boot_id != self._leaving

    def _reset(self) -> None:
        """Run the user's command. Raises ResetFailed."""
        self.talk.say(f"{self.config.host} does not answer: {quote(self.config.reset)}")
        done = attempt(self.config.reset, timeout=RESET_SECONDS, most=1_000_000)
        if done.returncode != 0:
            why = (done.stderr or done.stdout).strip()[-300:] or f"exit status {done.returncode}"
            raise ResetFailed(host=self.config.host, command=quote(self.config.reset), why=why)


MISSING_PACKAGES = """
for package; do
    [ "$(dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
done
"""
