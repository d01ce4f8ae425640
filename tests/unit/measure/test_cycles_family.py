"""CPU families: kdyno's own, a user's, and what is said of those that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdyno.base.cpu import Cpu
from kdyno.base.cpu_families import table
from kdyno.measure.cycles.events import EVENTS
from kdyno.measure.cycles.family import BadFamily, FamilyFile, UnknownFamily, families, load_family
from kdyno.measure.cycles.gains import gains_note
from kdyno.measure.cycles.host import UnknownCpu, find_family


@pytest.mark.parametrize("name", families())
def test_every_family_loads_and_is_sane(name: str) -> None:
    family = load_family(name)
    assert family.name == name and family.path.stem == name
    assert family.l1d.size < family.l2.size < family.llc.size
    assert 0 < family.weights["slots"] <= 1 and set(family.model.weights) <= set(EVENTS)
    assert family.model_name == f"{name}-{family.model.version}" and family.model_name in family.caption()


@pytest.mark.parametrize("name", families())
def test_a_guest_of_every_family_has_the_vendor_and_the_isolation_of_its_cpus(name: str) -> None:
    cpu = load_family(name).cpu
    assert (cpu.vendor == "AuthenticAMD") == name.startswith("znver") == cpu.qemu.startswith("EPYC")
    # Linux isolates page tables for all of Intel's that don't deny the need, which under TCG none can.
    isolates = cpu.vendor == "GenuineIntel" and "pti=off" not in cpu.cmdline
    affected = ("generic", "haswell", "broadwell", "skylake", "skylake-avx512")
    assert cpu.pti == isolates == (name in affected)
    assert "-pcid" in cpu.qemu and "erms" not in cpu.qemu.replace("-erms", "")


def test_a_family_is_called_what_compilers_call_it() -> None:
    assert [name for name in families() if name not in load_family(name).march] == ["generic"]


def test_the_families_are_those_of_the_documents() -> None:
    documented = (Path(__file__).parents[3] / "docs" / "cycle-model.md").read_text()
    assert [name for name in families() if f"`{name}`" not in documented] == []


def test_no_cpu_is_of_two_families_and_each_is_in_the_table() -> None:
    names = [name for family in families() for name in load_family(family).march]
    assert len(names) == len(set(names)) > 5 and set(names) <= set(table())


def test_a_calibrated_family_says_how_good_it_is_and_a_default_one_that_it_is_not(tmp_path: Path) -> None:
    error = "programs = 120\nspearman = 0.87\nmedian_error = 0.17"
    calibrated = load_family(edited(tmp_path, 'basis = "default"', f'basis = "calibrated"\n{error}'))
    assert calibrated.caption() == "modelled, generic-2: median error 17 % on 120 held-out programs, Spearman 0.87"
    assert load_family("haswell").caption() == "modelled, haswell-2: default weights, not calibrated"


GAIN = """
[[model.silicon]]
recipe = "AutoFDO, trained on the paths"
cpu = "AMD EPYC, Zen 4"
paths = 79
silicon = 1.16
model = 1.27
held_out_correlation = 0.71
held_out_median_error = 0.08
wrong_signs = 1
clear = 61

