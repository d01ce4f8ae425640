"""A CPU as /proc/cpuinfo shows it: its family, its ISA level, and what to compile for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdyno.base.cpu import Cpu, NoCpuinfo, SeveralCpus, family_of, identify, level_of, parse_cpuinfo, read_cpu
from kdyno.base.cpu_families import find, levels, table
from kdyno.kernel.march import choose as chooser
from kdyno.kernel.toolchain import Toolchain, ToolchainIdentity

V3 = frozenset(flag for row in levels()[:3] for flag in row.flags)
V4 = V3 | frozenset(levels()[3].flags)


def cpu(vendor: str, family: int, model: int, flags: frozenset[str] = V3) -> Cpu:
    return Cpu(vendor=vendor, family=family, model=model, stepping=1, name="X", flags=flags)


def compiler(monkeypatch: pytest.MonkeyPatch, *known: str) -> Toolchain:
    """A compiler that knows these names, and uses in kernel code what the table says."""
    monkeypatch.setattr(chooser, "refusal", lambda _flag, name, _toolchain: None if name in known else "unknown")
    monkeypatch.setattr(chooser, "used_in_kernel", lambda name, _toolchain: table()[name].features)
    identity = ToolchainIdentity(name="gcc", family="gcc", version="12.2.0", banner="", digest="")
    return Toolchain(identity=identity, command="gcc", make=())


@pytest.mark.parametrize(
    ("vendor", "family", "model", "name"),
    [
        ("AuthenticAMD", 25, 17, "znver4"),
        ("AuthenticAMD", 25, 33, "znver3"),
        ("AuthenticAMD", 26, 2, "znver5"),
        ("AuthenticAMD", 23, 49, "znver2"),
        ("AuthenticAMD", 16, 4, "amdfam10"),
        ("GenuineIntel", 6, 190, "gracemont"),
        ("HygonGenuine", 24, 4, "c86-4g-m4"),
        ("GenuineIntel", 6, 60, "haswell"),
        ("GenuineIntel", 6, 143, "sapphirerapids"),
        ("GenuineIntel", 6, 158, "skylake"),
        ("GenuineIntel", 6, 28, "bonnell"),
    ],
)
def test_a_cpu_is_of_the_family_that_its_numbers_name(vendor: str, family: int, model: int, name: str) -> None:
    cpu_family = family_of(cpu(vendor, family, model, V3 - {"avx", "avx2"}))
    assert cpu_family is not None and cpu_family.name == name


def test_families_with_the_same_model_are_told_apart_by_a_flag() -> None:
    names = []
    for more in ([], ["avx512_vnni"], ["avx512_vnni", "avx512_bf16"]):
        cpu_family = family_of(cpu("GenuineIntel", 6, 85, V4 | frozenset(more)))
        names.append(cpu_family and cpu_family.name)
    assert names == ["skylake-avx512", "cascadelake", "cooperlake"]


@pytest.mark.parametrize(
    ("vendor", "model", "shown", "name"),
    [
        ("GenuineIntel", (6, 167), "avx512f avx512_vnni avx512_fp16 amx_tile", "sapphirerapids"),
        ("GenuineIntel", (6, 167), "avx512f avx512_vnni vaes gfni sha_ni", "rocketlake"),
        ("GenuineIntel", (6, 94), "avx512f avx512_vnni", "cascadelake"),
        ("GenuineIntel", (15, 6), "", "haswell"),
        ("GenuineIntel", (6, 28), "gfni", "icelake-client"),
        ("GenuineIntel", (6, 151), "avx512f avx512_fp16", "alderlake"),
        ("AuthenticAMD", (15, 107), "sha_ni", "znver1"),
        ("AuthenticAMD", (23, 49), "avx512f avx512_bf16", "znver4"),
        ("AuthenticAMD", (23, 49), "amx_tile", None),
        ("HygonGenuine", (24, 7), "avx512f amx_tile", "c86-4g-m7"),
    ],
)
def test_what_a_cpu_shows_wins_over_the_model_that_it_is_said_to_be(
    vendor: str, model: tuple[int, int], shown: str, name: str | None
) -> None:
    identity = identify(cpu(vendor, *model, V3 | frozenset(shown.split()) | {"hypervisor"}))
    assert (identity.family and identity.family.name) == name


def test_features_that_contradict_the_model_are_named() -> None:
    why = identify(cpu("GenuineIntel", 6, 167, V4 | {"amx_tile", "avx512_fp16"})).why
    assert why.startswith("Sapphire Rapids")
    assert why.endswith("CPUID's model 167 is rocketlake, which lacks avx512_fp16, amx_tile")


@pytest.mark.parametrize("name", ["Common KVM processor", "QEMU Virtual CPU version 2.5+", "QEMU TCG CPU version 2.5+"])
def test_a_cpu_that_only_hypervisors_have_is_of_no_family(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up = cpu("GenuineIntel", 15, 6, V3 - {"avx", "avx2"} | {"hypervisor"}).model_copy(update={"name": name})
    assert identify(made_up).family is None
    assert chooser.choose(made_up, compiler(monkeypatch, "nocona", "x86-64-v2", "x86-64")).march == "x86-64-v2"


def test_numbers_that_no_row_has_are_of_no_family() -> None:
    assert family_of(cpu("GenuineIntel", 6, 999)) is None
    assert family_of(cpu("Nobody", 25, 17)) is None


@pytest.mark.parametrize(
    ("flags", "level"), [(frozenset(), 0), (V3, 3), (V4, 4), (V3 - {"bmi2"}, 2), (V4 - {"pni"}, 1)]
)
def test_the_isa_level_is_the_highest_whose_flags_are_all_there(flags: frozenset[str], level: int) -> None:
    assert level_of(flags) == level


ONE = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: {}\nmodel name\t: X: Y\nflags\t\t: {}\n"


def test_a_cpu_has_the_features_that_all_its_processors_have() -> None:
    read = parse_cpuinfo("\r\n\r\n".join(ONE.format(60, flags) for flags in ("a b", "a c b", "b a d")))
    assert (read.vendor, read.family, read.model, read.stepping, read.name) == ("GenuineIntel", 6, 60, None, "X: Y")
    assert read.flags == {"a", "b"}


def test_processors_of_two_models_are_not_one_cpu(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(ONE.format(60, "a") + "\n" + ONE.format(61, "a").replace("X: Y", "Z"))
    with pytest.raises(SeveralCpus, match="cpuinfo describes different CPUs: X: Y, and Z"):
        read_cpu(path)


def test_the_output_of_lscpu_describes_a_cpu() -> None:
    text = """Architecture:             x86_64
