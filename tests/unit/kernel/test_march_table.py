"""data/march.toml: sound in itself, and in agreement with every compiler that is here."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from kdyno.base.cpu_families import GENERATIONS, March, compiler_names, families, levels, table
from kdyno.base.errors import UserError
from kdyno.base.state import State
from kdyno.kernel import toolchain
from kdyno.kernel.march.compiler import MACROS, check_cpu, known_cpus, macros, refusal, used_in_kernel
from kdyno.kernel.toolchain import Toolchain

ROWS = list(table().values())
COMPILERS = toolchain.installed()
ANSWERS = Path(__file__).parents[2] / "data" / "compilers.tsv"
SURVEY = [
    (family, version, set(names.split()))
    for line in ANSWERS.read_text().splitlines()[1:]
    for family, version, names in [line.split("\t")]
]


@cache
def installed(name: str) -> Toolchain:
    try:
        return toolchain.find(name, State(Path(mkdtemp())))
    except UserError as error:
        pytest.skip(str(error))


def promised(row: March, family: str, version: str) -> bool:
    """Return whether the table promises that this release takes the name."""
    first, last = getattr(row, family), getattr(row, f"{family}_until")
    return (
        first is not None
        and numbers(version) >= numbers(first)
        and (last is None or numbers(version)[0] <= numbers(last)[0])
    )


def excluded(row: March, family: str, version: str) -> bool:
    """Return whether the table says that it does not take it; the last releases of older branches may."""
    first, last = getattr(row, family), getattr(row, f"{family}_until")
    return first is None or (last is not None and numbers(version)[0] > numbers(last)[0])


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def test_the_levels_come_first_and_in_order() -> None:
    assert [row.name for row in ROWS[:4]] == ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"]
    assert [row.level for row in levels()] == [1, 2, 3, 4]
    assert all(row.flags for row in levels()) and not any(row.flags for row in families())


def test_names_aliases_and_symbols_are_unique() -> None:
    names = [name for row in ROWS for name in (row.name, *row.aliases)]
    assert len(names) == len(set(names))
    assert len({row.symbol for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", families(), ids=lambda row: row.name)
def test_a_family_has_all_that_what_came_before_it_has(row: March) -> None:
    assert set(row.features) <= set(MACROS.values()), "only what compilers use in kernel code"
    assert set(levels()[row.level - 1].features) <= set(row.features)
    if row.after is not None:
        before = table()[row.after]
        assert set(before.features) <= set(row.features) and before.level <= row.level
        assert ROWS.index(before) < ROWS.index(row), "older ones first"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_is_known_to_a_compiler_and_fits_a_menu(row: March) -> None:
    assert row.gcc or row.clang
    assert 0 < len(row.title) <= 60 and row.title.isascii()


def test_no_two_families_claim_a_cpu_unless_a_flag_tells_them_apart() -> None:
    claimed: dict[tuple[str, int], list[March]] = {}
    for row in families():
        for place in row.cpuid:
            vendor, family, models = place.split(" ")
            first, _, last = models.partition("-")
            for model in range(int(first), int(last or first) + 1):
                claimed.setdefault((f"{vendor} {family}", model), []).append(row)
    shared = [rows for rows in claimed.values() if len(rows) > 1]
    for rows in shared:
        assert len({row.told_by for row in rows}) == len(rows), [row.name for row in rows]


@pytest.mark.parametrize(
    ("family", "version", "names"), SURVEY, ids=[f"{family}-{version}" for family, version, _ in SURVEY]
)
def test_the_table_agrees_with_the_answers_of_66_builds_of_compilers(
    family: str, version: str, names: set[str]
) -> None:
    for row in ROWS:
        if promised(row, family, version):
            assert row.name in names, row.name
        elif excluded(row, family, version):
            assert row.name not in names, row.name
    known = {name for row in ROWS for name in (row.name, *row.aliases)}
    assert names <= known, "names without a row"


@pytest.mark.parametrize("name", COMPILERS)
def test_the_table_agrees_with_the_compilers_that_are_here(name: str) -> None:
    compiler = installed(name)
    identity = compiler.identity
    for row in ROWS:
        known = refusal("march", row.name, compiler) is None
        if promised(row, identity.family, identity.version):
            assert known, f"{row.name} with {name} {identity.version}"
            assert row.is_level or refusal("mtune", row.name, compiler) is None, row.name
            assert used_in_kernel(row.name, compiler) == tuple(row.features), (
                f"{row.name} with {name} {identity.version}"
            )
        elif excluded(row, identity.family, identity.version):
            assert not known, f"{row.name} with {name} {identity.version}"
        for alias in row.aliases if known else ():
            if refusal("march", alias, compiler) is None:
                assert macros(alias, compiler) == macros(row.name, compiler), f"{alias} is not {row.name}"


@pytest.mark.parametrize("name", COMPILERS)
def test_no_64_bit_family_that_a_compiler_offers_is_missing(name: str) -> None:
    compiler = installed(name)
    offered = set(known_cpus(refusal("march", "no-such-cpu", compiler) or ""))
    assert len(offered) > 40
    known = {name for row in ROWS for name in (row.name, *row.aliases)} | {"native"}
    assert sorted(name for name in offered - known if refusal("march", name, compiler) is None) == []


TELLING = {
    "sha_ni": "__SHA__",
    "avx_vnni": "__AVXVNNI__",
    "avx512_vnni": "__AVX512VNNI__",
    "avx512_bf16": "__AVX512BF16__",
    "avx512_fp16": "__AVX512FP16__",
}
"""Macros that aren't called like their flag."""


