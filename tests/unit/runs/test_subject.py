"""What a user names: one table of what there is, and what each verb makes of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kdyno.base.errors import KdynoError
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.kernel.image import Image
from kdyno.kernel.recipe import Recipe
from kdyno.runs.bootone import NoKernelInDirectory, find_kernel
from kdyno.runs.session import Session
from kdyno.runs.subject import NothingOfThatName, OtherKind, SeveralOfThatName, find_run, image_named
from kdyno.store.errors import RunAmbiguous
from kdyno.store.store import Store
from kdyno.store.url import sqlite_file
from kdyno.understand.coverage import subject as coverage
from kdyno.understand.lint.targets import NothingToLint, find_targets
from kdyno.understand.size.report import elf_file
from tests.unit import pmu_specimen, specimen
from tests.unit.kernel_toy import built, toy_source

RUN = specimen.run_record().id


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Image:
    folder = tmp_path_factory.mktemp("toy")
    state = State(folder / "state")
    return built(Recipe(), toy_source(folder, state), state)


class Place:
    """A directory with one of each, an image and a run; and what each verb makes of a name."""

    def __init__(self, folder: Path, finished: Image, store: Store) -> None:
        self.folder, self.store, self.image = folder, store, finished.record.key
        self.state = State(folder / "state")
        self.place = self.state.images / self.image
        shutil.copytree(finished.directory, self.place)
        store.begin(specimen.run_record(), specimen.cells(specimen.run_record()))
        pmu_specimen.write(folder / "a.kpmu")
        (folder / "bzImage").write_bytes(b"\0" * 0x202 + b"HdrS" + b"\0" * 100)
        (folder / "vmlinux").write_bytes(b"\x7fELF\2\1" + b"\0" * 100)
        (folder / "notes").write_text("hello\n")
        (folder / "empty").mkdir()
        (folder / "build/arch/x86/boot").mkdir(parents=True)
        for name in ("build/arch/x86/boot/bzImage", "build/vmlinux"):
            shutil.copy(folder / Path(name).name, folder / name)
        shutil.copy(folder / "vmlinux", folder / "build/a.o")
        self.verbs: dict[str, Callable[[str], str]] = {
            "boot": lambda named: self._shown(find_kernel(named, self.state)),
            "soak": lambda named: self._shown(image_named(named, self.state).directory),
            "show": lambda named: find_run(named, self.state, store).id,
            "size": lambda named: self._shown(elf_file(named, self.state)),
            "lint": lambda named: self._shown(Path(find_targets([named], None, folder, self.state).files[0])),
            "coverage": self._covered,
        }

    def _covered(self, named: str) -> str:
        session = Session(self.state, self.store, Talk(quiet=True))
        return coverage.find_subject(coverage.SubjectRequest(named), session=session).label

    def _shown(self, path: Path) -> str:
        whole = path.resolve()
        return str(whole.relative_to(self.place if whole.is_relative_to(self.place) else self.folder))

    def outcome(self, verb: str, named: str) -> str | type[KdynoError]:
        try:
            return self.verbs[verb](named)
        except KdynoError as error:
            return type(error)


@pytest.fixture
def place(tmp_path: Path, finished: Image, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    def told(label: str) -> Callable[..., coverage.RecordedBoot]:
        return lambda *_: coverage.RecordedBoot(label, pmu_specimen.specimen(), tmp_path, None)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(coverage, "_read_run", told("a run"))
    monkeypatch.setattr(coverage, "_read_file", told("a record"))
    monkeypatch.setattr(coverage, "_boot_image", told("an image"))
    with Store(sqlite_file(tmp_path / "store.sqlite")) as store:
        yield Place(tmp_path, finished, store)


Outcome = str | type[KdynoError]
VERBS = ("boot", "soak", "show", "size", "lint", "coverage")
TABLE: list[tuple[str, tuple[Outcome, ...]]] = [
    # what is named            boot, soak, show, size, lint, coverage
    ("{image}", ("bzImage", ".", OtherKind, "vmlinux", "vmlinux", "an image")),
    ("{start}", ("bzImage", ".", OtherKind, "vmlinux", "vmlinux", "an image")),
    ("{place}", ("bzImage", ".", OtherKind, "vmlinux", "vmlinux", "an image")),
    ("{place}/vmlinux", ("bzImage", ".", OtherKind, "vmlinux", "vmlinux", "an image")),
    ("{place}/bzImage", ("bzImage", ".", OtherKind, "vmlinux", "bzImage.vmlinux", "an image")),
    ("{run}", (NothingOfThatName, NothingOfThatName, RUN, NothingOfThatName, NothingOfThatName, "a run")),
    ("latest", (NothingOfThatName, NothingOfThatName, RUN, NothingOfThatName, NothingOfThatName, "a run")),
    ("a.kpmu", (OtherKind, OtherKind, OtherKind, OtherKind, OtherKind, "a record")),
    ("vmlinux", (OtherKind, OtherKind, OtherKind, "vmlinux", "vmlinux", OtherKind)),
    ("notes", (OtherKind, OtherKind, OtherKind, OtherKind, "notes", OtherKind)),
    ("build", ("build/arch/x86/boot/bzImage", OtherKind, OtherKind, "build/vmlinux", "build/a.o", OtherKind)),
    ("empty", (NoKernelInDirectory, OtherKind, OtherKind, "empty/vmlinux", NothingToLint, OtherKind)),
    ("./gone", (NothingOfThatName,) * 6),
    ("abcdef", (NothingOfThatName,) * 6),
]


@pytest.mark.parametrize(("named", "outcomes"), TABLE, ids=[named for named, _ in TABLE])
def test_a_name_means_the_same_to_each_verb(place: Place, named: str, outcomes: tuple[Outcome, ...]) -> None:
    named = named.format(image=place.image, start=place.image[:8], place=place.place, run=RUN[:6])
    assert {verb: place.outcome(verb, named) for verb in VERBS} == dict(zip(VERBS, outcomes, strict=True))


def test_a_bzimage_of_no_image_is_booted_and_looked_through_only(place: Place) -> None:
    assert place.outcome("boot", "bzImage") == "bzImage"
    assert place.outcome("size", "bzImage") is OtherKind


def test_what_there_is_nothing_of_is_said_with_what_was_tried_and_what_is_near(place: Place) -> None:
    with pytest.raises(
        NothingOfThatName, match=r"called vmlinus: no file or directory, no image in .*/images$"
    ) as gone:
        find_kernel("vmlinus", place.state)
    assert gone.value.advice.startswith("did you mean vmlinux? name an image by its key")
    near = f"{place.image[:7]}{'0' if place.image[7] != '0' else '1'}"
    with pytest.raises(NothingOfThatName) as gone:
        image_named(near, place.state)
    assert f"did you mean {place.image[:12]}?" in gone.value.advice
    with pytest.raises(NothingOfThatName, match=r"called ffff: no run in .*store\.sqlite") as gone:
        find_run("ffff", place.state, place.store)
    assert f"{RUN[:12]} (quickstart)" in gone.value.advice


def test_another_kind_is_said_with_the_kinds_that_a_verb_takes(place: Place) -> None:
    with pytest.raises(OtherKind, match=r"^expected an image, a bzImage or a directory, but a\.kpmu is a PMU record$"):
        find_kernel("a.kpmu", place.state)
    with pytest.raises(OtherKind, match=r"expected a run, but .* is an image"):
        find_run(place.image, place.state, place.store)


def test_the_start_of_several_names_is_refused_with_their_number(place: Place) -> None:
    for last in "12":
        (place.state.images / f"abcdef{last}").mkdir()
    with pytest.raises(SeveralOfThatName, match="abcdef is the start of 2 keys of images") as several:
        image_named("abcdef", place.state)
    assert several.value.advice == "give more digits: abcdef1, abcdef2"
    place.store.begin(specimen.run_record().model_copy(update={"id": RUN[:8] + "f" * 56, "name": "other"}), [])
    with pytest.raises(RunAmbiguous, match="2 runs"):
        find_run(RUN[:6], place.state, place.store)


def test_a_symbolic_link_to_nothing_is_called_that_and_not_suggested(place: Place) -> None:
    Path("dangling").symlink_to("nowhere")
    with pytest.raises(NothingOfThatName, match="called dangling: a symbolic link to nothing") as gone:
        find_kernel("dangling", place.state)
    assert "did you mean" not in gone.value.advice
