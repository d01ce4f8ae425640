"""The table of micro-programs, and the assembly that is made of it."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

import pytest
from pydantic import ValidationError

from kdyno.measure.cycles.family import families, load_family
from kdyno.measure.cycles.micro_programs import (
    KnownCycles,
    MicroProgram,
    NoKnownCycles,
    assembly,
    instructions,
    micro_programs,
    programs_known_on,
)

ROW = {"name": "imul-chain", "group": "latency", "body": ".rept 8; imul %rbx,%rax; .endr"}
KNOWN = {"znver4": {"cycles": 24, "source": "uops.info"}}
PROGRAM = MicroProgram.model_validate({**ROW, "setup": "mov $3,%ebx\nnop", "known": KNOWN})


def test_the_names_of_all_programs_differ() -> None:
    names = [program.name for program in micro_programs()]
    assert len(set(names)) == len(names) > 200


def test_no_two_programs_are_the_same_loop() -> None:
    texts = {(tuple(instructions(one.setup)), tuple(instructions(one.body))): one.name for one in micro_programs()}
    assert len(texts) == len(micro_programs())


def test_the_programs_of_a_group_are_together() -> None:
    groups = [group for group, _ in groupby(micro_programs(), key=lambda program: program.group)]
    assert len(set(groups)) == len(groups) > 10


def test_cycles_are_known_for_families_that_exist() -> None:
    assert {name for program in micro_programs() for name in program.known} <= set(families())


def test_a_source_is_public_or_names_the_processor_that_was_measured() -> None:
    sources = {known.source for program in micro_programs() for known in program.known.values()}
    public = ("LLVM's X86ScheduleZnver4.td", "InstLatX64, ", "measured: EPYC (Zen 4)")
    assert [source for source in sources if not source.startswith(public)] == []


def test_labels_are_digits_that_the_loop_does_not_use() -> None:
    texts = [line for one in micro_programs() for line in (*instructions(one.setup), *instructions(one.body))]
    labels = {label for text in texts if (label := text.partition(":")[0]) != text and "%" not in label}
    assert labels and all(re.fullmatch(r"[2-9]", label) for label in labels)


@pytest.mark.parametrize("key", ["name", "group", "body", "known"])
def test_a_row_without_a_key_is_refused(key: str) -> None:
    row = {**ROW, "known": KNOWN}
    del row[key]
    with pytest.raises(ValidationError, match=key):
        MicroProgram.model_validate(row)


def test_a_known_error_without_a_reason_is_refused() -> None:
    with pytest.raises(ValidationError, match="known_error"):
        KnownCycles(cycles=1, source="uops.info", known_error="")


@pytest.mark.parametrize(
    ("known", "modelled", "is_met"),
    [(1, 1.29, True), (1, 0.71, True), (1, 1.31, False), (100, 114, True), (100, 86, True), (100, 116, False)],
)
def test_the_tolerance_is_15_percent_or_0_3_cycles(known: float, modelled: float, is_met: bool) -> None:
    assert KnownCycles(cycles=known, source="uops.info").is_met(modelled) == is_met


def test_a_loop_repeats_its_body_as_often_as_it_has_iterations_and_keeps_the_registers_of_its_caller() -> None:
    lines = assembly([PROGRAM]).split("\n")
    start = lines.index("mov $3,%ebx")
    assert lines[start : start + 10] == [
        "mov $3,%ebx",
        "nop",
        "mov $1000, %ecx",
        ".p2align 6",
        ".Lloop_0:",
        ".rept 8",
        "imul %rbx,%rax",
        ".endr",
        "dec %ecx",
        "jnz .Lloop_0",
    ]
    pushed = [line.split()[1] for line in lines if line.startswith("push ")]
    popped = [line.split()[1] for line in lines if line.startswith("pop ")]
    assert pushed == popped[::-1] and set(pushed) == {"%rbx", "%rbp", "%r12", "%r13", "%r14", "%r15"}


def test_the_driver_s_table_has_a_row_for_each_program_and_one_that_ends_it() -> None:
    text = assembly([PROGRAM, PROGRAM.model_copy(update={"name": "other"})])
    rows = text.partition("\nloads:\n")[2].split("\n")[:3]
    assert rows == [
        ".quad name_0, clear_buffers, program_0, 0",
        ".quad name_1, clear_buffers, program_1, 0",
        ".quad 0, 0, 0, 0",
    ]
    assert '"imul-chain"' in text and '"other"' in text


def test_a_family_without_known_cycles_is_refused_with_those_that_have_some() -> None:
    with pytest.raises(NoKnownCycles, match="haswell") as caught:
        programs_known_on(load_family("haswell"))
    assert "znver4" in caught.value.advice


def test_a_family_that_was_made_from_another_has_its_known_cycles(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(load_family("znver4").path.read_text().replace('name = "znver4"', 'name = "mine"', 1))
    family = load_family(f"file:{path}")
    assert family.name == "mine"
    assert programs_known_on(family) == programs_known_on(load_family("znver4"))
