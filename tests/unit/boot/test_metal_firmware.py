"""Kernels that the boot loader of a box starts once: made-up boot loaders, and GRUB's environment block by the real
grub-editenv.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kdyno.boot.base import BootLimits
from kdyno.boot.metal.box import BoxLacks
from kdyno.boot.metal.machine import MetalMachine
from kdyno.boot.metal.settings import MetalConfig
from kdyno.boot.metal.ssh import BoxFailed, BoxFull, BoxUntrusted
from tests.unit.boot.fake_box import OWN_WORDS, RELEASE, FakeBox, order

GRUB_EDITENV = shutil.which("grub-editenv", path="/usr/bin:/usr/sbin")
pytestmark = pytest.mark.skipif(GRUB_EDITENV is None, reason="grub-editenv is not installed (grub-common)")

GUID = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
MENU = "if [ -f custom.cfg ]; then source custom.cfg; fi\nset default=${next_entry}\n"
GRUB = """#!/bin/sh
cd "{box}/boot/grub"
[ "$(grub-editenv grubenv list | sed -n s/^next_entry=//p)" = kdyno-metal ] || exit 0
grub-editenv grubenv unset next_entry
grub-editenv grubenv set "$(sed -n 's/ *set \\(kdyno_metal=.*\\)/\\1/p' custom.cfg)"
sed -n 's/^ *linux [^ ]* //p' custom.cfg | tr -d "'"
"""
SYSTEMD_BOOT = """#!/bin/sh
cd "{box}/boot/efi"
one="{box}/sys/firmware/efi/efivars/LoaderEntryOneShot-{guid}"
[ "$(tail -c +5 "$one" 2>/dev/null)" = kdyno-metal.conf ] || exit 0
rm "$one"
[ -s "./$(sed -n 's/^linux //p' loader/entries/kdyno-metal.conf)" ] || exit 0
sed -n 's/^options //p' loader/entries/kdyno-metal.conf
"""
BOOTCTL = """#!/bin/sh
one="{box}/sys/firmware/efi/efivars/LoaderEntryOneShot-{guid}"
case $1 in
--print-boot-path) echo "{box}/boot/efi";;
set-oneshot) if [ -n "$2" ]; then printf '....%s' "$2" >"$one"; else rm -f "$one"; fi;;
esac
"""


def program(box: FakeBox, name: str, text: str) -> None:
    box.put(f"bin/{name}", text.replace("{box}", str(box.root)).replace("{guid}", GUID)).chmod(0o755)


def with_grub(box: FakeBox) -> None:
    """Let GRUB start the box."""
    (box.root / "boot/grub").mkdir()
    box.put("boot/grub/grub.cfg", MENU)
    subprocess.run([str(GRUB_EDITENV), str(box.root / "boot/grub/grubenv"), "create"], check=True)
    program(box, "loader", GRUB)
    program(box, "grub-editenv", f'#!/bin/sh\nexec {GRUB_EDITENV} "$@"\n')
    program(box, "grub-mkrelpath", "#!/bin/sh\necho /boot/kdyno-metal\n")
    program(box, "grub-probe", "#!/bin/sh\ncase $1 in *fs_uuid) echo 1234-abcd;; *fs) echo ext2;; esac\n")


def with_systemd_boot(box: FakeBox) -> None:
    """Let systemd-boot start the box."""
    for name in ("boot/efi/loader/entries", "sys/firmware/efi/efivars"):
        (box.root / name).mkdir(parents=True)
    info = "....systemd-boot 252".encode("utf-16-le")[6:]
    (box.root / f"sys/firmware/efi/efivars/LoaderInfo-{GUID}").write_bytes(b"...." + info[2:])
    program(box, "loader", SYSTEMD_BOOT)
    program(box, "bootctl", BOOTCTL)


LOADERS = {"grub": with_grub, "systemd-boot": with_systemd_boot}


@pytest.fixture(params=LOADERS)
def loader(request: pytest.FixtureRequest, box: FakeBox) -> str:
    LOADERS[request.param](box)
    return str(request.param)


@pytest.fixture
def machine(box: FakeBox) -> Iterator[MetalMachine]:  # noqa: ARG001
    opened = MetalMachine(MetalConfig(host="box", boot="firmware", limits=BootLimits(boot=3, total=20)))
    yield opened
    opened.way_back.lease.release()


def traces(box: FakeBox) -> list[str]:
    """Return what kdyno left in /boot, in the boot loader's choices, and in its own directory."""
    left = [str(path) for path in (box.root / "boot").rglob("*kdyno*")]
    left += [str(path) for path in (box.root / "boot").rglob("custom.cfg")]
    left += [str(path) for path in box.root.rglob("LoaderEntryOneShot*")]
    if (block := box.root / "boot/grub/grubenv").exists() and b"kdyno" in block.read_bytes():
        left.append("grubenv")
    return [*left, *box.stored]


@pytest.mark.usefixtures("loader")
def test_the_boot_loader_starts_the_kernel_once(machine: MetalMachine, box: FakeBox, tmp_path: Path) -> None:
    assert machine.describe().facts["boot"] == "firmware"
    (box.root / "lib/modules" / RELEASE).mkdir(parents=True)
    box.put(f"boot/initrd.img-{RELEASE}", "an initrd")
    end = machine.boot(order(tmp_path, "mitigations=off"))
    assert (end.status, [step.stdout.strip() for step in end.report.steps]) == ("ok", [b"hello"])
    assert "mitigations=off" in end.command
    assert box.text("restarts") == "2"
    assert box.text("proc/cmdline") == OWN_WORDS, "the second restart starts the own kernel"
    assert traces(box)
    machine.way_back.lease.release()
    assert traces(box) == []