CPU(s):                   16
Vendor ID:                AuthenticAMD
  Model name:             AMD Ryzen 7 7840HS
    CPU family:           25
    Model:                116
    Stepping:             1
    Flags:                fpu lm

Caches (sum of all):
  L1d:                    256 KiB (8 instances)
"""
    read = parse_cpuinfo(text)
    assert (read.vendor, read.family, read.model, read.stepping) == ("AuthenticAMD", 25, 116, 1)
    assert read.flags == {"fpu", "lm"}


LSCPU = {
    "de": "Anbieterkennung: Modellname: BIOS-Prozessorfamilie: Prozessorfamilie: Modell: Markierungen:",
    "fr": "Identifiant_constructeur : Nom_de_modèle : Famille_BIOS : Famille_de_processeur : Modèle : Drapaux :",
    "es": "ID_de_fabricante: Nombre_del_modelo: Familia_BIOS: Familia_de_CPU: Modelo: Indicadores:",
    "zh": "厂商_ID： 型号名称： BIOS_系列： CPU_系列： 型号： 标记：",
}
"""Fields of lscpu 2.38 in other languages, in its order."""


@pytest.mark.parametrize("language", LSCPU)
def test_the_output_of_lscpu_in_another_language_describes_a_cpu(language: str) -> None:
    keys = LSCPU[language].replace(" :", "_:").split()
    values = ("GenuineIntel", "Intel(R) Core(TM) i5-8250U", "205", "6", "142", "fpu vme msr lm")
    fields = [f"{key.replace('_', ' ')}   {value}" for key, value in zip(keys, values, strict=True)]
    read = parse_cpuinfo("\n".join(["CPU(s):   8", *fields[:5], "BogoMIPS:   3600.00", fields[5]]))
    assert (read.vendor, read.family, read.model, read.name) == ("GenuineIntel", 6, 142, "Intel(R) Core(TM) i5-8250U")
    assert read.flags == {"fpu", "vme", "msr", "lm"}


def test_before_lscpu_2_37_the_name_of_the_model_came_after_its_number() -> None:
    text = (
        "Anbieterkennung:  AuthenticAMD\nProzessorfamilie: 23\nModell:  1\nModellname:  AMD EPYC\nMarkierungen: fpu msr"
    )
    read = parse_cpuinfo(text)
    assert (read.vendor, read.family, read.model, read.name) == ("AuthenticAMD", 23, 1, "AMD EPYC")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no `vendor_id`, so it does not describe an x86 CPU"),
        ("processor\t: 0\nBogoMIPS\t: 50\nFeatures\t: fp asimd\n", "no `vendor_id`"),
        ("vendor_id : X\ncpu family : six\nmodel : 1\nflags : fpu\n", "it has a malformed number"),
    ],
)
def test_what_is_no_x86_cpuinfo_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(text)
    with pytest.raises(NoCpuinfo, match=message):
        read_cpu(path)
    with pytest.raises(NoCpuinfo, match="No such file"):
        read_cpu(tmp_path / "nowhere")


def test_auto_is_the_family_if_the_compiler_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = chooser.choose(cpu("AuthenticAMD", 25, 17, V4), compiler(monkeypatch, "znver4", "znver3", "x86-64-v3"))
    assert made.march == "znver4"


def test_auto_is_an_older_family_if_the_compiler_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    made = chooser.choose(cpu("AuthenticAMD", 26, 2, V4), compiler(monkeypatch, "znver3", "x86-64-v3"))
    assert made.march == "znver3"
    assert made.why.endswith("gcc 12.2.0 doesn't know znver5; gcc 12.2.0 doesn't know znver4")


def test_auto_is_a_level_if_the_hypervisor_hides_what_the_families_have(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = V4 - {"bmi2"} | {"hypervisor"}
    known = compiler(monkeypatch, "znver4", "znver3", "znver2", "znver1", "x86-64-v2", "x86-64-v3")
    made = chooser.choose(cpu("AuthenticAMD", 25, 17, flags), known)
    assert made.march == "x86-64-v2"
    assert "the hypervisor hides bmi2 of znver4" in made.why


def test_auto_does_not_mind_hidden_simd_because_kernel_code_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = V4 - {"avx", "avx2", "fma", "f16c", *levels()[3].flags}
    assert chooser.choose(cpu("AuthenticAMD", 25, 17, flags), compiler(monkeypatch, "znver4")).march == "znver4"


def test_auto_for_a_cpu_that_nobody_knows_is_its_level(monkeypatch: pytest.MonkeyPatch) -> None:
    known = compiler(monkeypatch, *(row.name for row in levels()))
    made = chooser.choose(cpu("GenuineIntel", 6, 999, V4), known)
    assert (made.march, made.why) == ("x86-64-v3", "no row of the table has GenuineIntel 6 999")
    assert chooser.choose(cpu("GenuineIntel", 6, 999, frozenset()), known).march == "x86-64"


def test_an_alias_finds_its_family() -> None:
    row = find("corei7-avx")
    assert row is not None and row.name == "sandybridge"
    assert find("corei8") is None
