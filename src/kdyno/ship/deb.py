"""Finishes a package of the kernel's own packaging: adds the card, kdyno-try and the checks before an installation, and
removes the hour of the build.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from kdyno.base import process
from kdyno.base.errors import InfrastructureError
from kdyno.base.files import read_whole
from kdyno.kernel.knobs.kconfig import MOST_BYTES as MOST_CONFIG
from kdyno.kernel.toolchain import ToolchainIdentity
from kdyno.ship.build import ADDRESS, BUILDER, SOURCE_NAME

MOST_CONTROL = 1_000_000
COMPRESSION = "xz"
INITRD_MB = 64
"""Megabytes that an initrd is expected to need in /boot, if none is there to compare with."""
PREINST = """\
# Before anything is unpacked: kdyno's checks of this machine.
case "$1" in install|upgrade)
    if [ "$1" = install ] && [ "$(uname -r)" = "{release}" ]; then
        echo "{package}: this machine runs a kernel {release} that is not from this package; boot another one first" >&2
        exit 1
    fi
    for flag in {flags}; do
        if [ -n "$flag" ] && [ -r /proc/cpuinfo ] && ! grep -qw -- "$flag" /proc/cpuinfo; then
            echo "{package}: this processor lacks $flag, and the kernel would meet an illegal instruction" >&2
            exit 1
        fi
    done
    initrd=$(du -k /boot/initrd.img-* 2>/dev/null | sort -n | awk 'END {{ print $1 }}')
    for place in /boot /efi /boot/efi; do
        # systemd-boot has copies of kernel and initrd beside its entries
        [ "$place" = /boot ] || [ -d "$place/loader/entries" ] || continue
        room=$(df -Pk "$place" 2>/dev/null | awk 'NR == 2 {{ print $4 }}')
        needed=$(({kilobytes} + ${{initrd:-{initrd}}}))
        if [ -n "$room" ] && [ "$room" -lt "$needed" ]; then
            echo "{package}: $place has $room KiB free, and about $needed are needed: remove an old kernel" >&2
            exit 1
        fi
    done
esac

"""
"""What comes before the kernel's own preinst script."""
POSTINST = """\
# The command that tries the newest of kdyno's kernels; it is called by nobody but you.
if [ "$1" = configure ]; then
    update-alternatives --quiet --install /usr/sbin/{name} {name} /{program} {priority}
fi

"""
"""What comes before the kernel's own postinst script."""
PRERM = """\
# What kdyno-try changed of the boot loader for this kernel ends with it.
if [ "$1" = remove ]; then
    if grep -qx 'release={release}' /etc/kdyno-try/state 2>/dev/null; then
        /{program} --forget || true
    fi
    update-alternatives --quiet --remove {name} /{program}
fi

"""
"""What comes before the kernel's own prerm script."""
TRY = Path(__file__).parent.parent / "data" / "try" / "kdyno-try"
"""The program that tries the kernel once."""


class PackageOdd(InfrastructureError):
    message = "the package {package} of the kernel's own packaging is not as expected: {why}"
    hint = "this version of the kernel packs in another way; try another one, and report it"


def unpack(package: Path, to: Path) -> None:
    """Unpack a package that was just built, with its control files in DEBIAN."""
    process.output(["dpkg-deb", "--raw-extract", package, to], guarded=True)


def pack(tree: Path, package: Path, epoch: int) -> None:
    """Pack a tree: the same tree and epoch give the same bytes."""
    for path in (*tree.rglob("*"), tree):
        os.utime(path, (epoch, epoch), follow_symlinks=False)
    words = ["dpkg-deb", "--root-owner-group", f"-Z{COMPRESSION}", "--build", str(tree), str(package)]
    process.output(words, env={"SOURCE_DATE_EPOCH": str(epoch)}, guarded=True)


def finish_image(tree: Path, card: bytes, card_path: str, release: str, cpu_flags: Sequence[str]) -> None:
    """Put the card, kdyno-try and the checks before an installation into the tree of the image's package."""
    _add(tree / card_path, card)
    boot = sum(path.stat().st_size for path in (tree / "boot").iterdir())
    checks = PREINST.format(
        release=release,
        package=f"linux-image-{release}",
        flags=" ".join(cpu_flags) or '""',
        kilobytes=boot // 1024 + 1,
        initrd=INITRD_MB * 1024,
    )
    _extend_script(tree, "preinst", checks)
    program = try_path(release)
    _add(tree / program, TRY.read_bytes(), mode=0o755)
    names = {"name": TRY.name, "program": program, "release": release, "priority": priority_of(release)}
    _extend_script(tree, "postinst", POSTINST.format_map(names))
    _extend_script(tree, "prerm", PRERM.format_map(names))


