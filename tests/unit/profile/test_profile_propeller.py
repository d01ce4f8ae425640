"""Cluster files: of made-up maps, and of programs that clang really compiles, lays out by them, and that still work."""

from __future__ import annotations

import hashlib
import random
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kdyno.cli.main import main
from kdyno.kernel.image import Image
from kdyno.kernel.recipe import ProfileSettings
from kdyno.kernel.vmlinux.checks import OtherVmlinux, occurrences
from kdyno.kernel.vmlinux.sources import CompilationUnit, Sources
from kdyno.measure.guest.pmu_parts import Function, Region
from kdyno.profile import propeller
from kdyno.profile.block_map import (
    BasicBlockMap,
    BlockMapDamaged,
    Names,
    NoBlockMap,
    OtherBlockMapVersion,
    parse,
    read_block_map,
)
from kdyno.profile.coverage import ProfileNothingRan
from kdyno.profile.edges import EdgeProfile
from kdyno.profile.propeller import FullLto, NoClusters, cluster_file, clusters
from tests.unit.block_map_specimen import listing
from tests.unit.pmu_specimen import FUNCTIONS, context, iteration, specimen, write

TEXT = 0xFFFF_FFFF_8100_0000
VMLINUX = Path("vmlinux")
COMPILER = "clang-19"
SOURCES = {
    "one.c": """
static __attribute__((noinline)) int step(int x) { return x % 3 == 0 ? x / 3 : x % 5 == 1 ? 7 - x : 2 * x + 1; }
int other(int x);
int chain(int x)
{
    int sum = 0;
    for (int i = 0; i < x; i++)
        if (i % 7 == 3) sum += step(i); else sum ^= other(i);
    return sum;
}
""",
    "two.c": """
#include <stdio.h>
static __attribute__((noinline)) int step(int x) { if (x > 50) return x - 50; while (x % 4) x++; return x; }
int other(int x) { return step(x) + step(x + 9); }
int chain(int x);
int main(void) { for (int i = 0; i < 90; i++) printf("%d ", chain(i)); return 0; }
""",
}


def made_up(
    monkeypatch: pytest.MonkeyPatch, blocks: BasicBlockMap, symbols: str, sources: Sources, irets: Sequence[int]
) -> None:
    monkeypatch.setattr(propeller, "read_block_map", lambda _: blocks)
    monkeypatch.setattr(propeller, "read_names", lambda _: Names(symbols))
    monkeypatch.setattr(propeller, "read_sources", lambda _: sources)
    monkeypatch.setattr(propeller, "occurrences", lambda *_: irets)


def test_clusters_have_the_hot_blocks_entry_first_and_say_which_file_and_what_was_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    branch = [(0, 0, 16, True), (1, 16, 16, False), (5, 32, 16, True), (3, 48, 16, False), (9, 64, 16, False)]
    names = ("read", "show1", "show2", "slept", "odd", "lost")
    addresses = {name: TEXT + 0x100 * place for place, name in enumerate(names)}
    functions = {at: [(at, branch)] for at in addresses.values()}
    functions[addresses["odd"]] = [(addresses["odd"], [(4, 0, 80, False)])]
    symbols = "".join(
        f"{at:016x} {0x50:016x} t {name.rstrip('12')}\n" for name, at in addresses.items() if name != "odd"
    ) + (
        f"{addresses['read']:016x} {0x50:016x} T __alias\n"
        f"{addresses['slept']:016x} T __sched_text_start\n{addresses['odd']:016x} T __sched_text_end\n"
    )
    units = [
        CompilationUnit("fs/read.c", ((TEXT, TEXT + 0x180),), "../fs/read.c"),
        CompilationUnit("mm/show.c", ((TEXT + 0x200, TEXT + 0x500),), "./mm/show.c"),
    ]
    made_up(monkeypatch, parse(listing(functions)), symbols, Sources(units), [addresses["show2"] + 65])
    # Block 0 goes to 5 mostly and to 1 twice; both go on to 3.
    ran = [(0, 12, 98), (0, 28, 2), (32, 60, 98), (48, 60, 2)]
    edges = EdgeProfile(
        sorted((at + start, at + last, count) for at in addresses.values() for start, last, count in ran),
        sorted(row for at in addresses.values() for row in ((at + 12, at + 32, 98), (at + 28, at + 48, 2))),
    )
    left_out = "1 in sections with a place of their own, 1 without a source file, 1 without an entry in the map"
    head = f"v1\n# 3 functions; executed and left out: {left_out}\n"
    show = "f show\nc 0 5 3 1\n"
    assert cluster_file(edges, VMLINUX) == (
        f"{head}# file fs/read.c\nf __alias read\nc 0 5 3 1\n# file fs/read.c\nm ../fs/read.c\n{show}"
        f"# file mm/show.c\nm mm/show.c\nf show\nc 0 5 3 1 9\n"
    )
    rarer = cluster_file(edges, VMLINUX, cold=2)
    assert (rarer.count("c 0 5 3\n"), rarer.count("c 0 5 3 1 9\n")) == (2, 1)
    with pytest.raises(NoClusters, match="3 cold"):
        cluster_file(edges, VMLINUX, cold=100)


