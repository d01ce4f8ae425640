"""From extents to a table, and what /proc and /sys say against it, on a host that is a tree of files."""

from __future__ import annotations

import mmap
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdyno.boot.blockmap import checks
from kdyno.boot.blockmap import table as tables
from kdyno.boot.blockmap.activate import MappingNameTaken, MappingNameUnfit, OnlyRoot, activate
from kdyno.boot.blockmap.checks import FileIdentity
from kdyno.boot.blockmap.look import open_subject
from kdyno.boot.blockmap.table import Extent, Mapper, Run, Target
from tests.ordinary_user import a_place_for_all, ordinary_user
from tests.unit.host_specimen import put

KIB = 1024
FIEMAP_H = Path("/usr/include/linux/fiemap.h")


def table_of(*extents: Extent, size: int) -> list[str]:
    return [run.line() for run in tables.make_runs(tables.extents_of_file(extents, size), "8:1")]


def test_extents_that_lie_next_to_each_other_are_one_line() -> None:
    extents = [Extent(0, 8 * KIB, 4 * KIB), Extent(4 * KIB, 12 * KIB, 4 * KIB), Extent(8 * KIB, 64 * KIB, 4 * KIB)]
    assert table_of(*extents, size=12 * KIB) == ["0 16 linear 8:1 16", "16 8 linear 8:1 128"]


def test_extents_that_lie_next_to_each_other_in_the_wrong_order_stay_two_lines() -> None:
    extents = [Extent(0, 12 * KIB, 4 * KIB), Extent(4 * KIB, 8 * KIB, 4 * KIB)]
    assert table_of(*extents, size=8 * KIB) == ["0 8 linear 8:1 24", "8 8 linear 8:1 16"]


def test_the_table_ends_where_the_file_does() -> None:
    extents = [Extent(0, 8 * KIB, 4 * KIB), Extent(4 * KIB, 32 * KIB, 4 * KIB, tables.UNWRITTEN)]
    assert table_of(*extents, size=3 * KIB) == ["0 6 linear 8:1 16"]
    assert table_of(*extents, size=4 * KIB) == ["0 8 linear 8:1 16"]


@pytest.mark.parametrize(
    ("extents", "logical", "length"),
    [
        ([], 0, 8192),
        ([Extent(4096, 8192, 4096)], 0, 4096),
        ([Extent(0, 8192, 4096)], 4096, 4096),
        ([Extent(0, 8192, 1024), Extent(2048, 16384, 6144)], 1024, 1024),
    ],
    ids=["all of it", "first", "last", "between"],
)
def test_a_hole_is_refused_with_its_place(extents: list[Extent], logical: int, length: int) -> None:
    with pytest.raises(tables.HasHole, match=f"^{length} bytes from byte {logical} are a hole"):
        tables.extents_of_file(extents, 8192)


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (tables.UNKNOWN, "unknown"),
        (tables.DELALLOC | tables.UNKNOWN, "delayed"),
        (tables.ENCODED, "encoded"),
        (tables.DATA_ENCRYPTED | tables.ENCODED, "encrypted"),
        (tables.NOT_ALIGNED, "not aligned"),
        (tables.DATA_INLINE | tables.NOT_ALIGNED, "inline"),
        (tables.DATA_TAIL | tables.NOT_ALIGNED, "packed"),
        (tables.UNWRITTEN | tables.LAST, "unwritten"),
        (tables.SHARED | tables.MERGED, "shared"),
        (0x40000000, r"does not support \(flags 0x40000000\)"),
    ],
)
def test_an_extent_that_is_no_plain_part_of_a_disk_is_refused_with_the_nearest_reason(flags: int, why: str) -> None:
    extents = [Extent(0, 8192, 4096), Extent(4096, 16384, 4096, flags)]
    with pytest.raises(tables.ExtentUnfit, match=f"4096 bytes from byte 4096 are .*{why}"):
        tables.extents_of_file(extents, 8192)


@pytest.mark.parametrize("extent", [Extent(0, 8192 + 7, 4096), Extent(0, 256, 4096)])
def test_an_extent_between_two_sectors_is_refused(extent: Extent) -> None:
    with pytest.raises(tables.ExtentUnfit, match="not aligned"):
        tables.extents_of_file([extent], 4096)


def test_a_place_that_is_told_twice_is_refused() -> None:
    with pytest.raises(tables.ExtentsOverlap):
        tables.extents_of_file([Extent(0, 8192, 4096), Extent(2048, 65536, 4096)], 6144)


def test_the_flags_are_those_of_the_kernel() -> None:
    known = {
        name: int(value, 16)
        for name, value in re.findall(r"#define FIEMAP_EXTENT_(\w+)\s+(0x[0-9a-f]+)", FIEMAP_H.read_text())
    }
    assert known == {name: getattr(tables, name) for name in known}
    assert set(known.values()) == {tables.LAST, tables.MERGED, *tables.REFUSED}


