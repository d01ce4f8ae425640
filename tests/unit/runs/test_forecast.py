"""What a run would do: decisions about images, boots that are left, and what the times rest on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kdyno.base.lanes import LANES
from kdyno.base.state import State
from kdyno.boot.base import Description
from kdyno.boot.registry import open_machine
from kdyno.kernel import estimate
from kdyno.kernel.build import BuildPlan
from kdyno.kernel.kconfig import Base, resolve_base
from kdyno.kernel.knobs import KconfigRequest
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.toolchain import Toolchain
from kdyno.measure.guest.job import Job
from kdyno.measure.guest.pmu import PmuConfig
from kdyno.measure.workload.paths import PathsWorkload
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.experiment.plan import plan_boots
from kdyno.runs.forecast import BuildForecast, Forecast, TrainingForecast, forecast
from kdyno.runs.prepare import Prepared
from kdyno.runs.run_plan import RunPlan
from kdyno.store.store import Store
from kdyno.store.url import sqlite_file
from tests.unit import specimen

VARIANTS = {
    "plain": Recipe(toolchain="gcc-12"),
    "fast": Recipe(toolchain="gcc-12", opt="O3"),
    "off": Recipe(toolchain="gcc-12", cmdline=("mitigations=off",)),
}


def plan(key: str, recipe: Recipe, *, cached: bool = False) -> BuildPlan:
    record = specimen.image("gcc-12", Recipe(toolchain="gcc-12"))
    return BuildPlan(
        key=key,
        objects_key=key,
        cached=cached,
        recipe=recipe,
        source=record.source,
        tree=Path("/nowhere"),
        base=Base(spec="x86_64-qemu", kind="make", target="defconfig"),
        toolchain=Toolchain(identity=record.toolchain, command="gcc-12", make=()),
        asks=(),
        make=(),
        environment={},
    )


def prepared(*, cached: bool = False) -> Prepared:
    experiment = Experiment(name="quickstart", source="s", baseline="plain", variants=VARIANTS, blocks=4)
    return Prepared(
        experiment=experiment,
        settings=experiment.machine,
        machine=open_machine(experiment.machine),
        about=Description(lane="model", parallel=2, facts={}, host={}),
        job=Job(lane="model", iterations=7),
        plans={
            name: (plan("b" if name == "fast" else "a", recipe, cached=cached),) for name, recipe in VARIANTS.items()
        },
    )


def run_plan(of: Prepared, run_id: str = "run") -> RunPlan:
    """Keys as those of the specimen's boots."""
    boots = tuple(plan_boots(of.experiment))
    return RunPlan(run_id, boots, {boot.cell: f"{boot.variant}, block {boot.block}" for boot in boots})


def ahead_of(of: Prepared, state: State, store: Store) -> Forecast:
    return forecast(of, run_plan(of), state, store)


@pytest.fixture
def store(state: State) -> Iterator[Store]:
    with Store(sqlite_file(state.store_file)) as store:
        yield store


def decisions(ahead: Forecast) -> dict[str, str]:
    return {build.variant: build.decision for build in ahead.builds}


def test_layouts_of_one_recipe_are_compiled_once_and_linked_again(state: State, store: Store) -> None:
    recipe = VARIANTS["plain"]
    layouts = tuple(
        plan(f"a{seed}", recipe.model_copy(update={"layout_seed": seed})).model_copy(update={"objects_key": "a"})
        for seed in (1, 2, 3)
    )
    ahead = ahead_of(replace(prepared(), plans={"plain": layouts}), state, store)
    assert decisions(ahead) == {"plain, layout 1": "build", "plain, layout 2": "link", "plain, layout 3": "link"}


def test_variants_that_differ_only_in_how_they_are_started_share_an_image(state: State, store: Store) -> None:
    ahead = ahead_of(prepared(), state, store)
    assert decisions(ahead) == {"plain": "build", "fast": "build", "off": "shared"}
    assert decisions(ahead_of(prepared(cached=True), state, store))["fast"] == "cached"


def on_base(ahead: Prepared, base: str) -> Prepared:
    """The same experiment on another base configuration."""
    return replace(
        ahead,
        plans={
            name: tuple(plan.model_copy(update={"base": resolve_base(base)}) for plan in plans)
            for name, plans in ahead.plans.items()
        },
    )


