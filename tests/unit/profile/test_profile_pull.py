"""`kdyno profile pull`: what kdyno-pgod keeps arrives whole, is added up, and a hostile sender gets nowhere."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdyno.base import plain_tar
from kdyno.base.installed import find_program
from kdyno.base.plain_tar import ArchiveDamaged, TarLimits, files
from kdyno.cli.main import main
from kdyno.cli.schemas import schema
from kdyno.profile import remote
from kdyno.profile.gcda import ARCS, MOST_COUNTERS, MOST_FUNCTIONS, MOST_IN_ALL, read_gcda
from kdyno.profile.pgod import listing_of, read_sent
from tests.unit.bounded import kdyno, require_one_message
from tests.unit.pgod_specimen import BOOTS, HEAD, KERNEL, gcda, install_ssh, sent, snapshot, tar

FORK, SLUB = f"{HEAD}/kernel/fork.gcda", f"{HEAD}/mm/slub.gcda"
PLENTY = TarLimits(files=100, file_bytes=1 << 20, total_bytes=1 << 22)


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ssh that runs its command here; returns its log."""
    path = install_ssh(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return path


def serve(tmp_path: Path, content: bytes, after: str = "") -> None:
    """Make kdyno-pgod a program that sends this."""
    (tmp_path / "content").write_bytes(content)
    program = tmp_path / "bin" / "kdyno-pgod"
    program.write_text(f'#!/bin/sh\ncat "{tmp_path}/content"\n{after}')
    program.chmod(0o755)


def arcs(path: Path) -> list[tuple[int, ...]]:
    return [function.arcs for function in read_gcda(path.read_bytes(), path.name).functions]


def pulled(tmp_path: Path, *words: str) -> int:
    return main(["profile", "pull", "me@machine", "-o", str(tmp_path / "out"), *words])


def nothing_left(tmp_path: Path) -> bool:
    return not (tmp_path / "out").exists() and not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


# What is pulled.


def test_the_last_snapshots_of_all_runs_are_added_up_with_an_object_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], log: Path
) -> None:
    first = snapshot({FORK: gcda([5, 0], [100]), SLUB: gcda([1], stamp=8)})
    second = snapshot({FORK: gcda([7, 1], [2**33])}, BOOTS[1])
    serve(tmp_path, sent(first, second))
    assert pulled(tmp_path, "--json") == 0
    out = tmp_path / "out"
    assert arcs(out / FORK) == [(12, 1), (2**33 + 100,)]
    assert arcs(out / SLUB) == [(1,)]
    fork = read_gcda((out / FORK).read_bytes(), "fork")
    assert (fork.version, fork.stamp, fork.summary) == ("B22*", 7, (2, 2**32 - 1))
    assert read_gcda((out / SLUB).read_bytes(), "slub").summary == fork.summary
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((out / "pulled.json").read_text())
    jsonschema.validate(printed, schema("profile-pull"))
    assert (printed["objects"], printed["common"], printed["executions"]) == (2, HEAD, 14 + 100 + 2**33)
    assert [(run["boot"], run["taken"]) for run in printed["runs"]] == [
        (boot, "2026-11-23T12:43:09+00:00") for boot in BOOTS
    ]
    files = {path.name for path in out.rglob("*") if path.is_file()}
    assert files == {"fork.gcda", "slub.gcda", "pulled.json", "gcc.profile"}
    named = [line for line in (out / "gcc.profile").read_text().splitlines() if line.startswith("#")]
    assert [Path(name).stem for name in named] == ["fork", "slub"], "what a recipe's `from` takes"
    assert "BatchMode=yes" in log.read_text() and log.read_text().endswith("-- me@machine kdyno-pgod send\n")


def test_runs_of_another_kernel_than_the_newest_are_left_out_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = snapshot({FORK: gcda([5], stamp=1)}, kernel=KERNEL | {"build_id": "77"})
    serve(tmp_path, sent(old, snapshot({FORK: gcda([9])}, BOOTS[1])))
    assert pulled(tmp_path) == 0
    assert arcs(tmp_path / "out" / FORK) == [(9,)]
    left, last, use = capsys.readouterr().out.splitlines()[1:]
    assert use == f'profile = {{ use = "pgo", from = "{tmp_path}/out/gcc.profile" }} compiles with them'
    assert left.startswith("left out, a run of kernel 6.12.117 (77)") and BOOTS[0] in left
    assert last.endswith("out: 1 object of kernel 6.12.117 (80180898f590), 1 run, 0.0 MB")


