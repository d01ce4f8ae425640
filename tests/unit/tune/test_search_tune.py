"""`kdyno tune delegation`: what is refused before anything is built, and what is said and written at the end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.cli.main import main
from kdyno.kernel.delegation.plan_file import DelegationPlan
from kdyno.kernel.image import Image
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.vmlinux.sources import CompilationUnit, Sources
from kdyno.measure.paths.table import UnknownPath, paths
from kdyno.measure.workload.needs import Load
from kdyno.runs.experiment.errors import BadExperiment, NoTuning
from kdyno.runs.experiment.plan import derived_seed, recipes
from kdyno.runs.experiment.resolve import load_experiment, load_tuning
from kdyno.runs.experiment.tune import CompilerChoice
from kdyno.runs.prepare import NotCarriedOut, NothingToCount
from kdyno.runs.session import Session
from kdyno.runs.single_boots import BootForFileFailed, PmuRun
from kdyno.tune.delegation import kernels as kernels_module
from kdyno.tune.delegation import tune as tune_module
from kdyno.tune.delegation.found import Found, TunedFile
from kdyno.tune.delegation.judgement import Against, JudgedRun
from kdyno.tune.delegation.tune import (
    AlreadyDelegated,
    NothingHeldOut,
    NothingToChoose,
    SameTests,
    TunedNameTaken,
    Tuning,
    check_tuning,
    search_files,
)
from kdyno.tune.delegation.tuned import NOTHING, lines, outcome, write_plan
from tests.unit.explain_specimen import SPACING, TEXT, Kernel

EXPERIMENT = """
name = "tiny"
source = "debian:linux-source-6.12"
baseline = "gcc"
[variants.gcc]
toolchain = "gcc-12"
{recipe}
[workload]
{workload}
[tune]
replicates = 3
[tune.choices.{name}]
compiler = "{compiler}"
add = [{add}]
[tune.held_out]
tests = [{held_out}]
"""
FOUND = Found(
    files=(
        TunedFile(file="fs/namei.c", choice="clang", cost_reference=0.05, cost_choice=0.03),
        TunedFile(file="mm/slub.c", choice="clang", cost_reference=0.02, cost_choice=0.019),
    ),
    hot=70,
    hot_share=0.58,
    gain=0.021,
    noise=0.004,
    kernels=9,
    dropped={"mm/filemap.c": ("clang",)},
    failures=("70 files at O3: it doesn't boot",),
)
WON = Against(variant="gcc", gain=0.02, verdict="faster", sentence="faster by 2 %")
EVEN = Against(variant="clang", gain=0.0, verdict="equivalent", sentence="equivalent within 1 %")
CHOICES = {"clang": CompilerChoice(compiler="clang-19")}


def experiment(folder: Path, **more: str) -> Path:
    values = {
        "recipe": "",
        "workload": 'tests = ["lat_pipe", "lat_ctx"]',
        "name": "clang",
        "compiler": "clang-19",
        "add": "",
        "held_out": '"lat_sig"',
    }
    path = folder / "tiny.toml"
    path.write_text(EXPERIMENT.format(**(values | more)))
    return path


def test_the_machine_is_made_to_model_cycles_and_the_tests_are_the_experiments(tmp_path: Path) -> None:
    tuning = check_tuning(*load_tuning(experiment(tmp_path)))
    assert [test.name for test in tuning.tests] == ["lat_ctx", "lat_pipe"]
    facts = tuning.experiment.machine.model_dump()["pmu"]
    assert (facts["events"], facts["clock"], facts["family"]) == ("all", "cycles", "sapphirerapids")
    assert len(tuning.replicates) == 3
    assert len({replicate.layout_seed for replicate in tuning.replicates}) == 3


class Kernels:
    """What stands in for source, compilers and QEMU: two files, of which clang makes one cheaper and one dearer."""

    files = ("fs/pipe.c", "fs/read_write.c")
    unpatched = Path("linux")
    """The tree whose files are searched."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.panics = False
        units = [
            CompilationUnit(file, ((TEXT + place * SPACING, TEXT + (place + 1) * SPACING),))
            for place, file in enumerate(self.files)
        ]
        for name, stand_in in {
            "fetch": lambda *_: SimpleNamespace(tree=self.unpatched),
            "plan_build": lambda recipe, *_, **__: SimpleNamespace(recipe=recipe, cached=True),
            "open_trials": self.trials,
            "SingleBoots": lambda _: SimpleNamespace(count=self.boot),
            "source_files": {self.unpatched: self.files}.__getitem__,
            "search_ahead": lambda *_: ["to do: search"],
        }.items():
            monkeypatch.setattr(tune_module, name, stand_in)
        monkeypatch.setattr(kernels_module, "read_sources", lambda _: Sources(units))
        monkeypatch.setattr(kernels_module, "read_pmu_record", self.record)

    @contextmanager
    def trials(self, *_: object) -> Iterator[Any]:
        yield SimpleNamespace(build=self.build)

    def build(self, plans: Sequence[Any], _progress: object) -> list[Image]:
        names = [self.clangs(plan.recipe.delegation) for plan in plans]
        return [Image.model_construct(directory=Path(name), record=None) for name in names]  # type: ignore[arg-type]

    def clangs(self, plan: DelegationPlan) -> str:
        """One digit for each file: whether clang compiles it."""
        return "".join(str(int(any(file in rule.files for rule in plan.rule))) for file in self.files)

    def boot(self, image: Image, load: Load, **_: object) -> PmuRun:
        assert load.tests == ("lat_ctx", "lat_pipe")
        if self.panics and image.directory.name != "00":
            raise BootForFileFailed(name="image abc", image="abc", reason="kernel panic", console="/c")
        return PmuRun(image.directory, ("lat_pipe.roundtrip",), {"lat_pipe.roundtrip": [250] * 4})

    def record(self, path: Path) -> Any:
        pipe, read_write = map(int, path.name)
        return Kernel().function("a", 100 - 30 * pipe).function("b", 50 + 20 * read_write).record()