@given(
    st.lists(st.tuples(st.integers(1, 64), st.integers(0, 1 << 40)), min_size=1, max_size=20),
    st.integers(0, 63),
)
def test_every_sector_of_a_file_is_where_its_extent_says(parts: list[tuple[int, int]], cut: int) -> None:
    extents, sectors, position = list[Extent](), list[int](), 0
    for length, offset in parts:
        extents.append(Extent(position * 512, offset * 512, length * 512))
        sectors += range(offset, offset + length)
        position += length
    size = max(1, position - cut)
    runs = tables.make_runs(tables.extents_of_file(extents, size * 512), "8:1")
    assert [run.offset + sector for run in runs for sector in range(run.length)] == sectors[:size]
    assert [run.start for run in runs] == [sum(run.length for run in runs[:index]) for index in range(len(runs))]


# Mappings that are there.

LVM = {
    "253:0": Mapper(
        "vg-root", (Target(0, 1000, "linear", ("8:2", "2048")), Target(1000, 500, "linear", ("8:17", "0")))
    ),
    "253:1": Mapper("vg-home", (Target(0, 1000, "linear", ("8:2", "3048")),)),
}


def test_the_lines_that_dmsetup_prints_are_read() -> None:
    text = "0 2097152 linear 8:2 2048\n2097152 8 striped 2 128 8:2 0 8:17 0\nNo devices found\n"
    assert tables.parse_targets(text) == (
        Target(0, 2097152, "linear", ("8:2", "2048")),
        Target(2097152, 8, "striped", ("2", "128", "8:2", "0", "8:17", "0")),
    )


def test_a_run_on_a_mapping_is_followed_to_the_disks_below() -> None:
    runs = [Run(0, 8, "253:0", 100), Run(8, 32, "253:0", 990)]
    assert tables.levels(runs, LVM) == [
        tuple(runs),
        (Run(0, 8, "8:2", 2148), Run(8, 10, "8:2", 3038), Run(18, 22, "8:17", 0)),
    ]


def test_a_mapping_on_a_mapping_is_followed_to_the_ground() -> None:
    stacked = {**LVM, "253:7": Mapper("upper", (Target(0, 64, "linear", ("253:1", "8")),))}
    deeper = tables.levels([Run(0, 16, "253:7", 4)], stacked)
    assert [runs[0].line() for runs in deeper] == [
        "0 16 linear 253:7 4",
        "0 16 linear 253:1 12",
        "0 16 linear 8:2 3060",
    ]


def test_what_is_not_linear_is_not_looked_through() -> None:
    runs = (Run(0, 8, "253:2", 100),)
    crypt = {"253:2": Mapper("crypt", (Target(0, 1000, "crypt", ("aes", "0", "0", "8:2", "4096")),))}
    assert tables.levels(runs, crypt) == [runs]


def test_a_mapping_of_the_same_sectors_is_refused_on_every_level() -> None:
    deeper = tables.levels([Run(0, 8, "253:0", 100)], LVM)
    tables.require_unmapped(deeper, LVM)
    for device, offset, taken in [
        ("8:2", 2140, True),
        ("8:2", 2156, False),
        ("253:0", 93, True),
        ("8:17", 2140, False),
    ]:
        other = {**LVM, "253:9": Mapper("other", (Target(0, 16, "linear", (device, str(offset))),))}
        if taken:
            with pytest.raises(tables.AlreadyMapped, match="other"):
                tables.require_unmapped(deeper, other)
        else:
            tables.require_unmapped(deeper, other)


def test_a_mapping_whose_table_does_not_say_which_sectors_it_takes_may_take_any() -> None:
    mirrored = {"253:9": Mapper("mirror", (Target(0, 16, "mirror", ("core", "8:1", "0", "8:3", "0")),))}
    with pytest.raises(tables.AlreadyMapped):
        tables.require_unmapped([[Run(0, 8, "8:3", 1 << 30)]], mirrored)


def test_a_table_that_leads_beyond_the_end_of_the_disk_is_refused() -> None:
    tables.require_inside([Run(0, 8, "8:1", 992)], 1000)
    with pytest.raises(tables.BeyondDevice, match=r"sector 1000 .* has 1000"):
        tables.require_inside([Run(0, 8, "8:1", 993)], 1000)


# A host that is a tree of files.


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "host"
    path.mkdir()
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a file"
    path.write_bytes(b"x" * 4096)
    return path


def identity_of(file: Path) -> FileIdentity:
    identity = FileIdentity.read(file)
    assert identity is not None
    return identity