def test_a_machine_that_runs_kdyno_pgod_is_pulled_from_whatever_its_directory_is_called(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], log: Path
) -> None:
    gcov, state = tmp_path / "gcov", tmp_path / 'it\'s $HOME; "here"'
    (gcov / HEAD / "kernel").mkdir(parents=True)
    (gcov / "reset").touch()
    (gcov / FORK).write_bytes(gcda([1000, 3]))
    program = str(find_program("kdyno-pgod", "this test"))
    command = [program, "run", "--every", "1h", "--gcov", str(gcov), "--directory", str(state)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as daemon:
        assert daemon.stderr and " begins: " in daemon.stderr.readline()
        daemon.send_signal(signal.SIGUSR2)
        assert "run 2 begins" in daemon.stderr.readline()
        (gcov / FORK).write_bytes(gcda([20, 4]))
        daemon.terminate()
        assert daemon.wait(20) == 0
    assert pulled(tmp_path, "--program", program, "--directory", str(state), "--json") == 0
    assert arcs(tmp_path / "out" / FORK) == [(1020, 7)]
    result = json.loads(capsys.readouterr().out)
    assert [(run["run"], run["objects"]) for run in result["runs"]] == [(1, 1), (2, 1)]
    listed = subprocess.check_output([program, "status", "--json", "--directory", str(state)])
    jsonschema.validate(json.loads(listed), schema("pgod-listing"))
    listing = listing_of(listed, "here")
    assert (listing.running, [run.run for run in listing.runs]) == (False, [1, 2])
    boot = listing.runs[0].boot
    assert pulled(tmp_path / "bin", "--program", program, "--directory", str(state), "--boot", boot[:6]) == 0
    assert log.read_text().endswith(f"--boot {boot[:6]}\n")


# What can't be pulled.


@pytest.mark.parametrize("host", ["-oProxyCommand=touch x", "", "a b", "a\nb", "höst"])
def test_a_host_that_ssh_would_take_for_something_else_is_refused(host: str) -> None:
    with pytest.raises(remote.NoHost):
        remote.require_host(host)


def test_a_target_that_is_there_is_left_alone_and_ssh_is_not_asked(tmp_path: Path, log: Path) -> None:
    (tmp_path / "out").mkdir()
    assert pulled(tmp_path) == 1
    assert main(["profile", "pull", "machine", "-o", str(tmp_path / "no" / "out")]) == 1
    assert not log.exists()


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ("exit 255", "ssh cannot connect to me@machine: without a message"),
        ("echo 'sh: kdyno-pgod: not found' >&2; exit 127", "me@machine has no kdyno-pgod: sh: kdyno-pgod: not found"),
        ("printf 'run it as \\033[31mroot' >&2; exit 3", "ended with status 3: run it as"),
        ("", "the archive from me@machine can't be used: it is cut short"),
    ],
)
def test_what_failed_there_is_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], after: str, message: str
) -> None:
    serve(tmp_path, b"", after)
    assert pulled(tmp_path) == 3
    error = capsys.readouterr().err
    assert message in error and "hint: " in error and "\033" not in error
    assert nothing_left(tmp_path)


def test_a_transfer_that_ends_anywhere_before_its_end_leaves_nothing(tmp_path: Path) -> None:
    whole = sent(snapshot({FORK: gcda([5]), SLUB: gcda([1])}), snapshot({FORK: gcda([6])}, BOOTS[1]))
    for length in range(0, len(whole), 313):
        with pytest.raises(ArchiveDamaged, match="cut short"):
            list(read_sent(_reading(whole[:length]), "m"))
    serve(tmp_path, whole[: len(whole) // 2], "exit 255")
    assert pulled(tmp_path) == 3
    assert nothing_left(tmp_path)


def test_a_machine_that_falls_silent_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(remote, "SILENCE_SECONDS", 0.3)
    serve(tmp_path, sent(snapshot({FORK: gcda([5])}))[:700], "exec sleep 60")
    assert pulled(tmp_path) == 3
    assert "me@machine has sent nothing for 0.3 s" in capsys.readouterr().err
    assert nothing_left(tmp_path)


def test_what_an_endless_standard_error_says_is_not_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    serve(tmp_path, b"", "yes noise | head -c 5000000 >&2; echo the end >&2; exit 3")
    assert pulled(tmp_path) == 3
    error = capsys.readouterr().err
    assert "the end" in error and len(error) < 4 * remote.MOST_COMPLAINT


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ({FORK: gcda([0, 0])}, "has no counts"),
        ({FORK: gcda([1])[:-3]}, "is damaged: it is truncated"),
        ({FORK: b"gcda"}, "is not a .gcda file"),
        ({"a.gcda": gcda([1]), "a.gcda/b.gcda": gcda([1])}, "the name of another object makes it a directory"),
    ],
)
def test_counters_that_are_no_good_are_a_users_mistake_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], objects: dict[str, bytes], message: str
) -> None:
    serve(tmp_path, sent(snapshot(objects)))
    assert pulled(tmp_path) == 1
    assert message in capsys.readouterr().err and nothing_left(tmp_path)


