"""Debian packages made by hand, sound ones and others."""

from __future__ import annotations

import hashlib
import io
import lzma
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kdyno.kernel.image import SourceIdentity
from kdyno.kernel.toolchain import ToolchainIdentity
from kdyno.ship.card import Card, CardImage, Configuration, JudgedImage, Verdicts
from kdyno.ship.code import CodeComparison
from tests.unit.built_kernel import bz_image

RELEASE = "6.1.0-kdyno-0123456789ab"
KERNEL = bz_image(b"\x1f\x8bpayload", banner=f"{RELEASE} (kdyno@kdyno) #1")
PACKAGE = f"linux-image-{RELEASE}"
CONTROL = f"Package: {PACKAGE}\nVersion: 6.1.0-1\nArchitecture: amd64\nDescription: a kernel\n"
KERNEL_PATH = f"boot/vmlinuz-{RELEASE}"
CARD_PATH = f"usr/share/kdyno/cards/{RELEASE}.json"


def card(kernel: bytes = KERNEL, **changes: Any) -> Card:
    """A card of the kernel."""
    verdicts = Verdicts(
        run="a" * 64,
        name="web",
        variant="tuned",
        baseline="plain",
        lane="model",
        measured="lane: model",
        model="",
        machine={"type": "qemu"},
        blocks=12,
        layout=0,
        layouts=0,
        margin=0.01,
        alpha=0.05,
        confidence=0.95,
        correction="holm",
        scope="images",
        overall=None,
        benchmarks=(),
        notices=(),
        checks=(),
        processor=None,
        command_line=(),
    )
    whole = Card(
        release=RELEASE,
        package=PACKAGE,
        version="6.1.0-1",
        epoch=1_700_000_000,
        image=CardImage(
            path=f"/{KERNEL_PATH}",
            sha256=hashlib.sha256(kernel).hexdigest(),
            size=len(kernel),
            build_id="ab" * 20,
            is_signed=False,
        ),
        judged=JudgedImage(
            key="0123456789ab" + "0" * 52, sha256=None, code=CodeComparison(functions=10, moved=0, resized=0)
        ),
        source=SourceIdentity(spec="linux", identity=f"tarball:{'5' * 64}", version="6.1.0", origin="linux 6.1"),
        patches=("d" * 64,),
        patch_names=("fast.patch",),
        compiler=ToolchainIdentity(name="gcc", family="gcc", version="12.2.0", banner="gcc 12.2.0", digest="c" * 64),
        objects={},
        make=("ARCH=x86_64", "CC=gcc"),
        environment={},
        inputs={"order": "e" * 64},
        recipe={"opt": "O3"},
        configuration=Configuration(
            base="dyno",
            sha256="f" * 64,
            asked={"SMP": "y"},
            changed={},
            protections_on=("STACKPROTECTOR",),
            protections_off=(),
            traded=(),
        ),
        profile=None,
        cpu_flags=("popcnt",),
        verdicts=verdicts,
        soak=None,
        kdyno="0.1.0",
    )
    return whole.model_copy(update=changes)


def tar(files: Sequence[tuple[str, bytes]], *links: tuple[str, str]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:") as archive:
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        for name, target in links:
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            archive.addfile(link)
    return made.getvalue()


def ar(members: Mapping[str, bytes]) -> bytes:
    made = b"!<arch>\n"
    for name, content in members.items():
        head = f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n"
        made += head.encode() + content + b"\n" * (len(content) % 2)
    return made


def files_of(written: bytes) -> list[tuple[str, bytes]]:
    return [(f"./{KERNEL_PATH}", KERNEL), (f"./{CARD_PATH}", written), ("./lib/modules/a.ko", b"module")]


def deb(data: bytes, control: str = CONTROL, pack: Callable[[bytes], bytes] = lzma.compress) -> bytes:
    return ar(
        {
            "debian-binary": b"2.0\n",
            "control.tar.xz": lzma.compress(tar([("./control", control.encode())])),
            "data.tar.xz": pack(data),
        }
    )


def write(folder: Path, content: bytes) -> Path:
    path = folder / "package.deb"
    path.write_bytes(content)
    return path