def try_path(release: str) -> str:
    """Return where the package of a kernel has kdyno-try, below the root."""
    return f"usr/lib/kdyno/{release}/{TRY.name}"


def priority_of(release: str) -> int:
    """Return a number by which the kdyno-try of the newest kernel becomes the command."""
    major, minor, patch = [int(number) for number in re.findall(r"\d+", f"{release}.0.0")[:3]]
    return major * 1_000_000 + minor * 1_000 + min(patch, 999)


def _extend_script(tree: Path, name: str, lines: str) -> None:
    """Put lines at the beginning of a maintainer script, and make the script if the package has none."""
    script = tree / "DEBIAN" / name
    text = script.read_text(encoding="utf-8") if script.exists() else "#!/bin/sh\n"
    head, line_end, rest = text.partition("\n")
    if not head.startswith("#!/bin/sh"):
        raise PackageOdd(package=tree.name, why=f"its {name} is not a shell script")
    script.write_text(f"{head}{line_end}{lines}{rest}", encoding="utf-8")
    script.chmod(0o755)


def finish_headers(tree: Path, config: Path, compiler: ToolchainIdentity, release: str) -> None:
    """Name the compiler in the tree of the headers' package, and add the configuration, which DKMS reads."""
    source = tree / "usr/src" / f"linux-headers-{release}"
    if not source.is_dir():
        raise PackageOdd(package=tree.name, why=f"it has no usr/src/{source.name}")
    _add(source / ".config", read_whole(config, MOST_CONFIG))
    change_control(
        tree,
        {"Recommends": ", ".join(compiler_packages(compiler))},
        f" The kernel was compiled by {compiler.banner}.\n Modules for it must be compiled by the same compiler.\n",
    )


def _add(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a file, and the directories above it, with modes that don't depend on the umask."""
    for directory in reversed([one for one in path.parents if not one.exists()]):
        directory.mkdir()
        directory.chmod(0o755)
    path.write_bytes(content)
    path.chmod(mode)


def compiler_packages(compiler: ToolchainIdentity) -> tuple[str, ...]:
    """Return the Debian packages of the compiler that modules must be compiled by."""
    major = compiler.version.partition(".")[0]
    if compiler.family == "clang":
        return tuple(f"{name}-{major}" for name in ("clang", "lld", "llvm"))
    return (f"gcc-{major}",)


def change_control(tree: Path, fields: Mapping[str, str], more_description: str = "") -> None:
    """Set fields of a package, and add lines to the end of its description."""
    path = tree / "DEBIAN" / "control"
    lines = read_whole(path, MOST_CONTROL).decode().splitlines()
    kept = [line for line in lines if line.partition(":")[0] not in fields]
    new = [f"{name}: {value}" for name, value in fields.items()]
    at = next((number for number, line in enumerate(kept) if line.startswith("Description:")), len(kept))
    text = "\n".join([*kept[:at], *new, *kept[at:]])
    path.write_text(f"{text}\n{_paragraph(more_description)}", encoding="utf-8")


def _paragraph(lines: str) -> str:
    return f" .\n{lines}" if lines else ""


def settle(tree: Path, package: str, version: str, epoch: int) -> None:
    """Make the parts of the tree that name the hour of the build say the epoch, and renew sizes and checksums."""
    for changelog in (tree / "usr/share/doc" / package).glob("changelog*"):
        changelog.unlink()
    document = tree / "usr/share/doc" / package / "changelog.Debian.gz"
    _add(document, gzip.compress(_changelog(version, epoch).encode(), mtime=0))
    files = sorted(_files(tree))
    size = sum(max(1, -(-path.lstat().st_size // 1024)) for path in files)
    change_control(tree, {"Installed-Size": str(size)})
    sums = "".join(f"{_md5(path)}  {path.relative_to(tree)}\n" for path in files if not path.is_symlink())
    (tree / "DEBIAN" / "md5sums").write_text(sums, encoding="utf-8")


def _changelog(version: str, epoch: int) -> str:
    day = datetime.fromtimestamp(epoch, UTC)
    return (
        f"{SOURCE_NAME} ({version}) unstable; urgency=low\n\n"
        "  * Built by kdyno; the card in /usr/share/kdyno/cards has its origin.\n\n"
        f" -- {BUILDER} <{ADDRESS}>  {day:%a, %d %b %Y %H:%M:%S} +0000\n"
    )


def _files(tree: Path) -> Iterator[Path]:
    for path in tree.rglob("*"):
        if not path.is_dir() and path.relative_to(tree).parts[0] != "DEBIAN":
            yield path


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
