"""Functions of a record held against other kernels, which an assembler makes: moved, changed, grown, gone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kdyno.base import process
from kdyno.base.digests import file_digest
from kdyno.base.llvm_tools import LlvmToolMissing, find_tool
from kdyno.base.state import State
from kdyno.cli.main import main
from kdyno.kernel.vmlinux.checks import NotAVmlinux, OtherVmlinux
from kdyno.measure.guest.pmu_parts import Function, Region
from kdyno.measure.guest.symbols import KERNEL_IMAGE
from kdyno.profile.code import Code
from kdyno.profile.stale import Fate, Stale, stale
from tests.unit.pmu_specimen import context, iteration, write

ENTRY = "call work; mov table(%rip), %eax; mov $message, %rdi; cmpl $7, table+4(%rip); jmp .Ltest; ret"
WORK = "mov $5, %eax; ret"
LEAF = "xor %eax, %eax; ret"
KERNEL = """\
.section .altinstr_aux, "ax"
{filler}
.Ltest: nop
.text
.globl _text, _etext
_text:
{functions}
.balign 16
_etext:
.section .rodata
{filler}
message: .string "a message"
.size message, 10
.ascii "unnamed"
.data
{filler}
.type table, @object
.size table, 8
table: .long 1, 2
"""


def vmlinux(path: Path, functions: dict[str, str], filler: str = "", text: int = KERNEL_IMAGE + 0x1000000) -> Path:
    if not shutil.which("as") or not shutil.which("ld"):
        pytest.skip("no binutils here")
    bodies = "".join(
        f".balign 16\n.type {name}, @function\n{name}: {body}\n.size {name}, .-{name}\n"
        for name, body in functions.items()
    )
    path.with_suffix(".s").write_text(KERNEL.format(functions=bodies, filler=filler))
    process.output(["as", path.with_suffix(".s"), "-o", path.with_suffix(".o")])
    process.output(["ld", f"-Ttext={text:#x}", "-e", "_text", path.with_suffix(".o"), "-o", path])
    return path


@pytest.fixture(name="old")
def recorded(tmp_path: Path) -> Path:
    return vmlinux(tmp_path / "old", {"entry": ENTRY, "work": WORK, "leaf": LEAF})


def record_of(kernel: Path, path: Path, state: State) -> Path:
    """Of 100 instructions 50 are entry's, 30 work's and 20 leaf's."""
    symbols = [entry[0] for entry in Code(kernel).functions.values()]
    functions = sorted(
        (Function(symbol.address, symbol.size, symbol.name) for symbol in symbols), key=lambda symbol: symbol.address
    )
    share = {"entry": 50, "work": 30, "leaf": 20}
    counts = {index: (share[function.name], 0, 0) for index, function in enumerate(functions)}
    blocks = [(function.address, share[function.name], 0, 1, 1) for function in functions]
    region = Region(
        0, {0: iteration((100, 0, 0), (0, 0, 0), (0, 0, 0))}, (context(blocks, [], counts), context(), context()), ()
    )
    return write(path, functions=tuple(functions), regions={0: region}, image=file_digest(kernel, state))


def fates(old: Path, new: Path, tmp_path: Path, *, at_hand: bool = True) -> tuple[Stale, dict[str, Fate]]:
    state = State(tmp_path / "state")
    record = record_of(old, tmp_path / "record", state)
    result = stale(record, new, old if at_hand else None, state)
    return result, {stale.function: stale.fate for stale in result.stale}


def test_a_kernel_in_another_order_with_everything_elsewhere_is_the_same(old: Path, tmp_path: Path) -> None:
    new = vmlinux(tmp_path / "new", {"leaf": LEAF, "more": "nop", "work": WORK, "entry": ENTRY}, ".fill 300, 1, 0x90")
    result, others = fates(old, new, tmp_path)
    assert others == {}
    assert result.functions == {"same": 3, "code": 0, "size": 0, "gone": 0}
    assert result.shares["same"] == pytest.approx(1)


def test_kernels_that_are_processes_and_lie_low_are_compared_too(tmp_path: Path) -> None:
    old, new = (
        vmlinux(tmp_path / name, {"entry": ENTRY, "work": WORK, "leaf": leaf}, text=0x60001000)
        for name, leaf in [("old", LEAF), ("new", LEAF + "; nop")]
    )
    assert fates(old, new, tmp_path)[1] == {"leaf": "size"}


