"""Files of the blob store that nothing needs any more."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from kdyno.fleet.blobs import Blobs
from kdyno.fleet.cleanup import clean_up
from kdyno.fleet.queue.queue import Queue
from tests.unit.fleet.test_queue import ONE, boots, claim

DAY = 24 * 3600


def put(blobs: Blobs, tmp_path: Path, content: str, *, days: float = 0) -> str:
    """Put a file into the store that is so many days old; return its digest."""
    path = tmp_path / "content"
    path.write_text(content)
    digest = blobs.put(path)
    then = time.time() - days * DAY
    os.utime(Path(blobs.where) / digest[:2] / digest, (then, then))
    return digest


def test_old_files_that_no_task_names_are_removed_and_those_of_images_and_results_stay(
    queue: Queue, tmp_path: Path
) -> None:
    blobs = Blobs(str(tmp_path / "blobs"))
    vmlinuz = put(blobs, tmp_path, "a kernel", days=40)
    record = put(blobs, tmp_path, json.dumps({"files": {"vmlinuz": vmlinuz}}), days=40)
    console = put(blobs, tmp_path, "a console", days=40)
    young = put(blobs, tmp_path, "just came", days=1)
    old = put(blobs, tmp_path, "of a run that has ended", days=40)
    partial = Path(blobs.where) / old[:2] / f"{old}.{'0' * 32}.partial"
    partial.write_text("half")
    os.utime(partial, (0, 0))
    (Path(blobs.where) / "README").write_text("not kdyno's")
    [first, second] = boots(2)
    queue.put([first.model_copy(update={"spec": {"image": record}}), second])
    queue.commit(ONE, claim(queue, ONE), {"console": console})
    would = clean_up(queue, blobs, 30, dry_run=True)
    assert (would.removed, would.removed_bytes, would.kept) == (2, len("of a run that has ended") + len("half"), 4)
    assert blobs.has(old)
    assert clean_up(queue, blobs, 30, dry_run=False) == would
    assert [blobs.has(digest) for digest in (vmlinuz, record, console, young, old)] == [True, True, True, True, False]
    assert not partial.exists()
    assert (Path(blobs.where) / "README").exists()


def test_an_image_that_is_not_there_yet_keeps_nothing_else(queue: Queue, tmp_path: Path) -> None:
    blobs = Blobs(str(tmp_path / "blobs"))
    old = put(blobs, tmp_path, "old", days=2)
    [task] = boots(1)
    queue.put([task.model_copy(update={"spec": {"image": "f" * 64}})])
    assert clean_up(queue, blobs, 1, dry_run=False).removed == 1
    assert not blobs.has(old)


@pytest.mark.parametrize("days", [0, 30])
def test_a_store_in_memory_has_ages_too(queue: Queue, tmp_path: Path, days: int) -> None:
    blobs = Blobs(f"memory://cleanup-{days}")
    (tmp_path / "content").write_text("x")
    blobs.put(tmp_path / "content")
    assert clean_up(queue, blobs, days, dry_run=False).removed == (1 if days == 0 else 0)