def test_an_entry_has_the_kernel_its_initrd_and_all_words(
    machine: MetalMachine, box: FakeBox, tmp_path: Path, loader: str
) -> None:
    (box.root / "lib/modules" / RELEASE).mkdir(parents=True)
    box.put(f"boot/initrd.img-{RELEASE}", "an initrd")
    boot = order(tmp_path, "a=$b;{c}#")
    assert machine.boot(boot).status == "ok"
    place, name = {
        "grub": ("boot", "grub/custom.cfg"),
        "systemd-boot": ("boot/efi", "loader/entries/kdyno-metal.conf"),
    }[loader]
    entry = box.text(f"{place}/{name}")
    assert boot.kernel is not None
    assert (box.root / place / "kdyno-metal/kernel").read_bytes() == boot.kernel.read_bytes()
    assert box.text(f"{place}/kdyno-metal/initrd") == "an initrd"
    assert ("'a=$b;{c}#'" if loader == "grub" else " a=$b;{c}# ") in entry
    assert "panic=10" in entry


@pytest.mark.usefixtures("loader")
def test_a_kernel_that_panics_at_boot_has_failed(machine: MetalMachine, box: FakeBox, tmp_path: Path) -> None:
    machine.describe()
    text = (box.root / "bin/loader").read_text()
    program(box, "loader", text + "exit 0\n")
    box.put("bin/loader", text.replace("sed -n 's/^", ": -n 's/^"))  # the choice is taken, and the own kernel runs
    end = machine.boot(order(tmp_path))
    assert (end.status, end.reason) == ("failed", "it did not come up: the box restarted into its own kernel")


@pytest.mark.usefixtures("loader")
def test_a_choice_that_the_boot_loader_ignores_is_not_the_kernels_failure(
    machine: MetalMachine, box: FakeBox, tmp_path: Path
) -> None:
    machine.describe()
    (box.root / "bin/loader").unlink()
    end = machine.boot(order(tmp_path))
    assert (end.status, end.reason) == ("lost", "the boot loader of the box did not start it")
    machine.way_back.lease.release()
    assert traces(box) == []


@pytest.mark.usefixtures("loader")
def test_a_boot_partition_that_fills_up_is_reported_and_the_box_stays_as_it_was(
    machine: MetalMachine, box: FakeBox, tmp_path: Path
) -> None:
    machine.describe()
    program(
        box, "cp", '#!/bin/sh\nhead -c 100 "$1" >"$2"\necho "cp: error writing: No space left on device" >&2\nexit 1\n'
    )
    with pytest.raises(BoxFull):
        machine.boot(order(tmp_path))
    assert box.text("restarts") == "0"
    machine.way_back.lease.release()
    assert traces(box) == []


@pytest.mark.parametrize("word", ["a='b", 'dyndbg="file a"'])
@pytest.mark.usefixtures("loader")
def test_a_word_that_a_boot_loader_could_misread_is_refused(
    machine: MetalMachine, box: FakeBox, tmp_path: Path, word: str
) -> None:
    with pytest.raises(BoxFailed, match=f"the kernel parameter {word}"):
        machine.boot(order(tmp_path, word))
    assert box.text("restarts") == "0"


def without_one_shot(box: FakeBox) -> None:
    box.put("boot/grub/grub.cfg", "source custom.cfg\n")


def without_custom(box: FakeBox) -> None:
    box.put("boot/grub/grub.cfg", "next_entry\n")


def custom_of_another(box: FakeBox) -> None:
    box.put("boot/grub/custom.cfg", "menuentry mine { }\n")


def on_lvm(box: FakeBox) -> None:
    program(box, "grub-probe", "#!/bin/sh\ncase $1 in *abstraction) echo lvm;; esac\n")


def without_block(box: FakeBox) -> None:
    (box.root / "boot/grub/grubenv").unlink()


def secure(box: FakeBox) -> None:
    place = box.root / "sys/firmware/efi/efivars"
    place.mkdir(parents=True)
    (place / "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c").write_bytes(b"\6\0\0\0\1")


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        (without_one_shot, "reads next_entry"),
        (without_custom, "reads custom.cfg"),
        (custom_of_another, "custom.cfg is another's"),
        (on_lvm, "an environment block that GRUB can write"),
        (without_block, "environment block"),
        (secure, "Secure Boot is on"),
    ],
)
def test_a_boot_loader_that_cannot_start_a_kernel_once_is_refused(
    machine: MetalMachine, box: FakeBox, change: Callable[[FakeBox], None], missing: str
) -> None:
    with_grub(box)
    change(box)
    with pytest.raises(BoxLacks, match=missing):
        machine.describe()


def test_a_box_without_a_boot_loader_that_kdyno_knows_is_refused(machine: MetalMachine) -> None:
    with pytest.raises(BoxLacks, match="it lacks systemd-boot or GRUB"):
        machine.describe()


@pytest.mark.parametrize("answer", ["grub /boot/a b", "grub", "", "\x1b[2J", "lilo /boot"])
def test_an_answer_that_names_no_boot_loader_is_not_trusted(machine: MetalMachine, box: FakeBox, answer: str) -> None:
    box.plan({"in": "LoaderInfo", "output": answer})
    with pytest.raises(BoxUntrusted, match="the question for its boot loader"):
        machine.describe()
