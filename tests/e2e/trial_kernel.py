"""A real kernel to try: Debian's, with the modules that a machine in QEMU needs, in a package with kdyno's scripts."""

from __future__ import annotations

import hashlib
import inspect
import shutil
from pathlib import Path

from kdyno.ship import deb, packager
from kdyno.ship.packager import TRY, PackagedKernel
from tests.e2e.debian_guest import run
from tests.unit.ship_packages import card

KEPT = (
    *(
        "arch",
        "block",
        "crypto",
        "lib",
        "fs/ext4",
        "fs/jbd2",
        "fs/fat",
        "fs/nls",
        "fs/mbcache.ko",
        "fs/efivarfs",
        "fs/autofs",
    ),
    *("drivers/virtio", "drivers/block/virtio_blk.ko", "drivers/net/virtio_net.ko", "drivers/watchdog", "drivers/char"),
    *("drivers/net/net_failover.ko", "net/core/failover.ko", "net/packet", "net/ipv6", "drivers/ata", "drivers/i2c"),
    *("drivers/input", "drivers/acpi", "drivers/mfd", "net/unix"),
)
SCRIPT = """\
#!/bin/sh

set -e

# Pass maintainer script parameters to hook scripts
export DEB_MAINT_PARAMS="$*"

# Tell initramfs builder whether it's wanted
export INITRD=Yes

test -d /etc/kernel/{script}.d && run-parts --arg="{release}" --arg="/boot/vmlinuz-{release}" /etc/kernel/{script}.d
exit 0
"""
"""What the kernel's own scripts/package/builddeb writes."""
EPOCH = 1_700_000_000


def make_trial_package(directory: Path) -> Path:
    """Return the package of the kernel to try, with the kdyno-try of this checkout; the first call downloads Debian's
    kernel and packs it anew.
    """
    made_by = hashlib.sha256(TRY.read_bytes() + inspect.getsource(deb).encode() + inspect.getsource(packager).encode())
    place = directory / f"trial-{made_by.hexdigest()[:12]}"
    done = sorted(place.glob("linux-image-*_1_amd64.deb"))
    if done:
        return done[0]
    for old in directory.glob("trial-*"):
        shutil.rmtree(old)
    place.mkdir(parents=True)
    scratch = directory / "kernel-scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    name = next(
        line.split()[1] for line in run("apt-cache", "depends", "linux-image-amd64").splitlines() if "Depends" in line
    )
    release = name.removeprefix("linux-image-")
    run("apt-get", "download", name, cwd=scratch)
    tree = scratch / "tree"
    deb.unpack(next(scratch.glob("*.deb")), tree)
    modules = tree / "lib/modules" / release
    for module in sorted((modules / "kernel").rglob("*.ko")):
        path = module.relative_to(modules / "kernel")
        if not any(str(path) == kept or kept in map(str, path.parents) for kept in KEPT):
            module.unlink()
    run("/usr/sbin/depmod", "-b", tree, release)
    for unwanted in (tree / "usr/share/doc", tree / "usr/share/bug", tree / "usr/share/lintian"):
        shutil.rmtree(unwanted, ignore_errors=True)
    for script in ("preinst", "postinst", "prerm", "postrm"):
        path = tree / "DEBIAN" / script
        path.write_text(SCRIPT.format(script=script, release=release))
        path.chmod(0o755)
    (tree / "DEBIAN/control").write_text(
        f"Package: {name}\nVersion: 1\nArchitecture: amd64\nMaintainer: nobody <nobody@localhost>\n"
        "Description: a kernel\n"
    )
    kernel = PackagedKernel(
        release=release,
        suffix="",
        source_version=release,
        epoch=EPOCH,
        cpu_flags=(),
        compiler=card().compiler,
        has_modules=True,
        has_initrd=True,
    )
    written = card(release=release, package=name).written()
    deb.finish_image(tree, written, f"usr/share/kdyno/cards/{release}.json", kernel)
    deb.settle(tree, name, "1", EPOCH)
    package = scratch / f"{name}_1_amd64.deb"
    deb.pack(tree, package, EPOCH)
    package.replace(place / package.name)
    shutil.rmtree(scratch)
    return place / package.name
