"""The conditions of the host during a boot: stolen time, other load, frequency, heat. They never make a boot fail.

The host is watched from outside of the boot: its counters are read before and after the boot, frequency and temperature
at intervals. Conditions that a host hides are omitted: a missing condition means "unknown", never "fine".
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from kdyno.base.measurement import DISTURBED_PATHS
from kdyno.base.threads import OutOfThreads, ThreadCall
from kdyno.boot.host import files
from kdyno.boot.host.counters import Counters, other_load, read_counters, steal_percent

EVERY_SECONDS = 0.5
SHORTEST_SECONDS = 0.5
"""The shortest time for which loads are reported, in seconds: the kernel counts CPU time in ticks of 10 ms."""

CPU_SENSORS = frozenset({"coretemp", "k10temp", "zenpower", "cpu_thermal"})
CPU_ZONES = frozenset({"x86_pkg_temp", "cpu-thermal", "cpu_thermal"})
COLDEST, HOTTEST = -50_000, 150_000
"""The plausible range in thousandths of a degree; a sensor outside of it is broken or absent."""

UNITS = {
    "steal_percent": "%",
    "other_load": "CPUs",
    "loadavg": "",
    "mhz": "MHz",
    "mhz_low": "MHz",
    "celsius": "°C",
    "throttled": "times",
    "quota_stops": "times",
    "swapped_pages": "pages",
    "clock_moved": "samples",
    "core_shared": "samples",
    DISTURBED_PATHS: "paths",
}
"""Every possible condition, with its unit. docs/host.md describes them."""


@contextmanager
def watched(root: Path = Path("/"), every: float = EVERY_SECONDS) -> Iterator[dict[str, float]]:
    """Watch the host while the body runs. The yielded dict is filled when the body ends without an exception.

    Its keys are those of UNITS. Work of this process and its descendants isn't `other_load`.
    """
    conditions: dict[str, float] = {}
    loadavg = _loadavg(root)
    sensors = Sensors.of(root)
    over = Event()
    poller: ThreadCall[None] | None = None
    before = read_counters(root)
    if sensors.any:
        with suppress(OutOfThreads):
            poller = ThreadCall(sensors.poll, over, every)
    try:
        yield conditions
    finally:
        over.set()
        if poller:
            poller.wait()
    after = read_counters(root)
    if after.at - before.at >= SHORTEST_SECONDS:
        conditions.update(_rounded({"loadavg": loadavg, **_counted(before, after), **sensors.readings()}))


def conditions_between(before: Path, after: Path, seconds: float) -> dict[str, float]:
    """Return the conditions of another host by copies of its files, made before and so many seconds after. The load of
    other processes is unknown.
    """
    if seconds < SHORTEST_SECONDS:
        return {}
    sensors = Sensors.of(after)
    sensors.look()
    counted = _counted(read_counters(before), read_counters(after))
    return _rounded({"loadavg": _loadavg(before), **counted, **sensors.readings()})


def _rounded(known: Mapping[str, float | None]) -> dict[str, float]:
    """Return the known conditions, in the order of UNITS."""
    return {name: round(value, 3) for name in UNITS if (value := known.get(name)) is not None}


@dataclass
class Sensors:
    """The files with the present frequency and temperature, and their readings so far."""

    frequencies: list[Path]
    """Files with one number each, in kHz."""
    cpuinfo: Path | None
    """The source of frequencies if there is no file above and the CPU counts its real clock; else None."""
    temperatures: list[Path]
    """Files with one number each, in thousandths of a degree."""
    mhz: list[float] = field(default_factory=list)
    celsius: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, root: Path) -> Sensors:
        frequencies = files.matching(root, "sys/devices/system/cpu/cpufreq/policy*/scaling_cur_freq")
        # Without APERF and MPERF the kernel prints the frequency of the time-stamp counter, which never changes.
        cpuinfo = root / "proc/cpuinfo"
        counts = not frequencies and " aperfmperf" in (files.text(cpuinfo) or "")
        return cls(frequencies, cpuinfo if counts else None, _temperatures(root))

    @property
    def any(self) -> bool:
        return bool(self.frequencies or self.cpuinfo or self.temperatures)

    def poll(self, over: Event, every: float) -> None:
        """Read the files every so many seconds until `over` is set. The CPU is idle before the first reading."""
        while not over.wait(every):
            self.look()

    def look(self) -> None:
        """Read the fastest CPU, which is the busy one, and the hottest sensor."""
        if mhz := [khz / 1000 for path in self.frequencies if (khz := files.number(path))] or self._of_cpuinfo():
            self.mhz.append(max(mhz))
        hot = [reading for path in self.temperatures if (reading := files.number(path)) is not None]
        if plausible := [reading / 1000 for reading in hot if COLDEST < reading < HOTTEST]:
            self.celsius.append(max(plausible))

    def readings(self) -> dict[str, float]:
        readings = {"celsius": max(self.celsius)} if self.celsius else {}
        if self.mhz:
            readings |= {"mhz": statistics.median(self.mhz), "mhz_low": min(self.mhz)}
        return readings

    def _of_cpuinfo(self) -> list[float]:
        lines = (files.text(self.cpuinfo) or "").splitlines() if self.cpuinfo else []
        values = [line.partition(":")[2].strip() for line in lines if line.startswith("cpu MHz")]
        return [float(mhz) for mhz in values if mhz.replace(".", "", 1).isdecimal() and len(mhz) < 12]


def _temperatures(root: Path) -> list[Path]:
    chips = [path for path in files.matching(root, "sys/class/hwmon/*") if files.text(path / "name") in CPU_SENSORS]
    if sensors := [sensor for chip in chips for sensor in files.matching(chip, "temp*_input")]:
        return sensors
    zones = files.matching(root, "sys/class/thermal/thermal_zone*")
    return [zone / "temp" for zone in zones if files.text(zone / "type") in CPU_ZONES]


def _loadavg(root: Path) -> float | None:
    word = (files.text(root / "proc/loadavg") or "").partition(" ")[0]
    return float(word) if word.replace(".", "", 1).isdecimal() and word.isascii() and len(word) < 12 else None


def _counted(before: Counters, after: Counters) -> dict[str, float | None]:
    return {
        "steal_percent": steal_percent(before, after),
        "other_load": other_load(before, after),
        "throttled": _more(before.throttled, after.throttled),
        "quota_stops": _more(before.quota_stops, after.quota_stops),
        "swapped_pages": _more(before.swapped, after.swapped),
    }


def _more(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(0, after - before)
