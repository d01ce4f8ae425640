"""The families of routines: definitions, choices of the kernel, sizes in order, and tables that are right."""

from __future__ import annotations

import re

import pytest

from kdyno.kernel.routines.families import DATA, UnknownRoutine, find_families, routine_families
from kdyno.understand.lab.build import routine_sets
from kdyno.understand.lab.crc32c_tables import LONG_PART, SHORT_PART, move_over_zeros, tables_header

FAMILIES = routine_families()


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_has_its_definition_and_the_files_of_its_rewrites(name: str) -> None:
    family = FAMILIES[name]
    assert f'"{name}"' in family.harness.read_text(encoding="utf-8")
    for candidate in family.candidate:
        if candidate.origin == "kdyno":
            text = (DATA / "rewrites" / candidate.file).read_text(encoding="utf-8")
            assert re.search(rf"\b{candidate.entry}\b", text)
        if candidate.wrapper:
            assert candidate.entry in (DATA / "wrappers" / candidate.wrapper).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_has_sizes_in_order_and_classes_that_do_not_overlap(name: str) -> None:
    family = FAMILIES[name]
    assert list(family.sizes) == sorted(set(family.sizes))
    assert len(set(family.offsets)) == len(family.offsets)
    ends = [end for low_high in family.classes for end in low_high]
    assert ends == sorted(ends)
    assert len({candidate.name for candidate in family.candidate}) == len(family.candidate)


def test_a_kernel_takes_what_the_flags_of_a_processor_allow() -> None:
    memcpy, clear_page = FAMILIES["memcpy"], FAMILIES["clear_page"]
    assert memcpy.kernel_choice(frozenset()).name == "orig"
    assert memcpy.kernel_choice(frozenset({"fsrm", "erms"})).name == "rep-movsb"
    assert clear_page.kernel_choice(frozenset({"rep_good"})).name == "rep-stosq"
    assert clear_page.kernel_choice(frozenset({"rep_good", "erms"})).name == "rep-stosb"


def test_families_are_found_by_name_and_others_are_refused() -> None:
    assert [family.name for family in find_families(["strlen", "memcpy"])] == ["strlen", "memcpy"]
    assert find_families([]) == list(FAMILIES.values())
    with pytest.raises(UnknownRoutine, match="'strdup' is not a family of routines"):
        find_families(["strdup"])


def test_option_sets_are_of_the_newest_installed_compilers() -> None:
    sets = routine_sets(["gcc", "gcc-12", "gcc-14", "clang-19"])
    assert (sets["gcc"].compiler, sets["clang"].compiler) == ("gcc-14", "clang-19")
    assert sets["gcc-O3"].words == ("-O3",)


def crc32c(text: bytes) -> int:
    """The sum by its definition, without inversions."""
    value = 0
    for byte in text:
        value = move_over_zeros(value ^ byte, 1)
    return value


def test_a_sum_is_moved_over_zeros_by_the_tables() -> None:
    header = tables_header()
    assert f"#define LONG_PART {LONG_PART}UL" in header
    table = header.partition("long_part[4][256] = ")[2].partition(";")[0]
    rows = [[int(value.rstrip("u"), 16) for value in row.split(", ")] for row in re.findall(r"\{([^{}]+)\}", table)]
    assert [len(row) for row in rows] == [256] * 4
    start = crc32c(b"kdyno")
    moved = 0
    for place in range(4):
        moved ^= rows[place][start >> 8 * place & 0xFF]
    assert moved == move_over_zeros(start, LONG_PART) == crc32c(b"kdyno" + bytes(LONG_PART))
    assert move_over_zeros(start, SHORT_PART) == crc32c(b"kdyno" + bytes(SHORT_PART))


def test_the_definition_of_crc32c_is_that_of_the_standard() -> None:
    """RFC 3720, B.4: 32 bytes of zeros have the sum aa 36 91 8a."""
    value = 0xFFFFFFFF
    for _ in range(32):
        value = move_over_zeros(value, 1)
    assert value ^ 0xFFFFFFFF == 0x8A9136AA
