"""Knobs: what each adds to a build, and what it refuses before anything is built."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kdyno.base.cpu import read_cpu
from kdyno.base.errors import UserError
from kdyno.base.state import State
from kdyno.kernel import knobs
from kdyno.kernel.arch import UM, X86_64, Arch
from kdyno.kernel.image import SourceIdentity
from kdyno.kernel.knobs import (
    KNOBS,
    Contribution,
    Host,
    KconfigRequest,
    KnobContext,
    block,
    cflags,
    cmdline,
    contributions,
    decided,
    kconfig,
    lines,
    lto,
    march,
    page_size,
    sysctl,
)
from kdyno.kernel.knobs.base import Knob
from kdyno.kernel.march import compiler
from kdyno.kernel.march.choose import MarchChoice
from kdyno.kernel.plan import BaseOfOtherArch, check_early
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import KernelSource
from kdyno.kernel.toolchain import Toolchain, ToolchainIdentity

SOURCE = KernelSource(
    identity=SourceIdentity(spec="x", identity="tree:0", version="6.12", origin="x"), tree=Path("/nowhere")
)


def context(name: str = "gcc", version: str = "12.2.0") -> KnobContext:
    family = name.partition("-")[0]
    identity = ToolchainIdentity(name=name, family=family, version=version, banner="", digest="")
    toolchain = Toolchain(identity=identity, command=name, make=(f"CC={name}",))
    return KnobContext(source=SOURCE, toolchain=toolchain, cpu=read_cpu, state=State(Path("/nowhere")))


def contribute(knob: str, value: Any, where: KnobContext | None = None) -> Contribution:
    """What the knob adds, after its early check."""
    [row] = (row for row in KNOBS if row.field == knob)
    check(knob, value, where)
    return row.contribute(value, where or context())


def check(knob: str, value: Any, where: Host | None = None) -> None:
    """The knob's early check, which sees nothing but the host."""
    [row] = (row for row in KNOBS if row.field == knob)
    host = where or context()
    row.check(value, Host(host.toolchain, host.state))


def asked(contribution: Contribution) -> dict[str, str]:
    return {request.symbol: request.value for request in contribution.asks}


def test_every_field_of_the_recipe_is_a_knob() -> None:
    assert [knob.field for knob in KNOBS] == list(Recipe.model_fields)


def test_a_recipe_of_defaults_adds_nothing_but_its_compiler() -> None:
    assert contributions(Recipe(), context()) == Contribution(make=("CC=gcc",))


@pytest.mark.parametrize(
    ("value", "chosen", "flags"),
    [
        ("O1", "CC_OPTIMIZE_FOR_PERFORMANCE", ("-O1",)),
        ("O2", "CC_OPTIMIZE_FOR_PERFORMANCE", ()),
        ("O3", "CC_OPTIMIZE_FOR_PERFORMANCE", ("-O3",)),
        ("Os", "CC_OPTIMIZE_FOR_SIZE", ()),
    ],
)
def test_opt_goes_through_kconfig_where_kconfig_has_it(value: str, chosen: str, flags: tuple[str, ...]) -> None:
    made = contribute("opt", value)
    assert [symbol for symbol, wanted in asked(made).items() if wanted == "y"] == [chosen]
    assert made.kcflags == flags


def test_march_and_mtune_are_flags_for_kernel_code() -> None:
    both = knobs.combined([contribute("march", "x86-64-v3"), contribute("mtune", "znver3")])
    assert both.kcflags == ("-march=x86-64-v3", "-mtune=znver3")
    assert both.kcppflags == ()


def test_native_is_keyed_by_what_it_stands_for_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = contribute("march", "native")
    assert made.kcflags == ("-march=native", "-mtune=native")
    assert len(made.facts) == 1
    assert made.facts[0].startswith("march=native: -march=")
    monkeypatch.chdir(tmp_path)
    assert contribute("march", "native") == made, "where kdyno runs doesn't matter"


def test_auto_is_the_best_name_for_this_host_and_says_how_it_came_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(march, "choose", lambda _cpu, _toolchain: MarchChoice("x86-64-v2", "for this test"))
    made = contribute("march", "auto")
    assert made.kcflags == ("-march=x86-64-v2",) and made.needs == ("cx16", "popcnt")
    assert made.notes == ("march=auto is x86-64-v2: for this test",) and made.facts == ()


