"""The knob `profile`: which stages it plans, what it gives compilers and linker, and what it refuses."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from kdyno.base.profile_files import ProfileOfAnotherTool
from kdyno.base.state import State
from kdyno.kernel.arch import UM
from kdyno.kernel.inputs import Input
from kdyno.kernel.knobs import Contribution, KnobContext, contributions, profile_given
from kdyno.kernel.knobs.profile import ClangTooOld, NeedsClang
from kdyno.kernel.knobs.profile_given import ProfileOfOtherGcc, ProfileUnfit
from kdyno.kernel.knobs.profile_pgo import NotCounting
from kdyno.kernel.lkd import ORDER, lto_words
from kdyno.kernel.recipe import USES, Profile, ProfileSpec, ProfileUse, Recipe, Trainee, Training
from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.measure.workload.needs import Load
from kdyno.profile.clang import is_record, samples
from tests.unit.kernel.test_kernel_knobs import context, contribute

REST = b"070000000000000000000000\n"
"""Stamp, checksum and end of a .gcda file, in hexadecimal digits."""
IR_PROFILE = b":ir\n../fs/open.c;do_open\n5\n2\n3\n4096\n"
"""Of clang: a function, the hash of its control flow, and its two counters."""
TRAINEE = Trainee(
    variant="tuned",
    recipe=Recipe(source="s", config="c", opt="O2", layout_seed=3),
    load=Load(tests=("lat_pipe",)),
)


class Planner:
    """Stands where boots are planned: every training that is asked for, and those that its kernel needs in turn."""

    def __init__(self, where: KnobContext) -> None:
        self.where = replace(where, trained=self.trained)
        self.trainings: dict[str, Training] = {}
        self.exporters: list[str] = []

    def trained(self, name: str, training: Training, exporter: str) -> Input:
        self.exporters.append(exporter)
        if training.recipe.profile is not None:
            contribute("profile", training.recipe.profile, self.where)
        digest = f"{len(self.trainings):064x}"
        self.trainings[name] = training
        return Input(name=name, digest=digest, path=Path("/nowhere"))


@pytest.fixture(autouse=True)
def lkd_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdyno.kernel.lkd.find_lkd", lambda: Path("/nowhere/lkd"))


def planned(compiler: str = "clang-19", version: str = "19.1.7", **settings: Any) -> tuple[Planner, Contribution]:
    planner = Planner(context(compiler, version))
    return planner, contribute("profile", Profile(trainee=TRAINEE, **settings), planner.where)


def test_each_use_is_trained_on_the_kernel_with_the_uses_before_it() -> None:
    planner, made = planned(use=("order", "propeller", "autofdo"), seeds=2)
    assert list(planner.trainings) == ["autofdo", "propeller", "order"]
    assert {training.seeds for training in planner.trainings.values()} == {(1, 2)}
    plain, mapped, sections = (training.recipe for training in planner.trainings.values())
    assert plain.profile is None and plain.lines and plain.layout_seed is None and plain.opt == "O2"
    assert mapped.profile and mapped.profile.use == ("autofdo",) and mapped.profile.trained_for == "propeller"
    assert sections.profile and sections.profile.use == ("autofdo", "propeller")
    assert sections.profile.trained_for == "order" and sections.lines, "line tables tell assembly code from the rest"
    assert [use.option for use in made.profiles] == ["-fprofile-sample-use=", "-fbasic-block-sections=list="]
    assert made.environment[ORDER] == "@order@" and "-ffunction-sections" in made.kcflags
    assert {file.name for file in made.inputs} == {"autofdo", "propeller", "order"}


@pytest.mark.parametrize("uses", [("order",), ("pgo", "order")])
def test_an_ordered_kernel_has_the_objects_of_the_kernel_it_was_trained_on(uses: tuple[ProfileUse, ...]) -> None:
    planner = Planner(context("gcc", "12.2.0"))
    tuned = TRAINEE.recipe.model_copy(update={"profile": Profile(use=uses, trainee=TRAINEE)})
    compiled = contributions(tuned, planner.where)
    trained_on = contributions(planner.trainings["order"].recipe, planner.where)
    assert compiled.kcflags == trained_on.kcflags and compiled.make == trained_on.make and "-g1" in compiled.kcflags


def test_an_order_from_elsewhere_needs_no_line_tables() -> None:
    assert not Recipe(profile=Profile(use=("order",), from_="/order")).compiled.lines


def test_the_kernel_that_clusters_are_made_for_has_a_map_of_its_blocks_where_it_has_a_profile() -> None:
    planner, made = planned(use=("autofdo", "propeller"))
    stage = planner.trainings["propeller"].recipe.profile
    [use] = contribute("profile", stage, planner.where).profiles
    assert "-fbasic-block-address-map" in use.add
    assert "-fbasic-block-address-map" not in made.profiles[0].add
    alone, _ = planned(use=("propeller",))
    stage = alone.trainings["propeller"].recipe.profile
    assert "-fbasic-block-address-map" in contribute("profile", stage, alone.where).kcflags


def test_another_round_is_trained_on_the_kernel_of_the_last_one() -> None:
    planner, _ = planned(use=("autofdo", "order"), rounds=2)
    again = planner.trainings["autofdo"].recipe.profile
    assert again and again.rounds == 1 and again.use == ("autofdo",)


def test_another_variant_is_trained_on_with_its_own_profile() -> None:
    theirs = Profile(use=("autofdo", "order"), trainee=TRAINEE)
    other = TRAINEE.model_copy(update={"recipe": TRAINEE.recipe.model_copy(update={"profile": theirs})})
    planner = Planner(context("clang-19", "19.1.7"))
    contribute("profile", Profile(use=("order",), on="other", trainee=other), planner.where)
    booted = planner.trainings["order"].recipe.profile
    assert booted and booted.use == ("autofdo",) and booted.trained_for == "order"


def test_a_kernel_that_counts_is_trained_and_compiled_by_its_counters_with_gcc() -> None:
    planner, made = planned("gcc", "12.2.0", use=("pgo", "order"))
    assert set(planner.exporters) == {"pgo-gcc", "order"}
    counting = contribute("profile", planner.trainings["pgo"].recipe.profile, planner.where)
    assert {request.symbol for request in counting.asks} >= {"GCOV_KERNEL", "GCOV_PROFILE_ALL", "DEBUG_FS"}
    assert not counting.profiles and not counting.inputs
    [use] = made.profiles
    assert (use.family, use.cut, use.option) == ("gcc", "objects", "-fprofile-use=")
    assert "-fprofile-partial-training" in use.add and "-fprofile-correction" in use.add
    assert not any(request.symbol == "GCOV_KERNEL" for request in made.asks), "the tuned kernel doesn't count"
    ordered = planner.trainings["order"].recipe.profile
    assert ordered and ordered.use == ("pgo",) and ordered.trained_for == "order"


def test_a_kernel_that_counts_is_trained_and_compiled_by_its_counters_with_clang() -> None:
    planner, made = planned(use=("pgo", "propeller"), hot=500, cold=7)
    assert set(planner.exporters) == {"pgo-clang", "propeller"}
    counting = contribute("profile", planner.trainings["pgo"].recipe.profile, planner.where)
    assert any(word.startswith("CFLAGS_GCOV=-fprofile-generate") for word in counting.make)
    assert "PROC_KCORE" in {request.symbol for request in counting.asks}
    use, _ = made.profiles
    assert (use.family, use.cut, use.option) == ("clang", "whole", "-fprofile-use=")
    assert "-profile-summary-hot-count=500" in use.add


def test_thresholds_go_to_the_compiler_and_to_the_link_and_decide_the_key() -> None:
    _, made = planned(use=("autofdo",), hot=500, cold=7)
    [use] = made.profiles
    assert use.add == ("-mllvm", "-profile-summary-hot-count=500", "-mllvm", "-profile-summary-cold-count=7")
    assert "--mllvm=-profile-summary-hot-count=500" in made.environment["KDYNO_LTO_WORDS_AUTOFDO"]
    assert made.facts != planned(use=("autofdo",), hot=501, cold=7)[1].facts


def test_the_linker_that_compiles_gets_words_about_profiles_though_the_compiler_makes_the_last_link() -> None:
    planner = Planner(replace(context("clang-19", "19.1.7"), arch=UM))
    made = contribute("profile", Profile(trainee=TRAINEE, use=("autofdo", "propeller")), planner.where)
    assert made.environment["KDYNO_LD"] == "ld"
    assert {"KDYNO_LTO_WORDS_AUTOFDO", "KDYNO_LTO_WORDS_PROPELLER"} <= made.environment.keys()
    assert len(made.profiles) == 2


def test_a_linker_that_compiles_nothing_gets_no_words_about_profiles() -> None:
    assert lto_words(context("gcc").toolchain, "autofdo", "--lto-sample-profile=x") == {}


def test_what_a_compiler_cannot_do_is_refused_with_the_reason() -> None:
    with pytest.raises(
        NeedsClang, match=r'use = \["autofdo"\] needs clang: the sampled profiles that gcc reads name static'
    ):
        planned("gcc", "12.2.0", use=("autofdo",))
    with pytest.raises(NeedsClang, match="gcc can't place the blocks of a function"):
        planned("gcc", "12.2.0", use=("propeller",))
    with pytest.raises(ClangTooOld, match=r'use = \["propeller"\] needs clang 19, and clang-18 is version 18.1.0'):
        planned("clang-18", "18.1.0", use=("propeller",))
    assert planned("gcc", "12.2.0", use=("order",))[1].inputs
    with pytest.raises(NotCounting, match=r"gcc 12 to 16 or clang 19 or 20, and gcc is version 11\.4\.0"):
        planned("gcc", "11.4.0", use=("pgo",))
    with pytest.raises(NotCounting, match=r"clang-18 is version 18\.1\.0"):
        planned("clang-18", "18.1.0", use=("pgo",))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"use": ()}, "`use` is empty"),
        ({"use": ("order", "order")}, "`use` has a name twice"),
        ({"use": ("order",), "train": ()}, "`train` is empty"),
        ({"use": ("order", "autofdo"), "from": "x"}, "`from` is one file for one use"),
        ({"use": ("order",), "from": "x", "train": ("general",)}, "`from` is one file for one use"),
        ({"use": ("pgo", "autofdo")}, "`pgo` and `autofdo` can't be combined"),
        ({"use": ("propeller",), "on": "other"}, "`on` can name no other"),
        ({"use": ("order",), "rounds": 2}, "`rounds` is for `autofdo`"),
        ({"use": ("autofdo",), "hot": 5, "cold": 5}, "`cold` must be less than `hot`"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Profile.model_validate(settings)


def test_one_name_is_a_list_of_one() -> None:
    profile = ProfileSpec.model_validate({"use": "order", "train": "general"})
    assert (profile.use, profile.train) == (("order",), ("general",))


@pytest.mark.parametrize(
    ("use", "compiler", "content", "why"),
    [
        ("autofdo", "clang-19", b"f:12:3\n 1: x\n", "is not a sample profile of clang"),
        ("autofdo", "clang-19", b"\xff" * 64, "is not a sample profile of clang"),
        ("propeller", "clang-19", b"m fs/open.c\n", "its first line isn't `v1`"),
        ("order", "gcc", b"# nothing\n", "it names no function"),
        ("pgo", "clang-19", b"\xff" * 64, "is not a profile of a kernel that clang instrumented"),
        ("pgo", "clang-19", b"", "is not a profile of a kernel"),
        ("pgo", "clang-19", b"vfs_read:100:1\n 1: 100\n", "is not a profile of a kernel"),
        ("pgo", "clang-19", IR_PROFILE.replace(b":ir", b":fe"), "another instrumentation"),
        ("pgo", "clang-19", IR_PROFILE.replace(b"3\n4096", b"0\n0"), "all its counts are 0"),
        ("pgo", "clang-19", IR_PROFILE[:-3], "it ends within a line"),
        ("pgo", "clang-19", IR_PROFILE[:-5], "is not a profile of a kernel"),
    ],
)
def test_a_file_that_is_no_profile_is_refused_by_name(
    tmp_path: Path, use: str, compiler: str, content: bytes, why: str
) -> None:
    path = tmp_path / "profile"
    path.write_bytes(content)
    profile = Profile.model_validate({"use": (use,), "from": str(path)})
    with pytest.raises(Exception, match=f"{path}.*{why}"):
        contribute("profile", profile, replace(context(compiler, "19.1.7"), state=State(tmp_path / "state")))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"PERFILE2h\0\0\0", "perf.data"),
        (b" ffffffff81200010 0xffffffff81200100/0xffffffff81200000/P/-/-/1\n", "the text of perf script"),
        (b"10\n ffffffff81200010 0xffffffff81200100/0xffffffff81200000/P/-/-/0\n", "the text of perf script"),
        (b"swapper     0 [000] 12345.678901:    1 cycles:  ffffffff81200010 f\n", "the text of perf script"),
        (
            b"# ========\n# captured on    : Mon\n#\nmake 1234 [001] 12345.678901: 250000 cycles: ",
            "the text of perf script",
        ),
        (b"# To display\n#\n# Overhead  Command\n# ........\n    12.3%  make\n", "the text of perf report"),
        (b"make;entry_SYSCALL_64;do_syscall_64;vfs_write 123\n", "folded stacks"),
        (b"1 do_syscall_64 2f 1 sys_read/1 0 0 123\n", "a profile of BOLT"),
        (b"boltedcollection\n", "a profile of BOLT"),
        (b"gmon\1\0\0\0", "gmon.out"),
        (b"\x17\x08Dtracing6\0", "a trace of the kernel"),
        (b"\x1f\x8b\x08\0", "compressed"),
        (b"\xfd7zXZ\0\0", "compressed"),
        (b"\x28\xb5\x2f\xfd\0", "compressed"),
        (b"\x7fELF\x02\x01\x01", "code, not a profile of it"),
        (b"adcg408*\0\0\0\0", "gcov's counters of one object"),
        (b"oncg408*\0\0\0\0", "gcov's notes"),
        (b"\x81rforpl\xff" + bytes(64), "the raw counters"),
    ],
)
def test_files_of_other_tools_are_called_what_they_are_wherever_a_profile_is_read(
    tmp_path: Path, content: bytes, what: str
) -> None:
    path = tmp_path / "profile"
    path.write_bytes(content)
    where = replace(context("clang-19", "19.1.7"), state=State(tmp_path / "state"))
    for use in USES:
        with pytest.raises(ProfileOfAnotherTool, match=what):
            contribute("profile", Profile.model_validate({"use": (use,), "from": str(path)}), where)
    for read in (read_pmu_record, samples, is_record):
        with pytest.raises(ProfileOfAnotherTool, match=what) as refused:
            read(path)
        assert "profile" in refused.value.advice


def test_a_profile_whose_functions_the_source_has_not_got_is_refused(tmp_path: Path) -> None:
    path, tree = tmp_path / "profile", tmp_path / "tree"
    for name, text in (("fs/open.c", "int do_open(int x)\n{\n}\n"), ("tools/t.c", "int spec_main(void)\n{\n}\n")):
        (tree / name).parent.mkdir(parents=True)
        (tree / name).write_text(text)
    require = partial(profile_given.require_known, path, tree)
    path.write_text("mcf_primal:1200:10\n 1: 10\nspec_main:9000:100\n 1: 100\n")
    with pytest.raises(profile_given.ProfileOfOtherCode, match="none of its 2 functions, such as spec_main"):
        require()
    for name in ("do_open", "do_open.llvm.123", "do_open.constprop.0"):
        path.write_text(f"{name}:1200:10\n 1: 10\nspec_main:9000:100\n 1: 100\n")
        require()


def test_counters_of_clang_from_elsewhere_are_taken_as_text_and_as_llvm_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "profile"
    path.write_bytes(IR_PROFILE)
    subprocess.run(["llvm-profdata-19", "merge", path, "-o", tmp_path / "indexed"], check=True)
    where = replace(context("clang-19", "19.1.7"), state=State(tmp_path / "state"))
    for given in (path, tmp_path / "indexed"):
        profile = Profile.model_validate({"use": ("pgo",), "from": str(given)})
        assert [use.cut for use in contribute("profile", profile, where).profiles] == ["whole"]


def test_a_profile_that_was_cut_short_is_refused_with_what_may_have_happened_to_it(tmp_path: Path) -> None:
    path = tmp_path / "profile"
    path.write_text("do_open:12:3\n 1: 4\n 2: ", encoding="utf-8")
    where = replace(context("clang-19", "19.1.7"), state=State(tmp_path / "state"))
    with pytest.raises(ProfileUnfit) as refused:
        contribute("profile", Profile.model_validate({"use": ("autofdo",), "from": str(path)}), where)
    assert "cut short or edited" in refused.value.advice


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"# object fs/open.o\n616463672a323242" + REST, ""),
        (b"# object fs/open.o\n616463672a323342" + REST, "was counted by code of gcc 13.2, and gcc is version 12.2.0"),
        (b"# object fs/open.o\n616463672a323242" + REST[:-3] + b"\n", "line 1 doesn't begin the counters of an object"),
        (b"# object fs/open.o\n616463672a323242" + REST[:-1], "line 3 doesn't begin the counters of an object"),
        (b"# object a.o\n616463672a323242" + REST + b"# object b.o\nby hand\n", "line 3 doesn't begin the counters"),
        (b"# object fs/open.o\nby hand\n", "line 1 doesn't begin the counters of an object"),
        (b"\xff" * 64, "line 1 doesn't begin the counters of an object"),
        (b"", "line 1 doesn't begin the counters of an object"),
    ],
)
def test_counters_from_elsewhere_are_those_of_the_same_gcc(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "gcc.profile"
    path.write_bytes(content)
    where = replace(context("gcc", "12.2.0"), state=State(tmp_path / "state"))
    profile = Profile.model_validate({"use": ("pgo",), "from": str(path)})
    if not why:
        assert [use.cut for use in contribute("profile", profile, where).profiles] == ["objects"]
        return
    with pytest.raises((ProfileUnfit, ProfileOfOtherGcc), match=why):
        contribute("profile", profile, where)
