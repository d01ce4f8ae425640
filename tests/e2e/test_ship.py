"""Packages of real kernels, of gcc's and of clang's: built again they are the same bytes, a clean Debian installs them,
and DKMS builds its modules from their headers, with the compiler of the kernel, which loads them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from kdyno.boot.initramfs import find_busybox
from tests.e2e.conftest import Kdyno

MODULES = Path(__file__).parent / "dkms"
"""The source of a module, as DKMS has it in /usr/src."""
LISTS = {"modules.dep", "modules.dep.bin", "modules.symbols", "modules.symbols.bin"}
"""The files that depmod writes."""
COMPILERS = {"gcc": ("gcc-12",), "clang": ("clang-19", "lld-19", "llvm-19")}
"""The packages of a variant's compiler."""
MAKERS = {"gcc": r"GCC: \(Debian 12", "clang": r".*clang version 19"}
"""What a variant's compiler writes into what it compiles, as a pattern."""
INIT = """\
#!/busybox sh
/busybox mount -t proc proc /proc
/busybox insmod /kdyno-hello.ko
/busybox cat /proc/modules
/busybox rmmod kdyno_hello
/busybox uname -r
/busybox reboot -f
"""
"""The first program of a guest that loads a module. It isn't kdyno's agent, which starts programs only where there are
sockets: this kernel has none.
"""
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
    packages: list[Path], variant: str, tmp_path: Path
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
    loaded = console_of(tmp_path / f"vmlinuz-{release}", tmp_path / "kdyno-hello.ko", tmp_path / "guest")
    assert re.search(r"^kdyno_hello \d+ 0 - Live 0x\S+ \(O\)", loaded, re.MULTILINE), loaded
    assert re.search(rf"^{re.escape(release)}\r?$", loaded, re.MULTILINE), loaded
    assert re.findall(r"kdyno-hello: \w+", loaded) == ["kdyno-hello: loaded", "kdyno-hello: removed"]


def console_of(kernel: Path, module: Path, root: Path) -> str:
    """Boot a kernel in a guest that loads a module and removes it; return what its console showed."""
    (root / "proc").mkdir(parents=True)
    (root / "dev").mkdir()
    shutil.copy(find_busybox(), root / "busybox")
    shutil.copy(module, root)
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)
    names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    initrd = root.with_suffix(".cpio")
    with initrd.open("wb") as file:
        words = ["cpio", "--create", "--format=newc", "--quiet"]
        subprocess.run(words, cwd=root, input=names.encode(), stdout=file, check=True)
    words = [
        *("qemu-system-x86_64", "-M", "microvm,acpi=off", "-cpu", "max", "-accel", "tcg", "-m", "256", "-no-reboot"),
        *("-display", "none", "-serial", "stdio", "-kernel", str(kernel), "-initrd", str(initrd)),
        *("-append", "console=ttyS0 panic=-1 reboot=t"),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=300)
    return done.stdout + done.stderr
