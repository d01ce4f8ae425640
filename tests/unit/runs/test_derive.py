"""Inputs that are made of boots: known before anything runs, made in order, once, and seen by the compiler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kdyno.base.frozen import digest
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.registry import default_machine
from kdyno.kernel import knobs
from kdyno.kernel.image import Image
from kdyno.kernel.knobs.base import Contribution, KconfigRequest, Knob, KnobContext
from kdyno.kernel.plan import BuildPlan
from kdyno.kernel.recipe import Profile, ProfileSettings, Recipe, Training
from kdyno.measure.cycles.family import load_family
from kdyno.measure.cycles.gains import SiliconGain
from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.measure.workload.named import training_load
from kdyno.runs.derive import _contents, boots_left, training_words
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.experiment.variants import CircularTraining, NeededKconfig, UnknownTrainee, resolve_recipes
from kdyno.runs.exporters import EXPORTERS, Exporter
from kdyno.runs.forecast import Forecast, forecast, forecast_builds
from kdyno.runs.images import build_images
from kdyno.runs.outlook import run_ahead, training_ahead
from kdyno.runs.prepare import Builds, plan_builds
from kdyno.runs.run_plan import RunPlan
from kdyno.runs.session import Session
from kdyno.runs.train import make_inputs
from kdyno.store.store import Store
from kdyno.store.url import sqlite_file
from tests.unit.boot.test_pmu_machine import TEST, ready
from tests.unit.fake_qemu import FakeQemu
from tests.unit.kernel_toy import TINY, toy_tree
from tests.unit.measure.test_pmu_symbols import ENTRIES
from tests.unit.runs.test_forecast import prepared

QUIET = Talk(quiet=True)


def contribute(value: Profile | None, context: KnobContext) -> Contribution:
    """A header that every compile includes, made of boots of the kernel that the profile is trained on."""
    if value is None or value.trainee is None:
        return Contribution()
    training = Training(
        variant=value.trainee.variant,
        recipe=value.trainee.recipe,
        load=value.trainee.load,
        seeds=tuple(range(1, value.seeds + 1)),
        settings=ProfileSettings(hot=value.hot),
    )
    sample = context.trained("sample", training, "test")
    return Contribution(kcflags=("-include", sample.placeholder), inputs=(sample,))


def write(records: Sequence[Path], image: Image, settings: ProfileSettings) -> bytes:  # noqa: ARG001
    """A header that leaves in every object what it was made of."""
    names = [read_pmu_record(record).benchmarks[0] for record in records]
    text = f"trained on {image.record.key[:12]}: {', '.join(names)}"
    return f'static const char sample[] __attribute__((used)) = "{text}";\n'.encode()


@pytest.fixture(autouse=True)
def qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeQemu:
    """Boots that leave a sound PMU record, an exporter, and a knob that wants what it makes."""
    others = (knob for knob in knobs.KNOBS if knob.field != "profile")
    monkeypatch.setattr(knobs, "KNOBS", (*others, Knob("profile", contribute)))
    monkeypatch.setitem(EXPORTERS, "test", Exporter(version=1, counts="edges", write=write))
    fake = FakeQemu(tmp_path, monkeypatch)
    ready(fake)
    return fake


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy, with the functions that the emulated PMU looks for."""
    place = toy_tree(tmp_path_factory.mktemp("source"))
    with (place / "lib/crc32.c").open("a") as file:
        file.write("".join(f"void {name}(void) {{ }}\n" for name in ENTRIES))
    return place


@pytest.fixture
def store(state: State) -> Iterator[Store]:
    with Store(sqlite_file(state.store_file)) as store:
        yield store


def trained_on(variant: str, **settings: Any) -> Recipe:
    return Recipe(profile=Profile(use=("order",), on=variant, **{"train": (TEST,), "seeds": 2, **settings}))


def experiment(tree: Path, **variants: Recipe) -> Experiment:
    needed = NeededKconfig(of_machine=default_machine().needed_kconfig())
    recipes = resolve_recipes({"plain": Recipe(), **variants}, str(tree), TINY, needed, {}, training_load)
    return Experiment(name="x", source=str(tree), config=TINY, baseline="plain", variants=recipes)


def planned(tree: Path, state: State, **variants: Recipe) -> Builds:
    return plan_builds(experiment(tree, **variants), state, QUIET)


def key_of(tree: Path, state: State, training: Recipe, **others: Recipe) -> str:
    return planned(tree, state, tuned=training, **others).plans["tuned"][0].key