def mounted(root: Path, device: str, kind: str, options: str = "rw", point: str = "/") -> None:
    put(root, "proc/self/mountinfo", f"27 1 {device} / {point} rw,relatime shared:1 - {kind} /dev/x {options}\n")


@pytest.mark.parametrize("kind", checks.FIT)
def test_a_file_system_that_leaves_blocks_where_they_are_is_taken(root: Path, file: Path, kind: str) -> None:
    mounted(root, identity_of(file).number, kind)
    assert checks.file_system(root, file, identity_of(file)) == kind


@pytest.mark.parametrize("kind", ["btrfs", "f2fs", "overlay", "tmpfs", "nfs4", "bcachefs", "fuseblk"])
def test_another_file_system_is_refused_by_name(root: Path, file: Path, kind: str) -> None:
    mounted(root, identity_of(file).number, kind)
    with pytest.raises(checks.FileSystemUnfit, match=f"is on {kind}"):
        checks.file_system(root, file, identity_of(file))


def test_a_file_with_a_device_number_of_its_own_is_refused_by_the_file_system_around_it(root: Path, file: Path) -> None:
    mounted(root, "0:9999", "btrfs", point=str(file.parent).replace(" ", r"\040"))
    with pytest.raises(checks.FileSystemUnfit, match="is on btrfs"):
        checks.file_system(root, file, identity_of(file))
    mounted(root, "0:9999", "ext4")
    with pytest.raises(checks.FileSystemUnknown, match="not in /proc/self/mountinfo"):
        checks.file_system(root, file, identity_of(file))


def test_a_file_system_that_journals_data_is_refused(root: Path, file: Path) -> None:
    mounted(root, identity_of(file).number, "ext4", options="rw,data=journal")
    with pytest.raises(checks.DataJournalled):
        checks.file_system(root, file, identity_of(file))


def test_a_device_that_is_no_disk_is_refused(root: Path, file: Path) -> None:
    with pytest.raises(checks.NotOnDisk, match=f"device {identity_of(file).number}"):
        checks.disk(root, file, identity_of(file))


def test_a_partition_has_the_sectors_of_its_disk(root: Path, file: Path) -> None:
    number = identity_of(file).number
    put(root, "sys/block/sda/queue/logical_block_size", "4096\n")
    put(root, "sys/block/sda/sda1/size", "2048\n")
    (root / "sys/dev/block").mkdir(parents=True)
    (root / "sys/dev/block" / number).symlink_to("../../block/sda/sda1")
    assert checks.disk(root, file, identity_of(file)) == checks.Disk(sectors=2048, unit=4096)


@pytest.mark.parametrize(("size", "unit"), [(0, 512), (511, 512), (4096 + 256, 512), (512, 4096)])
def test_a_file_that_is_no_number_of_sectors_is_refused(size: int, unit: int) -> None:
    checks.require_size(Path("f"), 2 * unit, unit)
    with pytest.raises(checks.SizeUnfit, match=f"f has {size} bytes"):
        checks.require_size(Path("f"), size, unit)


@pytest.mark.parametrize(("flag", "why"), checks.UNFIT_FLAGS.items())
def test_a_file_that_is_not_stored_as_it_is_read_is_refused(flag: int, why: str) -> None:
    checks.require_plain(Path("f"), None)
    checks.require_plain(Path("f"), 0x80000 | 0x10)  # extents, immutable
    with pytest.raises(checks.FlagsUnfit, match=re.escape(why)):
        checks.require_plain(Path("f"), flag | 0x80000)


def test_a_swap_file_is_refused_under_any_of_its_names(root: Path, file: Path) -> None:
    other = file.with_name("another name")
    os.link(file, other)
    name = str(other).replace(" ", r"\040")
    put(root, "proc/swaps", f"Filename Type Size Used Priority\n/dev/none partition 1 0 -2\n{name} file 4 0 -3\n")
    with pytest.raises(checks.IsSwap):
        checks.require_no_swap(root, file, identity_of(file))
    checks.require_no_swap(root, file, FileIdentity(1, 1))


def test_a_file_behind_a_loop_device_is_refused_with_the_device(root: Path, file: Path) -> None:
    put(root, "sys/block/loop3/loop/backing_file", f"{file}\n")
    put(root, "sys/block/loop4/size", "0\n")
    with pytest.raises(checks.BacksLoop, match="/dev/loop3"):
        checks.require_no_loop(root, file, identity_of(file))
    checks.require_no_loop(root, file, FileIdentity(1, 1))


def process(root: Path, pid: int, maps: str = "") -> Path:
    put(root, f"proc/{pid}/comm", "editor\n")
    put(root, f"proc/{pid}/maps", maps)
    (root / f"proc/{pid}/fd").mkdir()
    return root / f"proc/{pid}/fd"


