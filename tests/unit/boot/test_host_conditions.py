"""What the host was doing during a boot: who used the CPUs, how fast they ran, how hot they got."""

from __future__ import annotations

import _thread
import math
import os
import subprocess
import threading
import time
from itertools import count
from pathlib import Path
from threading import Event, Semaphore
from types import SimpleNamespace

import pytest

from kdyno.boot.conditions import UNITS, Sensors, watched
from kdyno.boot.host import files
from kdyno.boot.host.counters import Counters, other_load, read_counters, steal_percent
from tests.at_once import at_once
from tests.unit.host_specimen import CPU, PID, make_host, process, put

TICKS = os.sysconf("SC_CLK_TCK")


def counters(at: float, busy: float, steal: float = 0, own: float = 0) -> Counters:
    return Counters(at=at, busy=busy, steal=steal, own=own, throttled=None, quota_stops=None, swapped=None)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_host(tmp_path)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> float:
    """Seconds between two looks at the counters, however long a test takes."""
    times = count(0, 0.6)
    monkeypatch.setattr("kdyno.boot.host.counters.time", SimpleNamespace(monotonic=lambda: next(times)))
    return 0.6


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Semaphore:
    """The looks at sensors, of which each lets one caller go on."""
    look, done = Sensors.look, Semaphore(0)

    def look_and_tell(sensors: Sensors) -> None:
        look(sensors)
        done.release()

    monkeypatch.setattr(Sensors, "look", look_and_tell)
    return done


def own(root: Path) -> float | None:
    return read_counters(root, PID).own


def test_stolen_time_is_a_share_of_what_was_wanted_however_many_cpus_idle() -> None:
    assert steal_percent(counters(0, 100, 5), counters(10, 108, 7)) == pytest.approx(20)


def test_on_an_idle_host_nothing_is_stolen() -> None:
    assert steal_percent(counters(0, 100), counters(10, 100)) == 0


def test_counters_that_run_backwards_make_no_negative_conditions() -> None:
    before, after = counters(0, 100, 5, 10), counters(10, 99, 4, 20)
    assert (steal_percent(before, after), other_load(before, after)) == (0, 0)


def test_others_load_is_all_work_less_our_own() -> None:
    assert other_load(counters(0, 100, own=50), counters(10, 118, own=60)) == pytest.approx(0.8)


def test_cpu_time_of_everybody_has_neither_idle_nor_waiting_nor_stolen_time(root: Path) -> None:
    read = read_counters(root, PID)
    assert (read.busy, read.steal) == (1500 / TICKS, 20 / TICKS)


def test_our_own_time_is_that_of_all_descendants_and_of_ended_children(root: Path) -> None:
    put(root, f"proc/{PID}/stat", process(PID, 1, 100, ended=30))
    put(root, "proc/5000/stat", process(5000, PID, 7))
    put(root, "proc/5001/stat", process(5001, 5000, 9))
    put(root, "proc/6000/stat", process(6000, 1, 10_000))
    assert own(root) == pytest.approx((100 + 30 + 7 + 9) / TICKS)


def test_a_process_may_have_any_name(root: Path) -> None:
    put(root, "proc/5000/stat", process(5000, PID, 7, name=") R 1 1 (\n9 9 9"))
    assert own(root) == pytest.approx(107 / TICKS)


def test_processes_that_are_each_others_parents_are_counted_once(root: Path) -> None:
    put(root, f"proc/{PID}/stat", process(PID, 5000, 100))
    put(root, "proc/5000/stat", process(5000, PID, 7))
    assert own(root) == pytest.approx(107 / TICKS)


def test_throttling_swapping_and_the_limit_of_the_group_are_read(root: Path) -> None:
    put(root, f"{CPU}/cpu3/thermal_throttle/package_throttle_count", "4\n")
    read = read_counters(root, PID)
    assert (read.throttled, read.quota_stops, read.swapped) == (4, 2, 30)


def test_the_limit_of_a_group_of_version_1_is_read(root: Path) -> None:
    put(root, f"proc/{PID}/cgroup", "4:memory:/x\n1:cpu,cpuacct:/a/b\n")
    put(root, "sys/fs/cgroup/cpu,cpuacct/cgroup.procs", "")
    put(root, "sys/fs/cgroup/cpu,cpuacct/a/b/cpu.stat", "nr_throttled 5\n")
    put(root, "sys/fs/cgroup/cpu,cpuacct/a/cpu.stat", "nr_throttled 6\n")
    assert read_counters(root, PID).quota_stops == 11


def test_a_group_outside_of_what_is_shown_is_left_out(root: Path) -> None:
    put(root, f"proc/{PID}/cgroup", "0::/../../work\n")
    assert files.cpu_groups(root, PID) == []


@pytest.mark.usefixtures("clock")
def test_a_bare_host_says_nothing_and_breaks_nothing(tmp_path: Path) -> None:
    read = read_counters(tmp_path, PID)
    assert (read.busy, read.steal, read.own, read.throttled, read.quota_stops, read.swapped) == (None,) * 6
    with watched(tmp_path) as conditions:
        pass
    assert conditions == {}


@pytest.mark.parametrize(
    "content", [b"", b"\xff\x00\xfe", b"nan", b"9" * 5000, b"-1", b"cpu  1 2", b"(" * 99, b"1e308"]
)
@pytest.mark.usefixtures("clock")
def test_nonsense_in_every_file_breaks_nothing(root: Path, content: bytes) -> None:
    for path in root.rglob("*"):
        if path.is_file() and path.name not in {"type", "name"}:
            path.write_bytes(content)
    sensors = Sensors.of(root)
    sensors.look()
    with watched(root) as conditions:
        pass
    assert all(math.isfinite(value) for value in (*conditions.values(), *sensors.readings().values()))


