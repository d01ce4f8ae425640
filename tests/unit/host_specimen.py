"""A host made of files: /proc and /sys with every knob, and a kernel that takes what is written as Linux does."""

from __future__ import annotations

import errno
from pathlib import Path

from kdyno.boot.host.turn import write_value

PID = 4000
CPU = "sys/devices/system/cpu"
GOVERNOR = f"{CPU}/cpufreq/policy0/scaling_governor"
ENERGY = f"{CPU}/cpufreq/policy0/energy_performance_preference"
NO_TURBO = f"{CPU}/intel_pstate/no_turbo"
THP = "sys/kernel/mm/transparent_hugepage/enabled"
SMT = f"{CPU}/smt/control"
BOOT_ID = "proc/sys/kernel/random/boot_id"

FILES = {
    **{f"{CPU}/cpufreq/policy{n}/scaling_governor": "powersave\n" for n in range(4)},
    **{f"{CPU}/cpufreq/policy{n}/energy_performance_preference": "balance_performance\n" for n in range(4)},
    **{f"{CPU}/cpufreq/policy{n}/scaling_cur_freq": f"{2_400_000 + n * 1000}\n" for n in range(4)},
    **{f"{CPU}/cpu{n}/thermal_throttle/core_throttle_count": "0\n" for n in range(4)},
    NO_TURBO: "0\n",
    SMT: "on\n",
    f"{CPU}/isolated": "3\n",
    f"{CPU}/online": "0-3\n",
    THP: "[always] madvise never\n",
    "sys/class/hwmon/hwmon0/name": "coretemp\n",
    "sys/class/hwmon/hwmon0/temp1_input": "61000\n",
    "sys/class/hwmon/hwmon1/name": "nvme\n",
    "sys/class/hwmon/hwmon1/temp1_input": "99000\n",
    "sys/fs/cgroup/cgroup.procs": "",
    "sys/fs/cgroup/work/cpu.max": "150000 100000\n",
    "sys/fs/cgroup/work/cpu.stat": "usage_usec 12\nnr_periods 9\nnr_throttled 2\nthrottled_usec 77\n",
    "proc/sys/kernel/randomize_va_space": "0\n",
    "proc/sys/kernel/nmi_watchdog": "1\n",
    "proc/sys/kernel/perf_event_max_sample_rate": "63000\n",
    BOOT_ID: "4a7c5966-7c71-415d-95ce-60ba27d4986e\n",
    "proc/irq/default_smp_affinity": "ffffffff,ffffffff\n",
    "proc/irq/0/smp_affinity_list": "0-3\n",
    "proc/irq/24/smp_affinity_list": "3\n",
    "proc/swaps": "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n",
    "proc/vmstat": "pgmajfault 3\npswpin 10\npswpout 20\n",
    "proc/loadavg": "0.52 0.22 0.79 1/86 17575\n",
    "proc/cpuinfo": "processor\t: 0\ncpu MHz\t\t: 2596.142\nflags\t\t: fpu tsc aperfmperf\n",
    "proc/stat": "cpu  1000 0 500 9000 10 0 0 20 0 0\ncpu0 1 2 3\n",
    f"proc/{PID}/cgroup": "0::/work\n",
    f"proc/{PID}/comm": "kdyno\n",
    f"proc/{PID}/stat": "",
    "proc/77/comm": "irqbalance\n",
}


def make_host(root: Path) -> Path:
    """Write all the files below `root`."""
    for name, content in FILES.items():
        put(root, name, content)
    put(root, f"proc/{PID}/stat", process(PID, 1, 100))
    return root


def put(root: Path, name: str, content: str | bytes) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def process(pid: int, parent: int, ticks: int, *, ended: int = 0, name: str = "kdyno") -> str:
    """/proc/PID/stat: `ticks` of its own in user mode, `ended` of children that it has waited for."""
    return f"{pid} ({name}) S {parent} 1 1 0 -1 4194304 5 6 7 8 {ticks} 0 {ended} 0 20 0 1 0 12 13 14\n"


def snapshot(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


class Kernel:
    """Takes values as Linux does: some it refuses, some it spells otherwise, some make files come and go."""

    def __init__(self, root: Path, refuses: frozenset[str] = frozenset()) -> None:
        self.root, self.refuses = root, refuses
        self.written: list[tuple[str, str]] = []
        self._gone: dict[str, bytes] = {}

    def __call__(self, path: Path, value: str) -> None:
        name = path.relative_to(self.root).as_posix()
        if name in self.refuses:
            raise OSError(errno.EINVAL, "Invalid argument")
        if name.endswith("energy_performance_preference") and value != "performance":
            governor = path.with_name("scaling_governor").read_text().strip()
            if governor == "performance":
                raise OSError(errno.EBUSY, "Device or resource busy")
        self.written.append((name, value))
        if name == THP:
            words = ("always", "madvise", "never")
            put(self.root, THP, " ".join(f"[{word}]" if word == value else word for word in words) + "\n")
            return
        if name == "proc/irq/default_smp_affinity":
            mask = int(value.replace(",", ""), 16)
            put(self.root, name, f"{mask >> 32:08x},{mask & 0xFFFFFFFF:08x}\n")
            return
        write_value(path, value)
        if name == SMT:
            self._policies(there=value == "on")

    def _policies(self, there: bool) -> None:
        """CPUs 2 and 3 are the siblings: without SMT they are offline and have no policy."""
        for name in (name for name in FILES if "policy2/" in name or "policy3/" in name):
            if there and name in self._gone:
                put(self.root, name, self._gone.pop(name))
            elif not there and (self.root / name).exists():
                self._gone[name] = (self.root / name).read_bytes()
                (self.root / name).unlink()


def write_at_once(path: Path, value: str) -> None:
    """As the kernel takes a value: no moment at which the file says nothing."""
    beside = path.with_name("new")
    beside.write_text(f"{value}\n")
    beside.replace(path)
