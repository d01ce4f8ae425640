"""Files are written whole or not at all; devices and pipes are written to; what can't be written is one message."""

from __future__ import annotations

import errno
import os
import tracemalloc
from pathlib import Path
from threading import Thread

import pytest

from kdyno.base.files import (
    DirectoryNotWritable,
    NotWritable,
    copy_whole,
    make_directory,
    read_whole,
    require_directory,
    require_writable,
    write_whole,
)
from kdyno.base.state import DiskFull, StateNotWritable


@pytest.mark.parametrize(
    ("error", "raised"), [(errno.EIO, OSError), (errno.ENOSPC, DiskFull), (errno.EDQUOT, DiskFull)]
)
def test_a_file_that_can_not_be_finished_is_what_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, raised: type[Exception]
) -> None:
    def broken(_descriptor: int) -> None:
        raise OSError(error, os.strerror(error))

    path = tmp_path / "file"
    write_whole(path, "old")
    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(raised):
        write_whole(path, "new")
    with pytest.raises(raised):
        copy_whole(Path("/proc/self/stat"), path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_text_is_utf8_and_bytes_are_what_they_are(tmp_path: Path) -> None:
    for content, written in (("ü", b"\xc3\xbc"), ("half \udc80", b"half \\udc80"), (b"\xff", b"\xff")):
        write_whole(tmp_path / "file", content)
        assert (tmp_path / "file").read_bytes() == written


def test_a_file_gets_the_mode_of_any_new_file_or_the_one_that_is_asked_for(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        write_whole(tmp_path / "usual", "")
        write_whole(tmp_path / "open", "", mode=0o644)
    finally:
        os.umask(mask)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("usual", "open")] == [0o640, 0o644]


def test_only_a_durable_file_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    write_whole(tmp_path / "file", "", durable=False)
    assert not synced
    write_whole(tmp_path / "file", "")
    assert len(synced) == 2, "the file and its directory"


def test_a_copy_has_the_content_of_its_source(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"\0" * 100_000)
    copy_whole(tmp_path / "source", tmp_path / "copy", mode=0o400)
    assert (tmp_path / "copy").read_bytes() == bytes(100_000)
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o400


def test_a_path_that_can_not_be_is_a_user_error_or_what_the_caller_says(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    for path, why in ((tmp_path / "no" / "file", "No such file"), (tmp_path / "taken", "Is a directory")):
        with pytest.raises(NotWritable, match=f"can't write {path}: {why}"):
            write_whole(path, "")
        with pytest.raises(StateNotWritable, match=f"{path}: {why}"):
            write_whole(path, "", refused=StateNotWritable)
    assert [entry.name for entry in tmp_path.iterdir()] == ["taken"]


def test_the_longest_name_is_not_too_long(tmp_path: Path) -> None:
    write_whole(tmp_path / ("x" * 255), "")
    with pytest.raises(NotWritable, match="too long"):
        write_whole(tmp_path / ("x" * 256), "")


def test_a_pipe_and_a_device_are_written_to_and_stay(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content: list[str] = []
    reader = Thread(target=lambda: content.append(pipe.read_text()))
    reader.start()
    require_writable(pipe)
    write_whole(pipe, "text")
    reader.join()
    assert content == ["text"] and pipe.is_fifo()
    require_writable(Path("/dev/null"))
    write_whole(Path("/dev/null"), "text")
    assert Path("/dev/null").is_char_device()


def test_the_file_behind_an_open_descriptor_is_written_to(tmp_path: Path) -> None:
    with (tmp_path / "output").open("wb") as output:
        write_whole(Path(f"/dev/fd/{output.fileno()}"), "text")
    assert (tmp_path / "output").read_text() == "text"


def test_that_a_file_can_not_be_written_is_said_before_the_work_for_it(tmp_path: Path) -> None:
    require_writable(tmp_path / "new")
    assert not list(tmp_path.iterdir())
    with pytest.raises(NotWritable, match="it is a directory"):
        require_writable(tmp_path)
    with pytest.raises(NotWritable, match="its directory does not exist"):
        require_writable(tmp_path / "no" / "file")
    with pytest.raises(NotWritable, match="its directory does not exist"):
        require_writable(Path("/dev/null/file"))


def test_a_directory_for_files_is_checked_before_the_work_and_made_after_it(tmp_path: Path) -> None:
    require_directory(tmp_path)
    require_directory(tmp_path / "new")
    assert not list(tmp_path.iterdir())
    make_directory(tmp_path / "new")
    make_directory(tmp_path / "new")
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    for name in ("no/new", "file", "file/new", "loop"):
        with pytest.raises(DirectoryNotWritable, match="it is not a directory, or not in one"):
            require_directory(tmp_path / name)
    for name in ("no/new", "file", "file/new", "loop"):
        with pytest.raises(DirectoryNotWritable):
            make_directory(tmp_path / name)


def test_what_the_user_may_not_write_is_said_before_the_work_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "kdyno.base.files.unwritable_reason", lambda path: "Permission denied" if path.is_dir() else None
    )
    with pytest.raises(NotWritable, match="file: Permission denied"):
        require_writable(tmp_path / "file")


def test_a_named_file_is_read_only_if_it_is_a_file_and_no_larger_than_it_may_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"1234")
    (tmp_path / "link").symlink_to("file")
    assert read_whole(tmp_path / "file", 4) == read_whole(tmp_path / "link", 4) == b"1234"
    with pytest.raises(OSError, match="it is larger than 3 bytes"):
        read_whole(tmp_path / "file", 3)
    os.mkfifo(tmp_path / "pipe")
    for no_file in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(OSError, match="it is not a regular file"):
            read_whole(no_file, 4)


def test_a_small_file_takes_little_memory_whatever_the_limit_is(tmp_path: Path) -> None:
    path = tmp_path / "small"
    path.write_bytes(b"x" * 10)
    tracemalloc.start()
    try:
        assert read_whole(path, 1 << 30) == b"x" * 10
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_file_of_proc_is_read_although_it_has_no_size() -> None:
    path = Path("/proc/self/status")
    assert path.stat().st_size == 0
    assert b"VmPeak" in read_whole(path, 1 << 20)
    with pytest.raises(OSError, match="larger than 100 bytes"):
        read_whole(path, 100)
