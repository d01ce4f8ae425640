"""Where files lie on real disks: kdyno's answer beside filefrag's and beside what the disk holds.

The disks are loop devices. Which file systems there are is up to the kernel that runs the tests.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from kdyno.boot.blockmap import checks, extents, mapper
from kdyno.boot.blockmap import table as tables
from kdyno.boot.blockmap.activate import Changed, activate
from kdyno.boot.blockmap.extents import FS_IMMUTABLE_FL, NeedsRight, file_flags, read_extents
from kdyno.boot.blockmap.look import block_map, open_subject
from kdyno.boot.blockmap.model import BlockMap
from kdyno.boot.blockmap.table import Extent, extents_of_file
from kdyno.cli.main import main
from tests.ordinary_user import ordinary_user

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount disks and read them")
needs_dmsetup = pytest.mark.skipif(shutil.which("dmsetup") is None, reason="needs dmsetup: make setup-test")

MKFS = {
    "ext4": ["mkfs.ext4", "-q", "-b", "1024"],
    "vfat": ["mkfs.vfat", "-s", "2"],
    "xfs": ["mkfs.xfs", "-q"],
}
MEGABYTES = {"ext4": 32, "vfat": 32, "xfs": 320}


def kernel_has(kind: str) -> bool:
    """Return whether this kernel has the file system, or a module for it."""
    listed = Path("/proc/filesystems").read_text().split()
    modules = [Path(f"/lib/modules/{os.uname().release}") / name for name in ("modules.dep", "modules.builtin")]
    return kind in listed or any(f"/{kind}.ko" in path.read_text() for path in modules if path.exists())


def kernel_has_mapper() -> bool:
    return any(line.split()[1:] == ["device-mapper"] for line in Path("/proc/misc").read_text().splitlines())


KINDS = [kind for kind in MKFS if kernel_has(kind)]


@dataclass(frozen=True)
class Place:
    """A directory on a file system, and the device that it is on."""

    directory: Path
    device: Path


def run(*words: str | Path) -> str:
    """What a command prints; a test whose programs aren't installed is skipped."""
    if shutil.which(words[0]) is None:
        pytest.skip(f"needs {words[0]}: make setup-test")
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@contextmanager
def loop_of(image: Path) -> Iterator[Path]:
    try:
        device = run("losetup", "--find", "--show", image).strip()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no loop devices here: {error.stderr}")
    try:
        yield Path(device)
    finally:
        run("losetup", "--detach", device)


@contextmanager
def mounted(device: Path, directory: Path) -> Iterator[None]:
    directory.mkdir(exist_ok=True)
    run("mount", device, directory)
    try:
        yield
    finally:
        run("umount", directory)


@contextmanager
def disk(at: Path, kind: str, *options: str) -> Iterator[Place]:
    """A new file system of this kind on a loop device."""
    image = at / f"{kind}.img"
    with image.open("wb") as handle:
        handle.truncate(MEGABYTES[kind] << 20)
    run(*MKFS[kind], *options, image)
    with loop_of(image) as device, mounted(device, at / kind):
        yield Place(at / kind, device)


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with disk(tmp_path, request.param) as made:
        yield made


@pytest.fixture
def ext4(tmp_path: Path) -> Iterator[Place]:
    with disk(tmp_path, "ext4") as made:
        yield made


def written(path: Path, size: int) -> Path:
    with path.open("wb") as handle:
        handle.write(os.urandom(size))
        os.fsync(handle.fileno())
    return path


def in_pieces(directory: Path, size: int) -> Path:
    """A file in pieces of 4 KiB that don't lie next to each other."""
    file = directory / "in pieces"
    if directory.name == "vfat":
        with file.open("wb") as handle, (directory / "other").open("wb") as other:
            for _ in range(0, size, 4096):
                for beside in (handle, other):
                    beside.write(os.urandom(4096))
                    os.fsync(beside.fileno())
        return file
    written(file, 2 * size)
    for offset in range(0, size, 4096):
        run("fallocate", "--collapse-range", "--offset", str(offset), "--length", "4096", file)
    return file


