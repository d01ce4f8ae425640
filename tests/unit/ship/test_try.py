"""kdyno-try on made-up machines: a directory with boot loader entries, an environment block by the real grub-editenv,
and stand-ins for the programs that change a machine.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from kdyno.ship.packager import TRY, try_path

OLD, NEW = "6.1.0-9-amd64", "6.12.1-kdyno-0123456789ab"
GUID = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
WORDS = "panic=10 systemd.watchdog_sec=30"
MENU = """\
if [ "${{next_entry}}" ] ; then
   set default="${{next_entry}}"
else
   set default="{default}"
fi
menuentry 'Debian' --class debian $menuentry_id_option 'gnulinux-simple-1234' {{
\tlinux\t/boot/vmlinuz-{new} root=/dev/sda1 ro quiet
\tinitrd\t/boot/initrd.img-{new}
}}
submenu 'Advanced options' $menuentry_id_option 'gnulinux-advanced-1234' {{
{entries}}}
{trial}
"""
ENTRY = """\
\tmenuentry 'Debian, with Linux {release}' --class debian $menuentry_id_option 'gnulinux-{release}-advanced-1234' {{
\t\tif [ x$feature = xy ]; then insmod all_video; fi
\t\tlinux\t/boot/vmlinuz-{release} root=/dev/sda1 ro quiet
\t\tinitrd\t/boot/initrd.img-{release}
\t}}
\tmenuentry 'Debian, with Linux {release} (recovery mode)' $menuentry_id_option 'gnulinux-{release}-recovery-1234' {{
\t\tlinux\t/boot/vmlinuz-{release} root=/dev/sda1 ro single
\t}}
"""
PROGRAMS = {
    "uname": 'cat "$ROOT/release"',
    "id": "echo 0",
    "sync": ":",
    "sleep": ":",
    "modprobe": 'echo "modprobe $*" >> "$ROOT/log"; touch "$ROOT/dev/watchdog0"',
    "df": 'echo head; echo "x x x $(cat "$ROOT/free") x"',
    "dpkg-query": 'cat "$ROOT/status"',
    "systemctl": """\
case $1 in
    is-system-running) cat "$ROOT/system" ;;
    list-units) cat "$ROOT/failed" ;;
    *) echo "systemctl $*" >> "$ROOT/log" ;;
esac""",
    "bootctl": """\
case $1 in
    --print-boot-path) echo "$ROOT/boot/efi" ;;
    set-default) printf '1234%s' "$2" > "$VARS/LoaderEntryDefault-$GUID" ;;
    set-oneshot) printf '1234%s' "$2" > "$VARS/LoaderEntryOneShot-$GUID" ;;
esac""",
    "update-grub": """\
