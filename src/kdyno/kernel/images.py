"""Finished images on disk: content-addressed, complete or not there, and each file of one the one that was built.

Sizes tell nothing: bzImages are padded, and kernels that differ have one size. So the record holds the digest of each
file, and no image is booted or read before they were compared. What was hashed before isn't hashed again: a file that
was replaced or written to has another inode or another time of change (ctime), which nobody can set back.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import stat
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import get_args

from pydantic import ValidationError

from kdyno.base import elf_listing
from kdyno.base.digests import file_digest
from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.files import read_whole, sync
from kdyno.base.mistakes import first_fault, is_json
from kdyno.base.state import State, require_space, translate_disk_full
from kdyno.kernel import lkd
from kdyno.kernel.arch import ARCHES, Arch
from kdyno.kernel.image import Image, ImageFile, ImageRecord, ImageSizes
from kdyno.kernel.kconfig_check import read_config
from kdyno.kernel.knobs import kconfig
from kdyno.kernel.source_trees import remove_tree

RECORD = "image.json"
MOST_BYTES = 10_000_000
"""Bytes of a record."""
LOG: ImageFile = "build.log"
RECORDS: ImageFile = "delegation.jsonl"
SECTIONS: ImageFile = "sections.jsonl"
"""Images that were built before this file was kept have none; nor have those without a layout or a profile."""
NOTES: ImageFile = "notes.tar.xz"
"""Without these nothing can say which lines a kernel's .gcda files are about."""
MODULES: ImageFile = "modules.tar"
SYMBOLS: ImageFile = "System.map"
KEY_DIGITS_NEEDED = 6


class ImageMissing(InfrastructureError):
    message = "there is no image {key} in {directory}"
    hint = "run the command that builds it again"


class ImageCorrupt(InfrastructureError):
    message = "the image in {directory} can't be used: {why}"
    hint = "remove it (rm -r {directory}): `kdyno run` or `kdyno build` of its experiment builds it anew"


class ImageOfAnotherVersion(ImageCorrupt):
    message = "the image in {directory} can't be used: its image.json is one of another version of kdyno ({why})"
    hint = "`kdyno run` or `kdyno build` of its experiment builds it anew"


class NoSuchImage(UserError):
    message = "{named} is not the key of one image in {images}"
    hint = "`kdyno build EXPERIMENT` builds images and prints where they are: the directory's name is the key"


def directory(key: str, state: State) -> Path:
    return state.images / key


def is_built(key: str, state: State) -> bool:
    """Return whether there is an image of this key, or a damaged one. One that another version recorded is built
    anew.
    """
    place = directory(key, state)
    try:
        return place.is_dir() and bool(read_record(place))
    except ImageOfAnotherVersion:
        return False
    except ImageCorrupt:
        return True


def configuration_of(image: Image) -> dict[str, str]:
    """Return the symbols of an image's configuration and their values."""
    return read_config(read_whole(image.config, kconfig.MOST_BYTES).decode(errors="replace"))


def load_image(key: str, state: State) -> Image:
    """Return the image of this key; raises ImageCorrupt if something in its directory isn't as it was left."""
    place = directory(key, state)
    if not place.is_dir():
        raise ImageMissing(key=key, directory=state.images)
    image = image_in(place, state)
    if image.record.key != key:
        raise ImageCorrupt(directory=place, why=f"{RECORD} is that of {image.record.key}")
    return image


def image_in(place: Path, state: State) -> Image:
    """Return the image in a directory, wherever that is. Raise ImageCorrupt unless each file is the one on its
    record.
    """
    record = read_record(place)
    if why := _why_not_built(place, record, state):
        raise ImageCorrupt(directory=place, why=why)
    return Image(directory=place, record=record)