@pytest.fixture(name="program", scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("program")
    for name, text in SOURCES.items():
        (directory / name).write_text(text)
    compile_with(directory, "before", "-fbasic-block-address-map")
    return directory / "before"


def compile_with(directory: Path, program: str, *flags: str) -> None:
    for tool in (COMPILER, "ld.lld-19", "llvm-readobj-19"):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}")
    words = [COMPILER, "-O2", "-gmlt", "-static", "-no-pie", "-fuse-ld=lld-19", *SOURCES, "-o", program, *flags]
    subprocess.run(words, cwd=directory, check=True)


def some_profile(blocks: BasicBlockMap, seed: int) -> EdgeProfile:
    """Any counts, and branches from any block to any other of its function: what a profile says may be nonsense."""
    chance = random.Random(seed)
    ranges, branches = [], []
    for start, size, _, function, _ in blocks.blocks.tolist():
        if count := chance.choice((0, 1, 50, 1000)):
            ranges.append((start, start + size - 1, count))
        same = blocks.blocks[blocks.blocks["function"] == function]
        branches.append((start + size - 1, int(chance.choice(same["start"].tolist())), chance.randrange(1, 1000)))
    return EdgeProfile(sorted(ranges), sorted(branches))


@pytest.mark.parametrize("seed", range(3))
def test_a_program_laid_out_by_a_cluster_file_has_its_blocks_in_that_order_and_says_the_same(
    program: Path, seed: int
) -> None:
    text = cluster_file(some_profile(read_block_map(program), seed), program)
    assert text.count("m one.c\nf step\n") == text.count("m two.c\nf step\n") == 1
    name = f"after{seed}"
    (program.parent / f"{name}.txt").write_text(text)
    compile_with(program.parent, name, f"-fbasic-block-sections=list={name}.txt", "-fbasic-block-address-map")
    after = read_block_map(program.parent / name)
    laid_out = [
        tuple(after.blocks["id"][after.blocks["function"] == function].tolist())
        for function in range(len(after.functions))
    ]
    orders = [tuple(map(int, line.split()[1:])) for line in text.splitlines() if line.startswith("c ")]
    assert len(orders) >= 4
    for order in orders:
        assert any(" ".join(map(str, order)) in " ".join(map(str, blocks)) for blocks in laid_out), (order, laid_out)
    printed = [
        subprocess.run([path], capture_output=True, check=True).stdout for path in (program, program.parent / name)
    ]
    assert printed[0] == printed[1] and len(printed[0].split()) == 90


def test_code_is_found_where_it_is_loaded(program: Path) -> None:
    listed = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    main_at = int(re.findall(r"^(\w+) T main$", listed, re.M)[0], 16)
    words: list[str | Path] = [
        "objdump",
        "-d",
        "--show-raw-insn",
        f"--start-address={main_at}",
        f"--stop-address={main_at + 8}",
        program,
    ]
    code = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    first = bytes.fromhex("".join(re.findall(r"^ +\w+:\t((?:[0-9a-f]{2} )+)", code, re.M)))
    assert main_at in occurrences(program, first)
    assert occurrences(program, b"no code has this text") == []


def test_every_block_that_is_named_is_in_the_map(program: Path) -> None:
    blocks = read_block_map(program)
    numbers = set(blocks.blocks["id"].tolist())
    text = cluster_file(some_profile(blocks, 1), program)
    assert {int(word) for line in re.findall(r"^c (.*)$", text, re.M) for word in line.split()} <= numbers


