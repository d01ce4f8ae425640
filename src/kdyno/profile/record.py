"""Recording: one boot of an image under the emulated PMU, kept as a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kdyno.errors import UserError
from kdyno.files import NotWritable
from kdyno.instrument.pmu_record import PmuRecord, read_pmu_record, with_benchmarks
from kdyno.kernel.image import Image
from kdyno.kernel.images import load_image
from kdyno.state import State
from kdyno.talk import Talk

if TYPE_CHECKING:
    from kdyno.instrument.pmu import Events

KEY_DIGITS_NEEDED = 6


class NoSuchImage(UserError):
    message = "{named} is not the key of one image in {images}"
    hint = "`kdyno build EXPERIMENT` builds images and prints where they are: the directory's name is the key"


class NoPlace(UserError):
    message = "can't write {path}: it is a directory, or its directory does not exist"
    hint = "make the directory, or name another file"


def require_place(path: Path | None) -> None:
    """Raise NoPlace or NotWritable if a file that shall be written can't be: it may take minutes to have it."""
    if not path:
        return
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise NoPlace(path=path)
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise NotWritable(path=path, why="no permission")


def find_image(named: str, state: State) -> Image:
    """The image that a user means by its key, the start of it, its directory or a file in that."""
    path = Path(named)
    place = path.parent if path.is_file() else path
    if place.is_dir() and place.resolve().parent == state.images.resolve():
        return load_image(place.resolve().name, state)
    if len(named) >= KEY_DIGITS_NEEDED and named.isalnum():
        found = list(state.images.glob(f"{named}*"))
        if len(found) == 1:
            return load_image(found[0].name, state)
    raise NoSuchImage(named=named, images=state.images)


def record_image(
    image: Image, tests: Sequence[str], out: Path, *, seed: int, events: Events, family: str, state: State, talk: Talk
) -> PmuRecord:
    """Boot the image once under the emulated PMU, unless that was done before, and write the record to `out`."""
    from kdyno.line.pmuboot import pmu_boot

    require_place(out)
    run = pmu_boot(image, tuple(tests), seed=seed, events=events, family=family, state=state, talk=talk)
    with_benchmarks(run.record, run.benchmarks, out)
    return read_pmu_record(out)
