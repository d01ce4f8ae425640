"""Readers of foreign bytes: built kernels, images' records, patches, configurations, and plans of delegation."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

from kdyno.kernel.built_kernels.configuration import configuration_in
from kdyno.kernel.built_kernels.header import read_header
from kdyno.kernel.built_kernels.kallsyms import kallsyms
from kdyno.kernel.built_kernels.modules import needs
from kdyno.kernel.built_kernels.packed import payload_of
from kdyno.kernel.delegation import globs
from kdyno.kernel.delegation.plan_file import read as read_plan
from kdyno.kernel.delegation.plan_file import read_table
from kdyno.kernel.delegation.records import read_records
from kdyno.kernel.images import read_record
from kdyno.kernel.kconfig_check import read_config
from kdyno.kernel.knobs import order
from kdyno.kernel.patches import read_patches
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.vmlinux.sections import read_sections
from tests.fuzz.check import Target
from tests.fuzz.inputs import DATA, TOML, files, is_shown_as_it_is
from tests.unit import specimen
from tests.unit.built_kernel import TEXT, bz_image, module, vmlinux


def built_kernel(path: Path) -> None:
    content = path.read_bytes()
    head = read_header(content, path)
    assert is_shown_as_it_is(head.banner)
    inner = payload_of(content, head.payload, 1 << 20, "it")
    assert len(inner) <= 1 << 20
    configuration_in(inner)
    assert all(symbol.name.isprintable() for symbol in kallsyms(inner))


def kernel_module(path: Path) -> None:
    assert all(is_shown_as_it_is(name) and "/" not in name for name in needs(path.read_bytes(), "it"))


def built_kernels() -> Sequence[bytes]:
    inner = vmlinux(
        [(TEXT + 16 * number, "T_text" if not number else f"tf{number}") for number in range(600)], "CONFIG_X86=y\n"
    )
    return [bz_image(inner), bz_image(gzip.compress(inner, mtime=0))]


def image(path: Path) -> None:
    record = read_record(path.parent)
    assert set(record.key) <= set("0123456789abcdef")


def images() -> Sequence[bytes]:
    return [specimen.image("a", Recipe()).model_dump_json(indent=2).encode()]


def patch(path: Path) -> None:
    assert read_patches([str(path)])


def config(path: Path) -> None:
    read_config(path.read_text(encoding="utf-8", errors="replace"))


PLAN = """extends = "no.toml"
[programs]
mine = "mend"
[[rule]]
files = ["kernel/**/*.c", "mm/[a-m]*.c", "fs/?.c"]
by_assembler = true
passes = ["common", "mine"]
"""
TABLE = b"file,compiler,add,remove\nfs/open.c,gcc,-O3 -g,\n"
RECORDS = """{"probe": ["-c"], "refused_by": "clang", "why": "no"}
{"object": "a.o", "source": "a.c", "answer": "rewritten", "compiler": "gcc", "rule": "rule 1", "seconds": 0.5}
"""
SECTIONS = b"""{"section":".text.hot.do_open","object":"fs/open.o","bytes":48}
{"section":".text.unlikely.do_open.part.0","object":"fs/open.o","bytes":9}
"""


def delegation_plan(path: Path) -> None:
    """A plan's globs are matched, whatever they are."""
    plan = read_plan(path)
    for rule in plan.rule:
        for glob in rule.files:
            globs.matches(glob, "kernel/sched/core.c")


DIFF = (
    b"diff --git a/x b/x\n",
    b"--- a/",
    b"+++ b/",
    b"copy from ",
    b"rename to ",
    b"new file mode 120000\n",
    b"@@ -1 +1 @@\n",
)
TARGETS = (
    Target("built kernel", built_kernel, built_kernels, (b"HdrS", b"IKCFG_ST", b"IKCFG_ED", b"0\x001\x002\0")),
    Target("kernel module", kernel_module, lambda: [module("virtio_pci", ["virtio"])], (b".modinfo\0",)),
    Target("image", image, images, file="image.json"),
    Target("patch", patch, files(*sorted((DATA / "patches").rglob("*.patch"))), DIFF),
    Target("config", config, files(*sorted((DATA / "kconfig").glob("*.config")))),
    Target("order", order.check_file, lambda: [b"# first\nvfs_read\nf.cold\n\nf.part.0 # 3 %\r\n"], (b"#", b"\n")),
    Target("delegation", delegation_plan, lambda: [PLAN.encode()], TOML, file="plan.toml"),
    Target("measured-table", read_table, lambda: [TABLE], (b",", b"\n", b'"')),
    Target("records", read_records, lambda: [RECORDS.encode()], (b'"answer":', b'"probe":', b'"findings":')),
    Target("sections", read_sections, lambda: [SECTIONS], (b'"section":".text.hot.', b'"bytes":')),
)  # fmt: skip