def test_a_family_is_tuned_for_as_well_but_a_level_has_no_timings() -> None:
    assert contribute("march", "znver3").kcflags == ("-march=znver3", "-mtune=znver3")
    assert contribute("march", "x86-64-v2").kcflags == ("-march=x86-64-v2",)


def test_what_an_image_needs_of_a_machine_is_what_the_compiler_may_use_in_kernel_code() -> None:
    assert contribute("march", None).needs == ()
    assert contribute("march", "x86-64-v3").needs == ("cx16", "popcnt", "abm", "bmi1", "bmi2", "movbe")
    assert contribute("march", "x86-64-v4").needs == contribute("march", "x86-64-v3").needs, "the rest is SIMD"


def test_the_registers_of_apx_are_not_the_kernels_to_use(monkeypatch: pytest.MonkeyPatch) -> None:
    defined = frozenset({"__APX_F__", "__BMI__"})
    monkeypatch.setattr(compiler, "macros", lambda _march, _toolchain: defined)
    made = contribute("march", "znver3")
    assert made.kcflags == ("-march=znver3", "-mtune=znver3", "-mno-apxf")


def test_a_cpu_that_is_too_new_names_the_compilers_that_know_it(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"haswell", "znver3", "znver2"}
    monkeypatch.setattr(compiler, "refusal", lambda _, name, *__: None if name in known else "error: bad value")
    with pytest.raises(compiler.CpuTooNew) as raised:
        contribute("march", "znver5")
    assert str(raised.value) == "-march=znver5 can't be had with gcc 12.2.0: it needs gcc 13.3 or clang 19"
    assert raised.value.advice.endswith("or choose an older march: gcc knows znver3")


def test_a_misspelt_cpu_gets_the_nearest_name() -> None:
    with pytest.raises(compiler.CpuUnknown) as raised:
        contribute("march", "hasswell")
    assert raised.value.advice.startswith("did you mean haswell")


@pytest.mark.parametrize("value", ["x86-64-v3 -Ofast", "-O3", "", "i686"])
def test_what_is_no_64_bit_cpu_is_refused(value: str) -> None:
    with pytest.raises(compiler.CpuUnknown):
        contribute("march", value)


def test_clangs_list_of_cpus_is_read_as_well() -> None:
    output = "error: unknown target CPU 'foo'\nnote: valid target CPU values are: nocona, core2, znver5"
    assert compiler.known_cpus(output) == ["nocona", "core2", "znver5"]


def test_a_layout_is_a_flag_for_all_objects_and_a_seed_for_the_linker_alone() -> None:
    made = contribute("layout_seed", 7)
    assert made.kcflags == ("-ffunction-sections",)
    assert made.make == ("LD=lkd",)
    assert made.environment == {"KDYNO_LAYOUT_FORMAT": "1", "KDYNO_LAYOUT_SEED": "7", "KDYNO_LD": "ld"}
    assert contribute("layout_seed", 7, context("clang-19")).environment["KDYNO_LD"] == "ld.lld-19"
    assert asked(made) == {"LTO_CLANG_FULL": "n"}
    assert contribute("layout_seed", None) == Contribution()


def test_lto_needs_clang_and_says_so() -> None:
    with pytest.raises(lto.LtoNeedsClang, match='lto = "thin" needs clang'):
        contribute("lto", "thin")


def test_lto_is_a_choice_of_kconfig() -> None:
    assert asked(contribute("lto", "thin", context("clang-19"))) == {"LTO_NONE": "n", "LTO_CLANG_THIN": "y"}
    assert asked(contribute("lto", "full", context("clang-19"))) == {"LTO_NONE": "n", "LTO_CLANG_FULL": "y"}
    assert contribute("lto", "none") == Contribution()