@pytest.mark.parametrize("name", COMPILERS)
def test_a_compiler_takes_no_family_for_a_newer_generation_than_the_table_does(name: str) -> None:
    compiler = installed(name)
    known = [row for row in families() if row.has is not None and refusal("march", row.name, compiler) is None]
    assert known
    for row in known:
        defined = macros(row.name, compiler, ("-m64",))
        shown = {flag for flag in GENERATIONS if TELLING.get(flag, f"__{flag.upper()}__") in defined}
        silicon_only = {"avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16"} if row.name == "alderlake" else set()
        assert set(row.has or ()) == shown | silicon_only, row.name


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("zen4", ["znver4"]),
        ("MZEN4", ["znver4"]),
        ("CONFIG_MZEN", ["znver1"]),
        ("zen3+", ["znver3"]),
        ("Zen_5", ["znver5"]),
        ("MSKYLAKEX", ["skylake-avx512"]),
        ("skylakex", ["skylake-avx512"]),
        ("GENERIC_CPU", ["x86-64"]),
        ("GENERIC_CPU3", ["x86-64-v3"]),
        ("generic_v3", ["x86-64-v3"]),
        ("x86-64_v2", ["x86-64-v2"]),
        ("x86_64-v4", ["x86-64-v4"]),
        ("MK8SSE3", ["k8-sse3"]),
        ("MK10", ["amdfam10"]),
        ("MPSC", ["nocona"]),
        ("MMETEORLAKE", ["meteorlake"]),
        ("MGOLDMONTPLUS", ["goldmont-plus"]),
        ("MICELAKE_SERVER", ["icelake-server"]),
        ("icelake", ["icelake-client", "icelake-server"]),
        ("EPYC-Milan", ["znver3"]),
        ("Skylake-Server", ["skylake-avx512"]),
        ("EMR", ["emeraldrapids"]),
        ("icx", ["icelake-server"]),
        ("MNATIVE_INTEL", ["native"]),
        ("native_amd", ["native"]),
        ("m", []),
        ("nonsense", []),
    ],
)
def test_what_people_write_is_told_as_compilers_call_it(written: str, names: list[str]) -> None:
    assert compiler_names(written) == names


def test_no_compiler_takes_a_spelling_of_ours_for_its_own_name() -> None:
    taken = {name for _, _, names in SURVEY for name in names}
    assert not taken & {spelling for row in ROWS for spelling in row.spellings}


def test_a_misspelled_cpu_is_refused_with_its_name_and_a_compiler_that_is_here() -> None:
    compiler = installed("gcc")
    with pytest.raises(UserError) as refused:
        check_cpu("march", "MSKYLAKEX", compiler)
    assert '"skylake-avx512"' in refused.value.advice
