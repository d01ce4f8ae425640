"""The archive of a kernel's source, by which it travels to another host: the same tree is the same file."""

from __future__ import annotations

from pathlib import Path

from kdyno.base import process
from kdyno.base.digests import recall, remember
from kdyno.base.frozen import digest
from kdyno.base.state import State, translate_disk_full
from kdyno.fleet.blobs import Blobs
from kdyno.kernel import unpack
from kdyno.kernel.source_trees import Say, made_once, tree_path

NAME = "linux.tar.gz"
PACK = (
    "tar",
    "--create",
    "--format=gnu",
    "--sort=name",
    "--mtime=@0",
    "--owner=0",
    "--group=0",
    "--numeric-owner",
    "--transform=flags=r;s,^\\.,linux,",
    "--use-compress-program=gzip -1n",
)
"""A tree of Linux is packed in half a minute."""


def store_tree(tree: Path, blobs: Blobs, state: State, say: Say) -> str:
    """Bring the archive of a tree into the blob store, unless it is there; return its digest.

    Nothing writes to a tree of the state directory, so what it was packed to is remembered.
    """
    name = digest(["archive of a tree", blobs.where, tree.name])
    known = recall(name, state)
    if known and blobs.has(known):
        return known
    say("packing the source for the fleet")
    with state.scratch("archive") as place, translate_disk_full(place):
        process.output([*PACK, "-f", place / NAME, "-C", tree, "."], env={"TAR_OPTIONS": "", "LC_ALL": "C"})
        stored = blobs.put(place / NAME)
    remember(name, stored, state)
    return stored


def receive_tree(archive: str, blobs: Blobs, state: State) -> Path:
    """Return the tree of an archive, unpacked in the state directory once. Raises what the blob store raises."""

    def fill(partial: Path) -> None:
        with state.scratch("archive") as place:
            blobs.get(archive, place / NAME)
            unpack.tarball(place / NAME, partial, lambda _: None)

    return made_once(tree_path(f"archive:{archive}", state), fill, state, lambda _: None)