def test_with_lto_the_object_that_ld_links_is_machine_code_though_the_compiler_makes_the_last_link() -> None:
    made = contribute("lto", "thin", replace(context("clang-19"), arch=UM))
    assert made.make == ("CFLAGS_REMOVE_version-timestamp.o=$(CC_FLAGS_LTO)",)
    assert made.environment == {"KDYNO_LTO_LD": "ld.lld-19"}


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        (True, "y"),
        (False, "n"),
        ("m", "m"),
        (8, "8"),
        (-1, "-1"),
        ("0x100000", "0x100000"),
        ("", '""'),
        ("-tuned", '"-tuned"'),
        ('a "b"', '"a \\"b\\""'),
    ],
)
def test_inline_values_are_spelled_as_in_a_config(value: str | int | bool, spelled: str) -> None:
    assert asked(contribute("kconfig", {"CONFIG_A": value})) == {"A": spelled}


def test_inline_symbols_and_values_that_cant_be_are_refused() -> None:
    with pytest.raises(kconfig.SymbolUnfit, match="`HZ=1000` is not a valid name"):
        contribute("kconfig", {"HZ=1000": True})
    with pytest.raises(kconfig.ValueUnfit):
        contribute("kconfig", {"CMDLINE": "a\nCONFIG_B=y"})


def test_a_fragment_says_on_which_line_it_asked(tmp_path: Path) -> None:
    path = tmp_path / "small.config"
    path.write_text('# smaller\nCONFIG_SMP=y\n\n# CONFIG_NET is not set\nCONFIG_LOCALVERSION="-a"\n')
    made = contribute("fragments", (str(path),))
    assert asked(made) == {"SMP": "y", "NET": "n", "LOCALVERSION": '"-a"'}
    assert [request.by for request in made.asks] == [f"fragment small.config:{line}" for line in (2, 4, 5)]


def test_a_fragment_with_a_stray_line_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "bad.config"
    path.write_text("CONFIG_SMP=y\nroot:secret\n")
    with pytest.raises(kconfig.FragmentUnfit, match=r"bad\.config:2: line 2 is not a line of Kconfig") as caught:
        contribute("fragments", (str(path),))
    assert "secret" not in f"{caught.value} {caught.value.advice}", "the file may be a key"
    with pytest.raises(kconfig.FragmentMissing, match="No such file"):
        contribute("fragments", (str(tmp_path / "none"),))


def test_later_fragments_overrule_earlier_ones_and_inline_symbols() -> None:
    first, second = (
        KconfigRequest(symbol="A", value="y", by="kconfig"),
        KconfigRequest(symbol="A", value="n", by="fragment b:1"),
    )
    assert decided(Contribution(asks=(first, second))) == {"A": second}


def test_a_fragment_that_contradicts_a_knob_is_an_error() -> None:
    both = contributions(Recipe(opt="Os", kconfig={"CC_OPTIMIZE_FOR_SIZE": False}), context())
    with pytest.raises(knobs.ContradictoryAsks, match='opt = "Os" needs CONFIG_CC_OPTIMIZE_FOR_SIZE=y, but kconfig'):
        decided(both)


def test_all_sizes_of_pages_ask_for_the_same_kernel() -> None:
    sizes = [contribute("page_size", size) for size in ("4k", "64k", "2M", "madvise")]
    assert [asked(size) for size in sizes] == [{"TRANSPARENT_HUGEPAGE": "y"}] * 4
    assert len({Recipe(page_size=size).words for size in ("4k", "64k", "2M", "madvise")}) == 4


def test_a_kernel_that_takes_no_sizes_on_its_command_line_is_named() -> None:
    old = context()
    identity = old.source.identity.model_copy(update={"version": "6.6.100"})
    old = replace(old, source=old.source.model_copy(update={"identity": identity}))
    with pytest.raises(page_size.NoSuchSizes, match=r"needs Linux 6\.12 or newer, and .* 6\.6\.100"):
        contribute("page_size", "64k", old)
    assert asked(contribute("page_size", "2M", old)) == {"TRANSPARENT_HUGEPAGE": "y"}
    assert Recipe(page_size="2M").words == ("transparent_hugepage=always",)


def test_a_disk_of_the_host_is_nothing_that_a_guest_can_be_told_of() -> None:
    assert contribute("block", {}) == contribute("sysctl", {})
    with pytest.raises(block.BlockNeedsLocal, match=r"vda\.scheduler cannot be set") as refused:
        contribute("block", {"vda.scheduler": "none"})
    assert 'type = "local"' in refused.value.advice


