"""A box for the machine `metal`: a whole Debian in QEMU, which is reached by ssh and started by its own kernel."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.e2e import debian_guest
from tests.e2e.debian_guest import Extras, Loader

OWN, TESTED = "linux-image-cloud-amd64", "linux-image-6.12-cloud-amd64"
"""The box's own kernel, and the one that the tests start there."""
PACKAGES = (
    *("systemd", "systemd-sysv", "udev", "dbus", "openssh-server", "initramfs-tools", "kmod", "iproute2", "procps"),
    *("util-linux", OWN),
)
NETWORK = "[Match]\nName=en* eth*\n[Network]\nDHCP=ipv4\n"
BACKPORTS = "deb http://deb.debian.org/debian-security bookworm-security main"
MADE_WITH = 1
"""Raised when the disk must be made again."""
BOOT_SECONDS = 900.0
RESET = """
import json, socket, sys
with socket.socket(socket.AF_UNIX) as monitor:
    monitor.connect(sys.argv[1])
    with monitor.makefile("rw") as file:
        file.readline()
        for command in ("qmp_capabilities", "system_reset"):
            print(json.dumps({"execute": command}), file=file, flush=True)
            file.readline()
"""


def make_disk(place: Path) -> None:
    """Make the disk, the kernels and the keys of the box in a directory, once. Needs root, as mmdebstrap's files do."""
    stamp = place / "made"
    if stamp.exists() and stamp.read_text() == str(MADE_WITH):
        return
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    root, key = place / "root", place / "key"
    run = subprocess.check_call
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)])
    run(
        [
            *("mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join((*PACKAGES, TESTED))}"),
            *("bookworm", str(root), "deb http://deb.debian.org/debian bookworm main", BACKPORTS),
        ],
        stdin=subprocess.DEVNULL,
    )
    files = {
        "etc/systemd/network/10-all.network": NETWORK,
        "etc/hostname": "box\n",
        "etc/fstab": "/dev/vda / ext4 defaults 0 1\n",
        "root/.ssh/authorized_keys": key.with_suffix(".pub").read_text(),
    }
    for name, text in files.items():
        (root / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        (root / name).write_text(text)
    wanted = root / "etc/systemd/system/multi-user.target.wants/systemd-networkd.service"
    wanted.symlink_to("/lib/systemd/system/systemd-networkd.service")
    for file in (root / "boot").iterdir():
        shutil.copy(file, place)
    shutil.copy(root / "etc/ssh/ssh_host_ed25519_key.pub", place / "host.pub")
    disk = place / "disk.img"
    with disk.open("wb") as empty:
        empty.truncate(3 << 30)
    run(["mkfs.ext4", "-q", "-F", "-d", str(root), str(disk)])
    shutil.rmtree(root)
    stamp.write_text(str(MADE_WITH))


@dataclass(frozen=True)
class Box:
    """A running box."""

    place: Path
    """The directory of its disk and kernels."""
    work: Path
    """The directory of its console, its monitor and its ssh configuration."""
    own_release: str
    """The release of the kernel that it starts by itself."""
    boot: str = "kexec"
    """How its kernels are started."""
    console: tuple[str, ...] = ()
    """The command that prints its console; by default the file of its first serial port is printed."""
    reset: tuple[str, ...] = ()
    """The command that resets it; a box that starts kernels by firmware has none."""

    @property
    def tested_kernel(self) -> Path:
        return next(path for path in self.place.glob("vmlinuz-*") if not path.name.endswith(f"-{self.own_release}"))

    @property
    def machine(self) -> str:
        """Return the lines of [machine]."""
        console = self.console or ("tail", "-c", "0", "-f", str(self.work / "console"))
        return (
            f'[machine]\ntype = "metal"\nhost = "box"\nssh_config = "{self.work}/ssh_config"\nboot = "{self.boot}"\n'
            f"reset = {json.dumps(self.reset)}\nconsole = {json.dumps(console)}\n"
        )

    def fetch(self, *files: str) -> None:
        """Copy files of the box into the directory of its console."""
        self._copy(*(f"box:{file}" for file in files), str(self.work))

    def send(self, *files: Path) -> None:
        """Copy files into /root of the box."""
        self._copy(*map(str, files), "box:/root")

    def _copy(self, *words: str) -> None:
        subprocess.check_call(["scp", "-q", "-F", str(self.work / "ssh_config"), *words])

    def run(self, command: str) -> str:
        """Run a command on the box, as soon as it can be reached."""
        words = ["ssh", "-F", str(self.work / "ssh_config"), "-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "box"]
        end = time.monotonic() + BOOT_SECONDS
        while (
            done := subprocess.run([*words, command], capture_output=True, text=True, check=False)
        ).returncode == 255:
            assert time.monotonic() < end, f"{done.stderr}\n{(self.work / 'console').read_text()[-2000:]}"
            time.sleep(2)
        assert done.returncode == 0, done.stderr
        return done.stdout


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def write_ssh_files(key: Path, work: Path, port: int, host_key: str) -> None:
    """Write the configuration by which ssh reaches the box, and knows it."""
    (work / "known_hosts").write_text(f"[127.0.0.1]:{port} {' '.join(host_key.split()[:2])}\n")
    (work / "ssh_config").write_text(
        f"Host box\n HostName 127.0.0.1\n Port {port}\n User root\n IdentityFile {key}\n IdentitiesOnly yes\n"
        f" UserKnownHostsFile {work}/known_hosts\n GlobalKnownHostsFile /dev/null\n"
    )


@contextmanager
def started_firmware_box(
    place: Path, work: Path, packages: Sequence[str] = (TESTED,), loader: Loader = "systemd-boot"
) -> Iterator[Box]:
    """Start a box that firmware and a boot loader start, on a copy of its disk that is thrown away."""
    key = place / "key"
    if not key.exists():
        place.mkdir(parents=True, exist_ok=True)
        subprocess.check_call(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)])
    extras = Extras(
        name="box",
        packages=("openssh-server", "iproute2", "procps", "util-linux", *packages),
        files={"root/.ssh/authorized_keys": key.with_suffix(".pub").read_text()},
        sources=("deb http://deb.debian.org/debian bookworm main", BACKPORTS),
    )
    disk = debian_guest.make_disk(loader, place, extras)
    for name, source in ((debian_guest.DISK, disk), (debian_guest.VARIABLES, debian_guest.FIRMWARE[1])):
        debian_guest.run("qemu-img", "convert", "-f", "raw", "-O", "qcow2", source, work / name)
    port = free_port()
    with debian_guest.Guest(work, ssh_port=port) as guest:
        own = guest.wait_for_shell()
        box = Box(work, work, own, boot="firmware")
        write_ssh_files(key, work, port, guest("cat /etc/ssh/ssh_host_ed25519_key.pub"))
        for release in {*box.run("ls /lib/modules").split(), own}:
            box.fetch(*(f"/boot/{name}-{release}" for name in ("vmlinuz", "config")))
        yield box