def _why_not_built(place: Path, record: ImageRecord, state: State) -> str:
    """Return which file isn't the one that was built; empty if all are."""
    sizes = {"bzImage": record.sizes.bzimage, "vmlinux": record.sizes.vmlinux}
    is_expected = {RECORDS: bool(record.objects), SECTIONS: SECTIONS in record.files, NOTES: NOTES in record.files}
    is_expected |= {MODULES: bool(record.modules), "bzImage": record.sizes.bzimage is not None}
    if record.recipe.image is not None:
        is_expected |= {LOG: False, SYMBOLS: SYMBOLS in record.files}
    expected = [name for name in get_args(ImageFile) if is_expected.get(name, True)]
    for name in expected:
        file = place / name
        try:
            status = file.lstat()
        except OSError as error:
            return f"{name}: {error.strerror}"
        if not stat.S_ISREG(status.st_mode):
            return f"{name} is not a regular file"
        if status.st_size != sizes.get(name, status.st_size):
            return f"{name} isn't {sizes[name]:,} bytes, as its record has it"
        if name not in record.files:
            return f"its record has no digest of {name}"
        if record.files[name] != file_digest(file, state):
            return f"{name} is not the file that was built: its SHA-256 is another one than on the record"
    return ""


def find_image(named: str, state: State) -> Image:
    """Return the image that a user names by its key, the start of it, its directory or a file in that.

    Raise NoSuchImage, also if several keys start so, and the errors of load_image.
    """
    path = Path(named)
    folder = path.parent if path.is_file() else path
    if is_of_image(folder, state):
        return load_image(folder.resolve().name, state)
    if len(keys := keys_from(named, state)) == 1:
        return load_image(keys[0], state)
    raise NoSuchImage(named=named, images=state.images)


def is_of_image(folder: Path, state: State) -> bool:
    """Return whether this is the directory of an image."""
    return folder.is_dir() and folder.resolve().parent == state.images.resolve()


def keys_from(start: str, state: State) -> list[str]:
    """Return the keys of images that start with `start`; an empty list if `start` has too few digits."""
    is_enough = len(start) >= KEY_DIGITS_NEEDED and start.isalnum()
    return [key for key in all_keys(state) if is_enough and key.startswith(start)]


def all_keys(state: State) -> list[str]:
    """Return the keys of all images, in order."""
    return sorted(place.name for place in state.images.glob("[!.]*"))


def read_record(place: Path) -> ImageRecord:
    """Return the provenance of the image in a directory; raises ImageCorrupt."""
    try:
        return ImageRecord.model_validate_json(read_whole(place / RECORD, MOST_BYTES))
    except OSError as error:
        raise ImageCorrupt(directory=place, why=f"{RECORD}: {error.strerror}") from error
    except ValidationError as error:
        if not is_json(error):
            raise ImageCorrupt(directory=place, why=f"{RECORD}: {first_fault(error)}") from error
        raise ImageOfAnotherVersion(directory=place, why=first_fault(error)) from error


def store_image(record: ImageRecord, objects: Path, log: Path, state: State, delegated: str = "") -> Image:
    """Put the results of the build into a new directory, and give that its name when it is complete and on disk.

    The record gets the digests of the files, and is written last. Big files are moved; the configuration and the log
    are copied, because another image may be made from the same objects. `delegated` is what ccd recorded; what lkd
    listed is kept where it is there.
    """
    with _new_directory(record.key, state) as partial:
        for name, made in ARCHES[record.arch].files.items():
            if name == "config":
                shutil.copyfile(objects / made, partial / name)
            else:
                (objects / made).rename(partial / name)
        shutil.copyfile(log, partial / LOG)
        if delegated:
            (partial / RECORDS).write_text(delegated, encoding="utf-8")
        if (listed := objects / lkd.SECTIONS).is_file():
            listed.rename(partial / SECTIONS)
        _pack_notes(objects, partial / NOTES)
        record = _recorded(record, partial)
    return Image(directory=directory(record.key, state), record=record)


def store_files(record: ImageRecord, files: Mapping[ImageFile, bytes], state: State) -> Image:
    """Store an image whose files are given, and return it."""
    require_space(state.images, sum(map(len, files.values())))
    with _new_directory(record.key, state) as partial:
        for name, content in files.items():
            (partial / name).write_bytes(content)
        record = _recorded(record, partial)
    return Image(directory=directory(record.key, state), record=record)