def test_a_sysctl_on_a_command_line_is_one_word() -> None:
    assert asked(contribute("sysctl", {"vm.swappiness": 10})) == {"PROC_SYSCTL": "y"}
    assert Recipe(sysctl={"vm.swappiness": 10}).words == ("sysctl.vm.swappiness=10",)
    with pytest.raises(sysctl.SysctlUnfit, match="tcp_rmem can't be '1 2 3'"):
        contribute("sysctl", {"net.ipv4.tcp_rmem": "1 2 3"})


def test_command_line_words_are_words() -> None:
    words = ("quiet", 'dyndbg="file a.c +p"')
    assert contribute("cmdline", words) == Contribution() and Recipe(cmdline=words).words == words
    for word in ("", "a b", "a\nb"):
        with pytest.raises(cmdline.CmdlineWordUnfit):
            contribute("cmdline", (word,))


def test_words_for_the_compiler_come_last_and_as_they_are() -> None:
    words = ("-fno-ipa-cp", "--param=max-inline-insns-auto=20", "-mno-red-zone", "-DX=1", "-Wno-unused")
    assert contribute("cflags", words) == Contribution(kcflags=words)
    assert contribute("cflags", ()) == Contribution()
    made = contributions(Recipe(opt="O3", cflags=("-fno-ipa-cp",), lines=True), context())
    assert made.kcflags == ("-O3", *lines.FLAGS["gcc"], "-fno-ipa-cp")


def test_words_for_llvm_reach_the_link_too_where_lto_makes_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cflags, "_ask", lambda *_: None)
    clang, words = context("clang-19", "19.1.7"), ("-mllvm=-inline-threshold=500", "-fno-unroll-loops")
    made = contribute("cflags", words, clang)
    assert made.kcflags == words and made.make == ("LD=lkd",)
    assert made.environment["KDYNO_LTO_WORDS_CFLAGS"] == "--mllvm=-inline-threshold=500"
    assert contribute("cflags", words[1:], clang) == Contribution(kcflags=words[1:])


@pytest.mark.parametrize(
    ("word", "instead"),
    [
        ("-O3", "opt"),
        ("-Ofast", "opt"),
        ("-march=znver4", "march"),
        ("-mcpu=znver4", "march"),
        ("-mtune=native", "mtune"),
        ("-flto", "lto"),
        ("-flto=thin", "lto"),
        ("-g", "lines"),
        ("-gdwarf-5", "lines"),
        ("-fprofile-use", "profile"),
        ("-fauto-profile=x", "profile"),
        ("-fcs-profile-generate", "profile"),
    ],
)
def test_a_word_with_a_knob_of_its_own_is_refused_with_its_name(word: str, instead: str) -> None:
    with pytest.raises(cflags.KnobExists) as raised:
        contribute("cflags", (word,))
    assert raised.value.advice == f"set `{instead}` instead"


@pytest.mark.parametrize(
    "word",
    [
        *("", "-", "O3", "-f", "-fno plt", "-f$(x)", "-f`x`", "-f'x'", '-f"x"', "-fx;y", "-fx#y", "-fx\ny", "-fx\\"),
        *("-DX=/etc/passwd", "@file", "-include", "-Ifolder", "-o", "-S", "-x", "-pipe", "-Wl,-r", "-Wa,-x", "-Wp,-x"),
        *("-fplugin=x", "-fdump-tree-all", "-save-temps", "--sysroot=x", "-specs=x", "-fsanitize-ignorelist=x"),
    ],
)
def test_a_word_that_is_no_choice_of_code_is_refused(word: str) -> None:
    with pytest.raises(cflags.WordUnfit):
        contribute("cflags", (word,))


@pytest.mark.parametrize("compiler_name", ["gcc", "clang-19"])
def test_a_word_that_the_compiler_does_not_know_is_refused_in_its_words(compiler_name: str) -> None:
    with pytest.raises(cflags.WordRefused, match="-fno-such-thing"):
        contribute("cflags", ("-fno-such-thing",), context(compiler_name))
    with pytest.raises(cflags.WordRefused):
        contribute("cflags", ("--param=max-inline-insns-auto=many",), context(compiler_name))