def test_the_fastest_cpu_and_the_hottest_sensor_of_the_cpu_are_read(root: Path) -> None:
    put(root, "sys/class/hwmon/hwmon0/temp2_input", "64500\n")
    put(root, "sys/class/hwmon/hwmon0/temp3_input", "-273000\n")
    sensors = Sensors.of(root)
    sensors.look()
    assert sensors.readings() == {"celsius": 64.5, "mhz": 2403.0, "mhz_low": 2403.0}


def test_without_a_sensor_chip_the_thermal_zone_is_read(root: Path) -> None:
    put(root, "sys/class/hwmon/hwmon0/name", "iwlwifi\n")
    put(root, "sys/class/thermal/thermal_zone0/type", "acpitz\n")
    put(root, "sys/class/thermal/thermal_zone0/temp", "20000\n")
    put(root, "sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n")
    put(root, "sys/class/thermal/thermal_zone1/temp", "55000\n")
    sensors = Sensors.of(root)
    sensors.look()
    assert sensors.readings()["celsius"] == 55.0


@pytest.mark.parametrize(("flags", "known"), [("fpu aperfmperf tsc", True), ("fpu tsc", False)])
def test_cpuinfo_tells_the_frequency_only_of_cpus_that_count_it(root: Path, flags: str, known: bool) -> None:
    for path in root.glob(f"{CPU}/cpufreq/policy*/scaling_cur_freq"):
        path.unlink()
    put(root, "proc/cpuinfo", f"cpu MHz\t\t: 2596.142\nflags\t\t: {flags}\n\ncpu MHz\t\t: 3100.5\n")
    sensors = Sensors.of(root)
    sensors.look()
    assert sensors.readings().get("mhz") == (3100.5 if known else None)


def test_a_dip_between_two_looks_is_seen_in_the_lowest_frequency(root: Path) -> None:
    sensors = Sensors.of(root)
    for khz in (3_000_000, 1_200_000, 3_000_000):
        put(root, f"{CPU}/cpufreq/policy0/scaling_cur_freq", f"{khz}\n")
        for other in (1, 2, 3):
            put(root, f"{CPU}/cpufreq/policy{other}/scaling_cur_freq", "800000\n")
        sensors.look()
    assert sensors.readings() == {"celsius": 61.0, "mhz": 3000.0, "mhz_low": 1200.0}


def test_a_boot_that_is_watched_gets_every_condition_that_the_host_shows(
    root: Path, monkeypatch: pytest.MonkeyPatch, clock: float, looks: Semaphore
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: PID)
    with at_once(60), watched(root, every=0.01) as conditions:
        looks.acquire()
        put(root, "proc/stat", f"cpu  {1000 + TICKS} 0 500 9000 10 0 0 {20 + TICKS} 0 0\n")
        put(root, "proc/vmstat", "pswpin 10\npswpout 25\n")
        put(root, f"{CPU}/cpu0/thermal_throttle/core_throttle_count", "3\n")
        looks.acquire()
    assert set(conditions) == set(UNITS) - {"clock_moved", "core_shared", "disturbed_paths"}, (
        "which machines of kernels that are processes add"
    )
    assert conditions["steal_percent"] == 50
    assert conditions["other_load"] == pytest.approx(1 / clock, rel=1e-3)
    assert (conditions["loadavg"], conditions["celsius"], conditions["mhz"]) == (0.52, 61.0, 2403.0)
    assert (conditions["throttled"], conditions["quota_stops"], conditions["swapped_pages"]) == (3, 0, 5)


def test_of_a_moment_nothing_is_said(root: Path) -> None:
    with watched(root) as conditions:
        pass
    assert conditions == {}


def threads() -> set[str]:
    """The threads of this process, as the kernel lists them. A list made while a thread ends may lack others."""
    listed = None
    while listed != (again := {path.name for path in Path("/proc/self/task").iterdir()}):
        listed = again
    return listed


def test_a_boot_that_breaks_off_leaves_no_thread_behind(root: Path) -> None:
    before = threads()
    with pytest.raises(ZeroDivisionError), watched(root, every=0.01):
        assert len(threads() - before) == 1
        raise ZeroDivisionError
    end = time.monotonic() + 60
    while threads() - before and time.monotonic() < end:
        time.sleep(0.01)  # the kernel lists a thread a moment longer than it runs
    assert not threads() - before


@pytest.mark.usefixtures("clock")
def test_a_host_without_another_thread_to_give_is_watched_without_sensors(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(_function: object, _arguments: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", none_left)
    with watched(root) as conditions:
        pass
    assert "steal_percent" in conditions and "mhz" not in conditions


def test_work_that_this_host_does_for_us_is_our_own() -> None:
    before = read_counters()
    subprocess.run(["sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"], check=True)
    after = read_counters()
    assert before.own is not None and after.own is not None
    assert after.own - before.own > 0.05


def test_polling_ends_at_once_when_it_is_over(root: Path) -> None:
    over = Event()
    thread = threading.Thread(target=Sensors.of(root).poll, args=(over, 60))
    thread.start()
    over.set()
    thread.join(5)
    assert not thread.is_alive()
