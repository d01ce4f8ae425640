"""Turning the host's knobs: what was comes back exactly, whatever happens in between."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from kdyno.base.state import DiskFull, State, StateNotOurs, StateNotWritable
from kdyno.boot.host.journal import SETTING, JournalDamaged, journal_of_this_start, journal_path, read_journal
from kdyno.boot.host.turn import UnknownKnob, restore, set_knobs, write_value
from tests.at_once import at_once
from tests.unit.host_specimen import BOOT_ID, ENERGY, GOVERNOR, NO_TURBO, SMT, THP, Kernel, make_host, put, snapshot


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_host(tmp_path / "host")


def content_of(root: Path, name: str) -> str:
    return (root / name).read_text().strip()


def test_setting_makes_the_host_ready_for_measuring(root: Path, state: State) -> None:
    turned = set_knobs(state, root=root, write=Kernel(root))
    assert {turn.outcome for turn in turned.turns} == {"set"}
    assert content_of(root, GOVERNOR) == content_of(root, ENERGY) == "performance"
    assert content_of(root, NO_TURBO) == "1"
    assert content_of(root, "proc/sys/kernel/randomize_va_space") == "2"
    assert content_of(root, "proc/irq/24/smp_affinity_list") == "0-2"
    assert content_of(root, "proc/irq/default_smp_affinity") == "00000000,00000007"


def test_what_takes_cpus_away_or_changes_what_is_measured_is_set_only_by_name(root: Path, state: State) -> None:
    kernel = Kernel(root)
    set_knobs(state, root=root, write=kernel)
    assert (content_of(root, SMT), content_of(root, THP)) == ("on", "[always] madvise never")
    turned = set_knobs(state, ["smt", "thp"], root=root, write=kernel)
    assert {turn.knob for turn in turned.turns} == {"smt", "thp"}
    assert (content_of(root, SMT), content_of(root, THP)) == ("off", "always madvise [never]")


def test_restoring_brings_back_every_byte(root: Path, state: State) -> None:
    kernel, before = Kernel(root), snapshot(root)
    set_knobs(state, root=root, write=kernel)
    set_knobs(state, ["smt", "thp"], root=root, write=kernel)
    turned = restore(state, root=root, write=kernel)
    assert not turned.refused
    assert snapshot(root) == before
    assert not journal_path(state).exists()


def test_restoring_twice_is_harmless(root: Path, state: State) -> None:
    kernel = Kernel(root)
    set_knobs(state, root=root, write=kernel)
    restore(state, root=root, write=kernel)
    writes = len(kernel.written)
    assert restore(state, root=root, write=kernel).turns == ()
    assert len(kernel.written) == writes


def test_setting_twice_keeps_the_first_originals(root: Path, state: State) -> None:
    kernel, before = Kernel(root), snapshot(root)
    set_knobs(state, ["governor"], root=root, write=kernel)
    put(root, GOVERNOR, "schedutil\n")  # somebody else's hand
    set_knobs(state, root=root, write=kernel)
    journal = read_journal(state)
    assert journal and journal.values[GOVERNOR] == "powersave"
    restore(state, root=root, write=kernel)
    assert snapshot(root) == before


def test_the_old_values_are_on_the_disk_before_the_first_write(root: Path, state: State) -> None:
    def look(path: Path, value: str) -> None:
        journal = json.loads(journal_path(state).read_text())
        assert journal["values"][path.relative_to(root).as_posix()] in path.read_text()
        assert len(journal["values"]) > 10
        Kernel(root)(path, value)

    assert set_knobs(state, root=root, write=look).turns


@pytest.mark.parametrize("writes", range(0, 15, 2))
def test_an_interrupt_half_way_loses_nothing(root: Path, state: State, writes: int) -> None:
    kernel, before = Kernel(root), snapshot(root)
    left = writes

    def interrupted(path: Path, value: str) -> None:
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1
        kernel(path, value)

    with pytest.raises(KeyboardInterrupt):
        set_knobs(state, root=root, write=interrupted)
    assert len(kernel.written) == writes
    set_knobs(state, root=root, write=kernel)
    left = writes
    with pytest.raises(KeyboardInterrupt):
        restore(state, root=root, write=interrupted)
    restore(state, root=root, write=kernel)
    assert snapshot(root) == before


def test_kill_9_half_way_loses_nothing(root: Path, state: State) -> None:
    before = snapshot(root)
    program = f"""
        import os, signal
        from pathlib import Path
        from kdyno.boot.host.turn import set_knobs
        from kdyno.base.state import State
        from tests.unit.host_specimen import Kernel
        kernel = Kernel(Path({str(root)!r}))
        def write(path, value):
            if len(kernel.written) == 5:
                os.kill(os.getpid(), signal.SIGKILL)
            kernel(path, value)
        set_knobs(State(Path({str(state.root)!r})), root=kernel.root, write=write)
    """
    repository = Path(__file__).parents[3]
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], cwd=repository, check=False)
    assert killed.returncode == -9
    assert snapshot(root) != before
    restore(state, root=root, write=Kernel(root))
    assert snapshot(root) == before


def test_what_a_killed_write_of_the_journal_left_is_gone_after_the_next_use(root: Path, state: State) -> None:
    set_knobs(state, root=root)
    journal = journal_path(state)
    left = [journal.with_name(f".{journal.name}-{letters}") for letters in ("abc12_34", "zzz_9876")]
    mine = journal.with_name(".run-knobs.json-abcdefgh")
    for path in (*left, mine):
        path.write_text('{"schema_version": 1, "boot')
    restore(state, root=root)
    assert not any(path.exists() for path in left) and not journal.exists()
    assert mine.exists(), "another journal's, which has a lock of its own"


def test_a_restart_of_the_host_makes_the_journal_void(root: Path, state: State) -> None:
    kernel = Kernel(root)
    set_knobs(state, root=root, write=kernel)
    put(root, BOOT_ID, "00000000-7c71-415d-95ce-60ba27d4986e\n")
    put(root, GOVERNOR, "ondemand\n")
    assert journal_of_this_start(state, root) is None
    writes = len(kernel.written)
    turned = restore(state, root=root, write=kernel)
    assert turned.void and not turned.turns
    assert len(kernel.written) == writes
    assert not journal_path(state).exists()
    assert not restore(state, root=root, write=kernel).void


def test_setting_after_a_restart_begins_a_journal_of_its_own(root: Path, state: State) -> None:
    kernel = Kernel(root)
    set_knobs(state, ["turbo"], root=root, write=kernel)
    put(root, BOOT_ID, "00000000-7c71-415d-95ce-60ba27d4986e\n")
    turned = set_knobs(state, ["governor"], root=root, write=kernel)
    journal = read_journal(state)
    assert turned.void and journal
    assert set(journal.values) == {GOVERNOR.replace("policy0", f"policy{n}") for n in range(4)}


def test_what_the_kernel_refuses_is_said_and_the_others_are_set(root: Path, state: State) -> None:
    turned = set_knobs(state, root=root, write=Kernel(root, refuses=frozenset({NO_TURBO})))
    assert [(turn.knob, turn.why) for turn in turned.refused] == [("turbo", "Invalid argument")]
    assert content_of(root, GOVERNOR) == "performance"
    journal = read_journal(state)
    assert journal and GOVERNOR in journal.values and NO_TURBO not in journal.values


def test_a_host_that_refuses_everything_leaves_no_journal(root: Path, state: State) -> None:
    before = snapshot(root)
    turned = set_knobs(state, root=root, write=Kernel(root, refuses=frozenset(before)))
    assert turned.turns == turned.refused
    assert snapshot(root) == before
    assert not journal_path(state).exists()


def test_a_value_that_is_taken_and_forgotten_counts_as_refused(root: Path, state: State) -> None:
    turned = set_knobs(state, ["turbo"], root=root, write=lambda _path, _value: None)
    assert turned.refused[0].why == "it accepted the value, but contains 0"


def test_a_value_that_becomes_a_third_one_can_still_be_restored(root: Path, state: State) -> None:
    set_knobs(state, ["perf-rate"], root=root, write=lambda path, _value: write_value(path, "5"))
    restore(state, root=root)
    assert content_of(root, "proc/sys/kernel/perf_event_max_sample_rate") == "63000"


def test_what_can_not_be_restored_stays_on_record(root: Path, state: State) -> None:
    kernel, before = Kernel(root), snapshot(root)
    set_knobs(state, root=root, write=kernel)
    turned = restore(state, root=root, write=Kernel(root, refuses=frozenset({NO_TURBO})))
    assert [turn.path for turn in turned.refused] == [NO_TURBO]
    journal = read_journal(state)
    assert journal and journal.values == {NO_TURBO: "0"}
    restore(state, root=root, write=kernel)
    assert snapshot(root) == before


def test_a_knob_that_stands_right_is_not_touched(root: Path, state: State) -> None:
    kernel = Kernel(root)
    put(root, GOVERNOR, "performance\n")
    set_knobs(state, ["governor"], root=root, write=kernel)
    assert len(kernel.written) == 3
    set_knobs(state, ["governor"], root=root, write=kernel)
    assert len(kernel.written) == 3


def test_a_knob_that_this_host_lacks_is_said_when_it_was_named(tmp_path: Path, state: State) -> None:
    assert set_knobs(state, ["turbo"], root=tmp_path / "bare").absent == ("turbo",)
    assert set_knobs(state, root=tmp_path / "bare").absent == ()
    assert not journal_path(state).exists()


def test_an_unknown_knob_is_refused_before_anything_is_set(root: Path, state: State) -> None:
    before = snapshot(root)
    with pytest.raises(UnknownKnob, match="warp is not a knob"):
        set_knobs(state, ["governor", "warp"], root=root)
    assert snapshot(root) == before


def test_a_link_in_place_of_a_knob_is_not_followed(root: Path, state: State, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("0\n")
    (root / NO_TURBO).unlink()
    (root / NO_TURBO).symlink_to(target)
    turned = set_knobs(state, ["turbo"], root=root)
    assert [turn.why for turn in turned.refused] == [os.strerror(errno.ELOOP)]
    assert target.read_text() == "0\n"


@pytest.mark.parametrize(
    "path", ["proc/sys/kernel/core_pattern", "/etc/passwd", f"{GOVERNOR}/../../../../etc/passwd", "", GOVERNOR + "/x"]
)
def test_a_journal_can_not_make_kdyno_write_elsewhere(root: Path, state: State, path: str) -> None:
    set_knobs(state, ["turbo"], root=root)
    journal = json.loads(journal_path(state).read_text())
    journal["values"][path] = "|/tmp/evil"
    journal_path(state).write_text(json.dumps(journal))
    before = snapshot(root)
    with pytest.raises(JournalDamaged, match="not the file of a knob"):
        restore(state, root=root)
    assert snapshot(root) == before


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\x00", b"[]", b'{"schema_version": 2, "boot_id": "x"}'])
def test_a_damaged_journal_stops_setting_and_restoring_and_is_kept(root: Path, state: State, content: bytes) -> None:
    assert state.locks.is_dir()
    put(state.root, journal_path(state).name, content)
    before = snapshot(root)
    for turn in (set_knobs, restore):
        with pytest.raises(JournalDamaged):
            turn(state, root=root)
    assert snapshot(root) == before
    assert journal_path(state).read_bytes() == content


def test_without_a_place_for_the_journal_nothing_is_set(root: Path, tmp_path: Path) -> None:
    before = snapshot(root)
    (tmp_path / "file").write_text("")
    with pytest.raises(StateNotWritable):
        set_knobs(State(tmp_path / "file"), root=root)
    assert snapshot(root) == before


def test_on_a_full_disk_nothing_is_set_and_nothing_is_left(
    root: Path, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_number: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = snapshot(root)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskFull):
        set_knobs(state, root=root)
    assert snapshot(root) == before
    assert {path.name for path in state.root.iterdir()} == {".kdyno-state", "locks"}


def test_a_journal_that_is_not_ours_to_write_is_said(root: Path, state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(**_words: object) -> tuple[int, str]:
        raise PermissionError(errno.EACCES, "Permission denied", str(state.root))

    before = snapshot(root)
    monkeypatch.setattr(tempfile, "mkstemp", denied)
    with pytest.raises(StateNotWritable, match="Permission denied"):
        set_knobs(state, root=root)
    assert snapshot(root) == before


def test_what_root_has_set_can_be_seen_by_everybody(root: Path, state: State) -> None:
    set_knobs(state, ["turbo"], root=root)
    assert journal_path(state).stat().st_mode & 0o777 == 0o644


def test_two_that_set_at_once_keep_the_originals(root: Path, state: State) -> None:
    before = snapshot(root)
    with ThreadPoolExecutor(8) as pool:
        every = [pool.submit(set_knobs, state, names, root=root) for names in ([], ["governor", "turbo"]) * 8]
    assert not any(future.result().refused for future in every)
    restore(state, root=root, write=Kernel(root))
    assert snapshot(root) == before


def test_setting_waits_for_who_sets_already(root: Path, state: State) -> None:
    inside, go = Event(), Event()

    def slow(path: Path, value: str) -> None:
        inside.set()
        assert go.wait(10)
        write_value(path, value)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(set_knobs, state, ["turbo"], root=root, write=slow)
        assert inside.wait(10)
        second = pool.submit(restore, state, root=root)
        with pytest.raises(TimeoutError):
            second.result(timeout=0.2)
        go.set()
        assert first.result().turns and second.result().turns
    assert content_of(root, NO_TURBO) == "0"
    assert (state.locks / f"{SETTING.name}.lock").exists()


def values_of(state: State, changes: dict[str, str]) -> None:
    """Put values into the journal that somebody else wrote."""
    journal = json.loads(journal_path(state).read_text())
    journal["values"] |= changes
    journal_path(state).write_text(json.dumps(journal))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (NO_TURBO, "2"),
        (NO_TURBO, "١"),
        (GOVERNOR, "powersave\nperformance"),
        (GOVERNOR, ""),
        (GOVERNOR, "powersave\0"),
        (GOVERNOR, "\x1b[31mpowersave"),
        (GOVERNOR, "x" * 100_000),
        (ENERGY, "|/tmp/evil"),
        (THP, "sometimes"),
        (SMT, "maybe"),
        ("proc/sys/kernel/randomize_va_space", "-1"),
        ("proc/sys/kernel/perf_event_max_sample_rate", "9" * 100),
        ("proc/irq/24/smp_affinity_list", "0-3;reboot"),
        ("proc/irq/default_smp_affinity", "0x7"),
    ],
)
def test_a_journal_can_not_make_kdyno_write_what_is_no_value_of_a_knob(
    root: Path, state: State, path: str, value: str
) -> None:
    set_knobs(state, ["turbo"], root=root)
    values_of(state, {path: value})
    before = snapshot(root)
    with pytest.raises(JournalDamaged, match="is not a valid value of") as caught:
        restore(state, root=root)
    assert len(str(caught.value)) < 1000
    assert snapshot(root) == before


@pytest.mark.parametrize(
    "path", [GOVERNOR.replace("policy0", "policy\0"), GOVERNOR.replace("policy0", "policy\x1b[2J")]
)
def test_a_journal_names_no_file_that_no_host_has(root: Path, state: State, path: str) -> None:
    set_knobs(state, ["turbo"], root=root)
    values_of(state, {path: "powersave"})
    with pytest.raises(JournalDamaged, match="is not the file of a knob"):
        restore(state, root=root)


def test_a_journal_that_is_no_plain_file_is_refused_at_once(root: Path, state: State, tmp_path: Path) -> None:
    set_knobs(state, ["turbo"], root=root)
    path = journal_path(state)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    pipe = state.root / "pipe"
    os.mkfifo(pipe)
    for turn in (set_knobs, restore):
        with pytest.raises(JournalDamaged, match="it is a symbolic link"):
            turn(state, root=root)
    pipe.rename(path)
    for turn in (set_knobs, restore):
        with at_once(), pytest.raises(JournalDamaged, match="it is not a regular file"):
            turn(state, root=root)
    path.unlink()
    with path.open("wb") as endless:
        endless.truncate(1 << 40)
    with pytest.raises(JournalDamaged, match="it is larger than"):
        restore(state, root=root)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is restrained")
def test_root_restores_nothing_from_a_journal_that_somebody_else_wrote(root: Path, state: State) -> None:
    set_knobs(state, ["turbo"], root=root)
    os.chown(journal_path(state), 65534, 65534)
    with pytest.raises(StateNotOurs, match=r"host-knobs\.json belongs to user 65534"):
        restore(state, root=root)
    os.chown(state.root / "host-knobs.json", 0, 0)
    (state.root / "host-knobs.json").chmod(0o666)
    with pytest.raises(StateNotOurs, match=r"host-knobs\.json can be written to by users other than its owner"):
        restore(state, root=root)


@pytest.mark.parametrize("content", ["", "a\nb\n", "x" * 5000])
def test_a_file_that_holds_no_value_of_its_knob_is_left_alone(root: Path, state: State, content: str) -> None:
    put(root, GOVERNOR, content)
    set_knobs(state, ["governor"], root=root)
    assert (root / GOVERNOR).read_text() == content
    restore(state, root=root)
