"""An image that gcc compiled by a profile, the kernel that counted for it, and what is on record of that: made up."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kdyno.base.state import State
from kdyno.kernel.delegation.records import ObjectRecord, Records, written
from kdyno.kernel.image import Image, ImageRecord, ImageSizes
from kdyno.kernel.images import RECORD, content_digest
from kdyno.kernel.recipe import Profile, Recipe
from kdyno.store.artefacts import Artefacts
from kdyno.store.derivation import Derivation
from kdyno.store.records import Boot
from kdyno.store.store import Store
from tests.unit.specimen import NOON, image

TUNED, COUNTING = "a" * 64, "b" * 64
BOOTS = ("c" * 64, "d" * 64)
OTHER_CODE = "not code of the running kernel"


def made(source: str, *profiles: str, compiler: str = "gcc-12", reason: str = "no rule chose it") -> ObjectRecord:
    name = source.rpartition(".")[0] + ".o"
    return ObjectRecord(
        object=name, source=source, answer="passed", reason=reason, compiler=compiler, profiles=profiles
    )


OBJECTS = (
    made("fs/read_write.c", "pgo"),
    made("kernel/fork.c", "pgo"),
    made("fs/ext4/acl.c"),
    made("fs/ext4/dir.c"),
    made("mm/swapfile.c"),
    made("fs/seq_file.c"),
    made("lib/string.c"),
    made("drivers/base/new.c"),
    made("mm/slub.c", compiler="clang-19"),
    made("arch/x86/boot/main.c", reason=OTHER_CODE),
    made("arch/x86/entry/entry_64.S", reason="assembly code"),
)
COUNTERS = {
    "fs/read_write": (b"1", b"2", b"7"),
    "kernel/fork": (b"0", b"0", b"5"),
    "fs/ext4/acl": (b"0", b"0", b"0"),
    "fs/ext4/dir": (b"9", b"9", b"9"),
    "mm/swapfile": (b"0", b"0", b"0"),
    "fs/seq_file": (b"1", b"2", b"3"),
}
"""By object: what each snapshot has of it. The first two are before the tests."""
SECTIONS = (
    {"section": ".text.unlikely.vfs_read", "object": "fs/read_write.o", "bytes": 21},
    {"section": ".text.hot.vfs_read", "object": "fs/read_write.o", "bytes": 244},
    {"section": ".text.hot.copy_process.isra.0", "object": "kernel/fork.o", "bytes": 5_120},
)
LOG = "  CC      {}\n"


def snapshots(path: Path, contents: Mapping[str, Sequence[bytes]]) -> Path:
    """The file of a boot in which each item is there in each snapshot."""
    parts = []
    for number in range(3):
        for name, history in contents.items():
            head = {"v": 1, "snapshot": number, "after": "lat_pipe" if number > 1 else "", "name": name}
            parts.append(json.dumps({**head, "bytes": len(history[number])}).encode() + b"\n" + history[number])
    path.write_bytes(b"".join(parts) + json.dumps({"v": 1, "snapshots": 3}).encode() + b"\n")
    return path


def gcda(counters: Mapping[str, Sequence[bytes]] = COUNTERS) -> dict[str, Sequence[bytes]]:
    return {f"root/objects/{name}.gcda": history for name, history in counters.items()}


def keep_image(state: State, record: ImageRecord, files: Mapping[str, bytes]) -> Image:
    """Put an image where kdyno looks for it, with these files and made-up ones."""
    place = state.images / record.key
    place.mkdir()
    names = ("bzImage", "vmlinux", "System.map", "config", "build.log")
    for name, content in ({name: name.encode() for name in names} | dict(files)).items():
        (place / name).write_bytes(content)
    sizes = ImageSizes(bzimage=len(b"bzImage"), vmlinux=(place / "vmlinux").stat().st_size, text=1)
    digests: Any = {path.name: content_digest(path) for path in sorted(place.iterdir())}
    record = record.model_copy(update={"sizes": sizes, "files": digests})
    (place / RECORD).write_text(record.model_dump_json())
    return Image(directory=place, record=record)


def keep_all(state: State, objects: Sequence[ObjectRecord] = OBJECTS, *, sections: bool = True) -> Image:
    """The tuned image with its whole provenance, in a state directory and its store; `sections`: with lkd's list."""
    directory = state.root
    compiled = [*(f"{name}.o" for name in COUNTERS), "lib/string.o", "mm/slub.o"]
    recipe = Recipe(toolchain="gcc-12", profile=Profile(use=("pgo",)))
    keep_image(
        state,
        image("counting", recipe).model_copy(update={"key": COUNTING}),
        {"build.log": "".join(map(LOG.format, compiled)).encode()},
    )
    derivation = Derivation(exporter="pgo-gcc", version=1, image=COUNTING, boots=BOOTS, settings={})
    digest = derivation.digest
    (state.inputs / f"{digest}.json").write_text(derivation.model_dump_json())
    artefacts = Artefacts(state.artefacts)
    with Store(f"sqlite:///{state.store_file}") as store:
        for seed, key in enumerate(BOOTS):
            counted = artefacts.put(snapshots(directory / f"boot-{seed}", gcda()))
            boot = Boot(key=key, seed=seed, status="ok", started=NOON, seconds=42, counters=counted)
            assert store.add_boot(boot, [])
    made_by = Records(objects=tuple(objects))
    record = image("tuned", recipe).model_copy(
        update={"key": TUNED, "inputs": {"pgo": digest}, "objects": made_by.counts}
    )
    listed = "".join(json.dumps(section) + "\n" for section in SECTIONS).encode()
    files = {"delegation.jsonl": written(made_by).encode()} | ({"sections.jsonl": listed} if sections else {})
    return keep_image(state, record, files)
