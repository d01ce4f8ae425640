"""What kdyno does on a box: look at it, store files there, start a kernel, restart it.

Everything is in one directory, and is removed with the lease. A kernel is started once, by kexec or by the boot loader:
whatever happens, the next restart brings the box's own kernel back.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol

from pydantic import Field, ValidationError

from kdyno.base.errors import UserError
from kdyno.base.frozen import Frozen
from kdyno.base.mistakes import first_fault
from kdyno.boot.metal.ssh import BoxFailed, BoxUnreachable, BoxUntrusted, NotLetIn, Ssh

DIRECTORY = "/var/lib/kdyno-metal"
MARK = "kdyno.boot="
"""The kernel parameter that marks a kernel that kdyno started. It has a dot: the kernel takes it for that of a module,
and ignores it."""
INITRD = re.compile(r"/[A-Za-z0-9/_.+~-]{1,300}")
"""The path of an initrd on the box."""
POLL_SECONDS = 2.0
LONGEST_LOOK_SECONDS = 30.0
OTHER_KERNELS = re.compile(r"BOOT_IMAGE=|initrd=|kdyno\.boot=|crashkernel=")
"""Words of a command line that the firmware's loader added for its own kernel, or that reserve memory for another."""
PROGRAMS = ("systemctl", "flock", "timeout", "dd", "sha256sum", "findmnt")

LOOK = """
cd /proc/sys/kernel
printf 'boot_id %s\\n' "$(cat random/boot_id)"
printf 'uptime %s\\n' "$(cut -d. -f1 /proc/uptime)"
printf 'architecture %s\\n' "$(uname -m)"
printf 'release %s\\n' "$(uname -r)"
printf 'version %s\\n' "$(uname -v)"
printf 'cmdline %s\\n' "$(cat /proc/cmdline)"
"""
EXAMINE = """
for program; do command -v "$program" >/dev/null || echo "the program $program"; done
[ -d /run/systemd/system ] || echo "systemd as its init"
"""
ROOT_DEVICE = """
device=$(findmnt -nvo SOURCE /)
id=$(blkid -s PARTUUID -o value "$device")
if [ -n "$id" ]; then echo "root=PARTUUID=$id"; else echo "root=$device"; fi
"""
FIND_INITRD = """
[ -d "/lib/modules/$1" ] || exit 0
for file in "/boot/initrd.img-$1" "/boot/initramfs-$1.img" "/boot/initrd-$1"; do
    if [ -e "$file" ]; then echo "$file"; exit; fi
done
if command -v mkinitramfs >/dev/null; then mkinitramfs -o "$2" "$1" >&2 || exit 1
elif command -v dracut >/dev/null; then dracut --force --quiet "$2" "$1" >&2 || exit 1
else echo "the kernel $1 has modules, and neither mkinitramfs nor dracut is there to make an initrd of them" >&2; exit 1
fi
echo "$2"
"""
INITRD_SECONDS = 600.0
START_SECONDS = 120.0
KERNEL_MESSAGES = 1_000_000
"""The most bytes of the kernel's messages that are read."""


class BoxLacks(UserError):
    message = "{host} cannot start kernels for kdyno: it lacks {missing}"
    hint = "docs/metal.md has the requirements of a box"


class BoxOfOtherArchitecture(UserError):
    message = "{host} is a machine of {architecture}, and kdyno's kernels and its agent are for {expected}"
    hint = "name another box as `host`"


class BoxState(Frozen):
    """What runs on the box."""

    boot_id: Annotated[str, Field(pattern=r"^[0-9a-f-]{36}$")]
    uptime: Annotated[int, Field(ge=0, lt=10**10)]
    """Seconds since the kernel started."""
    architecture: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,20}$")]
    release: Annotated[str, Field(pattern=r"^[!-~]{1,64}$")]
    version: Annotated[str, Field(pattern=r"^[ -~]{1,64}$")]
    cmdline: Annotated[str, Field(pattern=r"^[ -~\t]{0,4096}$")]

    @property
    def mark(self) -> str | None:
        """Return the mark of a kernel that kdyno started; None for the box's own kernel."""
        marks = [word.removeprefix(MARK) for word in self.cmdline.split() if word.startswith(MARK)]
        return marks[-1] if marks else None

    @property
    def own_words(self) -> tuple[str, ...]:
        """Return the kernel parameters that another kernel needs here, too."""
        return tuple(word for word in self.cmdline.split() if not OTHER_KERNELS.match(word))


class Starter(Protocol):
    """Starts kernels on a box, in one of the ways."""

    def missing(self) -> list[str]:
        """Return what the box lacks for that, for people. Raises what ssh raises."""
        ...

    def store(self, kernel: str, initrd: str | None) -> None:
        """Store what the boot loader reads. Raises BoxFailed, BoxFull and what ssh raises."""
        ...

    def start(self, agent: str, kernel: str, initrd: str | None, words: Sequence[str], mark: str) -> None:
        """Begin to start a kernel, and return at once. Raises BoxFailed, BoxFull and what ssh raises."""
        ...

    def has_started(self, mark: str) -> bool:
        """Return whether the kernel with this mark was started, though it doesn't run. Raises what ssh raises."""
        ...


