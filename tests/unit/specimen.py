"""A run as real as made-up numbers get: used by the tests of the store, the judge and the reports."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from kdyno.base.lanes import LaneName
from kdyno.base.measurement import Benchmark, Sample
from kdyno.judge.verdicts.assemble import assemble
from kdyno.judge.verdicts.model import RunReport
from kdyno.kernel.image import ImageRecord, ImageSizes, SourceIdentity
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.toolchain import ToolchainIdentity
from kdyno.store.artefacts import Artefacts
from kdyno.store.records import BootPlace, BootRecord, RunRecord, VariantRecord
from kdyno.store.store import Store

NOON = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
VARIANTS = ("gcc-12", "gcc-12-O3", "clang-19-thinlto")
SPEEDUP = {"gcc-12": 1.0, "gcc-12-O3": 1.012, "clang-19-thinlto": 1.06}
UNSUPPORTED = "lat_unix.sock"
HOSTILE_CONSOLE = (
    "[    0.000000] Linux version 6.12.117\r\n\x1b[31m<script>alert('boo')</script>\x1b[0m [bold]not markup[/bold]\r\n"
    "\x1b]0;owned\x07{{ 7*7 }} \u202egnp.exe\x9b2J\x00\r\n"
    "[    1.234567] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)\r\n"
)
HOSTILE_REASON = "panic: <script>alert(1)</script> \x1b[2J[red]VFS: Unable to mount root fs[/red]"
TESTS = {
    "lat_syscall": ("null", "read", "write", "stat", "fstat", "open_close"),
    "lat_select": ("file_10", "file_100", "tcp_10", "tcp_100"),
    "lat_sig": ("install", "catch", "prot"),
    "lat_proc": ("fork", "exec", "shell"),
    "lat_ctx": ("2p_0k", "2p_16k", "8p_16k", "16p_64k"),
    "lat_pipe": ("roundtrip",),
    "lat_unix": ("sock",),
    "lat_fs": ("create_0k", "delete_0k", "create_10k", "delete_10k"),
    "lat_mmap": ("1m", "64m"),
    "lat_pagefault": ("file",),
    "bw_pipe": ("64k",),
    "bw_unix": ("64k",),
    "bw_file_rd": ("io_only", "open2close"),
    "bw_mmap_rd": ("mmap_only", "open2close"),
}


def benchmarks(lane: LaneName = "model") -> list[Benchmark]:
    """35 benchmarks: 29 latencies and 6 bandwidths."""
    units = {"model": ("instr", "B/instr"), "wall": ("ns", "MB/s")}[lane]
    return [
        Benchmark(
            name=f"{test}.{part}",
            test=test,
            unit=units[test.startswith("bw_")],
            direction="higher" if test.startswith("bw_") else "lower",
            description=f"{test.split('_')[1]} {part.replace('_', ' ')} "
            + ("bandwidth" if test.startswith("bw_") else "latency"),
        )
        for test, parts in TESTS.items()
        for part in parts
    ]


def image(name: str, recipe: Recipe) -> ImageRecord:
    clang = recipe.toolchain.startswith("clang")
    return ImageRecord(
        key=("c" if clang else "a") * 60 + f"{len(name):04d}",
        source=SourceIdentity(
            spec="debian:linux-source-6.12", identity="tarball:" + "5" * 64, version="6.12.117", origin="6.12.117-1"
        ),
        recipe=recipe,
        base="x86_64-qemu",
        toolchain=ToolchainIdentity(
            name=recipe.toolchain,
            family="clang" if clang else "gcc",
            version="19.1.7" if clang else "12.2.0",
            banner="Debian clang version 19.1.7 (3+b1)" if clang else "gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0",
            digest="d" * 64,
        ),
        release="6.12.117-kdyno",
        sizes=ImageSizes(bzimage=5_412_864, vmlinux=31_457_280, text=14_680_064),
        build_seconds=382.4 if clang else 241.9,
        steps=1711,
        make=("make", "ARCH=x86_64", f"CC={recipe.toolchain}", "bzImage"),
        environment={"KBUILD_BUILD_TIMESTAMP": "1970-01-01", "LC_ALL": "C"},
        config_sha256="f" * 64,
        kdyno="0.1.0",
    )


def run_record(blocks: int = 12, lane: LaneName = "model", variants: tuple[str, ...] = VARIANTS) -> RunRecord:
    recipes = {
        "gcc-12": Recipe(toolchain="gcc-12"),
        "gcc-12-O3": Recipe(toolchain="gcc-12", opt="O3"),
        "clang-19-thinlto": Recipe(
            toolchain="clang-19", lto="thin", kconfig={"HZ_100": True}, cmdline=("init_on_alloc=0",)
        ),
    }
    return RunRecord(
        id="3f9a61c2" + "0" * 56,
        name="quickstart",
        created=NOON,
        experiment='{"name": "quickstart", "note": "it\'s <b>bold</b>"}',
        baseline=variants[0],
        blocks=blocks,
        seed=20250301,
        lane=lane,
        machine={"type": "qemu", "accelerator": "tcg", "qemu": "7.2.17", "cpu": "max"},
        host={"cpu": "AMD EPYC 7B13", "cpus": 2, "memory_mb": 8192, "kernel": "6.1.0-18", "distribution": "Debian 12"},
        notices=("no /dev/kvm here: this run uses TCG, and its clock is virtual",),
        margin=0.01,
        alpha=0.05,
        kdyno="0.1.0",
        variants=tuple(
            VariantRecord(name=name, recipe=recipes[name], images=(image(name, recipes[name]),)) for name in variants
        ),
    )


def boot_records(
    run: RunRecord, iterations: int = 7, spread: float = 0.008, failed: tuple[str, int] | None = ("gcc-12-O3", 5)
) -> list[BootRecord]:
    """One boot per variant and block, from a fixed seed; one that failed, one that was lost once, one test missing."""
    random = np.random.default_rng(run.seed)
    listed = benchmarks(run.lane)
    costs = {b.name: random.integers(300, 90_000) for b in listed}
    tastes = {(b.name, v): 1.5 * random.random() for b in listed for v in SPEEDUP}
    boots: list[BootRecord] = []
    for block in range(run.blocks):
        weather = random.normal(0, spread)
        for variant in random.permutation([v.name for v in run.variants]).tolist():
            common: dict[str, Any] = {
                "key": f"{variant}, block {block}",
                "variant": variant,
                "block": block,
                "position": len({(boot.variant, boot.block) for boot in boots}),
                "seed": 1000 + block,
                "started": NOON + timedelta(seconds=20 * len(boots)),
                "seconds": 19.5,
                "command": ("qemu-system-x86_64", "-machine", "microvm", "-append", f"kdyno.seed={1000 + block}"),
            }
            if (variant, block) == failed:
                boots.append(BootRecord(status="failed", reason=HOSTILE_REASON, **common))
                continue
            if (variant, block) == (run.baseline, 2):
                boots.append(BootRecord(status="lost", reason="QEMU was killed", **common))
                common["attempt"] = 1
            samples = []
            missing = UNSUPPORTED if variant == "clang-19-thinlto" else None
            for benchmark in listed:
                if benchmark.name == missing:
                    continue
                speed = SPEEDUP[variant] ** tastes[benchmark.name, variant]
                effect = float(np.exp(weather + random.normal(0, spread))) / speed
                for iteration in range(iterations):
                    jitter = 1 + abs(random.normal(0, spread / 4))
                    elapsed = round(1000 * costs[benchmark.name] * effect * jitter)
                    work = 1000 if benchmark.direction == "lower" else int(20_000 * costs[benchmark.name])
                    samples.append(Sample(benchmark=benchmark.name, iteration=iteration, elapsed=elapsed, work=work))
            boots.append(
                BootRecord(
                    status="ok",
                    ready_seconds=1.9,
                    kernel="6.12.117-kdyno",
                    samples=tuple(samples),
                    unsupported={missing: "no CONFIG_UNIX"} if missing else {},
                    **common,
                )
            )
    return boots


def cells(run: RunRecord, boots: Sequence[BootRecord] = ()) -> list[tuple[BootPlace, str]]:
    """The places of a run with the keys of its boots: those that the boots have, for the others made-up ones."""
    keys = {(boot.variant, boot.block): boot.key for boot in boots}
    return [
        (
            BootPlace(variant=variant.name, block=block, position=block * len(run.variants) + ordinal),
            keys.get((variant.name, block), f"{variant.name}, block {block}"),
        )
        for block in range(run.blocks)
        for ordinal, variant in enumerate(run.variants)
    ]


def placed_keys(boots: Sequence[BootRecord]) -> list[tuple[BootPlace, str]]:
    """The places of these boots and no others, with their keys."""
    return list(
        {
            (boot.variant, boot.block): (
                BootPlace(**{name: getattr(boot, name) for name in BootPlace.model_fields}),
                boot.key,
            )
            for boot in boots
        }.values()
    )


def report(
    directory: Path, run: RunRecord | None = None, boots: Sequence[BootRecord] | None = None, lane: LaneName = "model"
) -> RunReport:
    """Record the run in a store under `directory`, with the hostile console for boots that failed; assemble it."""
    run = run or run_record(lane=lane)
    artefacts = Artefacts(directory / "artefacts")
    console = directory / "console"
    console.write_text(HOSTILE_CONSOLE)
    sha256 = artefacts.put(console)
    with Store(f"sqlite:///{directory / 'store.sqlite'}") as store:
        boots = boot_records(run, iterations=3) if boots is None else boots
        taken = {(place.variant, place.block) for place, _ in placed_keys(boots)}
        empty = [cell for cell in cells(run) if (cell[0].variant, cell[0].block) not in taken]
        store.begin(run, [*placed_keys(boots), *empty])
        for boot in boots:
            logged = boot.model_copy(update={"console": sha256}) if boot.status == "failed" else boot
            store.add_boot(logged, benchmarks(run.lane))
        return assemble(store, run.id, artefacts)
