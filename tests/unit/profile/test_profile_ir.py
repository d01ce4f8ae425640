"""clang's counters: read out of a program that clang instrumented and that ran; clang compiles by them."""

from __future__ import annotations

import struct
import subprocess
import zlib
from collections.abc import Callable
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import pytest

from kdyno.profile.counters import NothingCounted, difference, require_counts
from kdyno.profile.ir_profile import (
    COUNTERS,
    DATA,
    NAMES,
    VERSION_SYMBOL,
    NotInstrumented,
    OtherLayout,
    OtherMemory,
    counted_functions,
    counters_range,
    counts_of,
    text_profile,
)
from tests.unit.ir_specimen import COMPILER, ENTRIES, build, run

PROFDATA = "llvm-profdata-19"
WARNINGS = ("-Wprofile-instr-out-of-date", "-Wprofile-instr-unprofiled", "-Wbackend-plugin", "-Werror")
FLAGS = {
    "user": (),
    "names-in-plain": ("-mllvm", "-enable-name-compression=false"),
    "kernel": ("-mcmodel=kernel", "-fno-pic", "-ffunction-sections"),
}


@pytest.fixture(scope="module", params=FLAGS)
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """The program, and the bytes of its counters after it ran."""
    directory = tmp_path_factory.mktemp("ir")
    program = build(directory, *FLAGS[request.param])
    return program, run(directory, program)


def counts_by_function(program: Path, memory: bytes) -> dict[str, list[int]]:
    functions = counted_functions(program)
    counts = counts_of(functions, counters_range(program).start, memory).tolist()
    ranges = pairwise(accumulate((function.counters for function in functions), initial=0))
    return {function.name: counts[start:end] for function, (start, end) in zip(functions, ranges, strict=True)}


def compiled(directory: Path, profile: str, source: str) -> str:
    """The assembler text of a source file that is compiled by a text profile, without any warning."""
    (directory / "profile.txt").write_text(profile)
    run(directory, PROFDATA, "merge", "-o", "profile.profdata", "profile.txt")
    words = (COMPILER, "-O2", "-fprofile-use=profile.profdata", *WARNINGS, "-S", "-o", "-", source)
    return run(directory, *words).decode()


def section_of(assembler: str, function: str) -> str:
    before = assembler.partition(f"\n{function}:")[0]
    return before.rpartition("\t.section\t")[2].partition(",")[0]


def test_each_functions_counters_are_what_it_did(ran: tuple[Path, bytes]) -> None:
    counts = counts_by_function(*ran)
    assert {name: sum(own) for name, own in counts.items() if name not in ("work", "one.c;step")} == {
        name: count for name, count in ENTRIES.items() if name not in ("work", "one.c;step")
    }
    assert counts["choose"] == [1, 99]
    assert sorted(counts["work"]) == [0, 1, 100]
    assert sorted(counts["one.c;step"]) == [1, 40]


def test_clang_compiles_by_the_text_without_a_warning_and_lays_out_by_it(ran: tuple[Path, bytes]) -> None:
    program, memory = ran
    functions = counted_functions(program)
    counts = counts_of(functions, counters_range(program).start, memory)
    text = text_profile(functions, counts)
    assembler = compiled(program.parent, text, "one.c")
    choose = assembler.partition("\nchoose:")[2].partition("\n.Lfunc_end")[0]
    assert 0 < choose.index("\tusual") < choose.index("\trare")
    assert section_of(assembler, "never") == ".text.unlikely." and section_of(assembler, "choose") == ".text.hot."
    first = 1 + next(
        place for place, end in enumerate(np.cumsum([function.counters for function in functions])) if end == 2
    )
    swapped = counts.copy()
    swapped[first : first + 2] = counts[first : first + 2][::-1]
    assembler = compiled(program.parent, text_profile(functions, swapped), "one.c")
    choose = assembler.partition("\nchoose:")[2].partition("\n.Lfunc_end")[0]
    assert 0 < choose.index("\trare") < choose.index("\tusual")
    assert "step:" in compiled(program.parent, text, "two.c")