@dataclass(frozen=True)
class SilenceNotice:
    """What is called when a box doesn't answer for so many seconds."""

    seconds: float
    call: Callable[[float, float], None]
    """Called with the seconds of silence, and those that are left to wait."""


class RemoteBox:
    """One box."""

    def __init__(self, ssh: Ssh) -> None:
        self.ssh = ssh

    def look(self, seconds: float = 60.0) -> BoxState:
        """Return what runs on the box. Raises what ssh raises, and BoxUntrusted."""
        result = self.ssh.run(self.ssh.script(LOOK), seconds=seconds, most=100_000)
        fields = dict(line.partition(" ")[::2] for line in result.output.splitlines())
        try:
            return BoxState.model_validate_strings({name: fields.get(name, "") for name in BoxState.model_fields})
        except ValidationError as error:
            raise BoxUntrusted(host=self.ssh.host, what="the question for its kernel", why=first_fault(error)) from None

    def require_usable(self, state: BoxState, architecture: str, starter: Starter) -> None:
        """Raise BoxOfOtherArchitecture or BoxLacks if the box cannot start kernels for kdyno."""
        if state.architecture != architecture:
            raise BoxOfOtherArchitecture(host=self.ssh.host, architecture=state.architecture, expected=architecture)
        examined = self.ssh.run(self.ssh.script(EXAMINE, *PROGRAMS), most=10_000)
        if missing := [*examined.output.strip().splitlines(), *starter.missing()]:
            raise BoxLacks(host=self.ssh.host, missing=", ".join(missing))

    def initrd(self, release: str) -> str | None:
        """Return the initial file system on the box that has this kernel's modules; None if the box has no modules for
        it. Raises BoxFailed.
        """
        script = self.ssh.script(FIND_INITRD, release, f"{DIRECTORY}/initrd-{release}")
        result = self.ssh.run(script, seconds=INITRD_SECONDS)
        if result.status != 0:
            self._fail("make an initrd", result.last_message, f"log in there and run: mkinitramfs -o FILE {release}")
        path = result.output.strip()
        if path and not INITRD.fullmatch(path):
            raise BoxUntrusted(host=self.ssh.host, what="the question for an initrd", why="its answer is not a path")
        return path or None

    def root_word(self) -> str:
        """Return the parameter that names the root file system for a kernel without an initrd. Raises BoxFailed."""
        result = self.ssh.run(self.ssh.script(ROOT_DEVICE), most=1000)
        word = result.output.strip()
        if not re.fullmatch(r"root=(PARTUUID=[0-9a-fA-F-]{1,64}|/dev/[A-Za-z0-9/_.-]{1,64})", word):
            way = "install a kernel of a package there, whose initrd finds it"
            self._fail("name the partition of its root file system", result.last_message, way)
        return word

    def restart(self) -> None:
        """Restart the box by its firmware, into its own kernel. Returns at once. Raises what ssh raises."""
        self.ssh.run(("systemctl", "--no-block", "reboot"), seconds=START_SECONDS, most=10_000)

    def wait(
        self,
        is_wanted: Callable[[BoxState], bool],
        seconds: float,
        is_over: Callable[[], bool] = lambda: False,
        silence: SilenceNotice | None = None,
    ) -> BoxState | None:
        """Return the first state that is wanted; None if there was none in time, or if the wait is over before.

        `silence` is called once if the box doesn't answer for that long.
        """
        start = answered = time.monotonic()
        while not is_over() and (left := start + seconds - time.monotonic()) > 0:
            quiet_left = silence.seconds - (time.monotonic() - answered) if silence else left
            try:
                state = self.look(seconds=max(1.0, min(left, LONGEST_LOOK_SECONDS, quiet_left)))
                if is_wanted(state):
                    return state
                answered = time.monotonic()
            except (BoxUnreachable, BoxUntrusted, NotLetIn):  # nobody is let in before the box has started
                if silence and time.monotonic() - answered >= silence.seconds:
                    silence.call(time.monotonic() - answered, start + seconds - time.monotonic())
                    silence = None
            time.sleep(POLL_SECONDS)
        return None

    def save_kernel_messages(self, target: Path) -> None:
        """Append the kernel's messages to a file. Raises what ssh raises."""
        result = self.ssh.run(self.ssh.script('dmesg | tail -c "$1"', str(KERNEL_MESSAGES)), most=2 * KERNEL_MESSAGES)
        with target.open("a", encoding="utf-8") as file:
            file.write(result.output)

    def _fail(self, what: str, why: str, way: str) -> None:
        raise BoxFailed(host=self.ssh.host, what=what, why=why, way=way)