def test_the_file_that_a_choice_makes_cheaper_gets_it_and_the_other_stays_with_the_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Kernels(monkeypatch)
    tuning = check_tuning(*load_tuning(experiment(tmp_path)))
    result = search_files(tuning, Session(State(tmp_path / "state"), None, Talk()))  # type: ignore[arg-type]
    assert result.assignment == {"fs/pipe.c": "clang"}
    assert result.files[0].cost_reference == pytest.approx(2 / 3) and result.gain == pytest.approx(0.2)
    assert (result.kernels, result.hot, result.dropped) == (3, 2, {})
    output = capsys.readouterr().err
    assert "kernel 1: the reference" in output and "kernel 2: 2 files at clang" in output
    assert "kernel 3: 1 file at clang\n  -20.0 % modelled cycles" in output


def test_files_with_which_a_choice_panics_are_left_out_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Kernels(monkeypatch).panics = True
    tuning = check_tuning(*load_tuning(experiment(tmp_path)))
    result = search_files(tuning, Session(State(tmp_path / "state"), None, Talk(quiet=True)))  # type: ignore[arg-type]
    assert result.files == () and result.gain == 0 and result.noise is None
    whole, *single = result.failures
    assert whole.startswith("2 files at clang: ") and whole.endswith("kernel panic")
    assert [failure.partition(": ")[0] for failure in single] == ["1 file at clang", "1 file at clang"]
    assert "left out" in capsys.readouterr().err


def test_trials_and_judgements_share_no_seed() -> None:
    seeds = [derived_seed(1, f"tune {what}") for what in ("trials", "judging chosen by", "judging held out")]
    assert len(set(seeds)) == 3 and all(0 <= seed < 2**31 for seed in seeds)


ON_PATHS = """
name = "tiny"
source = "linux"
baseline = "gcc"
[variants.gcc]
toolchain = "gcc-12"
[machine]
type = "uml"
[tune.choices.clang]
compiler = "clang-19"
"""


def tuning_on_paths(folder: Path, more: str = "") -> Tuning:
    path = folder / "tiny.toml"
    path.write_text(ON_PATHS + more)
    return check_tuning(*load_tuning(path))


def test_a_search_on_paths_chooses_by_one_half_and_holds_out_the_other(tmp_path: Path) -> None:
    tuning = tuning_on_paths(tmp_path)
    held_out = tuning.held_out.benchmark_names()
    assert {paths()[test.name].half for test in tuning.tests} == {"fit"}
    assert {paths()[name].half for name in held_out} == {"held-out"}
    used = {test.name for test in tuning.tests} | set(held_out)
    assert set(paths()) - used == {"lookup"}  # it would stand for its group
    assert tuning.experiment.workload.benchmark_names() == tuple(test.name for test in tuning.tests)
    assert tuning.is_timed and tuning.experiment.machine.lane == "wall"
    pipe = tuning_on_paths(tmp_path, '[workload]\ntests = ["pipe"]')
    assert pipe.held_out.benchmark_names() == ("pipe_stream_64", "pipe_stream_64k")