def test_clang_says_that_a_profile_is_of_other_code(ran: tuple[Path, bytes]) -> None:
    program, memory = ran
    functions = counted_functions(program)
    text = text_profile(functions, counts_of(functions, counters_range(program).start, memory))
    changed = program.parent / "changed.c"
    changed.write_text((program.parent / "one.c").read_text().replace("if (n == 7) rare(n); else", "rare(n);"))
    with pytest.raises(subprocess.CalledProcessError) as refused:
        compiled(program.parent, text, "changed.c")
    # Of such profiles clang says so as a warning of the backend, and not as -Wprofile-instr-out-of-date.
    assert b"control flow change detected (hash mismatch) choose" in refused.value.stderr
    assert b"-Wbackend-plugin" in refused.value.stderr


def test_llvm_profdata_reads_the_same_counts_out_of_the_text(ran: tuple[Path, bytes], tmp_path: Path) -> None:
    program, memory = ran
    functions = counted_functions(program)
    counts = counts_of(functions, counters_range(program).start, memory)
    profile = tmp_path / "profile.txt"
    profile.write_text(text_profile(functions, counts))
    shown = run(tmp_path, PROFDATA, "show", "--all-functions", "--counts", profile).decode()
    for name, own in counts_by_function(program, memory).items():
        part = shown.partition(f"\n  {name}:\n")[2]
        assert part.splitlines()[2].strip() == f"Block counts: {own}"


def test_what_never_ran_can_be_left_to_clangs_guess(ran: tuple[Path, bytes], tmp_path: Path) -> None:
    program, memory = ran
    functions = counted_functions(program)
    counts = counts_of(functions, counters_range(program).start, memory)
    text = text_profile(functions, counts, executed_only=True)
    assert "\nnever\n" not in text and "\nrare\n" in text
    profile = tmp_path / "profile.txt"
    profile.write_text(text)
    run(tmp_path, PROFDATA, "merge", "-o", "p.profdata", profile)
    words = (COMPILER, "-O2", f"-fprofile-use={tmp_path}/p.profdata", "-Werror", "-S", "-o", "-", "one.c")
    assert section_of(run(program.parent, *words).decode(), "never") != ".text.unlikely."


def test_snapshots_are_subtracted_and_memory_may_begin_before_the_counters(ran: tuple[Path, bytes]) -> None:
    program, memory = ran
    functions = counted_functions(program)
    start = counters_range(program).start
    counts = counts_of(functions, start, memory)
    assert np.array_equal(counts_of(functions, start - 24, bytes(24) + memory + b"odd"), counts)
    assert not difference(counts, counts, "training").any()
    with pytest.raises(NothingCounted):
        require_counts(difference(counts, counts, "training"), "training")
    for begin, part in ((start, memory[:-8]), (start + 8, memory), (start + 1, memory + bytes(16)), (start, b"")):
        with pytest.raises(OtherMemory):
            counts_of(functions, begin, part)
    assert len(counts_of((), start, b"")) == 0


