"""What of a state directory is needed: a closure over runs, soaks, images and what these were made of."""

from __future__ import annotations

import json
import os
from pathlib import Path

from kdyno.base.state import State
from kdyno.kernel import build_directory, images
from kdyno.kernel.image import ImageRecord
from kdyno.kernel.inputs import kept_at
from kdyno.kernel.patches import patched_tree
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source_trees import partial_path, tree_path
from kdyno.store.artefacts import Artefacts
from kdyno.store.derivation import Derivation
from kdyno.store.records import RunRecord
from kdyno.store.upkeep.references import References, references
from kdyno.store.upkeep.survey import Item, Sizes, items
from tests.unit import specimen

TUNED, TRAINEE, ALONE, SOAKED, NAMED = (letter * 64 for letter in "12345")
OWN, TRAINED = "a" * 64, "b" * 64


def image(key: str, inputs: dict[str, str], patches: tuple[str, ...] = ()) -> ImageRecord:
    record = specimen.image("image", Recipe())
    source = record.source.model_copy(update={"identity": f"tarball:{key}"})
    return record.model_copy(update={"key": key, "inputs": inputs, "patches": patches, "source": source})


def keep(record: ImageRecord, state: State) -> None:
    directory = state.images / record.key
    directory.mkdir()
    (directory / "image.json").write_text(record.model_dump_json(), encoding="utf-8")


def run_of(record: ImageRecord) -> RunRecord:
    run = specimen.run_record(variants=("gcc-12",))
    [variant] = run.variants
    machine = {**run.machine, "root": "c" * 64}
    return run.model_copy(update={"variants": (variant.model_copy(update={"images": (record,)}),), "machine": machine})


def test_a_tuned_kernel_needs_what_it_was_trained_on_and_nothing_else(state: State) -> None:
    derivation = Derivation(exporter="autofdo", version=1, image=TRAINEE, boots=("first", "second"), settings={})
    (state.inputs / f"{TRAINED}.json").write_text(derivation.model_dump_json(), encoding="utf-8")
    keep(image(TRAINEE, {"order": OWN}, patches=("f" * 64,)), state)
    keep(image(ALONE, {}), state)
    refs = references([run_of(image(TUNED, {"autofdo": TRAINED}))], state)
    assert refs.images == {TUNED, TRAINEE}
    assert refs.inputs == {TRAINED, OWN}
    assert refs.boots == {"first", "second"}
    assert refs.patches == {"f" * 64}
    assert refs.roots == {"c" * 64}
    assert {f"tarball-{key[:32]}" for key in (TUNED, TRAINEE)} <= refs.sources
    assert f"tarball-{ALONE[:32]}" not in refs.sources


def test_a_soak_needs_its_image_and_the_one_that_was_named(state: State) -> None:
    record = {"v": 1, "kernel": {"image": SOAKED, "variant_of": NAMED, "more": 1}, "later": True}
    (state.soaks / "one.json").write_text(json.dumps(record), encoding="utf-8")
    (state.soaks / "torn.json").write_text("{", encoding="utf-8")
    assert references([], state).images == {SOAKED, NAMED}


def test_a_file_with_two_names_is_counted_for_what_is_asked_about_first(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"x" * 100_000)
    os.link(first, second)
    sizes = Sizes()
    assert sizes.size_of(Item("sources", "first", (first,), True, 0)) >= 100_000
    assert sizes.size_of(Item("sources", "second", (second,), False, 0)) == 0


def test_what_a_kill_leaves_half_made_is_known_and_not_needed(state: State) -> None:
    left = [
        partial_path(tree_path(f"tarball:{OWN}", state)),
        partial_path(tree_path(f"git:{'1' * 40}", state)),
        partial_path(state.sources / f"copy-{OWN[:16]}"),
        partial_path(state.images / OWN),
    ]
    for place in left:
        place.mkdir()
    found = items(state, References(), set())
    assert {path for item in found if not item.is_needed for path in item.paths} >= set(left)


def test_a_link_is_a_thing_of_its_own_and_is_not_followed(state: State, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / TUNED).write_bytes(b"x" * 100_000)
    (state.images / ALONE).symlink_to(outside)
    (state.artefacts / "ab").symlink_to(outside)
    (state.root / "inputs").symlink_to(outside)
    things = items(state, References(), ())
    assert [(item.part, item.name) for item in things] == [("images", ALONE)]
    assert sum(map(Sizes().size_of, things)) < 100_000


def test_whatever_kdyno_makes_is_of_the_shape_that_is_looked_for(state: State, tmp_path: Path) -> None:
    with state.scratch("0123456789ab") as scratch:
        made = {
            "sources": [tree_path(f"git:{'a' * 40}", state), patched_tree("tarball:x", [], state)],
            "images": [images.directory("b" * 64, state)],
            "builds": [build_directory.directory("c" * 64, state), build_directory.log_file("d" * 64, state)],
            "inputs": [kept_at("e" * 64, state)],
            "boots": [scratch],
        }
        for path in (path for paths in made.values() for path in paths):
            path.mkdir(exist_ok=True)
        (tmp_path / "console").touch()
        made["artefacts"] = [Artefacts(state.artefacts).get(Artefacts(state.artefacts).put(tmp_path / "console"))]
        found = {path for item in items(state, References(), ()) for path in item.paths}
        assert found == {path for paths in made.values() for path in paths}