[[model.silicon]]
recipe = "clang -O2"
cpu = "AMD EPYC, Zen 4"
paths = 1
silicon = 1.03
model = 0.98
wrong_signs = 0
clear = 1
"""


def with_rows(directory: Path, rows: str) -> Path:
    path = directory / "mine.toml"
    path.write_text(load_family("haswell").path.read_text() + rows)
    return path


def test_a_family_says_where_its_gains_were_furthest_from_a_processor(tmp_path: Path) -> None:
    family = load_family(f"file:{with_rows(tmp_path, GAIN)}")
    assert family.gains_note() == (
        "the model said +27.0 % where AMD EPYC, Zen 4 said +16.0 % (AutoFDO, trained on the paths; 79 paths); it was "
        "nearer in 1 other recipe"
    )
    only = family.model.silicon[1:]
    assert gains_note(only) == "the model said -2.0 % where AMD EPYC, Zen 4 said +3.0 % (clang -O2; 1 path)"


def test_a_family_whose_gains_were_not_compared_says_so() -> None:
    assert load_family("haswell").gains_note() == (
        "no processor of this family was asked what its gains are worth: `kdyno validate --paths` asks this one"
    )


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("silicon = 1.16", "silicon = 0.0"), ("clear = 61", "clear = 80"), ("wrong_signs = 1", "x = 1")],
)
def test_impossible_gains_are_refused(tmp_path: Path, right: str, wrong: str) -> None:
    with pytest.raises(BadFamily, match="silicon"):
        load_family(f"file:{with_rows(tmp_path, GAIN.replace(right, wrong, 1))}")


def test_a_name_that_is_almost_right_gets_the_right_one() -> None:
    with pytest.raises(UnknownFamily) as error:
        load_family("znver-4")
    assert "did you mean znver4?" in error.value.advice


def test_user_code_weighs_what_kernel_code_does() -> None:
    assert load_family("znver4").weights["user_instructions"] == load_family("znver4").weights["slots"]


def edited(directory: Path, old: str, new: str) -> str:
    text = load_family("generic").path.read_text()
    assert old in text
    path = directory / "mine.toml"
    path.write_text(text.replace(old, new, 1))
    return f"file:{path}"


def test_a_file_is_a_family_too(tmp_path: Path) -> None:
    family = load_family(edited(tmp_path, 'name = "generic"', 'name = "mine"'))
    assert family.model_name == "mine-2" and family.path == tmp_path / "mine.toml"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("width = 4", "width = 0", "`width`: it must be"),
        ("width = 4\n", "", "`width` is missing"),
        ("width = 4", "widht = 4", "unknown key `widht`; did you mean `width`?"),
        ("streams = 16", "steams = 16", "unknown key `prefetcher.steams`; did you mean `streams`?"),
        ("[l2]", "[l2_itlb]\nentry = 8\nways = 8\n[l2]", "unknown key `l2_itlb.entry`; did you mean `entries`?"),
        ("size = 524288", "size = 524289", "`l2`: 524289 bytes are not a whole number of sets of 8 lines"),
        ("llc = 45", "llc = 4", "`latency`: l1, l2, llc and memory must not get shorter"),
        ("stall_llc = 1.0", "stall_lcc = 1.0", "`model.weights`: unknown event stall_lcc; did you mean stall_llc?"),
        ("stall_llc = 1.0", "stall_llc = -1.0", "`model.weights.stall_llc`: it must be at least"),
        ('basis = "default"', 'basis = "calibrated"', "`model`: calibrated weights need programs, spearman and"),
        ('kind = "tage"', "kind = tage", "not TOML"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_the_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(BadFamily) as error:
        load_family(edited(tmp_path, old, new))
    assert str(tmp_path / "mine.toml") in str(error.value) and message in str(error.value)


def test_a_file_that_is_not_there_is_said_to_be() -> None:
    with pytest.raises(BadFamily, match="can't read it: No such file"):
        load_family("file:/nowhere/znver4.toml")


def cpu(vendor: str, family: int, model: int, *flags: str) -> Cpu:
    return Cpu(vendor=vendor, family=family, model=model, stepping=1, name="X", flags=frozenset(flags))


@pytest.mark.parametrize(
    ("vendor", "family", "model", "name"),
    [
        ("AuthenticAMD", 25, 17, "znver4"),
        ("AuthenticAMD", 25, 33, "znver3"),
        ("AuthenticAMD", 23, 49, "znver2"),
        ("GenuineIntel", 6, 60, "haswell"),
        ("GenuineIntel", 6, 190, "gracemont"),
        ("GenuineIntel", 6, 79, "broadwell"),
        ("GenuineIntel", 6, 207, "sapphirerapids"),
        ("GenuineIntel", 6, 173, "graniterapids"),
    ],
)
def test_a_host_is_known_by_its_cpu(vendor: str, family: int, model: int, name: str) -> None:
    assert find_family(cpu(vendor, family, model)).name == name


@pytest.mark.parametrize("flags", [(), ("avx512_vnni",)])
def test_skylake_and_cascade_lake_servers_are_one_family(flags: tuple[str, ...]) -> None:
    assert find_family(cpu("GenuineIntel", 6, 85, *flags)).name == "skylake-avx512"


NO_HARDWARE = {"name", "title", "march", "source", "sources", "model", "cpu"}
GEOMETRY = sorted(set(FamilyFile.model_fields) - NO_HARDWARE)


@pytest.mark.parametrize("name", families())
def test_every_figure_has_its_source_or_says_that_none_was_found(name: str) -> None:
    family = load_family(name)
    described = [key for key in GEOMETRY if getattr(family, key) is not None]
    assert sorted(family.sources) == described


def test_amd_has_a_second_tlb_of_instructions_and_intel_has_not() -> None:
    for name in families():
        family = load_family(name)
        assert (family.l2_itlb is not None) == (family.cpu.vendor == "AuthenticAMD"), name


@pytest.mark.parametrize(("model", "message"), [(7, "GenuineIntel 6 7"), (28, r"GenuineIntel 6 28, .* \(bonnell\)")])
def test_a_cpu_without_a_cycle_model_must_be_given_one(model: int, message: str) -> None:
    with pytest.raises(UnknownCpu, match=message) as error:
        find_family(cpu("GenuineIntel", 6, model))
    assert "--family NAME" in error.value.advice