@pytest.mark.parametrize(
    ("recipe", "error"),
    [
        ({"mtune": "hasswell"}, "hasswell"),
        ({"march": "hasswell"}, "hasswell"),
        ({"lto": "thin"}, 'lto = "thin" needs clang'),
        ({"profile": {"use": ["autofdo"]}}, r"use = \[\"autofdo\"\] needs clang"),
        ({"profile": {"use": ["order"], "from": "/nowhere"}}, "can't read /nowhere"),
        ({"delegation": "/nowhere.toml"}, "can't read .*/nowhere.toml"),
        ({"order": "/nowhere"}, "can't read /nowhere"),
        ({"cflags": ("-O3",)}, "has a knob of its own"),
        ({"kconfig": {"HZ=1000": True}}, "not a valid name of a Kconfig symbol"),
        ({"fragments": ("/nowhere",)}, "can't read the Kconfig fragment /nowhere"),
        ({"patches": ("/nowhere.patch",)}, "can't read the patch /nowhere.patch"),
        ({"page_size": "3k"}, "page_size can't be"),
        ({"sysctl": {"net.ipv4.tcp_rmem": "1 2 3"}}, "tcp_rmem can't be"),
        ({"block": {"vda.scheduler": "none"}}, "cannot be set"),
        ({"cmdline": ("a b",)}, "can't be a word of the kernel command line"),
        ({"image": "/boot/vmlinuz"}, "is a built kernel"),
        ({"toolchain": "gcc-99"}, "there is no gcc-99 here"),
        ({"config": "dino"}, "dino"),
    ],
)
def test_what_needs_no_source_to_be_refused_is_refused_before_one_is_unpacked(
    tmp_path: Path, recipe: dict[str, Any], error: str
) -> None:
    asked_for = Recipe.model_validate(recipe)
    with pytest.raises(UserError, match=error):
        check_early([Recipe(), asked_for], "dyno", State(tmp_path))


@pytest.mark.parametrize(
    ("arch", "config", "other"),
    [
        (UM, "dyno", "x86_64"),
        (X86_64, "paths", "um"),
        (UM, "CONFIG_X86=y\nCONFIG_64BIT=y\n", "x86_64"),
        (X86_64, "CONFIG_UML=y\nCONFIG_64BIT=y\n", "um"),
        (UM, "CONFIG_UML=y\n", None),
        (X86_64, "CONFIG_64BIT=y\n", None),
    ],
)
def test_a_base_configuration_of_another_architecture_is_refused_early(
    tmp_path: Path, arch: Arch, config: str, other: str | None
) -> None:
    if config.startswith("CONFIG_"):
        (tmp_path / "config").write_text(config)
        config = f"file:{tmp_path / 'config'}"
    refused = pytest.raises(BaseOfOtherArch, match=f"is one for ARCH={other}") if other else nullcontext()
    with refused:
        check_early([Recipe(config=config)], arch.base, State(tmp_path / "state"), arch)


@pytest.mark.parametrize("only_runtime", [False, True])
def test_a_plan_makes_the_early_checks_too(monkeypatch: pytest.MonkeyPatch, only_runtime: bool) -> None:
    asked_of: list[str] = []

    def row(knob: Knob) -> Knob:
        return Knob(knob.field, lambda *_: Contribution(), lambda *_: asked_of.append(knob.field))

    monkeypatch.setattr(knobs, "KNOBS", tuple(map(row, KNOBS)))
    contributions(Recipe(), context(), only_runtime=only_runtime)
    assert asked_of == [knob.field for knob in KNOBS if knob.runtime or not only_runtime]


def test_a_recipe_without_what_only_starts_it_has_no_runtime_knob_and_no_words() -> None:
    whole = Recipe(
        opt="O3", page_size="2M", sysctl={"a.b": 1}, block={"vda.read_ahead_kb": 0}, cmdline=("quiet", "nosmt")
    )
    assert whole.words == ("transparent_hugepage=always", "sysctl.a.b=1", "block.vda.read_ahead_kb=0", "quiet", "nosmt")
    assert whole.built == Recipe(opt="O3") and whole.built.words == ()
