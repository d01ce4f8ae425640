"""Whole machines of Debian 12: a disk with a boot loader, kernels and systemd, which firmware starts in QEMU. Made
without root; each is prepared once and kept beside the kernels of the other tests.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

Loader = Literal["systemd-boot", "grub"]

FIRMWARE = (Path("/usr/share/OVMF/OVMF_CODE_4M.fd"), Path("/usr/share/OVMF/OVMF_VARS_4M.fd"))
PACKAGES = ("systemd", "systemd-sysv", "udev", "dbus", "kmod", "initramfs-tools", "zstd", "linux-image-cloud-amd64")
LOADERS: dict[Loader, str] = {"systemd-boot": "systemd-boot", "grub": "grub-efi-amd64"}
NOT_STARTED = (
    *("systemd-logind.service", "e2scrub_reap.service", "e2scrub_all.timer", "getty.target", "dpkg-db-backup.timer"),
    *("apt-daily.timer", "apt-daily-upgrade.timer", "serial-getty@ttyS0.service"),
)
"""Units that no test needs."""
LEFT_OUT = ("usr/share/man", "usr/share/doc", "usr/share/locale")
MIB = 1 << 20
ESP_MIB, ROOT_MIB = 192, 1600
CLOCK = "shift=3"
"""The machine's clock counts instructions, 8 ns each: a busy host doesn't make timeouts in it fire."""
DEVICES = ("i6300esb",)
"""A watchdog."""
DISK, VARIABLES = "disk.qcow2", "variables.qcow2"
STARTED, INSTALLED = "started", "installed"
SHELL = "\nkdyno-shell "
"""What the shell of the second serial port begins with, before the release of the kernel."""
WORDS = (
    "root=LABEL=root rw console=ttyS0 no_timer_check quiet systemd.show_status=0 "
    "cryptomgr.notests mitigations=off audit=0 apparmor=0"  # what takes a third of a boot under TCG
)
BOOT_SECONDS, COMMAND_SECONDS = 1800.0, 1800.0

FILES = {
    "etc/fstab": "LABEL=root / ext4 defaults 0 1\nLABEL=ESP /boot/efi vfat umask=0077 0 2\n",
    "etc/kernel/cmdline": f"{WORDS}\n",
    "etc/kernel/entry-token": "debian\n",
    "etc/default/grub": f'GRUB_DEFAULT=0\nGRUB_TIMEOUT=1\nGRUB_CMDLINE_LINUX="{WORDS}"\nGRUB_TERMINAL=console\n'
    "GRUB_DISABLE_OS_PROBER=true\n",
    # an initrd with nothing but what the disk needs: TCG unpacks a larger one for seconds
    "etc/initramfs-tools/initramfs.conf": "MODULES=list\nBUSYBOX=n\nKEYMAP=n\nCOMPRESS=gzip\n"
    "RUNSIZE=10%\nFSTYPE=ext4\n",
    "etc/initramfs-tools/modules": "virtio_pci\nvirtio_blk\next4\n",
    # what GRUB's program reads first
    "etc/early.cfg": "search --label --set=root root\nset prefix=($root)/boot/grub\nconfigfile $prefix/grub.cfg\n",
    "etc/systemd/network/any.network": "[Match]\nName=e*\n[Network]\nAddress=10.0.2.15/24\nGateway=10.0.2.2\n",
    # a shell for the test on the second serial port
    "etc/systemd/system/test-shell.service": "[Unit]\nAfter=multi-user.target\n[Service]\nType=idle\n"
    "ExecStart=/bin/sh -c 'stty -F /dev/ttyS1 raw -echo; exec >/dev/ttyS1 2>&1; echo; echo kdyno-shell $$(uname -r); "
    "cat </dev/ttyS1 | sh'\nKillSignal=SIGKILL\n[Install]\nWantedBy=multi-user.target\n",
}
GRUB_MODULES = (
    "part_gpt ext2 fat normal linux search search_label search_fs_uuid loadenv echo test configfile gzio all_video "
    "terminal sleep true reboot minicmd"
)


def missing_programs() -> list[str]:
    """The programs and files that this host lacks for such a machine."""
    programs = (
        *("mmdebstrap", "fakeroot", "mkfs.ext4", "mkfs.vfat", "sgdisk", "mcopy", "mmd"),
        *("qemu-system-x86_64", "qemu-img"),
    )
    path = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
    missing = [name for name in programs if shutil.which(name, path=path) is None]
    return missing + [str(file) for file in FIRMWARE if not file.exists()]


def run(*words: str | Path, **options: object) -> str:
    """Run a program to its end, and return its output. It must succeed."""
    done = subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        **options,  # type: ignore[call-overload]
    )
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return str(done.stdout)


@dataclass(frozen=True)
class Extras:
    """What a machine has in addition."""

    name: str
    packages: tuple[str, ...]
    files: Mapping[str, str]
    sources: tuple[str, ...] = ()
    """Lines of sources.list."""


def make_disk(loader: Loader, directory: Path, extras: Extras | None = None) -> Path:
    """Return the disk of a machine with this boot loader; the first call makes it, in two minutes."""
    recipe = (FILES, PACKAGES, NOT_STARTED, GRUB_MODULES, LOADERS[loader], ESP_MIB, ROOT_MIB)
    digest = hashlib.sha256(repr((*recipe, extras) if extras else recipe).encode()).hexdigest()[:12]
    name = f"{extras.name if extras else 'debian'}-{loader}"
    disk = directory / f"{name}-{digest}.raw"
    if not disk.exists():
        directory.mkdir(parents=True, exist_ok=True)
        for old in directory.glob(f"{name}-*"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        scratch = directory / f"{name}-scratch"
        scratch.mkdir()
        try:
            made = _make_disk(loader, scratch, extras or Extras("", (), {}))
            if loader == "grub":
                _make_menu(made, scratch)
            made.replace(disk)
        finally:
            shutil.rmtree(scratch)
    return disk


def make_machine(loader: Loader, directory: Path, package: Path) -> Path:
    """Return the directory of a machine that has started, saved with all its memory: as STARTED, with the package in
    /root, and as INSTALLED. The first call makes it.
    """
    disk = make_disk(loader, directory)
    facts = (disk.name, package.read_bytes(), run("qemu-system-x86_64", "--version"), DEVICES, CLOCK)
    place = directory / f"machine-{loader}-{hashlib.sha256(repr(facts).encode()).hexdigest()[:12]}"
    if not place.exists():
        for old in directory.glob(f"machine-{loader}-*"):
            shutil.rmtree(old)
        scratch = directory / f"machine-{loader}-scratch"
        scratch.mkdir()
        try:
            run("qemu-img", "convert", "-O", "qcow2", disk, scratch / DISK)
            run("qemu-img", "convert", "-f", "raw", "-O", "qcow2", FIRMWARE[1], scratch / VARIABLES)
            with Guest(scratch, package) as guest:
                guest.wait_for_shell()
                guest(f"head -c {package.stat().st_size} /dev/vdb > /root/kernel.deb; sync")
                guest.save(STARTED)
                guest("dpkg -i /root/kernel.deb; sync")
                guest.save(INSTALLED)
            scratch.rename(place)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return place


def _make_disk(loader: Loader, scratch: Path, extras: Extras) -> Path:
    archive, tree = scratch / "root.tar", scratch / "tree"
    hooks = [
        'systemctl --root="$1" enable systemd-networkd test-shell',
        f'systemctl --root="$1" mask {" ".join(NOT_STARTED)}',
        'rm -f "$1"/etc/resolv.conf; echo guest > "$1"/etc/hostname; mkdir -p "$1"/boot/efi',
        'chroot "$1" update-initramfs -u -k all',  # the package's own was made before the settings were there
    ]
    if loader == "grub":
        hooks += [
            'mkdir -p "$1"/boot/grub/x86_64-efi; cp "$1"/usr/lib/grub/x86_64-efi/*.??? "$1"/boot/grub/x86_64-efi/',
            'chroot "$1" grub-editenv /boot/grub/grubenv create',
            'chroot "$1" grub-mkimage -O x86_64-efi -p /boot/grub -c /etc/early.cfg -o /boot/BOOTX64.EFI '
            f"{GRUB_MODULES}",
        ]
    files = scratch / "files"
    for name, text in {**FILES, **extras.files}.items():
        (files / name).parent.mkdir(parents=True, exist_ok=True)
        (files / name).write_text(text)
    packages = ",".join([*PACKAGES, LOADERS[loader], *extras.packages])
    run(
        *("mmdebstrap", "--quiet", "--variant=minbase", f"--include={packages}"),
        *(f"--dpkgopt=path-exclude=/{path}/*" for path in LEFT_OUT),
        *(f"--customize-hook=copy-in {directory} /" for directory in sorted(files.iterdir())),
        *(f"--customize-hook={hook}" for hook in hooks),
        *("bookworm", archive),
        *extras.sources,
    )
    disk, root, esp = scratch / "disk.raw", scratch / "root.img", scratch / "esp.img"
    tree.mkdir()
    unpack = f"tar -xf {archive} -C {tree} --exclude=./dev/* && mkfs.ext4 -q -L root -d {tree} {root} {ROOT_MIB}M"
    run("fakeroot", "sh", "-c", unpack)
    _make_esp(loader, tree, esp)
    with disk.open("wb") as file:
        file.truncate((ESP_MIB + ROOT_MIB + 3) * MIB)
    parts = ("-n", f"1:1M:+{ESP_MIB}M", "-t", "1:ef00", "-n", f"2:{ESP_MIB + 1}M:+{ROOT_MIB}M", "-t", "2:8304")
    run("sgdisk", "-o", *parts, disk)
    run("dd", f"if={esp}", f"of={disk}", "bs=1M", "seek=1", "conv=notrunc,sparse")
    run("dd", f"if={root}", f"of={disk}", "bs=1M", f"seek={ESP_MIB + 1}", "conv=notrunc,sparse")
    return disk


def own_kernel(tree: Path) -> Path:
    """Return the kernel that a machine starts by itself: the oldest of its kernels."""
    return min(
        (tree / "boot").glob("vmlinuz-*"), key=lambda path: [int(part) for part in re.findall(r"\d+", path.name)]
    )


def _make_esp(loader: Loader, tree: Path, esp: Path) -> None:
    """Make the EFI system partition: the boot loader and what it starts first."""
    kernel = own_kernel(tree)
    release = kernel.name.removeprefix("vmlinuz-")
    with esp.open("wb") as file:
        file.truncate(ESP_MIB * MIB)
    run("mkfs.vfat", "-F32", "-n", "ESP", esp)
    run("mmd", "-i", esp, "::/EFI", "::/EFI/BOOT")
    if loader == "grub":
        run("mcopy", "-i", esp, tree / "boot/BOOTX64.EFI", "::/EFI/BOOT/BOOTX64.EFI")
        return
    run("mmd", "-i", esp, "::/EFI/systemd", "::/loader", "::/loader/entries", "::/debian", f"::/debian/{release}")
    program = tree / "usr/lib/systemd/boot/efi/systemd-bootx64.efi"
    for name in ("EFI/BOOT/BOOTX64.EFI", "EFI/systemd/systemd-bootx64.efi"):
        run("mcopy", "-i", esp, program, f"::/{name}")
    run("mcopy", "-i", esp, kernel, f"::/debian/{release}/linux")
    run("mcopy", "-i", esp, tree / f"boot/initrd.img-{release}", f"::/debian/{release}/initrd.img-{release}")
    entry, settings = esp.with_name("entry.conf"), esp.with_name("loader.conf")
    entry.write_text(
        f"title Debian\nversion {release}\nsort-key debian\noptions {WORDS}\n"
        f"linux /debian/{release}/linux\ninitrd /debian/{release}/initrd.img-{release}\n"
    )
    settings.write_text("timeout 0\n")
    run("mcopy", "-i", esp, entry, f"::/loader/entries/debian-{release}.conf")
    run("mcopy", "-i", esp, settings, "::/loader/loader.conf")


def _make_menu(disk: Path, scratch: Path) -> None:
    """Let the machine make GRUB's menu itself: its first start has one of two lines."""
    root = scratch / "root.img"
    release = own_kernel(scratch / "tree").name.removeprefix("vmlinuz-")
    menu = scratch / "grub.cfg"
    menu.write_text(f"linux /boot/vmlinuz-{release} {WORDS}\ninitrd /boot/initrd.img-{release}\nboot\n")
    run("debugfs", "-w", "-R", f"write {menu} boot/grub/grub.cfg", root)
    run("dd", f"if={root}", f"of={disk}", "bs=1M", f"seek={ESP_MIB + 1}", "conv=notrunc,sparse")
    for name, source in ((DISK, disk), (VARIABLES, FIRMWARE[1])):
        run("qemu-img", "convert", "-f", "raw", "-O", "qcow2", source, scratch / name)
    with Guest(scratch) as guest:
        guest.wait_for_shell()
        assert guest("update-grub").endswith("done")
        guest.power_off()
    run("qemu-img", "convert", "-O", "raw", scratch / DISK, disk)


