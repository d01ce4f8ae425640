"""`kdyno validate --library`: ratios with known answers, and one small function compiled, timed and counted."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from kdyno.base.cpu import read_cpu
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.cli.schemas import schema
from kdyno.measure.cycles.family import load_family
from kdyno.measure.cycles.measure import QEMU_USER, NoUserPlugins
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.understand.validate import library_build
from kdyno.understand.validate.effects import Effect, agreement, sign_lines, summary, worst
from kdyno.understand.validate.library import (
    TURNS,
    WARM_UPS,
    Library,
    LibraryMeasurements,
    ProgramBroken,
    SetsDisagree,
    cycles_of,
    measure_library,
    warm_iterations,
)
from kdyno.understand.validate.library_build import (
    UNITS,
    NoMakefileFlags,
    NothingToCompile,
    OptionSet,
    TooFewSets,
    default_sets,
    first_complaint,
    flags_listed,
)
from kdyno.understand.validate.library_compare import compare_library, noise_of
from kdyno.understand.validate.library_lines import lines
from tests.unit.pmu_specimen import specimen
from tests.unit.validate_specimen import tree

DATA = Path(str(files("kdyno"))) / "data" / "validate"
CRATES = Path(__file__).parents[3] / "crates"
GCD = tuple(unit for unit in UNITS if unit.name == "gcd")
PLAIN, SMALL = OptionSet("gcc -O2", "gcc"), OptionSet("gcc -Os", "gcc", ("-Os",))


def library(native: object, modelled: object, instructions: object) -> Library:
    """Two passes of two loads with three option sets."""
    measured = LibraryMeasurements(
        loads=("sort", "search"),
        sets=("a", "b", "c"),
        native=np.array(native, np.float64),
        modelled=np.array(modelled, np.float64),
        instructions=np.array(instructions, np.float64),
    )
    return Library(measured, "linux-source 6.12 (6.12.1)", load_family("generic"), {"a": ("-O2",)}, ("x: left out: y",))


SOME = library(
    native=[[[100, 110, 100], [200, 202, 300]], [[101, 112, 101], [200, 190, 303]]],
    modelled=[[50, 55, 50], [100, 90, 60]],
    instructions=[[10, 9, 10], [20, 21, 22]],
)


# Pure.


def test_a_turn_is_as_long_as_the_beats_around_it_say() -> None:
    assert cycles_of([[6000, 1500, 3000]]) == 12_000  # half a tick is a cycle; the beat before was the quicker one
    assert cycles_of([[100 * number, 3000, 3000] for number in range(1, 21)]) == 300  # two of twenty undercut it


def test_the_ratio_of_two_sets_is_that_of_their_least_passes() -> None:
    report = compare_library(SOME)
    by_name = {(ratio.load, ratio.one, ratio.other): ratio for ratio in report.ratios}
    assert len(by_name) == 6
    first = by_name["sort", "b", "a"]
    assert (first.native, first.modelled, first.instructions) == pytest.approx((1.1, 1.1, 0.9))
    assert by_name["search", "b", "a"].native == pytest.approx(190 / 200)


def test_a_ratio_is_clear_if_its_passes_agree_that_something_differs() -> None:
    """b / a of `search` is 1.01 in one pass and 0.95 in the other; c / a of `sort` is 1 in both."""
    clear = {(ratio.load, ratio.one, ratio.other): ratio.clear for ratio in compare_library(SOME).ratios}
    assert clear["search", "c", "a"] and not clear["search", "b", "a"] and not clear["sort", "c", "a"]


def test_noise_is_half_of_the_interval_of_the_mean_logarithm() -> None:
    """With three passes t is 4.303, and the standard deviation of -0.01, 0 and 0.01 is 0.01."""
    assert noise_of(np.exp([-0.01, 0.0, 0.01]), np.ones(3)) == pytest.approx(4.3027 * 0.01 / 3**0.5, rel=1e-4)


def test_a_sign_error_is_counted_where_the_machine_is_sure() -> None:
    """c / a of `search`: 1.5 natively, 0.6 by the model, 1.1 by instructions."""
    [pair] = [pair for pair in compare_library(SOME).pairs if (pair.one, pair.other) == ("c", "a")]
    assert (pair.agreement.clear, pair.agreement.sign_errors, pair.by_instructions.sign_errors) == (1, 1, 0)
    assert pair.agreement.median_error == pytest.approx((0 + 0.6) / 2)


def test_effects_that_agree_correlate_and_those_that_are_upside_down_are_all_sign_errors() -> None:
    ratios = (0.5, 0.9, 1.2, 1.7)
    same = agreement([Effect("x", ratio, True, ratio) for ratio in ratios])
    assert (same.pearson, same.spearman, same.slope) == pytest.approx((1, 1, 1))
    assert (same.sign_errors, same.median_error) == (0, 0)
    turned = agreement([Effect("x", ratio, True, 1 / ratio) for ratio in ratios])
    assert (turned.pearson, turned.slope) == pytest.approx((-1, -1))
    assert turned.sign_errors == turned.clear == 4


def test_a_dampened_effect_has_a_slope_below_one_and_its_sign() -> None:
    agreed = agreement([Effect("x", ratio, True, ratio**0.5) for ratio in (0.5, 0.9, 1.2)])
    assert agreed.slope == pytest.approx(0.5) and agreed.sign_errors == 0


def test_within_the_noise_no_sign_is_wrong_and_no_difference_is_missed() -> None:
    agreed = agreement([Effect("x", 1.02, False, 0.9), Effect("x", 1.02, True, 1.0), Effect("x", 1.3, True, 0.9)])
    assert (agreed.effects, agreed.clear, agreed.sign_errors, agreed.missed) == (3, 2, 1, 1)
    assert [(level.least, level.effects) for level in agreed.levels] == [
        *((least, 2) for least in (0, 0.01, 0.02)),
        *((least, 1) for least in (0.05, 0.1)),
    ]


def test_what_never_differs_correlates_with_nothing() -> None:
    agreed = agreement([Effect("x", ratio, True, 1.0) for ratio in (0.5, 0.9, 1.2)])
    assert agreed.pearson is agreed.spearman is agreed.slope is None
    assert "no correlation" in summary(agreed)


def test_an_effect_is_as_large_either_way_round() -> None:
    assert Effect("x", 0.8, True, 1).size == pytest.approx(Effect("x", 1.25, True, 1).size) == pytest.approx(0.25)


def test_the_worst_are_the_largest_effects_with_a_wrong_sign() -> None:
    effects = [Effect("a", 1.1, True, 0.9), Effect("b", 0.5, True, 1.1), Effect("c", 3, True, 2)]
    assert [effect.name for effect in worst(effects, 5)] == ["b", "a"]


def test_the_text_says_how_many_signs_are_wrong_and_what_was_left_out() -> None:
    text = "\n".join(lines(compare_library(SOME)))
    for part in (
        r"^sort +100/50 +110/55 +100/50$",
        r"^c / a +2 .* 1 +1 +0$",
        r"of these: \d, wrong sign \d",
        r"^  search, c / a: native 1\.500, modelled 0\.600$",
        r"^note: x: left out: y$",
        r"^functions of linux-source 6\.12 \(6\.12\.1\), modelled, generic-2: default weights",
    ):
        assert re.search(part, text, re.MULTILINE), part


def test_the_report_as_json_obeys_its_schema() -> None:
    printed = json.loads(compare_library(SOME).model_dump_json())
    jsonschema.Draft202012Validator(schema("validate-library")).validate(printed)


def test_no_share_is_said_of_no_effects() -> None:
    [first, second, *_] = sign_lines(agreement([Effect("x", 1.1, False, 1.1)]))
    assert first == "0 of 1 differ beyond the machine's noise" and second == "  of these: 0, wrong sign 0"


def test_the_flags_are_those_of_the_listing_without_warnings_and_paths() -> None:
    listing = "# x\nKBUILD_CFLAGS := -Wall -O2 -mcmodel=kernel\nKBUILD_CFLAGS_MODULE := -DMODULE\n"
    listing += "KBUILD_CPPFLAGS := -D__KERNEL__ -Werror=x -fmacro-prefix-map=/a/= $(later)\n"
    assert flags_listed(listing) == ("-D__KERNEL__", "-O2", "-mcmodel=kernel")


def test_the_newest_compilers_are_compared() -> None:
    names = [options.compiler for options in default_sets(["clang-9", "clang-19", "gcc", "gcc-12"])]
    assert names == ["gcc-12"] * 4 + ["clang-19"] * 2
    assert default_sets([])[0].compiler == "gcc"


def test_of_a_compiler_s_message_the_first_error_is_said() -> None:
    complaint = "gcc -c x.c failed with exit status 1: /a/x.c:3:1: error: unknown type name 'u9'\n  3 | u9 x;\n"
    assert first_complaint(complaint) == "error: unknown type name 'u9'"


def test_a_load_that_the_pmu_did_not_count_is_no_figure() -> None:
    with pytest.raises(ProgramBroken, match="counted 0 of"):
        warm_iterations(specimen(), 7, "sort")


def test_turns_that_warm_up_are_left_out_of_the_mean() -> None:
    whole = specimen()
    [event] = [index for index, name in enumerate(whole.names) if name == "instructions"]
    region = whole.regions[0]
    counts = np.zeros((3, len(whole.names)), np.uint64)
    turns = {}
    for turn in range(TURNS):
        turns[turn] = counts.copy()
        turns[turn][0, event] = 1000 if turn < WARM_UPS else turn
    record = PmuRecord(**{**vars(whole), "regions": {0: type(region)(0, turns, region.contexts, region.stacks)}})
    assert warm_iterations(record, 0, "sort")[event] == (WARM_UPS + TURNS - 1) / 2


# The driver.


def test_the_driver_s_markers_are_those_of_the_crate() -> None:
    crate = (CRATES / "marker" / "src" / "lib.rs").read_text(encoding="utf-8")
    registers = [re.search(rf"pub const {name}: u8 = (0x\w\w);", crate) for name in ("ONE", "ZERO", "OPEN", "CLOSE")]
    written = re.findall(r"\.byte 0x66, 0x87, (0x\w\w)", (DATA / "driver.c").read_text(encoding="utf-8"))
    assert written == [register[1] for register in registers if register]


def test_every_unit_has_loads_and_every_file_of_loads_a_unit() -> None:
    assert {path.stem for path in (DATA / "loads").glob("*.c")} == {unit.name for unit in UNITS}


def needs_plugins() -> None:
    for tool in (QEMU_USER, "gcc", "make"):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}")


def measured(directory: Path, sets: Sequence[OptionSet], units: Sequence[str] = ("gcd",)) -> Library:
    needs_plugins()
    named = [unit for unit in UNITS if unit.name in units]
    source, state = tree(directory / "linux"), State(directory / "state")
    try:
        return measure_library(
            str(source), load_family("generic"), state, Talk(quiet=True), sets=sets, units=named, times=3, passes=3
        )
    except NoUserPlugins:
        pytest.skip(f"needs a {QEMU_USER} with plugins")


def test_a_function_is_compiled_timed_and_counted_with_two_option_sets(tmp_path: Path) -> None:
    agreed = measured(tmp_path, [PLAIN, SMALL], ["gcd", "glob"])
    assert agreed.measured.loads == ("gcd",) and agreed.measured.sets == ("gcc -O2", "gcc -Os")
    assert agreed.measured.native.shape == (3, 1, 2) and (agreed.measured.native > 1000).all()
    assert (agreed.measured.modelled > 1000).all() and (agreed.measured.instructions > 1000).all()
    assert agreed.flags["gcc -Os"][-1] == "-Os" and "-mcmodel=kernel" in agreed.flags["gcc -O2"]
    assert not [flag for flag in agreed.flags["gcc -O2"] if flag.startswith("-W")]
    assert agreed.notes == ("glob: left out: the tree has no lib/glob.c",)
    assert compare_library(agreed).agreement.effects == 1
    assert not list((tmp_path / "state" / "boots").iterdir())


def test_a_set_whose_function_computes_something_else_is_refused(tmp_path: Path) -> None:
    broken = OptionSet("gcc broken", "gcc", ("-DBROKEN",))
    with pytest.raises(SetsDisagree, match=r"gcd gives different results with gcc broken .* and with gcc -O2"):
        measured(tmp_path, [PLAIN, broken])


def test_a_compiler_that_is_not_here_is_left_out_and_two_sets_must_remain(tmp_path: Path) -> None:
    with pytest.raises(TooFewSets, match="gcc-99 -O2: left out: there is no gcc-99 here"):
        measured(tmp_path, [PLAIN, OptionSet("gcc-99 -O2", "gcc-99")])


def test_a_set_for_a_cpu_that_this_host_has_not_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = read_cpu()
    monkeypatch.setattr(
        library_build, "read_cpu", lambda: bare.model_copy(update={"flags": frozenset({"cx16", "popcnt"})})
    )
    with pytest.raises(TooFewSets, match=r"v3: left out: this CPU lacks abm, bmi1, bmi2, movbe"):
        measured(tmp_path, [PLAIN, OptionSet("v3", "gcc", ("-march=x86-64-v3",))])


def test_flags_of_the_user_s_environment_are_not_the_kernel_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEFLAGS", "KBUILD_CFLAGS=-mcmodel=kernel\\ -O1")
    agreed = measured(tmp_path, [PLAIN, SMALL])
    assert not [flags for flags in agreed.flags.values() if "-O1" in flags]


def test_a_tree_without_any_of_the_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NothingToCompile, match=r"glob: left out: the tree has no lib/glob\.c"):
        measured(tmp_path, [PLAIN, SMALL], ["glob"])


def test_a_makefile_that_names_no_flags_of_a_kernel_is_refused(tmp_path: Path) -> None:
    needs_plugins()
    source = tree(tmp_path / "linux")
    makefile = source / "Makefile"
    makefile.write_text(makefile.read_text().replace("-mcmodel=kernel", ""))
    with pytest.raises(NoMakefileFlags, match="do not list their flags for x86-64 with gcc"):
        measure_library(
            str(source), load_family("generic"), State(tmp_path / "state"), Talk(quiet=True), sets=[PLAIN, SMALL]
        )