def test_a_program_that_is_not_instrumented_or_not_linked_or_none_is_refused(
    ran: tuple[Path, bytes], tmp_path: Path
) -> None:
    directory = ran[0].parent
    with pytest.raises(NotInstrumented, match="there is no section __llvm_prf_data"):
        counted_functions(Path("/bin/true").resolve())
    for path, message in (
        (directory / "one.o", "isn't linked yet"),
        (directory / "one.c", "not a 64-bit ELF file"),
        (tmp_path / "missing", "No such file"),
        (tmp_path, "it is not a regular file"),
    ):
        for read in (counted_functions, counters_range):
            with pytest.raises(OtherLayout, match=message):
                read(path)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("-fprofile-generate", "-mllvm", "-pgo-function-entry-coverage"), "by other means"),
        (("-fprofile-instr-generate",), "compiled without -fprofile-generate"),
        (("-fcs-profile-generate",), "by other means"),
    ],
)
def test_counters_of_another_instrumentation_are_refused(flags: tuple[str, ...], message: str, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("void _start(void) { for (;;); }\nint f(int n) { return n ? 3 : n + 1; }\n")
    run(tmp_path, COMPILER, "-O2", *flags, "-mllvm", "-disable-vp=true", "-c", "a.c")
    run(tmp_path, "ld", "--unresolved-symbols=ignore-all", "-o", "a", "a.o")
    with pytest.raises(OtherLayout, match=message):
        counted_functions(tmp_path / "a")


def place_of(program: Path, section: str) -> tuple[int, int]:
    """Where a section is in the file, and how long it is."""
    listing = subprocess.check_output(["readelf", "--wide", "--section-headers", program], text=True)
    words = next(line.partition("]")[2].split() for line in listing.splitlines() if f" {section} " in line)
    return int(words[3], 16), int(words[4], 16)


def changed(program: Path, place: int, content: bytes, tmp_path: Path) -> Path:
    data = bytearray(program.read_bytes())
    data[place : place + len(content)] = content
    path = tmp_path / "changed"
    path.write_bytes(data)
    return path


def _record(offset: int, content: bytes) -> Callable[[Path], tuple[int, bytes]]:
    return lambda program: (place_of(program, DATA)[0] + offset, content)


def _version(program: Path, number: int) -> tuple[int, bytes]:
    symbols = subprocess.check_output(["nm", program], text=True)
    address = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(VERSION_SYMBOL))
    content = struct.pack("<Q", number)
    rodata = subprocess.check_output(["readelf", "--wide", "--section-headers", program], text=True)
    words = next(line.partition("]")[2].split() for line in rodata.splitlines() if " .rodata " in line)
    return address - int(words[2], 16) + int(words[3], 16), content


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_record(0, b"other by"), "record 0 of __llvm_prf_data has a name that isn't in __llvm_prf_names"),
        (_record(64 + 16, struct.pack("<q", 8)), "the counters of .* aren't in __llvm_prf_cnts"),
        (_record(16, struct.pack("<q", -(2**63))), "aren't in __llvm_prf_cnts"),
        (_record(48, bytes(4)), "aren't in __llvm_prf_cnts"),
        (_record(48, b"\xff" * 4), "more counters than __llvm_prf_cnts has room for"),
        (lambda program: _version(program, (1 << 56) | 9), "its raw version is 9, not 10"),
        (lambda program: _version(program, (3 << 56) | 10), "by other means"),
        (lambda program: (place_of(program, NAMES)[0], b"\xff" * 9), "has no length at byte 0"),
        (lambda program: (place_of(program, NAMES)[0], b"\x7f\x7f"), "has a length that can't be at byte"),
        (lambda program: (place_of(program, NAMES)[0] + 2, b"\0\0"), "can't be inflated|odd name"),
        (
            lambda program: (place_of(program, NAMES)[0], b"\x05"),
            "not 5 bytes long|has an odd name|isn't in|be at byte",
        ),
    ],
)
def test_another_layout_gets_one_clear_message(
    ran: tuple[Path, bytes], change: Callable[[Path], tuple[int, bytes]], message: str, tmp_path: Path
) -> None:
    place, content = change(ran[0])
    with pytest.raises(OtherLayout, match=message):
        counted_functions(changed(ran[0], place, content, tmp_path))


def test_names_that_inflate_to_more_than_they_say_take_no_memory(ran: tuple[Path, bytes], tmp_path: Path) -> None:
    place, size = place_of(ran[0], NAMES)
    bomb = zlib.compress(bytes(10_000_000))[: size - 2]
    path = changed(ran[0], place, bytes([100, len(bomb)]) + bomb, tmp_path)
    with pytest.raises(OtherLayout, match="are not 100 bytes long"):
        counted_functions(path)


def test_counters_are_found_where_a_linker_gives_them_no_bytes(ran: tuple[Path, bytes], tmp_path: Path) -> None:
    run(tmp_path, "objcopy", f"--set-section-flags={COUNTERS}=alloc", ran[0], tmp_path / "no-bytes")
    assert counted_functions(tmp_path / "no-bytes") == counted_functions(ran[0])
    assert counters_range(tmp_path / "no-bytes") == counters_range(ran[0])