class Guest:
    """A running machine: its console goes to a file, and its shell is on the second serial port.

    Its directory has DISK and VARIABLES. With `saved` it goes on from what was saved under this name.
    """

    def __init__(
        self, directory: Path, package: Path | None = None, saved: str | None = None, ssh_port: int | None = None
    ) -> None:
        self.directory, self.package, self.saved = directory, package, saved
        self.ssh_port = ssh_port
        """The port of this host that leads to its ssh."""
        self.console = directory / "console"
        self.transcript = directory / "transcript"
        """Every command of the shell with its output."""
        self._read = ""

    def __enter__(self) -> Self:
        self._read = ""
        places = {name: self.directory / name for name in ("shell", "monitor")}
        for place in places.values():
            place.unlink(missing_ok=True)
        words = [
            *("qemu-system-x86_64", "-machine", "q35", "-accel", "tcg", "-cpu", "qemu64", "-m", "768", "-nodefaults"),
            *("-icount", CLOCK, "-rtc", "clock=vm", "-display", "none"),
            *("-drive", f"if=pflash,format=raw,readonly=on,file={FIRMWARE[0]}"),
            *("-drive", f"if=pflash,format=qcow2,file={self.directory / VARIABLES}"),
            *("-drive", f"if=virtio,format=qcow2,cache=writethrough,file={self.directory / DISK}"),
            *("-chardev", f"file,id=console,append=on,path={self.console}", "-serial", "chardev:console"),
            *("-chardev", f"socket,id=shell,server=on,wait=off,path={places['shell']}", "-serial", "chardev:shell"),
            *("-monitor", f"unix:{places['monitor']},server=on,wait=off"),
            *("-nic", f"user,model=virtio-net-pci,restrict=on{self._forward}"),
            *(word for device in DEVICES for word in ("-device", device)),
            *(["-drive", f"if=virtio,format=raw,readonly=on,file={self.package}"] if self.package else []),
            *(["-loadvm", self.saved] if self.saved else []),
        ]
        self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)
        self._monitor, self._socket = (self._connect(place) for place in (places["monitor"], places["shell"]))
        self._answer_of_monitor()
        return self

    @property
    def _forward(self) -> str:
        return f",hostfwd=tcp:127.0.0.1:{self.ssh_port}-:22" if self.ssh_port else ""

    def _connect(self, place: Path) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        end = time.monotonic() + 30
        while True:
            try:
                connection.connect(str(place))
                return connection
            except OSError:
                assert self._process.poll() is None and time.monotonic() < end, "QEMU did not start"
                time.sleep(0.1)

    def _answer_of_monitor(self) -> str:
        answer = b""
        self._monitor.settimeout(COMMAND_SECONDS)
        while not answer.endswith(b"(qemu) "):
            piece = self._monitor.recv(65536)
            assert piece, "QEMU ended"
            answer += piece
        return answer.decode(errors="replace")

    def save(self, name: str) -> None:
        """Save the whole machine under a name, in its disk."""
        self._monitor.sendall(f"savevm {name}\n".encode())
        answer = self._answer_of_monitor()
        assert "Error" not in answer, answer

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()
        self._monitor.close()
        self.cut_power()

    def cut_power(self) -> None:
        self._process.kill()
        self._process.wait()

    def wait_for(self, end: str, seconds: float = COMMAND_SECONDS) -> str:
        """Return what the shell wrote before `end`."""
        limit = time.monotonic() + seconds
        while end not in self._read:
            left = limit - time.monotonic()
            assert left > 0, f"no {end!r} within {seconds:.0f} s: {self._read!r}\n{self.log()[-3000:]}"
            self._socket.settimeout(left)
            with suppress(TimeoutError):
                received = self._socket.recv(65536)
                assert received, f"QEMU ended: {self.log()[-3000:]}"
                self._read += received.decode(errors="replace")
        before, _, self._read = self._read.partition(end)
        return before

    def wait_for_shell(self, seconds: float = BOOT_SECONDS) -> str:
        """Wait until the machine has started, and return the release of its kernel."""
        self.wait_for(SHELL, seconds)
        return self.wait_for("\n", seconds)

    def send(self, line: str) -> None:
        self._socket.sendall(f"{line}\n".encode())

    def __call__(self, command: str, status: int | None = 0, seconds: float = COMMAND_SECONDS) -> str:
        """Run a command of the shell, and return its output; its exit status must be the one expected, if one is."""
        self.send(f'{{ {command}\n}} </dev/null 2>&1; echo "kdyno-end $?"')
        output = self.wait_for("kdyno-end ", seconds)
        code = self.wait_for("\n", seconds)
        with self.transcript.open("a") as file:
            file.write(f"$ {command}\n{output}")
        assert status is None or int(code) == status, f"{command}: exit {code}\n{output}"
        return output.strip()

    def power_off(self) -> None:
        self.send("systemctl poweroff")
        self._process.wait(timeout=BOOT_SECONDS)

    def log(self) -> str:
        """What the console showed."""
        return self.console.read_text(errors="replace") if self.console.exists() else ""