default='0'
! grep -qs GRUB_DEFAULT=saved "$ROOT"/etc/default/grub.d/* || default='${saved_entry}'
trial=$([ ! -x "$ROOT/etc/grub.d/42_kdyno_try" ] || sh "$ROOT/etc/grub.d/42_kdyno_try")
{ sed -e "s/@DEFAULT@/$default/" -e /@TRIAL@/d "$ROOT/menu"; echo "$trial"; } > "$ROOT/boot/grub/grub.cfg" """,
    "grub-probe": 'case $1 in --target=fs) cat "$ROOT/fs" ;; *) cat "$ROOT/abstraction" ;; esac',
    "dkms": """\
case "$1 $3" in
    "status $(cat "$ROOT/release")") echo "zfs/2.1, $3, x86_64: installed" ;;
    status*) cat "$ROOT/dkms" ;;
    autoinstall*) echo "dkms $*" >> "$ROOT/log"; cp "$ROOT/dkms-built" "$ROOT/dkms" ;;
esac""",
}

BOOTS = itertools.count()
Loader = Literal["systemd-boot", "grub"]
both_loaders = pytest.mark.parametrize("loader", ["systemd-boot", "grub"])


@dataclass
class Machine:
    """A root directory, and the programs that act on it."""

    root: Path
    loader: Loader

    @property
    def state(self) -> dict[str, str]:
        file = self.root / "etc/kdyno-try/state"
        return dict(line.split("=", 1) for line in file.read_text().splitlines()) if file.exists() else {}

    @property
    def default(self) -> str:
        """What the boot loader starts, if no other entry is chosen."""
        return self.variable("LoaderEntryDefault") if self.loader == "systemd-boot" else self.grub("saved_entry")

    @property
    def next(self) -> str:
        """What it starts only the next time."""
        return self.variable("LoaderEntryOneShot") if self.loader == "systemd-boot" else self.grub("next_entry")

    @property
    def trial(self) -> str:
        """The entry of the trial; empty if there is none."""
        if self.loader == "grub":
            _, head, rest = (self.root / "boot/grub/grub.cfg").read_text().partition("menuentry 'kdyno-try")
            return head + rest
        return "".join(file.read_text() for file in self.root.glob("boot/efi/loader/entries/kdyno-try*"))

    @property
    def log(self) -> str:
        file = self.root / "log"
        return file.read_text() if file.exists() else ""

    def entry(self, release: str) -> str:
        """The ID of the entry of a release."""
        return (
            f"m-{release}.conf"
            if self.loader == "systemd-boot"
            else f"gnulinux-advanced-1234>gnulinux-{release}-advanced-1234"
        )

    def variable(self, name: str) -> str:
        file = self.root / f"sys/firmware/efi/efivars/{name}-{GUID}"
        return file.read_text()[4:] if file.exists() else ""

    def grub(self, name: str) -> str:
        lines = subprocess.run(
            ["grub-editenv", self.root / "boot/grub/grubenv", "list"], check=True, capture_output=True, text=True
        ).stdout.splitlines()
        return dict(line.split("=", 1) for line in lines).get(name, "")

    def write(self, name: str, text: str) -> Path:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def stub(self, name: str, text: str) -> None:
        self.write(f"programs/{name}", f"#!/bin/sh\n{text}\n").chmod(0o755)

    def __call__(self, *words: str, status: int | None = 0) -> str:
        """Run kdyno-try, and return what it prints; the exit status must be the one expected, if one is."""
        program = self.root / try_path(NEW)
        environment = {
            "PATH": f"{self.root}/programs:/usr/sbin:/usr/bin:/sbin:/bin",
            "ROOT": str(self.root),
            "VARS": f"{self.root}/sys/firmware/efi/efivars",
            "GUID": GUID,
        }
        done = subprocess.run(
            [program, "--root", self.root, *words],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert status is None or done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def boot(self, release: str, words: str = "") -> str:
        """Start the machine again, with this kernel; return what the unit prints, if it is enabled."""
        (self.root / "release").write_text(f"{release}\n")
        self.write("proc/cmdline", f"BOOT_IMAGE=/boot/vmlinuz-{release} root=/dev/sda1 {words}\n")
        self.write("proc/sys/kernel/random/boot_id", f"boot {next(BOOTS)}\n")
        if self.loader == "systemd-boot":
            self.write(f"sys/firmware/efi/efivars/LoaderEntrySelected-{GUID}", f"1234{self.entry(release)}")
        unit = self.root / "etc/systemd/system/kdyno-try.service"
        return self("--watch", status=None) if unit.exists() else ""

    def choose_trial(self) -> None:
        """Do what the boot loader does before it starts the trial."""
        assert self.next.startswith("kdyno-try")
        if self.loader == "systemd-boot":
            (self.root / f"sys/firmware/efi/efivars/LoaderEntryOneShot-{GUID}").unlink()
        else:
            environment = self.root / "boot/grub/grubenv"
            subprocess.run(["grub-editenv", environment, "unset", "next_entry"], check=True)
            subprocess.run(["grub-editenv", environment, "set", f"kdyno_tried={NEW}"], check=True)

    def boot_trial(self) -> str:
        """Start the machine as its boot loader does after it was armed; return what the unit prints."""
        self.choose_trial()
        return self.boot(NEW, f"{WORDS} kdyno.try={NEW}")


@pytest.fixture
def machine(tmp_path: Path, loader: Loader) -> Machine:
    if loader == "grub" and shutil.which("grub-editenv") is None:
        pytest.skip("grub-editenv is not installed")
    made = Machine(tmp_path, loader)
    for name, text in PROGRAMS.items():
        if name != "dkms":
            made.stub(name, text)
    program = made.write(try_path(NEW), TRY.read_text())
    program.chmod(0o755)
    made.boot(OLD)
    for name, text in {
        "free": "100000",
        "status": "installed",
        "system": "running",
        "failed": "",
        "fs": "ext2",
        "abstraction": "",
        "proc/uptime": "50.00 1.00",
        "proc/sys/kernel/tainted": "0",
        "dev/null": "",
        "proc/net/route": "Iface Destination Gateway\neth0 00000000 0202000A\n",
    }.items():
        made.write(name, f"{text}\n" if text else "")
    for release in (OLD, NEW):
        for kind in ("vmlinuz", "initrd.img"):
            made.write(f"boot/{kind}-{release}", f"{kind} {release}")
    if loader == "systemd-boot":
        made.write(f"sys/firmware/efi/efivars/LoaderInfo-{GUID}", "1234systemd-boot 252")
        for release in (OLD, NEW):
            for name, kind in {"linux": "vmlinuz", f"initrd.img-{release}": "initrd.img"}.items():
                made.write(f"boot/efi/m/{release}/{name}", f"{kind} {release}")
            made.write(
                f"boot/efi/loader/entries/m-{release}.conf",
                f"title Debian\nversion    {release}\noptions root=/dev/sda1 quiet\n"
                f"linux /m/{release}/linux\ninitrd /m/{release}/initrd.img-{release}\n",
            )
    else:
        entries = "".join(ENTRY.format(release=release) for release in (NEW, OLD))
        made.write("menu", MENU.format(default="@DEFAULT@", new=NEW, entries=entries, trial="@TRIAL@"))
        (tmp_path / "boot/grub").mkdir(parents=True)
        subprocess.run(["grub-editenv", tmp_path / "boot/grub/grubenv", "create"], check=True)
        (tmp_path / "etc/default/grub.d").mkdir(parents=True)
        (tmp_path / "etc/grub.d").mkdir()
        subprocess.run(
            [tmp_path / "programs/update-grub"], env={"PATH": os.environ["PATH"], "ROOT": str(tmp_path)}, check=True
        )
    return made


def files(machine: Machine) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(machine.root.rglob("*")) if file.is_file()}


@both_loaders
def test_a_trial_is_armed_for_one_boot_and_the_running_kernel_is_the_default(machine: Machine) -> None:
    text = machine()
    assert machine.default == machine.entry(OLD)
    assert machine.next.startswith("kdyno-try")
    assert "root=/dev/sda1" in machine.trial and f"{WORDS} kdyno.try={NEW}" in machine.trial
    assert machine.state["phase"] == "armed"
    assert "systemctl enable kdyno-try.service" in machine.log
    assert "reboot to try" in text and "systemctl reboot" not in machine.log


@both_loaders
def test_a_dry_run_changes_no_file(machine: Machine) -> None:
    before = files(machine)
    text = machine("--dry-run", "--reboot")
    assert files(machine) == before
    assert "would make 6.1.0-9-amd64 the default" in text and "would reboot" in text


@both_loaders
def test_a_healthy_kernel_is_kept(machine: Machine) -> None:
    machine("--healthy-for", "0")
    text = machine.boot_trial()
    assert "is healthy" in text and "is kept" in text
    assert machine.default == machine.entry(NEW)
    assert (machine.next, machine.trial, machine.state["phase"]) == ("", "", "kept")
    assert not (machine.root / "etc/systemd/system/kdyno-try.service").exists()
    assert "reboot" not in machine.log


@both_loaders
@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("failed", "a.service loaded failed failed A\n", "the unit a.service failed"),
        ("proc/net/route", "Iface Destination Gateway\n", "there is no default route"),
        ("proc/sys/kernel/tainted", "128\n", "the kernel reported a bug"),
        ("system", "starting\n", "the system has not finished to start"),
    ],
)
def test_an_unhealthy_kernel_is_left_by_a_reboot(machine: Machine, file: str, text: str, why: str) -> None:
    machine("--deadline", "50")
    machine.write(file, text)
    assert why in machine.boot_trial()
    assert "systemctl reboot" in machine.log
    assert machine.default == machine.entry(OLD)
    assert why in machine.boot(OLD)
    assert why in machine("--status")
    assert (machine.next, machine.trial) == ("", "")


@both_loaders
def test_the_check_of_the_load_decides(machine: Machine) -> None:
    machine("--deadline", "50", "--check", "test -e /nowhere = x || false")
    assert "the check failed: test -e /nowhere = x || false" in machine.boot_trial()
    assert "systemctl reboot" in machine.log


@both_loaders
def test_a_unit_that_failed_before_does_not_count(machine: Machine) -> None:
    machine.write("failed", "a.service loaded failed failed A\n")
    machine("--healthy-for", "0")
    machine.write("system", "degraded\n")
    assert "is kept" in machine.boot_trial()


@both_loaders
def test_a_panic_is_noticed_by_the_kernel_that_comes_back(machine: Machine) -> None:
    machine()
    machine.choose_trial()
    machine.write("proc/sys/kernel/random/boot_id", "another\n")
    text = machine("--watch")
    assert "it was started and never became healthy" in text
    assert machine.default == machine.entry(OLD)
    assert machine.trial == ""


@both_loaders
def test_a_trial_that_the_boot_loader_did_not_start_is_said_to_be_that(machine: Machine) -> None:
    machine()
    machine.write("proc/sys/kernel/random/boot_id", "another\n")
    assert "the boot loader didn't start it" in machine("--watch")


@both_loaders
def test_a_held_kernel_is_the_default_only_once_it_is_kept(machine: Machine) -> None:
    machine("--hold", "--healthy-for", "0")
    machine.boot_trial()
    assert machine.default == machine.entry(OLD)
    assert "is not the default" in machine("--status") or "not the default until" in machine("--status")
    machine("--keep")
    assert machine.default == machine.entry(NEW)


@both_loaders
def test_a_rollback_before_the_boot_disarms(machine: Machine) -> None:
    machine()
    machine("--rollback")
    assert (machine.default, machine.next, machine.trial) == (machine.entry(OLD), "", "")
    assert "reboot" not in machine.log


@both_loaders
def test_a_kept_kernel_is_rolled_back_to_the_one_before(machine: Machine) -> None:
    machine("--healthy-for", "0")
    machine.boot_trial()
    text = machine("--rollback", "--reboot")
    assert f"make {OLD} the default" in text
    assert machine.default == machine.entry(OLD)
    assert "systemctl reboot" in machine.log


@both_loaders
def test_forgetting_leaves_the_boot_loader_as_it_was(machine: Machine) -> None:
    before = {name: text for name, text in files(machine).items() if "/boot/" in name or "/etc/" in name}
    machine()
    machine("--forget")
    after = {name: text for name, text in files(machine).items() if "/boot/" in name or "/etc/" in name}
    assert after == before
    assert (machine.default, machine.next) == ("", "")


@both_loaders
def test_a_pin_needs_no_new_kernel(machine: Machine) -> None:
    machine("--pin")
    assert machine.default == machine.entry(OLD)
    assert "no trial" in machine("--status")
    assert "pinned as the default already" in machine("--pin")


@both_loaders
@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("free", "100\n", "has 100 KiB free"),
        ("status", "half-configured", "is half-configured, not installed"),
        (f"boot/vmlinuz-{NEW}", "", "is not installed"),
        ("release", f"{NEW}\n", "runs already"),
    ],
)
def test_a_machine_that_is_not_ready_is_refused_and_stays_as_it_was(
    machine: Machine, file: str, text: str, why: str
) -> None:
    machine.write(file, text)
    before = files(machine)
    assert why in machine(status=1)
    assert files(machine) == before


@pytest.mark.parametrize("loader", ["systemd-boot"])
def test_a_copy_that_a_full_esp_cut_short_is_refused(machine: Machine) -> None:
    machine.write(f"boot/efi/m/{NEW}/linux", "vmli")
    assert "is not equal to" in machine(status=1)
    machine.write(f"boot/efi/m/{NEW}/linux", "")
    assert "is missing or empty" in machine(status=1)


@pytest.mark.parametrize("loader", ["grub"])
@pytest.mark.parametrize(("fs", "abstraction"), [("btrfs", ""), ("ext2", "lvm"), ("ext2", "diskfilter mdraid1x")])
def test_a_place_that_grub_cannot_write_to_is_refused(machine: Machine, fs: str, abstraction: str) -> None:
    machine.write("fs", fs)
    machine.write("abstraction", abstraction)
    assert "where GRUB can't write" in machine(status=1)


@pytest.mark.parametrize("loader", ["grub"])
def test_a_machine_that_grub_did_not_start_is_refused(machine: Machine) -> None:
    machine.write("proc/cmdline", "root=/dev/sda1\n")
    assert "GRUB didn't start this machine" in machine(status=1)
    shutil.rmtree(machine.root / "boot/grub")
    assert "neither systemd-boot nor GRUB" in machine(status=1)


@pytest.mark.parametrize("loader", ["systemd-boot"])
def test_a_machine_of_another_boot_loader_is_refused(machine: Machine) -> None:
    machine.write(f"sys/firmware/efi/efivars/LoaderInfo-{GUID}", "1234rEFInd 0.13")
    assert "is rEFInd 0.13, and only" in machine(status=1)


@pytest.mark.parametrize("loader", ["systemd-boot"])
def test_an_entry_that_is_not_there_is_named(machine: Machine) -> None:
    (machine.root / f"boot/efi/loader/entries/m-{NEW}.conf").unlink()
    assert f"has no entry of {NEW}" in machine(status=1)


@pytest.mark.parametrize("loader", ["systemd-boot"])
def test_modules_of_dkms_are_built_before_the_reboot_or_the_trial_is_refused(machine: Machine) -> None:
    machine.stub("dkms", PROGRAMS["dkms"])
    machine.write("dkms", "")
    machine.write("dkms-built", "")
    assert "the headers of" in machine(status=1)
    (machine.root / f"lib/modules/{NEW}/build").mkdir(parents=True)
    assert "don't build for" in machine(status=1)
    assert machine.next == ""
    machine("--skip-dkms", "--dry-run")
    machine.write("dkms-built", f"zfs/2.1, {NEW}, x86_64: installed\n")
    machine()
    assert f"dkms autoinstall -k {NEW}" in machine.log
    assert machine.next


def pe(*, is_signed: bool) -> bytes:
    """As much of a kernel's PE header as tells whether it has a signature."""
    header = bytearray(512)
    header[60:64] = (64).to_bytes(4, "little")
    header[64 + 24 + 112 + 36 : 64 + 24 + 112 + 40] = (1000 if is_signed else 0).to_bytes(4, "little")
    return bytes(header)


@pytest.mark.parametrize("loader", ["systemd-boot"])
def test_secure_boot_needs_a_signed_kernel(machine: Machine) -> None:
    variable = machine.write("sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", "")
    for is_on, is_signed, is_refused in ((1, False, True), (1, True, False), (0, False, False)):
        variable.write_bytes(bytes([6, 0, 0, 0, is_on]))
        for place in (f"boot/vmlinuz-{NEW}", f"boot/efi/m/{NEW}/linux"):
            (machine.root / place).write_bytes(pe(is_signed=is_signed))
        assert ("isn't signed" in machine("--dry-run", status=int(is_refused))) == is_refused


@pytest.mark.parametrize("loader", ["systemd-boot"])
def test_softdog_is_loaded_where_there_is_no_watchdog(machine: Machine) -> None:
    machine("--healthy-for", "1")
    machine.stub("sleep", 'echo "60.00 1.00" > "$ROOT/proc/uptime"')
    machine.boot_trial()
    assert "modprobe softdog" in machine.log


@pytest.mark.parametrize("loader", ["systemd-boot"])
def test_a_mistake_on_the_command_line_is_named(machine: Machine) -> None:
    assert "unknown argument --frobnicate" in machine("--frobnicate", status=1)
    assert "expected a number of seconds, got 'soon'" in machine("--deadline", "soon", status=1)
    assert "there was no trial" in machine("--keep", status=1)
    assert "there was no trial" in machine("--rollback", status=1)
    machine.stub("id", "echo 1000")
    assert "only root" in machine("--status", status=1)


def test_the_program_is_sound_to_shellcheck() -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    done = subprocess.run(["shellcheck", TRY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