def test_a_search_on_paths_in_the_lane_of_the_model_counts_cycles(tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(ON_PATHS.replace('type = "uml"', 'type = "uml"\nlane = "model"'))
    tuning = check_tuning(*load_tuning(path))
    assert (tuning.is_timed, tuning.unit) == (False, "modelled cycles")
    assert tuning.caption.startswith("cycles are modelled")


def test_trials_are_timed_in_the_link_orders_that_were_built_for_them(tmp_path: Path) -> None:
    tuning = tuning_on_paths(tmp_path)
    trial = tuning.experiment.model_copy(
        update={"layouts": tuning.config.replicates, "variants": {"trial": Recipe(layout_seed=tuning.trials_seed)}}
    )
    built = [replicate.layout_seed for replicate in tuning.replicates]
    assert [recipe.layout_seed for recipe in recipes(trial, "trial")] == built


def test_a_search_on_paths_holds_out_what_it_is_told(tmp_path: Path) -> None:
    tuning = tuning_on_paths(tmp_path, '[workload]\ntests = ["pipe"]\n[tune.held_out]\ntests = ["tcp_ping"]')
    assert len(tuning.tests) == 4 and tuning.held_out.benchmark_names() == ("tcp_ping",)


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ('[workload]\ntests = ["tcp_ping"]', NothingHeldOut, "nothing is held out"),
        ('[tune.held_out]\ntests = ["tcp_ping"]', SameTests, "tcp_ping"),
        ('[tune.held_out]\ntype = "lmbench"\ntests = ["lat_sig"]', NotCarriedOut, "`lmbench` cannot be carried out"),
        ('[tune.held_out]\ntests = ["lat_sig"]', UnknownPath, "lat_sig"),
    ],
)
def test_a_search_on_paths_without_paths_to_judge_by_is_refused_before_anything_is_built(
    tmp_path: Path, more: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tuning_on_paths(tmp_path, more)


def test_a_search_in_guests_needs_tests_that_it_does_not_choose_by(tmp_path: Path) -> None:
    path = experiment(tmp_path)
    path.write_text(path.read_text().partition("[tune.held_out]")[0])
    with pytest.raises(NothingHeldOut, match="is missing"):
        check_tuning(*load_tuning(path))


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({"name": "gcc"}, TunedNameTaken, "the name of the baseline"),
        ({"name": "mixed"}, TunedNameTaken, "the name of the kernel that is found"),
        ({"held_out": '"lat_pipe", "lat_sig"'}, SameTests, "lat_pipe"),
        ({"compiler": "gcc-12"}, NothingToChoose, "without other flags"),
        ({"recipe": 'delegation = "plan.toml"'}, AlreadyDelegated, "has a delegation plan already"),
        ({"workload": 'type = "command"\ncommand = ["true"]\nvalues = [{name = "x", pattern = "(1)"}]'}, None, ""),
    ],
)
def test_what_can_not_be_tuned_is_refused_before_anything_is_built(
    tmp_path: Path, more: dict[str, str], error: type[Exception] | None, message: str
) -> None:
    path = experiment(tmp_path, **more)
    if error is None:
        with pytest.raises((NothingToCount, BadExperiment)):
            check_tuning(*load_tuning(path))
        return
    with pytest.raises(error, match=message):
        check_tuning(*load_tuning(path))


def test_a_choice_that_no_plan_can_hold_is_one_message_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(BadExperiment, match=r"tiny\.toml:13: .*compiler"):
        load_tuning(experiment(tmp_path, compiler="tcc"))


def test_without_a_table_of_choices_there_is_nothing_to_tune_and_a_run_does_not_mind_one(tmp_path: Path) -> None:
    path = experiment(tmp_path)
    assert load_experiment(path).name == "tiny"
    path.write_text(path.read_text().partition("[tune]")[0])
    with pytest.raises(NoTuning, match="no table"):
        load_tuning(path)


def test_what_was_found_is_listed_and_written_with_the_claim_that_it_allows(tmp_path: Path) -> None:
    judgements = (JudgedRun(workload="chosen by", run="abc", against=(WON, EVEN)),)
    tuned = write_plan(outcome(FOUND, judgements, "time", "kernels are timed"), CHOICES, tmp_path / "plan.toml")
    text = "\n".join(lines(tuned, top=1))
    assert "9 kernels measured; 70 hot files take 58.0 % of all time; 2 of them get a choice" in text
    assert "fs/namei.c" in text and "mm/slub.c" not in text and "... and 1 more" in text
    assert "dropped: mm/filemap.c: clang" in text and "left out: 70 files at O3" in text
    assert text.endswith("not shown against clang (chosen by: equivalent)")
    plan = (tmp_path / "plan.toml").read_text()
    assert "# the mixed kernel does not beat" in plan and 'table = "plan.csv"' in plan
    assert (tmp_path / "plan.csv").read_text().count("\n") == 3


def test_where_no_file_gains_no_plan_is_written_and_that_is_said(tmp_path: Path) -> None:
    nothing = FOUND.model_copy(update={"files": ()})
    tuned = write_plan(outcome(nothing, (), "time", ""), CHOICES, tmp_path / "plan.toml")
    assert tuned.claim == NOTHING and tuned.plan is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("is_lost", "code"), [(False, 0), (True, 3)])
def test_the_command_ends_with_what_was_shown_also_if_that_is_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_lost: bool,
    code: int,
) -> None:
    judgements = [JudgedRun(workload="chosen by", run="abc", against=(EVEN,))]
    monkeypatch.setattr(tune_module, "search_files", lambda *_: FOUND)
    monkeypatch.setattr(tune_module, "judge_mixed", lambda *_: (judgements, is_lost))
    words = ["tune", "delegation", str(experiment(tmp_path)), "-o", str(tmp_path / "out.toml"), "--json"]
    assert main([*words, "--state", str(tmp_path / "state")]) == code
    document = json.loads(capsys.readouterr().out)
    assert document["claim"].startswith("the mixed kernel does not beat")
    assert document["plan"] == str(tmp_path / "out.toml") and Path(document["table"]).is_file()
