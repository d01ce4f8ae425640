"""The facts of a box: small files of its /proc and /sys, copied below a directory here, where boot/host/ reads them.

The box's answer is untrusted: only requested paths are accepted, and its size is bounded.
"""

from __future__ import annotations

import hashlib
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from kdyno.base.host import described_host, proc_field
from kdyno.boot.host import cpus, files
from kdyno.boot.host.core_pmu import PLACES
from kdyno.boot.host.knobs import CPU, KNOBS
from kdyno.boot.host.look import knob_fact
from kdyno.boot.metal.ssh import Ssh

KNOWN = tuple(knob for knob in KNOBS if knob.name != "irqs")
"""The knobs of the box that are on record. A host has thousands of files of interrupts."""
ONCE = (
    "proc/meminfo",
    "proc/swaps",
    "etc/os-release",
    "etc/machine-id",
    "sys/class/dmi/id/sys_vendor",
    "sys/class/dmi/id/product_name",
    f"{CPU}/online",
    f"{CPU}/isolated",
    *PLACES,
    *(setting.pattern for knob in KNOWN for setting in knob.settings),
)
AT_EACH_BOOT = (
    "proc/loadavg",
    "proc/stat",
    "proc/vmstat",
    f"{CPU}/cpu[0-9]*/thermal_throttle/*_throttle_count",
    f"{CPU}/cpufreq/policy*/scaling_cur_freq",
)
MOST_BYTES = 16_000_000
LONGEST_LINE = 65_536
MOST_FILES = 65_536
"""The most files that are copied: more than those of a host with 8,192 CPUs."""
LINE = re.compile(r"/([A-Za-z0-9_./-]{1,200}):(.*)")

COPY_FILES = """
sed '/^$/q; s,^,/proc/cpuinfo:,' /proc/cpuinfo
cd / && for pattern; do for file in $pattern; do
    if [ -f "/$file" ]; then grep -aHs '' "/$file"; fi
done; done
exit 0
"""


def copy_files(ssh: Ssh, patterns: tuple[str, ...], target: Path) -> None:
    """Copy the first CPU's part of /proc/cpuinfo, and the files that match, below a directory. Raises what ssh
    raises.
    """
    result = ssh.run(ssh.script(COPY_FILES, *patterns), most=MOST_BYTES)
    lines_by_path: dict[str, list[str]] = {}
    for line in result.output.splitlines():
        match = LINE.fullmatch(line[:LONGEST_LINE])
        if match is None or not _is_requested(match[1], patterns):
            continue
        if match[1] in lines_by_path or len(lines_by_path) < MOST_FILES:
            lines_by_path.setdefault(match[1], []).append(match[2])
    for path, lines in lines_by_path.items():
        place = target / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _is_requested(path: str, patterns: tuple[str, ...]) -> bool:
    if ".." in path.split("/") or path.endswith("/"):
        return False
    return path == "proc/cpuinfo" or any(
        fnmatchcase(path, pattern) and path.count("/") == pattern.count("/") for pattern in patterns
    )


def box_facts(root: Path) -> dict[str, Any]:
    """Return what determines samples on a box, of the copied files."""
    knobs = {knob.name: knob_fact(root, knob).now for knob in KNOWN}
    facts = {
        "machine": hashlib.sha256(f"kdyno {files.text(root / 'etc/machine-id')}".encode()).hexdigest()[:16],
        "vendor": files.text(root / "sys/class/dmi/id/sys_vendor"),
        "product": files.text(root / "sys/class/dmi/id/product_name"),
        "microcode": proc_field(root / "proc/cpuinfo", "microcode"),
        "knobs": {name: now for name, now in knobs.items() if now},
        **{name: value for name, value in host_facts_of(root).items() if name != "distribution"},
    }
    return {name: value for name, value in facts.items() if value is not None}


def host_facts_of(root: Path) -> dict[str, Any]:
    """Return CPU model, number of CPUs, memory in MB and distribution of the box, by the copied files."""
    count = len(cpus.parse_list(files.text(root / CPU / "online") or ""))
    return {**({"cpus": count} if count else {}), **described_host(root)}
