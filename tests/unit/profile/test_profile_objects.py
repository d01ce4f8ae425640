"""What a profile did to a kernel: why an object has none, told for sure or not at all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from kdyno.base.state import State
from kdyno.kernel.build_log import compiled
from kdyno.kernel.image import Image
from kdyno.kernel.images import ImageCorrupt, find_image
from kdyno.kernel.recipe import Profile, Recipe
from kdyno.kernel.vmlinux.sections import GroupedSection, SectionsUnreadable, read_sections
from kdyno.profile.counted import count_by_source, counted_by_clang, counted_by_gcc, source_of
from kdyno.profile.ir_profile import CountedFunction
from kdyno.profile.objects import CountedObjects, Fate, ProfileObjects, TrainingRecord, count_by_folder, fate_of
from kdyno.profile.show_objects import print_objects
from kdyno.runs.objects import NoProfile, ProvenanceUnreadable, objects_of_image
from kdyno.store.store import Store
from tests.unit import ir_specimen
from tests.unit.objects_specimen import (
    BOOTS,
    COUNTERS,
    COUNTING,
    OTHER_CODE,
    TUNED,
    gcda,
    keep_all,
    keep_image,
    made,
    snapshots,
)
from tests.unit.specimen import image

NOTHING = CountedObjects(used=frozenset(), moved=frozenset(), all=frozenset())
NO_RECORD = TrainingRecord(compiled=None, counted=None)


def shown(tuned: Image, state: State) -> ProfileObjects:
    with Store(f"sqlite:///{state.store_file}") as store:
        return objects_of_image(tuned, state, store)


def fates(view: ProfileObjects) -> dict[str, Fate]:
    return {entry.source: entry.fate for entry in view.objects}


def test_each_object_has_the_profile_or_the_reason_why_not(state: State) -> None:
    view = shown(keep_all(state), state)
    assert fates(view) == {
        "fs/read_write.c": "profile",
        "kernel/fork.c": "profile",
        "fs/ext4/acl.c": "never-ran",
        "fs/ext4/dir.c": "never-ran",
        "mm/swapfile.c": "never-ran",
        "fs/seq_file.c": "reading-only",
        "lib/string.c": "not-instrumented",
        "drivers/base/new.c": "not-in-counting-kernel",
        "mm/slub.c": "other-compiler",
        "arch/x86/boot/main.c": "other-code",
        "arch/x86/entry/entry_64.S": "assembly",
    }
    assert (view.use, view.training, sum(view.counts.values())) == ("pgo", COUNTING, 11)
    assert [section.function for section in view.hot] == ["copy_process.isra.0", "vfs_read"]
    assert count_by_folder(view.objects, "never-ran") == {"fs/ext4": 2, "mm": 1}


def test_hot_functions_of_one_object_are_listed_without_it(state: State, capsys: pytest.CaptureFixture[str]) -> None:
    view = shown(keep_all(state), state)
    functions = tuple(section.model_copy(update={"object": "vmlinux.o"}) for section in view.functions or ())
    for merged, end in ((False, "kernel/fork.o"), (True, "copy_process.isra.0")):
        print_objects(view.model_copy(update={"functions": functions}) if merged else view, hot=True)
        [line] = [line for line in capsys.readouterr().out.splitlines() if "copy_process" in line]
        assert line.rstrip().endswith(end)


def test_training_that_is_not_on_record_leaves_its_reasons_open(state: State) -> None:
    tuned = keep_all(state)
    shutil.rmtree(state.artefacts)
    fate_by_source = fates(shown(tuned, state))
    assert fate_by_source["fs/read_write.c"] == "profile" and fate_by_source["mm/slub.c"] == "other-compiler"
    assert {
        fate_by_source[source] for source in ("mm/swapfile.c", "fs/seq_file.c", "lib/string.c", "drivers/base/new.c")
    } == {"training-not-on-record"}


def test_without_the_image_that_counted_what_never_ran_is_still_known(state: State) -> None:
    tuned = keep_all(state)
    shutil.rmtree(state.images / COUNTING)
    fate_by_source = fates(shown(tuned, state))
    assert (fate_by_source["mm/swapfile.c"], fate_by_source["lib/string.c"]) == ("never-ran", "training-not-on-record")


def test_a_profile_from_elsewhere_has_no_training(state: State) -> None:
    tuned = keep_all(state)
    for path in state.inputs.glob("*.json"):
        path.unlink()
    view = shown(tuned, state)
    assert view.training is None
    assert fates(view)["mm/swapfile.c"] == "training-not-on-record"


def test_a_provenance_that_is_damaged_is_named(state: State) -> None:
    tuned = keep_all(state)
    [path] = state.inputs.glob("*.json")
    path.write_text('{"exporter": "pgo-gcc"}')
    with pytest.raises(ProvenanceUnreadable, match=f"{path}, cannot be read: .*: it is missing"):
        shown(tuned, state)


def test_an_image_from_before_the_list_was_kept_has_none(state: State) -> None:
    assert shown(keep_all(state, sections=False), state).functions is None


def test_a_list_that_was_changed_since_the_build_is_refused(state: State) -> None:
    tuned = keep_all(state)
    (tuned.directory / "sections.jsonl").write_text("")
    with pytest.raises(ImageCorrupt, match=r"sections\.jsonl is not the file that was built"):
        find_image(TUNED, state)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{}",
        '{"section": ".text.hot.f", "object": "a.o"}',
        '{"section": ".text.hot.f", "object": "a.o", "bytes": 0}',
        '{"section": ".text.hot.", "object": "a.o", "bytes": 1}',
        '{"section": ".text.startup.f", "object": "a.o", "bytes": 1}',
        '{"section": ".text.hot.f\\u001b[2J", "object": "a.o", "bytes": 1}',
        '{"section": ".text.hot.f", "object": "", "bytes": 1}',
        '{"section": ".text.hot.f", "object": "a.o", "bytes": 1, "more": 1}',
    ],
)
def test_a_line_that_lkd_does_not_write_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "sections.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(SectionsUnreadable, match="can't read the list of hot and cold functions"):
        read_sections(path)
    with pytest.raises(SectionsUnreadable, match="No such file"):
        read_sections(tmp_path / "nowhere")


def test_the_name_of_a_function_may_have_dots() -> None:
    split = GroupedSection(section=".text.split.f.isra.0", object="vmlinux.o", bytes=9)
    assert (split.function, split.is_hot) == ("f.isra.0", False)


def test_an_image_without_a_profile_for_compilers_is_refused(state: State) -> None:
    recipes = (Recipe(), Recipe(profile=Profile(use=("order",))), Recipe(profile=Profile(use=(), trained_for="pgo")))
    for number, recipe in enumerate(recipes):
        record = image("plain", recipe).model_copy(update={"key": f"{number}" * 64})
        with pytest.raises(NoProfile, match=f"image {str(number) * 12} was not compiled by a profile"):
            shown(keep_image(state, record, {}), state)


def test_with_a_sample_profile_the_records_alone_tell() -> None:
    def fate(*profiles: str, **more: str) -> Fate:
        return fate_of(made("fs/open.c", *profiles, **{"compiler": "clang-19"} | more), "autofdo", "clang", NO_RECORD)

    assert (fate("autofdo"), fate("propeller"), fate()) == ("profile", "no-sample", "no-sample")
    assert (fate(compiler="gcc"), fate(reason=OTHER_CODE)) == ("other-compiler", "other-code")


def test_an_object_that_a_fallback_made_has_no_profile_for_that_reason() -> None:
    record = made("fs/open.c").model_copy(update={"answer": "fallback"})
    assert fate_of(record, "pgo", "gcc", NO_RECORD) == "fallback"


def test_boots_that_know_different_objects_leave_open_which_were_instrumented(tmp_path: Path) -> None:
    files = [gcda() | {"/": (b"", b"", b"")}, gcda({name: COUNTERS[name] for name in COUNTERS if name[:2] != "mm"})]
    counted = counted_by_gcc([snapshots(tmp_path / str(n), contents) for n, contents in enumerate(files)])
    assert counted.has_odd and len(counted.all) == len(COUNTERS) - 1
    training = TrainingRecord(compiled=frozenset({"mm/swapfile.o", "fs/ext4/acl.o"}), counted=counted)
    outcomes = [fate_of(made(source), "pgo", "gcc", training) for source in ("mm/swapfile.c", "fs/ext4/acl.c")]
    assert outcomes == ["unknown", "never-ran"]


def test_what_moved_in_one_boot_ran(tmp_path: Path) -> None:
    quiet = {name: [history[0]] * 3 for name, history in COUNTERS.items()}
    counted = counted_by_gcc([snapshots(tmp_path / "a", gcda(quiet)), snapshots(tmp_path / "b", gcda())])
    assert counted.moved == {"fs/read_write.o", "kernel/fork.o", "fs/seq_file.o"}
    assert len(counted.all) == len(COUNTERS)


# clang: one profile for all, so that only counters say what it is about.


def of_clang(source: str, counted: CountedObjects | None, compiled: frozenset[str] = frozenset({"fs/open.o"})) -> Fate:
    return fate_of(
        made(source, "pgo", compiler="clang-19"), "pgo", "clang", TrainingRecord(compiled=compiled, counted=counted)
    )


def test_counters_of_unknown_place_leave_open_what_they_might_be_of() -> None:
    files = frozenset({"fs/open.c"})
    ran = CountedObjects(used=files, moved=files, all=files)
    never = CountedObjects(used=frozenset(), moved=frozenset(), all=files)
    unplaced = CountedObjects(used=frozenset(), moved=frozenset(), all=files, has_unplaced=True)
    moved = CountedObjects(used=frozenset(), moved=files, all=files, has_unplaced=True, has_unplaced_moved=True)
    assert [of_clang("fs/open.c", counted) for counted in (ran, never, unplaced, moved, None)] == [
        "profile",
        "never-ran",
        "never-ran",
        "unknown",
        "training-not-on-record",
    ]
    nothing_unplaced = CountedObjects(used=frozenset(), moved=frozenset(), all=frozenset(), has_unplaced=True)
    assert (of_clang("fs/open.c", NOTHING), of_clang("fs/open.c", nothing_unplaced)) == ("not-instrumented", "unknown")
    assert of_clang("fs/open.c", NOTHING, frozenset()) == "not-in-counting-kernel"


def test_static_functions_name_their_file_and_others_are_found_by_debug_information() -> None:
    functions = [
        CountedFunction("../fs/open.c;do_open", 1, 0, 2),
        CountedFunction("vfs_open", 1, 16, 1),
        CountedFunction("../fs/dir.c;never", 1, 24, 1),
        CountedFunction("gone", 1, 32, 1),
    ]
    flags = np.array([False, True, False, False, False])
    counted = count_by_source(functions, {"vfs_open": "fs/namei.c"}, flags, flags)
    assert counted.used == counted.moved == {"fs/open.c"}
    assert counted.all == {"fs/open.c", "fs/namei.c", "fs/dir.c"}
    assert (counted.has_unplaced, counted.has_unplaced_moved) == (True, False)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("../fs/open.c;do_open", "fs/open.c"),
        ("lib/table.c;entry", "lib/table.c"),
        ("/elsewhere/a.c;f", None),
        ("../../a.c;f", None),
    ],
)
def test_the_file_in_a_name_is_that_of_the_kernels_tree(name: str, file: str | None) -> None:
    assert source_of(name) == file


def test_counters_of_a_program_that_ran_are_told_apart_by_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(ir_specimen.COMPILER) is None:
        pytest.skip(f"needs {ir_specimen.COMPILER}")
    monkeypatch.setitem(ir_specimen.SOURCES, "idle.c", "int idle(int n) { return n * 3; }\n")
    program = ir_specimen.build(tmp_path, "-g1")
    memory = ir_specimen.run(tmp_path, program)
    boot = snapshots(tmp_path / "boot", {"memory": [bytes(len(memory)), bytes(len(memory)), memory]})
    counted = counted_by_clang([boot], image_of(program))
    assert counted == CountedObjects(
        used=frozenset({"one.c", "two.c"}),
        moved=frozenset({"one.c", "two.c"}),
        all=frozenset({"one.c", "two.c", "idle.c"}),
    )
    quiet = snapshots(tmp_path / "quiet", {"memory": [bytes(len(memory)), memory, memory]})
    assert counted_by_clang([quiet], image_of(program)).moved == set()


def image_of(program: Path) -> Image:
    link = program.with_name("vmlinux")
    link.unlink(missing_ok=True)
    link.symlink_to(program)
    return Image(directory=program.parent, record=image("program", Recipe()))


def test_the_objects_of_a_kernel_are_in_the_log_of_its_build() -> None:
    others = "  CC [M]  fs/fuse/dev.o\n  AS      a.o\n  HOSTCC  scripts/a.o\nfs/x.c: warning\n"
    assert compiled(f"+ make\n  CC      fs/open.o\n{others}  CC      init/main.o\n") == {"fs/open.o", "init/main.o"}


def test_boots_are_looked_for_by_all_of_their_keys(state: State) -> None:
    tuned = keep_all(state)
    [path] = state.inputs.glob("*.json")
    provenance = json.loads(path.read_text())
    path.write_text(json.dumps(provenance | {"boots": [*BOOTS, "e" * 64]}))
    assert fates(shown(tuned, state))["mm/swapfile.c"] == "training-not-on-record"