@contextmanager
def started_box(place: Path, work: Path, devices: Sequence[str] = (), consoles: str = "console=ttyS0") -> Iterator[Box]:
    """Start the box on a copy of its disk that is thrown away, and wait until it can be reached. `devices` are options
    for QEMU: its second serial port and others.
    """
    port = free_port()
    write_ssh_files(place / "key", work, port, (place / "host.pub").read_text())
    (work / "reset.py").write_text(RESET)
    own = next(path.name for path in place.glob("vmlinuz-*") if "6.12" not in path.name).removeprefix("vmlinuz-")
    box = Box(place, work, own, reset=("python3", str(work / "reset.py"), str(work / "monitor")))
    command = [
        *("qemu-system-x86_64", "-M", "q35", "-m", "1024", "-cpu", "max", "-accel", "tcg", "-nodefaults", "-snapshot"),
        *("-display", "none", "-kernel", f"{place}/vmlinuz-{own}", "-initrd", f"{place}/initrd.img-{own}"),
        # A busy host emulates a timer too slowly for the kernel's check of it.
        *("-append", f"root=/dev/vda rw {consoles} no_timer_check"),
        *("-drive", f"file={place}/disk.img,format=raw,if=virtio,cache=unsafe"),
        *("-nic", f"user,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:{port}-:22"),
        *("-serial", f"file:{work}/console", "-qmp", f"unix:{work}/monitor,server=on,wait=off", *devices),
    ]
    with (
        (work / "qemu.log").open("wb") as log,
        subprocess.Popen(command, env={**os.environ, "TMPDIR": str(work)}, stdout=log) as qemu,
    ):
        try:
            box.run("true")
            yield box
        finally:
            qemu.kill()


def own_kernel_runs(box: Box) -> bool:
    """Return whether the box runs its own kernel, without files of kdyno."""
    text = box.run("uname -r; cat /proc/cmdline; ls /var/lib")
    return box.own_release in text and not re.search(r"kdyno", text)
