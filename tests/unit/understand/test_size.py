"""Sizes of ELF files: what counts as one symbol, and how two files differ."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdyno.base.debuginfo import ElfDamaged, ElfSymbol
from kdyno.base.state import State
from kdyno.kernel.recipe import Recipe
from kdyno.runs.subject import NothingOfThatName, OtherKind
from kdyno.understand.size.compare import counted_name, section_rows, section_sizes, symbol_rows, symbol_sizes, totals
from kdyno.understand.size.elf import Elf, NotElf, Section, read_elf
from kdyno.understand.size.report import OtherMachine, size_report
from tests.unit.bounded import kdyno, python, require_one_message
from tests.unit.kernel_toy import built, toy_source

CODE = """\
static int total[4];
const char *const names[] = {"one", "two"};
static __attribute__((noinline)) int twice(int x) { return x * 2 + total[x & 3]; }
int visible(int x) { total[1] += x; return twice(x) + twice(x + 1); }
int initialised = 7;
"""


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path / "state")


def assembled(path: Path, text: str, *flags: str) -> Path:
    subprocess.run(["as", *flags, "-o", path, "-"], input=text, text=True, check=True)
    return path


def function(name: str, size: int, section: str = ".text") -> str:
    return f'.section {section},"ax"\n.type {name}, @function\n{name}: .skip {size}, 0x90\n.size {name}, {size}\n'


def elf(*symbols: tuple[str, int, int]) -> Elf:
    """A file with one section of code; symbols by name, place and size."""
    named_symbols = tuple(ElfSymbol(name, section=1, value=value, size=size) for name, value, size in symbols)
    return Elf("x86", {1: Section(".text", "text", 4096)}, named_symbols)


def test_symbols_have_the_sizes_that_nm_lists(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(CODE)
    subprocess.run(["gcc", "-O2", "-c", "a.c"], cwd=tmp_path, check=True)
    listed = subprocess.run(["nm", "--size-sort", "a.o"], cwd=tmp_path, check=True, capture_output=True, text=True)
    expected = Counter[str]()
    for line in listed.stdout.splitlines():
        size, _, name = line.split()
        expected[name] += int(size, 16)
    parsed = read_elf(tmp_path / "a.o")
    assert {symbol.name: symbol.size for symbol in parsed.symbols} == expected
    kinds = dict(symbol_sizes(parsed).keys())
    assert kinds["visible"] == kinds["twice"] == "text"
    assert (kinds["total"], kinds["initialised"]) == ("bss", "data")


def test_names_of_every_kind_are_read_whole(tmp_path: Path) -> None:
    names = ["f" * 300, "f.constprop.0", "f$1", '"with space"']
    parsed = read_elf(
        assembled(tmp_path / "a.o", "".join(function(name, 8) for name in names) + ".comm shared, 24, 8\n")
    )
    sizes = {symbol.name: symbol.size for symbol in parsed.symbols}
    assert sizes == {**{name.strip('"'): 8 for name in names}, "shared": 24}
    assert symbol_sizes(parsed)["shared", "bss"] == 24


def test_sections_that_nobody_writes_to_are_read_only_data_whatever_their_flags_say(tmp_path: Path) -> None:
    sections = {
        ".rodata": "aw",
        "__ksymtab": "aw",
        ".data": "aw",
        ".init.text": "ax",
        ".debug_info": "",
        ".discard.x": "aw",
    }
    text = "".join(f'.section {name},"{flags}"\n.skip 8\n' for name, flags in sections.items())
    kinds = {section.name: section.kind for section in read_elf(assembled(tmp_path / "a.o", text)).sections.values()}
    assert [kinds[name] for name in sections] == ["rodata", "rodata", "data", "text", None, None]


@pytest.mark.parametrize(
    ("name", "whole", "apart"),
    [
        ("vfs_read", "vfs_read", "vfs_read"),
        ("vfs_read.constprop.0", "vfs_read", "vfs_read.constprop"),
        ("vfs_read.isra.12.cold", "vfs_read", "vfs_read.isra.cold"),
        ("f.llvm.1234567", "f", "f.llvm"),
        (".E_copy", ".E_copy", ".E_copy"),
        ("v4.1f", "v4", "v4.1f"),
    ],
)
def test_clones_belong_to_their_function_unless_they_are_counted_apart(name: str, whole: str, apart: str) -> None:
    assert counted_name(name, "text", clones_apart=False) == whole
    assert counted_name(name, "text", clones_apart=True) == apart


def test_data_loses_only_numbers() -> None:
    assert counted_name("descriptor.5", "data", clones_apart=False) == "descriptor"
    assert counted_name("__UNIQUE_ID_license123", "rodata", clones_apart=False) == "__UNIQUE_ID_license"
    assert counted_name("table.part", "data", clones_apart=False) == "table.part"


def test_bytes_are_counted_once_and_paddings_not_at_all() -> None:
    parsed = elf(
        ("memcpy", 0, 40),
        ("__memcpy", 0, 40),
        ("__pfx_memcpy", -16, 16),
        ("__cfi_f", 90, 16),
        ("f.0", 64, 8),
        ("f.1", 72, 8),
    )
    assert symbol_sizes(parsed) == {("memcpy", "text"): 40, ("f", "text"): 16}


def test_two_files_differ_by_what_came_went_grew_and_shrank() -> None:
    before = symbol_sizes(elf(("gone", 0, 10), ("grew", 16, 20), ("same", 48, 5), ("shrank", 64, 30)))
    after = symbol_sizes(elf(("grew", 0, 28), ("same", 32, 5), ("shrank.constprop.0", 48, 29), ("new", 80, 100)))
    rows = symbol_rows(before, after)
    assert [(row.name, row.change, row.change_kind) for row in rows] == [
        ("new", 100, "added"),
        ("gone", -10, "removed"),
        ("grew", 8, "grown"),
        ("shrank", -1, "shrunk"),
        ("same", 0, "same"),
    ]
    total = totals(rows, is_pair=True)[-1]
    assert (total.name, total.before, total.after, total.change, total.up, total.down) == ("all", 65, 162, 97, 108, 11)
    assert (total.added, total.removed, total.grown, total.shrunk) == (1, 1, 1, 1)


def test_of_one_file_the_largest_come_first() -> None:
    rows = symbol_rows(symbol_sizes(elf(("small", 0, 1), ("large", 16, 9))), None)
    assert [(row.name, row.before, row.after, row.change, row.change_kind) for row in rows] == [
        ("large", 9, None, None, None),
        ("small", 1, None, None, None),
    ]
    assert section_rows(section_sizes(elf()), None)[0].before == 4096


def test_a_file_that_is_no_whole_elf_file_is_refused(tmp_path: Path, state: State) -> None:
    whole = assembled(tmp_path / "a.o", function("f", 64)).read_bytes()
    cases = {"text": b"hello", "empty": b"", "magic": b"\x7fELF"}
    for name, content in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises((OtherKind, ElfDamaged), match=str(tmp_path / name)):
            size_report(str(tmp_path / name), None, state)
    for length in range(64, len(whole) - 1, 7):
        (tmp_path / "cut.o").write_bytes(whole[:length])
        with pytest.raises(ElfDamaged, match="is damaged or cut off"):
            read_elf(tmp_path / "cut.o")
    for path in (tmp_path / "nowhere.o", tmp_path, Path("/dev/null")):
        with pytest.raises(NotElf):
            read_elf(path)
    with pytest.raises(NothingOfThatName):
        size_report("abcdef123456", None, state)


def test_files_of_two_architectures_are_not_compared(tmp_path: Path, state: State) -> None:
    one, other = (assembled(tmp_path / f"{bits}.o", function("f", 8), f"--{bits}") for bits in (64, 32))
    assert size_report(str(other), None, state).totals[0].before == 8
    with pytest.raises(OtherMachine, match=r"64\.o is for .*X86-64, and .*32\.o for Intel 80386"):
        size_report(str(one), str(other), state)


def test_a_stripped_file_has_sections_and_says_that_it_has_no_symbols(tmp_path: Path, state: State) -> None:
    path = assembled(tmp_path / "a.o", function("f", 8))
    subprocess.run(["strip", path], check=True)
    report = size_report(str(path), None, state)
    assert report.notes == (f"{path} has no symbols: only its sections are known",)
    assert [row.before for row in report.sections if row.name == ".text"] == [8]
    assert report.symbols == ()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_an_image_is_named_by_key_directory_or_file(tmp_path: Path, state: State) -> None:
    image = built(Recipe(), toy_source(tmp_path, state), state)
    names = [image.record.key, image.record.key[:8], str(image.directory), str(image.vmlinux)]
    reports = [size_report(name, None, state) for name in names]
    assert {report.before.path for report in reports} == {str(image.vmlinux)}
    assert {row.name for row in reports[0].symbols} >= {"sys_open", "crc32", "start_kernel"}
    (tmp_path / "objects").mkdir()
    shutil.copy(image.vmlinux, tmp_path / "objects")
    assert size_report(str(tmp_path / "objects"), None, state).symbols == reports[0].symbols


@settings(max_examples=60)
@given(st.data())
def test_a_damaged_file_is_refused_or_read(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.o"
    if not (whole := tmp_path_factory.getbasetemp() / "whole.o").exists():
        assembled(whole, function("f", 64))
    content = bytearray(whole.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(4, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        rows = symbol_rows(symbol_sizes(read_elf(path)), None)
    except ElfDamaged:
        return
    assert all((row.before or 0) > 0 for row in rows)


def symbols_of_one_name(path: Path, number: int, length: int) -> Path:
    """An object with so many functions, all of one name of so many bytes."""
    names = b"\0" + b"x" * length + b"\0.shstrtab\0"
    symbol = struct.pack("<IBBHQQ", 1, 2, 0, 1, 0, 1)
    symbols = bytes(24) + symbol * number
    sections = [
        bytes(64),
        struct.pack("<IIQQQQIIQQ", 0, 1, 6, 0, 64, 1, 0, 0, 1, 0),
        struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, 64, len(symbols), 3, number + 1, 8, 24),
        struct.pack("<IIQQQQIIQQ", length + 2, 3, 0, 0, 64 + len(symbols), len(names), 0, 0, 1, 0),
    ]
    table = 64 + len(symbols) + len(names)
    head = (
        b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, 4, 3)
    )
    path.write_bytes(head + symbols + names + b"".join(sections))
    return path


@pytest.mark.parametrize(
    ("number", "length", "listed", "told"),
    [
        (20_000, 4_000, "lists more than 50,331,648 bytes of it", "there are more than 50,331,648 bytes to tell of it"),
        (20, 10_000, "a name in it has nearly 4,096 bytes", "a name in it has 10000 bytes"),
    ],
)
def test_symbols_that_share_a_long_name_are_refused(
    tmp_path: Path, number: int, length: int, listed: str, told: str
) -> None:
    path = symbols_of_one_name(tmp_path / "vmlinux", number, length)
    done = kdyno("kernel", "size", path, "--state", tmp_path / "state")
    require_one_message(done, 1, f"{path} is damaged or cut off: ", told)
    done = python(f"from kdyno.base.elf_listing import *; from pathlib import Path; symbols(Path({str(path)!r}))")
    assert "ElfUnsound" in done.stderr and listed in done.stderr


def test_as_many_symbols_as_are_listed_fit_into_memory() -> None:
    line = "ffffffff81000000 0000000000000001 t x%06d\\n"
    marks = "".join(f"ffffffff8{place} T {name}\\n" for place, name in enumerate(("_text", "_etext")))
    code = f"""
from pathlib import Path
from kdyno.base.elf_listing import MOST_BYTES
from kdyno.measure.guest.symbols import functions
line = "{line}"
functions("".join(line % n for n in range(MOST_BYTES // len(line % 0))) + "{marks}", Path("vmlinux"))
"""
    assert "MemoryError" not in python(code).stderr