@pytest.mark.parametrize(
    ("changed", "fate"),
    [
        ({"work": WORK.replace("5", "6")}, {"work": "code"}),
        ({"entry": ENTRY.replace("table(", "table+4(")}, {"entry": "code"}),
        ({"entry": ENTRY.replace("call work", "call leaf")}, {"entry": "code"}),
        ({"entry": ENTRY.replace("$7", "$8")}, {"entry": "code"}),
        ({"entry": ENTRY.replace("$message", "$message+1")}, {"entry": "code"}),
        ({"leaf": LEAF + "; nop"}, {"leaf": "size"}),
    ],
)
def test_what_changed_is_named(old: Path, tmp_path: Path, changed: dict[str, str], fate: dict[str, str]) -> None:
    new = vmlinux(tmp_path / "new", {"leaf": LEAF, "work": WORK, "entry": ENTRY} | changed, ".fill 300, 1, 0x90")
    assert fates(old, new, tmp_path)[1] == fate


def test_a_function_of_another_name_is_gone_and_shares_are_told(old: Path, tmp_path: Path) -> None:
    new = vmlinux(tmp_path / "new", {"entry": ENTRY, "work": WORK, "other": LEAF})
    result, others = fates(old, new, tmp_path)
    assert others == {"leaf": "gone"}
    assert result.shares["gone"] == pytest.approx(0.2) and result.stale[0].size_now is None


def test_without_the_vmlinux_that_ran_only_names_and_sizes_are_compared(old: Path, tmp_path: Path) -> None:
    new = vmlinux(tmp_path / "new", {"entry": ENTRY, "work": WORK.replace("5", "6"), "leaf": LEAF + "; nop"})
    result, others = fates(old, new, tmp_path, at_hand=False)
    assert result.compared == "sizes" and others == {"leaf": "size"}


def test_another_vmlinux_is_not_taken_for_the_one_that_ran(old: Path, tmp_path: Path) -> None:
    state = State(tmp_path / "state")
    record = record_of(old, tmp_path / "record", state)
    new = vmlinux(tmp_path / "new", {"entry": ENTRY, "work": LEAF})
    with pytest.raises(OtherVmlinux):
        stale(record, old, new, state)


@pytest.mark.parametrize("kept", [40, 64, 100, 200])
def test_a_vmlinux_that_is_cut_is_never_more_than_a_clear_error(old: Path, tmp_path: Path, kept: int) -> None:
    (tmp_path / "cut").write_bytes(old.read_bytes()[:kept])
    with pytest.raises((NotAVmlinux, process.ToolFailed)):
        Code(tmp_path / "cut")


def test_a_profile_of_clang_is_held_against_names(old: Path, tmp_path: Path) -> None:
    try:
        find_tool("llvm-profdata")
    except LlvmToolMissing:
        pytest.skip("no llvm-profdata here")
    (tmp_path / "profile").write_text("entry:60:1\n 1: 1\nnowhere:40:1\n 1: 1\n")
    result = stale(tmp_path / "profile", old, None, State(tmp_path / "state"))
    assert (result.kind, result.compared) == ("clang", "names")
    assert {stale.function: stale.share for stale in result.stale} == {"nowhere": pytest.approx(0.4)}


def test_tables_and_json_say_the_same(old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = State(tmp_path / "state")
    record = record_of(old, tmp_path / "record", state)
    new = vmlinux(tmp_path / "new", {"entry": ENTRY, "work": WORK.replace("5", "6")})
    words = ["profile", "stale", str(record), str(new), "--recorded", str(old), "--state", str(tmp_path / "state")]
    assert main(words) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        f"compared with vmlinux {file_digest(new, state)[:12]}, by name and code",
        "functions  of the instructions",
        "        1               50.00%  the same",
        "        1               30.00%  changed code of the same size",
        "        1               20.00%  no such function",
        "",
        "of the instructions  bytes  now  function",
        "             30.00%      6    6  work: changed code of the same size",
        "             20.00%      3       leaf: no such function",
    ]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["functions"] == {"same": 1, "code": 1, "size": 0, "gone": 1}


def test_a_record_of_a_kernel_that_is_nowhere_is_compared_by_sizes(old: Path, tmp_path: Path) -> None:
    result = stale(write(tmp_path / "r"), old, None, State(tmp_path / "state"))
    assert result.compared == "sizes" and result.functions["gone"] == 4