def test_a_file_that_a_process_has_open_is_refused_with_the_process(root: Path, file: Path) -> None:
    (process(root, 77) / "3").symlink_to(file)
    with pytest.raises(checks.FileInUse, match=r"is open in process 77 \(editor\)"):
        checks.require_unused(root, file, identity_of(file), 3, None)


def test_a_file_that_a_process_has_mapped_and_closed_is_refused(root: Path, file: Path) -> None:
    identity = identity_of(file)
    device = f"{os.major(identity.device):02x}:{os.minor(identity.device):02x}"
    process(root, 77, f"7f00-7f01 r-xp 0 00:00 0\n7f01-7f02 rw-s 00000000 {device} {identity.inode}    /any name\n")
    with pytest.raises(checks.FileInUse, match="is mapped in process 77"):
        checks.require_unused(root, file, identity, 3, None)


def test_the_open_file_of_kdyno_itself_is_not_in_the_way_and_another_of_its_own_is(root: Path, file: Path) -> None:
    descriptors = process(root, os.getpid())
    (descriptors / "5").symlink_to(file)
    assert checks.require_unused(root, file, identity_of(file), 5, False) == 0
    (descriptors / "6").symlink_to(file)
    with pytest.raises(checks.FileInUse):
        checks.require_unused(root, file, identity_of(file), 5, False)


def test_a_process_that_can_not_be_looked_into_is_counted_and_one_that_has_ended_is_not() -> None:
    with a_place_for_all() as place:
        process(place, 77).chmod(0)
        put(place, "proc/78/comm", "gone\n")
        with ordinary_user():
            unseen = checks.require_unused(place, place / "f", FileIdentity(1, 1), 3, None)
        (place / "proc/77/fd").chmod(0o700)
    assert unseen == 1


def test_a_file_that_only_the_kernel_knows_to_be_open_is_refused(root: Path, file: Path) -> None:
    with pytest.raises(checks.InUseUnseen):
        checks.require_unused(root, file, identity_of(file), 3, True)


@contextmanager
def holder(code: str, file: Path) -> Iterator[None]:
    """A process that does this with the file, and waits."""
    ready = "; import sys; print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code + ready, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        yield
        child.communicate()


OPENS = "import sys; file = open(sys.argv[1], 'rb')"
MAPS = "import sys, mmap; file = open(sys.argv[1], 'rb'); area = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)"


@pytest.mark.parametrize(
    ("code", "how"), [(OPENS, "open"), (f"{MAPS}; file.close()", "open|mapped")], ids=["open", "mapped"]
)
def test_a_real_process_with_the_file_is_found(file: Path, code: str, how: str) -> None:
    identity = identity_of(file)
    with open_subject(file) as subject:
        assert checks.find_users(Path("/"), identity, subject.file).processes == ()
        with holder(code, file):
            [user] = checks.find_users(Path("/"), identity, subject.file).processes
            assert re.fullmatch(how, user.how)


def test_a_mapping_of_the_file_is_found_without_its_descriptor(file: Path) -> None:
    with file.open("rb") as handle:
        area = mmap.mmap(handle.fileno(), 0, prot=mmap.PROT_READ)
    try:
        assert checks._maps(Path("/proc/self"), identity_of(file))
    finally:
        area.close()
    assert not checks._maps(Path("/proc/self"), identity_of(file))


# What is asked for.


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["directory", "pipe"])
def test_what_is_no_regular_file_is_refused_before_it_is_opened(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "it")
    with pytest.raises(checks.NotRegular), open_subject(tmp_path / "it"):
        pass


def test_a_link_is_followed_and_the_file_is_called_by_its_own_name(file: Path) -> None:
    link = file.with_name("link")
    link.symlink_to(file.name)
    with open_subject(link) as subject:
        assert subject.path == file.resolve()


@pytest.mark.parametrize("name", ["", "-f", ".", "..", "a/b", "a b", "ü", "a\n", "x" * 101])
def test_a_name_that_device_mapper_or_a_shell_could_take_for_something_else_is_refused(file: Path, name: str) -> None:
    with pytest.raises(MappingNameUnfit):
        activate(file, name)


@pytest.mark.skipif(os.geteuid() != 0, reason="anybody else is refused before")
def test_a_name_that_is_taken_is_refused(file: Path, root: Path) -> None:
    put(root, "sys/block/dm-0/dm/name", "vg-root\n")
    put(root, "sys/block/dm-0/dev", "253:0\n")
    with pytest.raises(MappingNameTaken):
        activate(file, "vg-root", root)


def test_only_root_may_make_a_mapping(file: Path) -> None:
    with ordinary_user():
        if os.geteuid() != 0:
            with pytest.raises(OnlyRoot):
                activate(file, "x" * 100)
