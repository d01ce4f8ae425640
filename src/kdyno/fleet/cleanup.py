"""Removal of files from the blob store that no task on record names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from kdyno.fleet.blobs import Blobs
from kdyno.fleet.errors import BlobMissing
from kdyno.fleet.queue.queue import Queue

DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
IMAGE = re.compile(r'"image": ?"([0-9a-f]{64})"')


@dataclass(frozen=True)
class CleanUp:
    """What was removed, or would be, and what stays."""

    removed: int
    removed_bytes: int
    kept: int


def clean_up(queue: Queue, blobs: Blobs, days: int, *, dry_run: bool) -> CleanUp:
    """Remove the files that are older than so many days and that no task on record names, nor the record of its image.

    Raises QueueFailed and BlobStoreFailed.
    """
    needed = _needed(queue, blobs)
    limit = datetime.now(UTC) - timedelta(days=days)
    removed = removed_bytes = kept = 0
    for blob in blobs.listing():
        if blob.digest in needed or blob.modified.astimezone(UTC) > limit:
            kept += 1
            continue
        if not dry_run:
            blobs.remove(blob)
        removed, removed_bytes = removed + 1, removed_bytes + blob.size
    return CleanUp(removed, removed_bytes, kept)


def _needed(queue: Queue, blobs: Blobs) -> set[str]:
    """Return the digests that tasks name, and those that the records of their images name."""
    needed: set[str] = set()
    images: set[str] = set()
    for document in queue.documents():
        needed.update(DIGEST.findall(document))
        images.update(IMAGE.findall(document))
    for image in images:
        try:
            needed.update(DIGEST.findall(blobs.read(image).decode(errors="replace")))
        except BlobMissing:
            continue  # its client puts it there
    return needed
