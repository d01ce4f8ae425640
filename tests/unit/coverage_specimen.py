"""A toy kernel for coverage: sources with line tables, linked where kernels are, and records of what ran in it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from kdyno.base import process
from kdyno.kernel.images import content_digest
from kdyno.measure.guest.pmu_parts import BLOCK, Function, Region
from kdyno.measure.guest.pmu_record import PmuRecord
from tests.unit.pmu_specimen import context, iteration, specimen, write

SOURCES = {
    "include/linux/step.h": """\
static inline int step(int n)
{
	return n ^ (n >> 3);
}
""",
    "kernel/work.c": """\
#include <linux/step.h>

int work(int n)
{
	return step(n) + 1; /* <b>&amp; */
}

int twice(int n)
{
	return step(n) * step(n + 7);
}
""",
    "kernel/idle.c": """\
int idle(int n)
{
	return n * 3;
}
""",
    "drivers/boot.c": """\
int boot(int n)
{
	return n * 5;
}
""",
    "kernel/Makefile": "obj-y := work.o\nobj-$(CONFIG_IDLE) += idle.o\n",
    "Makefile": "obj-$(CONFIG_BOOT) += drivers/\n",
    "drivers/Makefile": "obj-y += boot.o\n",
}
EDGES = '.text\n.globl {name}\n{name}:\n.section .note.GNU-stack,"",@progbits\n'


@dataclass(frozen=True)
class Toy:
    """A kernel; `tree` is its source."""

    tree: Path
    vmlinux: Path
    functions: Mapping[str, tuple[int, int]]
    """Address and size by name."""

    def record(self, path: Path, runs: Mapping[str, int], boot: Mapping[str, int] | None = None) -> Path:
        """A record in which functions were executed from end to end so often, in a region or in the boot."""
        return write(path, self.recorded(runs, boot))

    def recorded(self, runs: Mapping[str, int], boot: Mapping[str, int] | None = None) -> PmuRecord:
        names = list(self.functions)
        region = Region(
            benchmark=0,
            iterations={0: iteration((sum(runs.values()), 0, 0), (0, 0, 0), (0, 0, 0))},
            contexts=(context(blocks=[self._block(name, runs[name]) for name in runs]), context(), context()),
            stacks=(),
        )
        outside = np.array(sorted(self._block(name, count) for name, count in (boot or {}).items()), BLOCK)
        return replace(
            specimen(),
            image=content_digest(self.vmlinux),
            functions=tuple(Function(*self.functions[name], name) for name in names),
            regions={0: region},
            unmeasured=outside if boot is not None else None,
        )

    def _block(self, name: str, count: int) -> tuple[int, ...]:
        address, size = self.functions[name]
        return address, 1, 0, size, count


def make_toy(folder: Path, *flags: str) -> Toy:
    """Compile it as Kbuild does, in an object directory below the source."""
    for name, text in SOURCES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    objects = folder / "o"
    objects.mkdir()
    compile_words = ["gcc", "-O1", "-fno-pie", "-fcf-protection=none", *flags, "-I", "../include", "-c"]
    for name in ("kernel/work", "kernel/idle", "drivers/boot"):
        process.output([*compile_words, f"../{name}.c", "-o", Path(name).name + ".o"], cwd=objects)
    for name in ("_text", "_etext"):
        (objects / f"{name}.s").write_text(EDGES.format(name=name))
        process.output(["gcc", "-c", f"{name}.s", "-o", f"{name}.o"], cwd=objects)
    linked = ["_text.o", "work.o", "idle.o", "boot.o", "_etext.o"]
    process.output(["ld", "-Ttext=0xffffffff81000000", "-e", "work", *linked, "-o", "vmlinux"], cwd=objects)
    listed = process.output(["nm", "-S", objects / "vmlinux"])
    functions = re.findall(r"^([0-9a-f]{16}) ([0-9a-f]{16}) T (\w+)$", listed, re.MULTILINE)
    return Toy(
        folder,
        objects / "vmlinux",
        {name: (int(address, 16), int(size, 16)) for address, size, name in sorted(functions)},
    )


@cache
def kernels() -> Sequence[bytes]:
    """The bytes of toy kernels with line tables."""
    with tempfile.TemporaryDirectory() as directory:
        return [make_toy(Path(directory), "-g").vmlinux.read_bytes()]