def on_device(device: Path, answer: BlockMap) -> bytes:
    """What the disk itself holds at the places of the table."""
    content = bytearray()
    with device.open("rb", buffering=0) as handle:
        for line in answer.table:
            start, length, kind, _, offset = line.split()
            assert (int(start) * 512, kind) == (len(content), "linear")
            os.posix_fadvise(handle.fileno(), int(offset) * 512, int(length) * 512, os.POSIX_FADV_DONTNEED)
            content += os.pread(handle.fileno(), int(length) * 512, int(offset) * 512)
    return bytes(content)


def can_be_read(device: Path) -> bool:
    """A container may keep its own disk even from root."""
    try:
        device.open("rb").close()
    except OSError:
        return False
    return True


def by_filefrag(file: Path) -> tuple[Extent, ...]:
    """The extents as `filefrag -e -b1` prints them: number, logical, physical (both `first.. last:`), length."""
    rows = []
    for line in run("filefrag", "-s", "-e", "-b1", file).splitlines():
        parts = [part.split("..")[0].strip() for part in line.split(":")]
        if len(parts) > 3 and parts[0].isdecimal():
            rows.append(Extent(int(parts[1]), int(parts[2]), int(parts[3])))
    return extents_of_file(rows, file.stat().st_size)


def rows_of(answer: BlockMap) -> tuple[Extent, ...]:
    return tuple(Extent(row.logical, row.physical, row.length) for row in answer.extents)


def test_the_extents_are_those_of_filefrag_and_the_disk_holds_the_file_there(place: Place) -> None:
    file = in_pieces(place.directory, 200 * 1024)
    answer = block_map(file)
    assert (answer.size, answer.file_system) == (200 * 1024, place.directory.name)
    assert answer.device == Path(f"/sys/block/{place.device.name}/dev").read_text().strip()
    assert len(answer.table) == 50
    assert rows_of(answer) == by_filefrag(file)
    assert on_device(place.device, answer) == file.read_bytes()


def test_what_was_written_just_now_is_on_the_disk_where_the_table_says(place: Place) -> None:
    file = place.directory / "f"
    file.write_bytes(os.urandom(64 * 1024))
    assert on_device(place.device, block_map(file)) == file.read_bytes()


def test_a_file_on_the_file_system_of_these_tests_is_found_on_its_disk_or_refused_by_name(tmp_path: Path) -> None:
    file = written(tmp_path / "f", 1 << 20)
    kind = run("stat", "--file-system", "--format=%T", file).strip()
    if kind not in ("ext2/ext3", "xfs", "msdos"):
        with pytest.raises((checks.FileSystemUnfit, checks.FileSystemUnknown)):
            block_map(file)
        return
    answer = block_map(file)
    assert rows_of(answer) == by_filefrag(file)
    uevent = Path(f"/sys/dev/block/{answer.table[0].split()[3]}/uevent").read_text()
    device = Path("/dev") / dict(line.split("=", 1) for line in uevent.splitlines())["DEVNAME"]
    if can_be_read(device):
        assert on_device(device, answer) == file.read_bytes()


def test_fibmap_finds_what_fiemap_finds(ext4: Place) -> None:
    file = in_pieces(ext4.directory, 60 * 1024)
    with open_subject(file) as subject:
        by_extents = extents_of_file(extents.fiemap(subject.file, subject.size), subject.size)
        by_blocks = extents_of_file(extents.fibmap(subject.file, subject.size, 32 << 20), subject.size)
    assert by_extents == by_blocks
    assert len(by_blocks) == 15