def test_without_anything_like_it_the_time_of_a_build_is_a_guess_from_its_files_and_the_cores(
    state: State, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = {}
    for cores in (1, 2):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        ahead = ahead_of(on_base(prepared(), "dyno"), state, store)
        build = ahead.builds[0]
        assert build.seconds_from.startswith("a guess: 810 files to compile on ")
        assert (build.guess, ahead.guessed) == (True, ("build", "boot"))
        assert ahead.model_dump()["guessed"] == ("build", "boot")
        seconds[cores] = build.seconds
    assert seconds == {1: 830.0, 2: 425.0}


def test_options_that_are_asked_for_on_top_of_the_base_count(state: State, store: Store) -> None:
    recipe = VARIANTS["plain"]
    asks = (
        *(KconfigRequest(symbol=f"NEW_{n}", value="y", by="x") for n in range(100)),
        KconfigRequest(symbol="SMP", value="y", by="x"),
    )
    asked = plan("a", recipe).model_copy(update={"base": resolve_base("dyno"), "asks": asks})
    ahead = ahead_of(replace(prepared(), plans={"plain": (asked,)}), state, store)
    assert ahead.builds[0].seconds_from.startswith("a guess: 1,000 files")


@pytest.mark.parametrize("is_installed", [True, False])
def test_ccache_helps_builds_where_it_is_and_nothing_else(
    state: State, store: Store, monkeypatch: pytest.MonkeyPatch, is_installed: bool
) -> None:
    monkeypatch.setattr("kdyno.kernel.ccache.is_installed", lambda: is_installed)
    builds = ahead_of(prepared(), state, store).builds
    assert [build.cached_objects for build in builds] == [
        is_installed and build.decision == "build" for build in builds
    ]


def test_where_only_configuring_tells_the_time_of_a_build_is_unknown_and_so_is_the_whole(
    state: State, store: Store
) -> None:
    ahead = ahead_of(on_base(prepared(), "make:randconfig"), state, store)
    assert [build.seconds for build in ahead.builds] == [None, None, 0.0]
    assert ahead.builds[0].seconds_from == "unknown: only configuring tells how much make:randconfig compiles"
    assert ahead.seconds is None
    assert ahead.model_dump()["seconds"] is None


def test_a_build_is_expected_to_take_as_long_as_three_of_four_like_it_did(state: State, store: Store) -> None:
    record = specimen.image("gcc-12", Recipe(toolchain="gcc-12"))
    for key, seconds in zip("12456", (100.0, 241.9, 3000.0, 90.0, 80.0), strict=True):
        place = state.images / (key * 64)
        place.mkdir()
        (place / "image.json").write_text(record.model_copy(update={"build_seconds": seconds}).model_dump_json())
    (state.images / ("3" * 64)).mkdir()
    (state.images / ("3" * 64) / "image.json").write_text("not JSON")
    ahead = ahead_of(prepared(), state, store)
    assert [build.seconds for build in ahead.builds] == [241.9, 241.9, 0.0]
    assert ahead.builds[0].seconds_from == (
        "measured: three of four of the 5 builds of x86_64-qemu by gcc here took no longer"
    )
    assert not ahead.builds[0].guess


def keep_record(state: State, key: str, **changes: object) -> None:
    record = specimen.image("gcc-12", Recipe(toolchain="gcc-12")).model_copy(update=changes)
    place = state.images / (key * 64)
    place.mkdir()
    (place / "image.json").write_text(record.model_dump_json())


def test_builds_of_other_configurations_tell_how_fast_this_host_is(state: State, store: Store) -> None:
    for key, seconds, steps, arch in (("1", 130.0, 1300, "x86_64"), ("2", 20.0, 10, "um"), ("3", 9.0, 0, "x86_64")):
        keep_record(state, key, build_seconds=seconds, steps=steps, base="make:tinyconfig", arch=arch)
    build = ahead_of(on_base(prepared(), "dyno"), state, store).builds[0]
    assert build.seconds == pytest.approx(0.1 * estimate.lines_of_files(810))
    assert build.seconds_from == "a guess: 810 files to compile, as fast as other configurations by gcc here"
    assert build.guess


def test_links_of_objects_that_were_compiled_before_are_not_builds_like_it(state: State, store: Store) -> None:
    for key, seconds in zip("1234", (250.0, 2.0, 3.0, 2.5), strict=True):
        keep_record(state, key, build_seconds=seconds, recipe=Recipe(toolchain="gcc-12", layout_seed=int(key)))
    [build, *_] = ahead_of(prepared(), state, store).builds
    assert (build.seconds, build.seconds_from) == (250.0, "measured: the only build of x86_64-qemu by gcc here")


def test_a_link_is_expected_to_take_as_long_as_three_of_four_of_other_sources_and_recipes_did(
    state: State, store: Store
) -> None:
    recipe = VARIANTS["plain"]
    layouts = tuple(
        plan(f"a{seed}", recipe.model_copy(update={"layout_seed": seed})).model_copy(update={"objects_key": "a"})
        for seed in (1, 2)
    )
    of = replace(prepared(), plans={"plain": layouts})
    guessed = ahead_of(of, state, store).builds[1]
    assert (guessed.decision, guessed.guess) == ("link", True)
    assert guessed.seconds_from == "a guess: what a link takes on 2 cores, at most"
    for key, seconds in zip("12345", (250.0, 2.0, 3.0, 2.5, 60.0), strict=True):
        other = Recipe(toolchain="gcc-12", opt="O3", layout_seed=int(key))
        keep_record(state, key, build_seconds=seconds, recipe=other)
    measured = ahead_of(of, state, store).builds[1]
    assert (measured.seconds, measured.guess) == (60.0, False)
    assert measured.seconds_from == "measured: three of four of the 4 links of x86_64-qemu by gcc here took no longer"


def test_builds_for_another_architecture_are_not_builds_like_it(state: State, store: Store) -> None:
    keep_record(state, "1", build_seconds=100.0, arch="um")
    assert ahead_of(prepared(), state, store).builds[0].seconds != 100.0
    for_um = {
        name: tuple(plan.model_copy(update={"arch_name": "um"}) for plan in plans)
        for name, plans in prepared().plans.items()
        if all(isinstance(plan, BuildPlan) for plan in plans)
    }
    assert ahead_of(replace(prepared(), plans=for_um), state, store).builds[0].seconds == 100.0


def test_the_guess_of_a_boot_is_that_of_its_workload(state: State, store: Store) -> None:
    of_guests = prepared(cached=True)
    assert ahead_of(of_guests, state, store).boot_seconds == LANES["model"].first_boot_seconds
    workloads = [PathsWorkload(tests=("pipe",)), PathsWorkload()]
    few, all_paths = (
        ahead_of(
            replace(of_guests, experiment=of_guests.experiment.model_copy(update={"workload": workload})), state, store
        ).boot_seconds
        for workload in workloads
    )
    assert few < all_paths and all_paths > 60
    assert PathsWorkload().first_boot_seconds("wall") < 5


def test_the_time_of_boots_is_a_guess_until_one_is_on_record(state: State, store: Store) -> None:
    ahead = ahead_of(prepared(cached=True), state, store)
    assert ahead.boot_seconds_from.startswith("a guess")
    assert ahead.guessed == ("boot",)
    assert ahead.seconds == 12 * ahead.boot_seconds / 2


def test_boots_on_record_are_not_ahead_and_tell_how_long_the_others_take(state: State, store: Store) -> None:
    run = specimen.run_record(blocks=4)
    store.begin(run, specimen.cells(run))
    for boot in specimen.boot_records(run, iterations=1, failed=None):
        store.add_boot(boot, specimen.benchmarks())
    ahead = ahead_of(prepared(cached=True), state, store)
    assert (ahead.boots_done, len(ahead.boots)) == (0, 12)  # of variants with other names
    assert (ahead.boot_seconds, ahead.boot_seconds_from) == (19.5, f"median of run {run.id}")
    assert ahead.guessed == ()


def test_boots_of_a_variant_that_was_given_up_are_not_ahead(state: State, store: Store) -> None:
    run = specimen.run_record(blocks=4, variants=("gcc-12", "gcc-12-O3"))
    store.begin(run, specimen.cells(run))
    for boot in specimen.boot_records(run, iterations=1, failed=None):
        if (boot.variant, boot.block) in {("gcc-12", 0), ("gcc-12-O3", 0), ("gcc-12-O3", 1)}:
            ends = {"status": "failed", "samples": ()} if boot.variant == "gcc-12-O3" else {}
            store.add_boot(boot.model_copy(update=ends), specimen.benchmarks())
    variants = dict.fromkeys(("gcc-12", "gcc-12-O3"), VARIANTS["plain"])
    of = prepared(cached=True)
    experiment = of.experiment.model_copy(update={"baseline": "gcc-12", "variants": variants})
    ahead = ahead_of(replace(of, experiment=experiment, plans={}), state, store)
    assert [boot.variant for boot in ahead.boots] == ["gcc-12"] * 3
    assert ahead.boots_done == 3


def test_boots_without_the_emulated_pmu_dont_tell_how_long_those_with_it_take(state: State, store: Store) -> None:
    run = specimen.run_record(blocks=4)
    store.begin(run, specimen.cells(run))
    for boot in specimen.boot_records(run, iterations=1, failed=None):
        store.add_boot(boot, specimen.benchmarks())
    about = Description(lane="model", parallel=2, facts={}, host={}, pmu=PmuConfig())
    ahead = ahead_of(replace(prepared(cached=True), about=about), state, store)
    assert ahead.boot_seconds_from.startswith("a guess")


def test_the_whole_is_the_builds_and_the_boots_side_by_side() -> None:
    builds = (BuildForecast("a", "k", "build", "", 100.0), BuildForecast("b", "k", "shared", "", 0.0))
    ahead = Forecast(
        run="run",
        builds=builds,
        boots=(),
        boots_done=0,
        boot_seconds=5.0,
        boot_seconds_from="",
        boot_guess=False,
        side_by_side=2,
    )
    assert ahead.seconds == 100.0


def test_a_run_after_another_has_neither_its_images_nor_its_training() -> None:
    build = BuildForecast("plain", "a", "build", "none yet", 60.0)
    training = TrainingForecast("autofdo", "plain", "a", ("general",), 3, 3)
    known = {"boots": (), "boots_done": 0, "boot_seconds": 1.0, "boot_seconds_from": "", "boot_guess": False}
    trained = {"trainings": (training,), "training_boots": 3, "training_seconds": 90.0}
    before = Forecast(run="one", builds=(build,), side_by_side=1, **known, **trained)
    own = replace(build, key="b")
    after = Forecast(run="two", builds=(build, own), side_by_side=1, **known, **trained).after(before)
    assert (after.builds, after.trainings, after.training_boots, after.seconds) == ((own,), (), 0, 60.0)
    other = before.model_copy(update={"trainings": ()})
    assert before.after(other).training_boots == 3
