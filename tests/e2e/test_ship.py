"""Packages of real kernels, of gcc's and of clang's: built again they are the same bytes, a clean Debian installs them,
and DKMS builds its modules from their headers, with the compiler of the kernel, which loads them.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.conftest import Kdyno

MODULES = Path(__file__).parent / "dkms"
"""The source of a module, as DKMS has it in /usr/src."""
LISTS = {"modules.dep", "modules.dep.bin", "modules.symbols", "modules.symbols.bin"}
"""The files that depmod writes."""
COMPILERS = {"gcc": ("gcc-12",), "clang": ("clang-19", "lld-19", "llvm-19")}
"""The packages of a variant's compiler."""
MAKERS = {"gcc": r"GCC: \(Debian 12", "clang": r".*clang version 19"}
"""What a variant's compiler writes into what it compiles, as a pattern."""
LOAD = """
echo {content} | base64 -d > /kdyno-hello.ko
insmod /kdyno-hello.ko && cat /proc/modules && rmmod kdyno_hello && uname -r && dmesg | grep kdyno-hello:
"""
"""What a guest does with a module, which it gets by its command line: this kernel has no file system of the host's."""
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("mmdebstrap") is None, reason="missing: mmdebstrap"),
    pytest.mark.skipif(os.geteuid() != 0, reason="installs packages in a root file system: needs root"),
]

SMALLEST = """\
name = "ship"
source = "debian:linux-source-6.12"
config = "make:tinyconfig"
baseline = "gcc"
blocks = 1

[variants.gcc]
toolchain = "gcc"
kconfig = { 64BIT = true, PRINTK = true, TTY = true, SERIAL_8250 = true, SERIAL_8250_CONSOLE = true, \
BINFMT_ELF = true, BINFMT_SCRIPT = true, BLK_DEV_INITRD = true, SYSFS = true, PROC_FS = true, DEVTMPFS = true, \
VIRTIO_MENU = true, VIRTIO_CONSOLE = true, VIRTIO_MMIO = true, VIRTIO_MMIO_CMDLINE_DEVICES = true, \
MODULES = true, MODULE_UNLOAD = true }

[variants.clang]
extends = "gcc"
toolchain = "clang-19"
lto = "thin"

[workload]
tests = ["lat_syscall"]
"""


@dataclass(frozen=True)
class JudgedRun:
    """A run with the two kernels, and the command that knows it."""

    kdyno: Kdyno
    id: str


@pytest.fixture(scope="module")
def judged(state: Path, tmp_path_factory: pytest.TempPathFactory) -> JudgedRun:
    directory = tmp_path_factory.mktemp("ship")
    kdyno = Kdyno(state, f"sqlite:///{directory}/store.sqlite", directory)
    experiment = directory / "ship.toml"
    experiment.write_text(SMALLEST)
    kdyno("run", str(experiment))
    return JudgedRun(kdyno, "latest")


@pytest.fixture(scope="module", params=COMPILERS)
def variant(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def packages(judged: JudgedRun, variant: str) -> list[Path]:
    """The package of the kernel, and that of its headers."""
    place = judged.kdyno.directory / variant
    judged.kdyno("ship", judged.id, variant, "--deb", "-o", str(place))
    image, headers = sorted(place.glob("linux-image-*.deb")), sorted(place.glob("linux-headers-*.deb"))
    return [*image, *headers]


def test_packages_built_again_are_equal_to_the_byte(judged: JudgedRun, packages: list[Path]) -> None:
    shown = judged.kdyno("verify", "--ccache", *map(str, packages)).stdout
    assert shown.count("equal to the byte") == 2


def test_a_clean_debian_installs_them_and_dkms_builds_modules_that_the_kernel_loads(
    judged: JudgedRun, packages: list[Path], variant: str, tmp_path: Path
) -> None:
    release = packages[0].name.removeprefix("linux-image-").partition("_")[0]
    built = f"/var/lib/dkms/kdyno-hello/1.0/{release}/x86_64"
    log = tmp_path / "made"
    hooks = [
        f"copy-in {MODULES}/kdyno-hello-1.0 /usr/src",
        f"copy-in {' '.join(map(str, packages))} /root",
        'chroot "$1" dkms add kdyno-hello/1.0',
        # As apt-get does: the headers first, so that the hooks of the kernel's package find them.
        'chroot "$1" sh -c "dpkg -i /root/linux-headers-*.deb && dpkg -i /root/linux-image-*.deb"',
        f'chroot "$1" dkms status > {log}',
        f'cat "$1"{built}/log/make.log >> {log}',
        f'chroot "$1" modinfo -F vermagic -k {release} kdyno-hello >> {log}',
        f'readelf -p .comment "$1"/lib/modules/{release}/updates/dkms/kdyno-hello.ko >> {log}',
        f"copy-out /lib/modules/{release}/updates/dkms/kdyno-hello.ko /boot/vmlinuz-{release} {tmp_path}",
        f"chroot \"$1\" dpkg-query -W -f 'needs ${{Depends}}\\n' linux-headers-{release} >> {log}",
        f'chroot "$1" dpkg -V linux-image-{release} linux-headers-{release} >> {log}',
        f'chroot "$1" dpkg --purge linux-image-{release} linux-headers-{release}',
        f'echo left: $(find "$1/boot" "$1/usr/lib/modules" -type f) >> {log}',
    ]
    done = subprocess.run(
        [
            *("mmdebstrap", "--quiet", "--variant=minbase", "--format=null"),
            f"--include={','.join(('dkms', 'kmod', 'libelf1', *COMPILERS[variant]))}",
            *(f"--customize-hook={hook}" for hook in hooks),
            *("bookworm", "/dev/null"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    shown = log.read_text() if log.exists() else ""
    assert done.returncode == 0, f"{done.stdout}{done.stderr}{shown}"
    assert f"kdyno-hello/1.0, {release}, x86_64: installed" in shown
    assert re.search(rf"^{re.escape(release)} .*mod_unload", shown, re.MULTILINE), "the module is for this kernel"
    assert re.search(rf"^ +\[ *[0-9a-f]+\] +{MAKERS[variant]}", shown, re.MULTILINE), "and by its compiler"
    assert re.search(r"^needs .*\blibelf1\b", shown, re.MULTILINE), "objtool needs it"
    altered = re.findall(r"^\?\?.{7}.* (/\S+)$", shown, re.MULTILINE)
    assert {Path(path).name for path in altered} <= LISTS, "depmod lists the module of DKMS, too"
    assert shown.endswith("left:\n")
    module = tmp_path / "kdyno-hello.ko"
    subprocess.run(["strip", "--strip-debug", module], check=True)
    load = LOAD.format(content=base64.b64encode(module.read_bytes()).decode())
    loaded = judged.kdyno("boot", str(tmp_path / f"vmlinuz-{release}"), command=["sh", "-c", load]).stdout
    assert re.search(r"^kdyno_hello \d+ 0 - Live 0x\S+ \(O\)", loaded, re.MULTILINE), loaded
    assert f"\n{release}\n" in loaded
    assert re.findall(r"kdyno-hello: \w+", loaded) == ["kdyno-hello: loaded", "kdyno-hello: removed"]
