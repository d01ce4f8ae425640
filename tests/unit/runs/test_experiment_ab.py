"""`kdyno ab`: the short form of recipes, and the experiment that it stands for."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdyno.base.errors import KdynoError
from kdyno.base.names import NameUnfit
from kdyno.boot.registry import BadMachine
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.version import NotAKernelTree
from kdyno.measure.guest.agent import UnknownTest
from kdyno.runs.experiment.ab import (
    MOST_NAME,
    BadRecipe,
    NoRecipe,
    Options,
    SameRecipe,
    as_table,
    experiment_for,
    name_of,
    read_side,
    unique,
)
from kdyno.runs.experiment.errors import BadExperiment, TooManyLayouts
from kdyno.runs.experiment.named import named_recipes
from kdyno.runs.experiment.resolve import load_experiment
from kdyno.runs.experiment.short import NotShort, pieces, table
from tests.unit.kernel_toy import FAKELINUX

NOWHERE = Path("/nowhere")
DEMO = "debian:linux-source-6.12"


def short(text: str) -> dict[str, Any]:
    return table(list(pieces(text)), Recipe)


def variants(*texts: str, **options: Any) -> dict[str, dict[str, Any]]:
    variants_table: dict[str, dict[str, Any]] = as_table(texts, Options(**options), NOWHERE)["variants"]
    return variants_table


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("opt=O3,march=x86-64-v3", {"opt": "O3", "march": "x86-64-v3"}),
        ("kconfig.PREEMPT=y", {"kconfig": {"PREEMPT": "y"}}),
        (
            "kconfig.HZ=1000,kconfig.KVM=false,kconfig.X=0x10,kconfig.Y=010",
            {"kconfig": {"HZ": 1000, "KVM": False, "X": 16, "Y": "010"}},
        ),
        ('kconfig.LOCALVERSION="1000"', {"kconfig": {"LOCALVERSION": "1000"}}),
        ("sysctl.vm.swappiness=10", {"sysctl": {"vm.swappiness": 10}}),
        ("patches=a.patch,patches=b.patch", {"patches": ["a.patch", "b.patch"]}),
        ("cmdline=mitigations=off,cmdline=nosmt", {"cmdline": ["mitigations=off", "nosmt"]}),
        ('cmdline="isolcpus=1,2",opt=O2', {"cmdline": ["isolcpus=1,2"], "opt": "O2"}),
        ("cmdline='a=\"b\"'", {"cmdline": ['a="b"']}),
        ("profile.use=autofdo,profile.use=order", {"profile": {"use": ["autofdo", "order"]}}),
        ("profile.use=pgo,profile.from=x.gcda", {"profile": {"use": ["pgo"], "from": "x.gcda"}}),
        ("lines=true", {"lines": "true"}),
        ("", {}),
    ],
)
def test_the_short_form_says_what_toml_would(text: str, meant: dict[str, Any]) -> None:
    assert short(text) == meant
    if meant.get("kconfig") is None or "Y" not in meant["kconfig"]:
        Recipe.model_validate(meant)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("O3", "`O3` in `O3` has no value"),
        ("cmdline=isolcpus=1,2", "`2` in `cmdline=isolcpus=1,2` has no value"),
        ("=O3", "has no key"),
        ("opt=O3,", "ends with a comma"),
        ("opt=O3,,march=native", "has no key"),
        ("opt=O2,opt=O3", "`opt=O3` sets opt a second time"),
        ("kconfig.A=y,kconfig.A=n", "`kconfig.A=n` sets kconfig.A a second time"),
        ("kconfig=PREEMPT", "names a table: write kconfig.KEY=VALUE"),
        ("profile=pgo", "names a table: write profile.KEY=VALUE"),
        ("opt=O3,opt.x=1", "sets opt a second time"),
        ('cmdline="a,b', "has quotes that don't end"),
        ('cmdline="a"b', "has quotes that don't end"),
        ("opt=" + "x" * 100_000, "has more than 100,000 characters"),
    ],
)
def test_what_is_no_short_form_is_refused_with_the_piece_that_is_wrong(text: str, why: str) -> None:
    with pytest.raises(NotShort) as refused:
        short(text)
    assert why in str(refused.value)
    assert len(str(refused.value)) < 600


def test_a_recipe_may_begin_with_a_source() -> None:
    base = NOWHERE / "tree"
    written = {
        "git:linux#v6.12": "git:/nowhere/tree/linux#v6.12",
        ".#HEAD~1,opt=O3": "git:/nowhere/tree#HEAD~1",
        "../linux#origin/main": "git:/nowhere/linux#origin/main",
        ".": "/nowhere/tree",
        "./a=b": "/nowhere/tree/a=b",
        "/src/linux.tar.xz,lines=true": "/src/linux.tar.xz",
        "dir:../x": "dir:/nowhere/x",
        "debian:linux-source-6.6": "debian:linux-source-6.6",
        'source="../a,b"': "/nowhere/a,b",
    }
    for text, source in written.items():
        assert as_table([text, "lto=thin"], Options(), base)["source"] == source
        assert "source" not in as_table([text, "lto=thin"], Options(), base)["variants"][name_of(read_side(text), base)]


def test_what_is_neither_a_source_nor_a_recipe_is_refused() -> None:
    for text in ("O3", "v6.12", "", "HEAD~1", "linux"):
        with pytest.raises(NoRecipe, match="is neither a recipe nor a source"):
            read_side(text)


def test_an_unknown_key_is_named_with_the_one_that_was_probably_meant() -> None:
    with pytest.raises(BadRecipe, match=r"`optt=O3`: unknown key `optt`; did you mean `opt`\?"):
        variants("plain", "optt=O3")
    with pytest.raises(BadRecipe, match="`opt`: 'O1', 'O2', 'O3' or 'Os' is expected"):
        variants("plain", "opt=O9")
    with pytest.raises(BadRecipe, match="unknown key `matrix`"):
        variants("plain", "matrix.opt=O3")
    with pytest.raises(BadMachine, match=r"unknown key `memry`; did you mean `memory_mb`\?"):
        variants("plain", "opt=O3", machine="memry=3")
    with pytest.raises(BadMachine, match="there is no type `kvm`"):
        variants("plain", "opt=O3", machine="kvm")
    with pytest.raises(UnknownTest, match="lat_pip,"):
        experiment_for(["plain", "opt=O3"], Options(tests=("lat_pip",)), NOWHERE)[1].workload.part("model")


def test_the_same_recipe_twice_is_refused_however_it_is_written() -> None:
    for first, second in (("plain", "plain"), ("opt=O3,lines=true", "lines=true,opt=O3"), ("plain", ".#HEAD")):
        with pytest.raises(SameRecipe, match="are the same recipe"):
            variants(first, second)
    assert len(variants("plain", ".#HEAD", source=".#HEAD~1")) == 2


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("plain", "plain"),
        ("opt=O3,march=x86-64-v3", "opt-O3+march-x86-64-v3"),
        ("kconfig.PREEMPT=y", "PREEMPT-y"),
        ("patches=../some/where/fix.patch", "patches-fix.patch"),
        ("cmdline=mitigations=off", "cmdline-mitigations-off"),
        (".#HEAD~1,opt=O3", "HEAD-1+opt-O3"),
        ("git:../linux#v6.12", "v6.12"),
        ("debian:linux-source-6.12", "linux-source-6.12"),
        ("image=debian:linux-image-amd64", "linux-image-amd64"),
        ("image=/boot/vmlinuz-6.12.9,cmdline=quiet", "vmlinuz-6.12.9+cmdline-quiet"),
        (".", "nowhere"),
        ("cmdline=ü", "cmdline"),
        ("tuned", "tuned"),
        ("tuned,march=x86-64-v3", "tuned+march-x86-64-v3"),
        ("dir:/", "plain"),
    ],
)
def test_a_variant_is_called_what_was_written(text: str, name: str) -> None:
    assert name_of(read_side(text), NOWHERE) == name


def test_a_recipe_by_name_is_all_that_it_sets_and_pieces_change_it() -> None:
    tuned = named_recipes()["tuned"]
    assert read_side("tuned").recipe == tuned
    changed = read_side("tuned,lto=none,profile.use=autofdo,profile.train=lmbench").recipe
    assert (changed.toolchain, changed.lto) == (tuned.toolchain, "none")
    assert changed.profile is not None and changed.profile.train == ("lmbench",)


def test_names_are_unique_and_not_too_long() -> None:
    long = "x" * MOST_NAME
    assert unique(["a", "a", "b", "a"]) == ["a", "a-2", "b", "a-3"]
    assert unique([long, long]) == [long, f"{long[:-2]}-2"]
    assert [*variants("git:a#v1", "git:b#v1")] == ["v1", "v1-2"]


def test_the_first_is_the_baseline_and_what_is_not_said_is_left_to_the_experiment() -> None:
    assert as_table(["plain", "opt=O3"], Options(), NOWHERE) == {
        "name": "plain-vs-opt-O3",
        "source": DEMO,
        "baseline": "plain",
        "variants": {"plain": {}, "opt-O3": {"opt": "O3"}},
    }


def test_in_a_kernel_tree_that_tree_is_the_source(tmp_path: Path) -> None:
    tree = Path(shutil.copytree(FAKELINUX, tmp_path / "linux"))
    assert as_table(["plain", "opt=O3"], Options(), tree)["source"] == str(tree)
    assert as_table(["plain", "opt=O3"], Options(source=".#v1"), tree)["source"] == f"git:{tree}#v1"
    assert as_table(["plain", "opt=O3"], Options(), tmp_path)["source"] == DEMO


def test_a_machine_that_starts_no_kernels_needs_no_source() -> None:
    written = as_table(["plain", "sysctl.vm.swappiness=10"], Options(machine="local"), NOWHERE)
    assert "source" not in written
    assert written["machine"] == {"type": "local"}


def test_tests_and_workloads_are_told_apart() -> None:
    def workload(*tests: str) -> Any:
        return as_table(["plain", "opt=O3"], Options(tests=tests), NOWHERE).get("workload")

    assert workload() is None
    assert workload("lat_pipe", "lmbench") == {"tests": ["lat_pipe", "lmbench"]}
    assert workload("redis") == {"type": "programs", "use": ["redis"]}
    assert workload("lat_pipe", "b=build", "./own.toml") == {
        "type": "programs",
        "use": ["b=build", "/nowhere/own.toml"],
        "tests": ["lat_pipe"],
    }


def test_what_does_not_go_together_is_refused_as_in_a_file() -> None:
    with pytest.raises(TooManyLayouts, match="20 layouts need as many blocks"):
        experiment_for(["plain", "opt=O3"], Options(layouts=20), NOWHERE)
    with pytest.raises(BadExperiment, match="NUL"):
        experiment_for(["plain", "march=a\0"], Options(), NOWHERE)
    with pytest.raises(NameUnfit):
        experiment_for(["plain", "march=caf\udce9"], Options(), NOWHERE)
    with pytest.raises(NotShort, match="sets lane a second time"):
        variants("plain", "opt=O3", lane="model", machine="lane=wall")


@pytest.mark.parametrize(("machine", "named"), [("", "qemu"), ("uml", "uml"), ("qemu,smp=1", "qemu,smp=1")])
def test_a_lane_that_a_machine_does_not_have_is_refused_with_the_name_of_the_machine(machine: str, named: str) -> None:
    with pytest.raises(BadMachine, match=rf"^--machine {named}: .*`lane`: 'model' or 'wall' is expected"):
        experiment_for(["plain", "opt=O3"], Options(lane="pmu", machine=machine), NOWHERE)


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
PLAIN_WORDS = st.from_regex(r"[a-z0-9_-]{1,12}", fullmatch=True)


def quoted(value: str) -> str:
    """A value as the short form can have any: a string of TOML."""
    escaped = "".join(f"\\U{ord(c):08x}" if not c.isprintable() or c in '"\\' else c for c in value)
    return f'"{escaped}"'


PIECES = st.one_of(
    st.sampled_from(["opt=O2", "opt=O3", "lto=thin", "toolchain=clang-19", "lines=true", "page_size=64k"]),
    st.builds("march={}".format, PLAIN_WORDS),
    st.builds("kconfig.{}={}".format, st.from_regex(r"[A-Z0-9_]{1,8}", fullmatch=True), PLAIN_WORDS),
    st.builds("kconfig.{}={}".format, st.from_regex(r"[A-Z0-9_]{1,8}", fullmatch=True), WORDS.map(quoted)),
    st.builds("sysctl.vm.{}={}".format, PLAIN_WORDS, st.integers(-9, 10**9)),
    st.builds("cmdline={}".format, WORDS.map(quoted)),
    st.builds("patches={}.patch".format, PLAIN_WORDS),
    st.builds("fragments=../{}".format, PLAIN_WORDS),
)
SOURCES = st.one_of(
    st.just(""),
    st.just("."),
    st.builds(".#{}".format, PLAIN_WORDS),
    st.builds("git:../{}#HEAD~1".format, PLAIN_WORDS),
    st.just(DEMO),
)
SIDES = st.builds(
    lambda source, of_recipe: ",".join([*([source] if source else []), *of_recipe]) or "plain",
    SOURCES,
    st.lists(PIECES, max_size=5, unique_by=lambda piece: piece.partition("=")[0]),
)
OPTIONS = st.builds(
    Options,
    tests=st.sampled_from([(), ("lat_pipe",), ("lmbench", "redis")]),
    blocks=st.sampled_from([None, 1, 7, "auto"]),
    margin=st.none() | st.floats(0.0001, 0.5),
    lane=st.sampled_from([None, "model", "wall", "pmu"]),
    machine=st.sampled_from(["", "memory_mb=700,limits.boot=40", "qemu,share=x", "local"]),
    source=st.sampled_from(["", ".#base", "linux"]),
    config=st.sampled_from([None, "make:defconfig", "file:x.config"]),
)


@settings(max_examples=150)
@given(st.lists(SIDES, min_size=2, max_size=4), OPTIONS)
def test_the_toml_loads_as_the_experiment_that_is_run_wherever_it_lies(sides: list[str], options: Options) -> None:
    with tempfile.TemporaryDirectory() as name:
        try:
            text, experiment = experiment_for(sides, options, NOWHERE)
        except KdynoError as refused:
            assert isinstance(refused, SameRecipe | NotAKernelTree | BadExperiment | BadMachine), refused
            return
        path = Path(name) / "elsewhere.toml"
        path.write_text(text, encoding="utf-8")
        assert load_experiment(path) == experiment
    assert next(iter(experiment.variants)) == experiment.baseline
    assert len(experiment.variants) == len(sides)
    for side, recipe in zip(sides, experiment.variants.values(), strict=True):
        meant = read_side(side).recipe
        assert (recipe.opt, recipe.march, recipe.cmdline) == (meant.opt, meant.march, meant.cmdline)
        assert recipe.kconfig | meant.kconfig == recipe.kconfig