def test_a_program_without_a_map_is_refused_with_the_flag_that_makes_one(program: Path) -> None:
    compile_with(program.parent, "bare")
    with pytest.raises(NoBlockMap) as caught:
        cluster_file(EdgeProfile([(1, 1, 1)], []), program.parent / "bare")
    assert "-fbasic-block-address-map" in caught.value.advice


@pytest.mark.parametrize(("place", "byte", "error"), [(0, 99, OtherBlockMapVersion), (-1, 0xFF, BlockMapDamaged)])
def test_a_map_of_another_version_or_a_damaged_one_is_refused(
    program: Path, tmp_path: Path, place: int, byte: int, error: type[Exception]
) -> None:
    listed = subprocess.run(["readelf", "-SW", program], capture_output=True, text=True, check=True).stdout
    sections = re.findall(r"\.llvm_bb_addr_map +\S+ +\w+ (\w+) (\w+)", listed)
    start, size = (int(number, 16) for number in sections[0])
    content = bytearray(program.read_bytes())
    content[start + place % size] = byte
    (tmp_path / "vmlinux").write_bytes(content)
    with pytest.raises(error):
        read_block_map(tmp_path / "vmlinux")


def image(vmlinux: Path, lto: str = "none") -> Image:
    record = SimpleNamespace(recipe=SimpleNamespace(lto=lto), key="a" * 64)
    return cast(Image, SimpleNamespace(vmlinux=vmlinux, record=record))


def record_of(program: Path, path: Path, iterations: int, **changes: Any) -> Path:
    """A record of every block of `chain` executed so often, in two benchmarks, one of them ten times as long."""
    listed = subprocess.run(["nm", "-S", program], capture_output=True, text=True, check=True).stdout
    address, size = re.findall(r"^(\w+) (\w+) T chain$", listed, re.M)[0]
    start, length = int(address, 16), int(size, 16)
    regions = {}
    for benchmark, factor in enumerate((1, 10)):
        ran = context([(start, 4, length - 1, length, factor * iterations)])
        regions[benchmark] = Region(
            benchmark, {0: iteration((4, 0, 0), (0,) * 3, (0,) * 3)}, (ran, context(), context()), ()
        )
    record = replace(
        specimen(),
        image=hashlib.sha256(program.read_bytes()).hexdigest(),
        functions=(FUNCTIONS[0], Function(start, length, "chain")),
        regions=regions,
    )
    return write(path, replace(record, **changes))


def test_records_of_one_image_give_the_same_bytes_however_often(program: Path, tmp_path: Path) -> None:
    records = [record_of(program, tmp_path / f"{seed}.kpmu", 7 + seed) for seed in range(3)]
    made = clusters(records, image(program), ProfileSettings())
    assert made == clusters(records, image(program), ProfileSettings())
    assert re.fullmatch(rb"v1\n# 1 functions; [^\n]*\n# file one.c\nf chain\nc 0[ \d]*\n", made)


def test_an_export_of_a_record_is_the_cluster_file(program: Path, tmp_path: Path) -> None:
    record = record_of(program, tmp_path / "r.kpmu", 7)
    arguments = ["profile", "export", str(record), "--format", "propeller", "-o", str(tmp_path / "out")]
    assert main([*arguments, "--vmlinux", str(program)]) == 0
    assert "\nf chain\n" in (tmp_path / "out").read_text()
    assert main(arguments) == 1


def test_what_cannot_be_a_profile_is_refused_with_the_reason(program: Path, tmp_path: Path) -> None:
    record = record_of(program, tmp_path / "r.kpmu", 7)
    with pytest.raises(FullLto) as caught:
        clusters([record], image(program, lto="full"), ProfileSettings())
    assert "thin" in caught.value.advice
    other = record_of(program, tmp_path / "other.kpmu", 7, image="0" * 64)
    with pytest.raises(OtherVmlinux):
        clusters([record, other], image(program), ProfileSettings())
    idle = record_of(program, tmp_path / "idle.kpmu", 0)
    with pytest.raises(ProfileNothingRan):
        clusters([idle], image(program), ProfileSettings())