def carried_out(builds: Builds, state: State, store: Store) -> dict[str, Image]:
    make_inputs(builds.trainings, Session(state, store, QUIET))
    return {name: image for name, [image] in build_images(builds.plans, state, QUIET).items()}


def test_the_key_of_a_trained_kernel_is_known_before_anything_runs_and_is_the_same_again(
    tree: Path, state: State, tmp_path: Path, qemu: FakeQemu
) -> None:
    first = planned(tree, state, tuned=trained_on("plain"))
    assert first.plans["tuned"][0].key == key_of(tree, State(tmp_path / "other"), trained_on("plain"))
    assert first.plans["tuned"][0].key != first.plans["plain"][0].key
    assert not first.trainings[0].input.path.exists()
    assert qemu.boots == 0
    assert list(state.images.iterdir()) == []


def test_all_that_decides_an_input_decides_the_key_of_what_takes_it(
    tree: Path, state: State, qemu: FakeQemu, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key(variant: str = "plain", **settings: Any) -> str:
        small = Recipe(opt="Os")
        quiet = Recipe(cmdline=("quiet",))
        return key_of(tree, state, trained_on(variant, **settings), small=small, quiet=quiet)

    keys = {
        "as it is": key(),
        "fewer seeds": key(seeds=1),
        "another workload": key(train=("lat_pipe",)),
        "another image": key("small"),
        "another command line": key("quiet"),
    }
    assert key(hot=500) == keys["as it is"], "which this exporter doesn't heed"
    monkeypatch.setitem(EXPORTERS, "test", replace(EXPORTERS["test"], version=2))
    keys["another version of the exporter"] = key()
    (qemu.directory / "plugin.so").write_bytes(b"counts otherwise")
    keys["another instrument"] = key()
    assert len(set(keys.values())) == len(keys)


def test_the_compiler_sees_what_the_boots_taught_and_the_second_time_nothing_is_made(
    tree: Path, state: State, store: Store, qemu: FakeQemu
) -> None:
    builds = planned(tree, state, tuned=trained_on("plain"))
    images = carried_out(builds, state, store)
    taught = f"trained on {images['plain'].record.key[:12]}: lat_syscall.null, lat_syscall.null".encode()
    assert images["tuned"].vmlinux.read_bytes().count(taught) == 3
    assert taught not in images["plain"].vmlinux.read_bytes()
    [training] = builds.trainings
    assert images["tuned"].record.inputs == {"sample": training.derivation.digest}
    assert training.derivation.model_validate_json(training.input.path.with_suffix(".json").read_bytes()) == (
        training.derivation
    )
    again = planned(tree, state, tuned=trained_on("plain"))
    assert again.trainings == ()
    assert carried_out(again, state, store) == images
    assert qemu.boots == 2


def test_what_is_trained_on_a_trained_kernel_is_made_in_order(
    tree: Path, state: State, store: Store, qemu: FakeQemu
) -> None:
    twice, once = trained_on("once", seeds=1), trained_on("plain", seeds=1)
    builds = planned(tree, state, twice=twice, once=once)
    assert [training.training.variant for training in builds.trainings] == ["plain", "once"]
    images = carried_out(builds, state, store)
    for name, trainee in {"once": "plain", "twice": "once"}.items():
        assert f"trained on {images[trainee].record.key[:12]}".encode() in images[name].vmlinux.read_bytes()
    assert qemu.boots == 2


def test_a_kernel_that_is_there_needs_no_training_any_more(
    tree: Path, state: State, store: Store, qemu: FakeQemu
) -> None:
    builds = planned(tree, state, twice=trained_on("once"), once=trained_on("plain"))
    carried_out(builds, state, store)
    for training in builds.trainings:
        training.input.path.unlink()
    assert planned(tree, state, twice=trained_on("once"), once=trained_on("plain")).trainings == ()
    other = planned(tree, state, third=trained_on("once", seeds=3), once=trained_on("plain"))
    assert [training.training.variant for training in other.trainings] == ["once"], "whose own input is not needed"
    boots = qemu.boots
    assert boots_left(other.trainings, store) == {("edges", "agent"): 1}
    carried_out(other, state, store)
    assert qemu.boots == boots + 1


def test_an_input_that_was_deleted_is_made_of_the_boots_on_record(
    tree: Path, state: State, store: Store, qemu: FakeQemu
) -> None:
    builds = planned(tree, state, tuned=trained_on("plain"))
    assert training_ahead(boots_left(builds.trainings, store)["edges", "agent"]) == ["to do: boot 2 times to train"]
    make_inputs(builds.trainings, Session(state, store, QUIET))
    content = builds.trainings[0].input.path.read_bytes()
    builds.trainings[0].input.path.unlink()
    assert boots_left(builds.trainings, store) == {("edges", "agent"): 0}
    assert training_ahead(0) == []
    make_inputs(builds.trainings, Session(state, store, QUIET))
    assert builds.trainings[0].input.path.read_bytes() == content
    assert qemu.boots == 2


def test_the_forecast_counts_the_builds_and_boots_of_training(tree: Path, state: State, store: Store) -> None:
    of = experiment(tree, tuned=trained_on("plain"))
    alone = of.model_copy(update={"variants": {"tuned": of.variants["tuned"]}, "baseline": "tuned"})
    builds = plan_builds(alone, state, QUIET)
    ahead = forecast_builds(builds.plans, state, builds.trainings)
    assert [(build.variant, build.decision) for build in ahead] == [
        ("plain", "build"),
        ("tuned", "build"),
    ]
    whole = replace(prepared(), experiment=alone, plans=builds.plans, trainings=builds.trainings)

    def forecast_with(side_by_side: int) -> Forecast:
        trainings = tuple(replace(planned, side_by_side=side_by_side) for planned in builds.trainings)
        return forecast(replace(whole, trainings=trainings), RunPlan("run", (), {}), state, store)

    assert forecast_with(2).training_seconds == forecast_with(2).boot_seconds
    prediction = forecast_with(1)
    assert (prediction.training_boots, prediction.training_guess, prediction.guessed) == (2, True, ("build", "boot"))
    assert prediction.seconds_of_boots == prediction.training_seconds == 2 * prediction.boot_seconds
    assert run_ahead(prediction, alone, 1)[0].startswith("to do: boot 2 times to train, build 2 kernels, boot 0 times")


def test_the_objects_of_a_kernel_that_is_only_trained_on_are_gone_when_the_others_are_built(
    tree: Path, state: State
) -> None:
    of = experiment(tree, tuned=trained_on("plain"))
    alone = of.model_copy(update={"variants": {"tuned": of.variants["tuned"]}, "baseline": "tuned"})
    builds = plan_builds(alone, state, QUIET)
    [training], [tuned] = builds.trainings, builds.plans["tuned"]
    assert isinstance(tuned, BuildPlan)
    same_objects = training.plan.model_copy(update={"objects_key": tuned.objects_key})
    ahead = forecast_builds(builds.plans, state, (replace(training, plan=same_objects),))
    assert [build.decision for build in ahead] == ["build", "build"]


def test_an_image_that_is_judged_and_trained_on_is_one_build_in_the_forecast(tree: Path, state: State) -> None:
    builds = planned(tree, state, tuned=trained_on("plain"))
    ahead = forecast_builds(builds.plans, state, builds.trainings)
    assert [(build.variant, build.decision) for build in ahead] == [("plain", "build"), ("tuned", "build")]


def test_a_kernels_tests_of_itself_are_not_what_it_is_trained_on(tree: Path, state: State) -> None:
    [one] = planned(tree, state, tuned=trained_on("plain")).trainings
    asks = (KconfigRequest(symbol="CRYPTO_SELFTESTS", value="y", by="recipe"),)
    plan = one.plan.model_copy(update={"asks": asks})
    assert training_words(one.training, one.plan) == ()
    assert training_words(one.training, plan) == ("cryptomgr.notests=1",)


def test_kernels_that_are_trained_on_themselves_are_refused_by_name(tree: Path) -> None:
    with pytest.raises(CircularTraining, match=r"in a circle: a -> a$"):
        experiment(tree, a=trained_on("a"))
    with pytest.raises(CircularTraining, match=r"in a circle: a -> b -> a$"):
        experiment(tree, a=trained_on("b"), b=trained_on("a"))
    with pytest.raises(UnknownTrainee, match="variant a is trained on b, which does not exist"):
        experiment(tree, a=trained_on("b"))


def test_what_gains_are_worth_on_a_processor_changes_no_input() -> None:
    plain = load_family("haswell")
    gain = SiliconGain(recipe="x", cpu="y", paths=1, silicon=1.1, model=1.2, wrong_signs=0, clear=1)
    known = plain.model_copy(update={"model": plain.model.model_copy(update={"silicon": (gain,)})})
    whole = digest(plain.model_dump(mode="json", exclude={"path": True, "model": {"silicon"}}))
    assert _contents({"haswell": known}) == _contents({"haswell": plain}) == {"haswell": whole}