def test_objects_of_another_build_under_one_build_id_are_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    serve(tmp_path, sent(snapshot({FORK: gcda([1])}), snapshot({FORK: gcda([1], stamp=9)}, BOOTS[1])))
    assert pulled(tmp_path) == 1
    error = capsys.readouterr().err
    assert "fork.gcda" in error and "the stamps differ" in error and nothing_left(tmp_path)


# A hostile sender.


def _reading(content: bytes) -> plain_tar.Read:
    place = 0

    def read(size: int) -> bytes:
        nonlocal place
        piece = content[place : place + min(size, 100)]
        place += len(piece)
        return piece

    return read


def damage(content: bytes) -> str:
    with pytest.raises(ArchiveDamaged) as raised:
        list(read_sent(_reading(content), "m"))
    return str(raised.value)


def odd(name: str, kind: bytes, **more: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for key, value in more.items():
        setattr(info, key, value)
    return info


@pytest.mark.parametrize(
    "name",
    [
        *("../x.gcda", "/etc/x.gcda", "a//x.gcda", "a/./x.gcda", "a/\x1b[2J.gcda", "a" * 300),
        pytest.param("a/" * 2000 + "x.gcda", id="2,000 parts"),
    ],
)
def test_names_that_lead_elsewhere_are_refused(name: str) -> None:
    assert "it holds a file with the name" in damage(sent(snapshot({name: gcda([1])})))


@pytest.mark.parametrize(
    "entry",
    [
        odd("a.gcda", tarfile.SYMTYPE, linkname="/etc/passwd"),
        odd("a.gcda", tarfile.LNKTYPE, linkname="/etc/passwd"),
        odd("a", tarfile.DIRTYPE),
        odd("a.gcda", tarfile.CHRTYPE),
        odd("a.gcda", tarfile.FIFOTYPE),
        odd("a.gcda", tarfile.GNUTYPE_SPARSE),
        odd("x", tarfile.XHDTYPE),
    ],
    ids=lambda entry: entry.type.decode(),
)
def test_all_but_regular_files_is_refused(entry: tarfile.TarInfo) -> None:
    assert "entries that are not regular files" in damage(sent(snapshot({FORK: gcda([1])}, odd=[entry])))


def test_sizes_are_bounded_before_anything_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = tar([("a.gcda", bytes(50_000))])
    small = TarLimits(files=2, file_bytes=40_000, total_bytes=45_000)
    with pytest.raises(ArchiveDamaged, match="exceeds the limit"):
        list(files(_reading(bomb), small, "m"))
    with pytest.raises(ArchiveDamaged, match="exceeds the limit"):
        list(files(_reading(tar([("a", bytes(30_000)), ("b", bytes(30_000))])), small, "m"))
    with pytest.raises(ArchiveDamaged, match="more than 2 files"):
        list(files(_reading(tar([(name, b"") for name in "abc"])), small, "m"))
    claims = bytearray(tar([("a", b"")]))
    claims[124:136] = b"77777777777\0"
    claims[148:156] = b"%06o\0 " % (sum(claims[:148]) + 8 * 32 + sum(claims[156:512]))
    with pytest.raises(ArchiveDamaged, match="8,589,934,591 bytes exceeds the limit"):
        list(files(_reading(bytes(claims)), PLENTY, "m"))
    monkeypatch.setattr("kdyno.profile.pgod.OBJECTS", small)
    assert "exceeds the limit" in damage(sent(snapshot({"a.gcda": bytes(10**8)}))), "100 kB that unpack to 100 MB"


def test_a_name_of_any_length_is_no_reason_to_take_memory() -> None:
    header = odd("././@LongLink", tarfile.GNUTYPE_LONGNAME, size=1 << 30).tobuf()
    with pytest.raises(ArchiveDamaged, match="a name has 1,073,741,824 bytes"):
        list(files(_reading(header), PLENTY, "m"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"file": "other"}, "is missing, or its size differs"),
        ({"file_bytes": 7}, "is missing, or its size differs"),
        ({"boot": "../../x"}, "runs.0.boot: it must match the pattern"),
        ({"kernel": {"release": "x" * 300, "build_id": None}}, "runs.0.kernel.release"),
        ({"objects": -1}, "runs.0.objects"),
    ],
)
def test_what_is_not_what_the_listing_says_is_refused(change: dict[str, Any], message: str) -> None:
    run, content = snapshot({FORK: gcda([1])})
    listing = json.dumps(
        {"v": 1, "version": "", "directory": "", "running": True, "bytes": 0, "runs": [run | change], "unreadable": []}
    )
    assert message in damage(tar([("listing.json", listing.encode()), (run["file"], content)]))


