"""What kdyno-debuginfo tells of real programs, and of files that it refuses."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from kdyno.base import debuginfo, process
from kdyno.base.debuginfo import CodeFrame, ElfDamaged

SOURCE = """\
static inline __attribute__((always_inline)) int deep(int x)
{
	return x * 7 + 3;
}
static inline __attribute__((always_inline)) int middle(int x)
{
	return deep(x) ^ 5;
}
int outer(int x)
{
	return middle(x);
}
int data_of_another = 4;
void _start(void)
{
	data_of_another = outer(9);
}
"""
DATA_ONLY = "int only_data = 7;\n"
VERSIONS = ("-gdwarf-4", "-gdwarf-5")
COMPILERS = ("gcc", "clang-19")


def built(directory: Path, compiler: str, *flags: str) -> Path:
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    (directory / "a.c").write_text(SOURCE)
    (directory / "b.c").write_text(DATA_ONLY)
    words = [
        compiler,
        "-O1",
        "-g",
        "-fno-pie",
        "-no-pie",
        "-static",
        "-nostdlib",
        *flags,
        "a.c",
        "b.c",
        "-o",
        "program",
    ]
    subprocess.run(words, cwd=directory, check=True)
    return directory / "program"


def addresses_of(program: Path, function: str) -> list[int]:
    _, _, symbols = debuginfo.machine_sections_symbols(program)
    (found,) = [symbol for symbol in symbols if symbol.name == function]
    return list(range(found.value, found.value + found.size))


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("version", VERSIONS)
def test_an_address_has_the_functions_inlined_there_and_their_calls(
    tmp_path: Path, compiler: str, version: str
) -> None:
    program = built(tmp_path, compiler, version)
    frames = debuginfo.frames(program, addresses_of(program, "outer"))
    longest = max(frames, key=len)
    assert [(frame.function, frame.line) for frame in longest] == [("deep", 3), ("middle", 7), ("outer", 11)]
    assert {chain[-1].function for chain in frames} == {"outer"}
    assert {frame.path for chain in frames for frame in chain} == {str(tmp_path / "a.c")}


def test_an_address_that_nothing_is_known_of_has_one_empty_frame_and_order_is_kept(tmp_path: Path) -> None:
    program = built(tmp_path, "gcc")
    inside = addresses_of(program, "outer")[0]
    unknown, known, again = debuginfo.frames(program, [0, inside, inside])
    assert unknown == (CodeFrame("", "", 0, 0),)
    assert known == again and known[-1].function == "outer"
    assert debuginfo.frames(program, []) == []


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_unit_has_the_addresses_of_its_code_and_one_without_code_is_left_out(
    tmp_path: Path, compiler: str, version: str
) -> None:
    program = built(tmp_path, compiler, version)
    (unit,) = debuginfo.units(program)
    assert (unit.name, unit.directory) == ("a.c", str(tmp_path))
    for function in ("outer", "_start"):
        assert any(start <= addresses_of(program, function)[0] < end for start, end in unit.ranges)


@pytest.mark.parametrize("packing", ["zlib", "zstd"])
def test_compressed_debug_information_is_the_same(tmp_path: Path, packing: str) -> None:
    if shutil.which("ld.lld-19") is None:
        pytest.skip("needs ld.lld-19")
    program = built(tmp_path, "clang-19", "-fuse-ld=lld-19")
    plain = debuginfo.frames(program, addresses_of(program, "outer"))
    packed = built(tmp_path, "clang-19", "-fuse-ld=lld-19", f"-Wl,--compress-debug-sections={packing}")
    assert debuginfo.frames(packed, addresses_of(packed, "outer")) == plain
    assert any(len(chain) == 3 for chain in plain)


def test_any_name_of_a_file_is_a_name(tmp_path: Path) -> None:
    program = built(tmp_path, "gcc")
    for name in (b"--help", b"caf\xe9", b"with space"):
        other = Path(os.fsdecode(bytes(tmp_path) + b"/" + name))
        shutil.copy(program, other)
        assert debuginfo.units(other) == debuginfo.units(program)


@pytest.mark.parametrize("content", [b"hello", b"", b"\x7fELF\x02\x01\x01", b"\x7fELF" * 100])
def test_what_cannot_be_read_is_one_message(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "vmlinux"
    path.write_bytes(content)
    for read in (debuginfo.units, debuginfo.lines, debuginfo.machine_sections_symbols):
        with pytest.raises(ElfDamaged, match="it can't be read as an ELF file: ") as caught:
            read(path)
        assert "\n" not in str(caught.value) and "kdyno-debuginfo" not in str(caught.value)


def test_a_file_that_takes_too_much_memory_is_damaged_and_what_else_ends_the_program_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "memory allocation of 123 bytes failed\n"

    def attempt(words: list[str | Path], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(words, -signal.SIGABRT, "", said)

    monkeypatch.setattr(debuginfo, "attempt", attempt)
    with pytest.raises(ElfDamaged, match="it takes more than a gigabyte of memory to read"):
        debuginfo.units(tmp_path / "vmlinux")
    said = "a mistake of ours\n"
    with pytest.raises(process.ToolFailed, match="a mistake of ours"):
        debuginfo.units(tmp_path / "vmlinux")


def test_addresses_of_what_is_not_linked_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-c", "a.c"], cwd=tmp_path, check=True)
    with pytest.raises(ElfDamaged, match="it is an object file, and isn't linked yet"):
        debuginfo.units(tmp_path / "a.o")
    assert debuginfo.machine_sections_symbols(tmp_path / "a.o")[2]


def test_the_verbs_are_told_and_others_are_refused(tmp_path: Path) -> None:
    program = debuginfo.find_debuginfo()
    assert "frames   for each address" in process.output([program, "--help"])
    for words in ([], ["units"], ["other", program], ["units", "more", program], ["--other", tmp_path]):
        done = process.attempt([program, *words])
        assert done.returncode == 64, words
        assert done.stderr.startswith("kdyno-debuginfo: error: ") and done.stderr.count("\n") == 1
    done = process.attempt([program, "frames", program], stdin="ffff\nnonsense\n")
    assert (done.returncode, done.stderr) == (1, "kdyno-debuginfo: error: line 2 of stdin is not an address\n")