def receive_image(record: ImageRecord, fetch: Callable[[str, Path], None], state: State) -> Image:
    """Store an image that another host built: `fetch` writes the file of a digest to a path.

    Raises ImageCorrupt unless each file is the one on its record.
    """
    with state.lock(f"image-{record.key[:24]}"):
        if not is_built(record.key, state):
            with _new_directory(record.key, state) as partial:
                for name, digest in record.files.items():
                    fetch(digest, partial / name)
                (partial / RECORD).write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")
        return load_image(record.key, state)


@contextmanager
def _new_directory(key: str, state: State) -> Iterator[Path]:
    """Yield a directory that takes the place of the image when the body is done, complete and on disk."""
    place = directory(key, state)
    partial = place.with_name(f".{key}.partial")
    remove_tree(partial)
    try:
        with translate_disk_full(partial):
            partial.mkdir()
            yield partial
            for file in (*partial.iterdir(), partial):
                sync(file)
            remove_tree(place)  # it is one of another version, or there is none
            partial.rename(place)
            sync(state.images)
    finally:
        remove_tree(partial)


def _recorded(record: ImageRecord, partial: Path) -> ImageRecord:
    """Write the record, with the digests of the files that are there."""
    names: list[ImageFile] = [name for name in get_args(ImageFile) if (partial / name).exists()]
    record = record.model_copy(update={"files": {name: content_digest(partial / name) for name in names}})
    (partial / RECORD).write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return record


def _pack_notes(objects: Path, archive: Path) -> None:
    """Pack the .gcno files below the object directory, by their names there; make no archive if there are none."""
    files = sorted(objects.rglob("*.gcno"))
    if not files:
        return
    with tarfile.open(archive, "w:xz", preset=1, encoding="utf-8") as notes:
        for file in files:
            notes.add(file, arcname=str(file.relative_to(objects)))


def sizes(objects: Path, arch: Arch) -> ImageSizes:
    """Return the sizes of a build's results in its object directory."""
    vmlinux, bzimage = objects / arch.files["vmlinux"], arch.files.get("bzImage")
    return ImageSizes(
        bzimage=(objects / bzimage).stat().st_size if bzimage else None,
        vmlinux=vmlinux.stat().st_size,
        text=text_size(elf_listing.symbols(vmlinux)),
    )


def text_size(symbols: str) -> int:
    """Return the bytes of machine code in what `nm -S` lists: functions from _text to _etext, each address once. Pure.

    The section .text tells nothing: x86 aligns the entry code in it to 2 MB, before and after (ALIGN_ENTRY_TEXT_BEGIN
    in arch/x86/kernel/vmlinux.lds.S), so that it grows in steps. Symbols
    __pfx_NAME are padding before a function, where the kernel may put code that counts calls (CONFIG_CALL_PADDING).
    """
    marks = re.findall(r"^([0-9a-f]+) [tTRDA] (_text|_etext)$", symbols, re.M)
    bounds = {name: int(address, 16) for address, name in marks}
    start, end = bounds.get("_text", 0), bounds.get("_etext", 2**64)
    functions: dict[int, int] = {}
    for address, size in re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [tTwW] (?!__pfx_)", symbols, re.M):
        if start <= int(address, 16) < end:
            functions[int(address, 16)] = max(int(size, 16), functions.get(int(address, 16), 0))
    return sum(functions.values())


def content_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def records(state: State) -> Iterator[ImageRecord]:
    """Yield the records of all images that can be read, the newest first."""
    for path in sorted(state.images.glob(f"[!.]*/{RECORD}"), key=lambda path: path.stat().st_mtime, reverse=True):
        with suppress(ImageCorrupt):
            yield read_record(path.parent)


def expected_steps(base: str, state: State) -> int | None:
    """Return how many lines of output to expect: as many as the latest image of the same base took."""
    return next((record.steps for record in records(state) if record.base == base), None)