def test_a_snapshot_of_another_run_and_one_with_other_files_are_refused() -> None:
    run, content = snapshot({FORK: gcda([1])})
    _, other = snapshot({FORK: gcda([1])}, BOOTS[1])
    assert "its run differs from the listing" in damage(sent((run | {"file_bytes": len(other)}, other)))
    assert "not a .gcda file" in damage(sent(snapshot({"kernel/fork.c": b""})))
    assert "files that are not in its listing" in damage(
        tar([("listing.json", sent(runs=[])[512:].split(b"\0")[0]), ("more", b"")])
    )
    flipped = bytearray(content)
    flipped[-6] ^= 1
    assert "crc check failed" in damage(sent((run, bytes(flipped))))


def test_another_version_of_the_format_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    serve(tmp_path, sent(v=2))
    assert pulled(tmp_path) == 3
    assert "has format 2: expected format 1" in capsys.readouterr().err


@given(st.binary(max_size=2000), st.integers(0, 4000), st.integers(0, 255))
def test_any_bytes_are_an_archive_or_damaged(noise: bytes, place: int, value: int) -> None:
    good = bytearray(tar([("a/b.gcda", b"content"), ("c" * 150, b"x")]))
    good[place % len(good)] = value
    for content in (noise, bytes(good)):
        try:
            members = dict(files(_reading(content), PLENTY, "m"))
        except ArchiveDamaged:
            continue
        assert all(not name.startswith("/") and ".." not in name.split("/") for name in members)


# What is small as it is sent and large in memory: kdyno has a gigabyte.

ZEROS = gcda([0])[:36] + struct.pack("<Ii", ARCS, -8 * MOST_COUNTERS)
"""40 bytes that claim as many counters as a file may."""
MANY = MOST_IN_ALL // MOST_COUNTERS


def pull_in_bounds(tmp_path: Path, content: bytes) -> subprocess.CompletedProcess[str]:
    serve(tmp_path, content)
    return kdyno("profile", "pull", "me@machine", "-o", tmp_path / "out", "--state", tmp_path / "state")


def test_a_snapshot_that_unfolds_is_refused(tmp_path: Path) -> None:
    content = sent(snapshot({f"{number}.gcda": ZEROS for number in range(200)}))
    assert len(content) < 20_000
    done = pull_in_bounds(tmp_path, content)
    require_one_message(done, 1, "is damaged: together with the previous files, it claims more than 4,194,304 counters")
    assert nothing_left(tmp_path)


def test_runs_that_unfold_together_are_refused(tmp_path: Path) -> None:
    runs = [
        snapshot({f"{run}-{number}.gcda": ZEROS for number in range(MANY - 1)}, f"{run:08}-0000-0000-0000-000000000000")
        for run in range(60)
    ]
    done = pull_in_bounds(tmp_path, sent(*runs))
    require_one_message(done, 1, "is damaged: together with the previous files, it claims more than 4,194,304 counters")


def test_runs_of_one_kernel_take_no_more_memory_than_one(tmp_path: Path) -> None:
    objects = {FORK: gcda([1000 + number % 300 for number in range(MOST_COUNTERS)])}
    runs = [snapshot(objects, f"{run:08}-0000-0000-0000-000000000000") for run in range(20)]
    done = pull_in_bounds(tmp_path, sent(*runs))
    assert done.returncode == 0, done.stderr
    assert arcs(tmp_path / "out" / FORK)[0][:2] == (20_000, 20_020)


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ({"a.gcda": gcda([0])[:16] + gcda([])[16:] * (2 << 20)}, "it claims more than 131,072 functions"),
        (
            {f"{n}.gcda": gcda([0])[:16] + gcda([])[16:] * MOST_FUNCTIONS for n in range(40)},
            "together with the previous files, it claims more than 4,194,304 counters",
        ),
        (
            {f"{'/'.join(['n' * 240] * 16)}{n}.gcda": gcda() for n in range(MOST_IN_ALL // 400)},
            "together with the previous files, it claims more than 4,194,304 counters",
        ),
    ],
    ids=["a file of functions", "files of functions", "names"],
)
def test_functions_and_names_count_as_counters_do(tmp_path: Path, objects: dict[str, bytes], message: str) -> None:
    require_one_message(pull_in_bounds(tmp_path, sent(snapshot(objects))), 1, message)


def test_a_name_of_more_directories_than_any_object_has_is_one_message(tmp_path: Path) -> None:
    done = pull_in_bounds(tmp_path, sent(snapshot({"/".join(["a"] * 2000): gcda([1])})))
    require_one_message(done, 3, "it holds a file with the name 'a/a/a")
    assert nothing_left(tmp_path)


def test_a_name_that_is_too_long_for_a_path_is_one_message(tmp_path: Path) -> None:
    name = "/".join(["n" * 250] * 16) + "/a.gcda"
    done = pull_in_bounds(tmp_path, sent(snapshot({name: gcda([1])})))
    require_one_message(done, 1, "its name is too long")
    assert nothing_left(tmp_path)