def test_more_extents_than_one_call_returns_are_all_read(ext4: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    file = in_pieces(ext4.directory, 60 * 1024)
    whole = block_map(file)
    monkeypatch.setattr(extents, "AT_ONCE", 3)
    assert block_map(file) == whole


def test_fibmap_finds_a_hole(ext4: Place) -> None:
    file = written(ext4.directory / "f", 4096)
    os.truncate(file, 8192)
    with open_subject(file) as subject, pytest.raises(tables.HasHole, match="4096 bytes from byte 4096"):
        extents_of_file(extents.fibmap(subject.file, subject.size, 32 << 20), subject.size)


def test_fibmap_is_not_asked_for_blocks_that_it_has_no_numbers_for(ext4: Place) -> None:
    with open_subject(written(ext4.directory / "f", 4096)) as subject, pytest.raises(extents.NoExtents):
        list(extents.fibmap(subject.file, subject.size, 1 << 50))


def test_an_ordinary_user_gets_the_table_where_there_is_fiemap_and_else_is_told_to_be_root(
    ext4: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(ext4.directory / "f", 4096)
    with open_subject(file) as subject:
        with ordinary_user():
            by_extents = read_extents(subject.file, subject.size, 32 << 20)
        assert extents_of_file(by_extents, 4096)
        monkeypatch.setattr(extents, "FS_IOC_FIEMAP", 0)  # an unknown call, as where there is none
        assert extents_of_file(read_extents(subject.file, subject.size, 32 << 20), 4096)
        with ordinary_user(), pytest.raises(NeedsRight):
            read_extents(subject.file, subject.size, 32 << 20)


def hole(file: Path) -> None:
    written(file, 4096)
    os.truncate(file, 8192)


def unwritten(file: Path) -> None:
    with written(file, 4096).open("r+b") as handle:
        os.posix_fallocate(handle.fileno(), 0, 65536)


@pytest.mark.parametrize(("make", "error"), [(hole, tables.HasHole), (unwritten, tables.ExtentUnfit)])
def test_a_file_with_bytes_that_no_block_holds_is_refused(
    ext4: Place, make: Callable[[Path], None], error: type[Exception]
) -> None:
    make(ext4.directory / "f")
    with pytest.raises(error):
        block_map(ext4.directory / "f")


def test_a_file_in_its_inode_is_refused(tmp_path: Path) -> None:
    with (
        disk(tmp_path, "ext4", "-I", "1024", "-O", "inline_data") as place,
        pytest.raises(tables.ExtentUnfit, match="inline"),
    ):
        block_map(written(place.directory / "f", 512))


def test_a_file_that_the_journal_writes_is_refused(ext4: Place) -> None:
    file = written(ext4.directory / "f", 4096)
    assert block_map(file).table
    run("umount", ext4.directory)
    run("mount", "-o", "data=journal", ext4.device, ext4.directory)
    with pytest.raises(checks.DataJournalled):
        block_map(file)


if "xfs" in KINDS:

    def test_a_file_that_shares_blocks_with_another_is_refused(tmp_path: Path) -> None:
        with disk(tmp_path, "xfs") as place:
            file = written(place.directory / "f", 1 << 16)
            run("cp", "--reflink=always", file, place.directory / "g")
            with pytest.raises(tables.ExtentUnfit, match="shared"):
                block_map(file)


def test_a_file_behind_a_loop_device_is_refused(ext4: Place) -> None:
    file = written(ext4.directory / "f", 1 << 16)
    with loop_of(file) as device, pytest.raises(checks.BacksLoop, match=str(device)):
        block_map(file)
    assert block_map(file).table


def test_a_file_that_is_open_where_proc_does_not_show_it_is_refused(ext4: Place, tmp_path: Path) -> None:
    file = written(ext4.directory / "f", 4096)
    with open_subject(file) as subject:
        assert extents.is_open_elsewhere(subject.file) is False
        with file.open("rb"):
            assert extents.is_open_elsewhere(subject.file) is True
            with pytest.raises(checks.InUseUnseen):
                checks.require_unused(tmp_path, file, subject.identity, subject.file, True)
        assert fcntl.fcntl(subject.file, fcntl.F_GETLEASE) == fcntl.F_UNLCK


def state_of(file: Path) -> tuple[int | None, os.stat_result, bytes]:
    """Flags, status and content; reading changes the time of the last access only."""
    with file.open("rb") as handle:
        content = handle.read()
        return file_flags(handle.fileno()), os.fstat(handle.fileno()), content


def same(before: tuple[int | None, os.stat_result, bytes], after: tuple[int | None, os.stat_result, bytes]) -> bool:
    return (before[0], before[1].st_mtime_ns, before[1].st_ctime_ns, before[2]) == (
        after[0],
        after[1].st_mtime_ns,
        after[1].st_ctime_ns,
        after[2],
    )


def test_without_activate_nothing_is_changed(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(place.directory / "f", 4096)
    before = state_of(file)
    assert main(["blockmap", str(file)]) == 0
    assert same(before, state_of(file))
    captured = capsys.readouterr()
    assert captured.out == "".join(f"{line}\n" for line in block_map(file).table)


@needs_dmsetup
def test_where_the_mapping_can_not_be_made_the_flags_are_as_before(ext4: Place) -> None:
    """The disk is mounted, and the kernel gives device-mapper no such disk; or it has no device-mapper."""
    file = written(ext4.directory / "f", 4096)
    before = state_of(file)
    with pytest.raises(mapper.MappingFailed):
        activate(file, "kdyno-test-blockmap")
    assert state_of(file)[0] == before[0]
    assert state_of(file)[2] == before[2]


DMSETUP = """\
#!/bin/sh
echo "$@" > {directory}/words
cat > {directory}/table
lsattr {file} > {directory}/flags
"""


def recording_dmsetup(directory: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dmsetup that keeps what it is told, and the file's flags at that time."""
    directory.mkdir()
    program = directory / "dmsetup"
    program.write_text(DMSETUP.format(directory=directory, file=file))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")


@needs_dmsetup
def test_dmsetup_gets_the_table_when_the_file_is_immutable_and_the_way_back_is_said(
    ext4: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(ext4.directory / "f", 4096)
    table = "".join(f"{line}\n" for line in block_map(file).table)
    recording_dmsetup(tmp_path / "bin", file, monkeypatch)
    assert main(["blockmap", str(file), "--activate", "inner"]) == 0
    captured = capsys.readouterr()
    assert (captured.out, (tmp_path / "bin/table").read_text()) == (table, table)
    assert (tmp_path / "bin/words").read_text() == "create inner\n"
    assert "i" in (tmp_path / "bin/flags").read_text().split()[0]
    assert f"dmsetup remove inner; chattr -i {file}" in captured.err
    with pytest.raises(PermissionError):
        file.open("r+b").close()
    run("chattr", "-i", file)


@needs_dmsetup
def test_processes_that_come_and_go_meanwhile_are_no_change_of_the_file_and_another_table_is(
    ext4: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(ext4.directory / "f", 4096)
    recording_dmsetup(tmp_path / "bin", file, monkeypatch)
    true_answer = block_map(file)
    answers = iter([true_answer, true_answer.model_copy(update={"notes": ("2 processes cannot be examined",)})])
    monkeypatch.setattr("kdyno.boot.blockmap.activate.look", lambda *_: next(answers))
    assert activate(file, "inner").table == true_answer.table
    run("chattr", "-i", file)
    answers = iter([true_answer, true_answer.model_copy(update={"table": ("0 8 linear 7:0 4711",)})])
    with pytest.raises(Changed):
        activate(file, "inner")
    assert not (state_of(file)[0] or 0) & FS_IMMUTABLE_FL


@needs_dmsetup
def test_a_file_that_was_immutable_before_stays_so_and_is_not_said_to_be_undone(
    ext4: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(ext4.directory / "f", 4096)
    run("chattr", "+i", file)
    with pytest.raises(mapper.MappingFailed):
        activate(file, "kdyno-test-blockmap")
    assert (state_of(file)[0] or 0) & FS_IMMUTABLE_FL
    recording_dmsetup(tmp_path / "bin", file, monkeypatch)
    answer = activate(file, "inner")
    assert (answer.mapping, answer.undo) == ("inner", ("dmsetup remove inner",))
    run("chattr", "-i", file)


if kernel_has_mapper():

    def test_a_mapping_on_a_mapped_disk_is_made_and_holds_the_file(tmp_path: Path) -> None:
        image = tmp_path / "disk"
        with image.open("wb") as handle:
            handle.truncate(40 << 20)
        with loop_of(image) as device:
            lower = f"kdyno-test-{os.getpid()}-lower"
            run("dmsetup", "create", lower, "--table", f"0 65536 linear {device} 2048")
            try:
                run(*MKFS["ext4"], f"/dev/mapper/{lower}")
                with mounted(Path(f"/dev/mapper/{lower}"), tmp_path / "mnt"):
                    file = written(tmp_path / "mnt/f", 1 << 20)
                    name = f"kdyno-test-{os.getpid()}"
                    answer = activate(file, name)
                    try:
                        assert Path(f"/dev/mapper/{name}").read_bytes() == file.read_bytes()
                        with pytest.raises(tables.AlreadyMapped, match=name):
                            block_map(file)
                    finally:
                        for command in answer.undo:
                            run(*command.split())
                    assert block_map(file).table == answer.table
            finally:
                run("dmsetup", "remove", lower)
