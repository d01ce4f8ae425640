"""A box without a machine: a program `ssh` that carries out kdyno's commands on a tree of files.

The tree's kernel is its files in proc/; `systemctl` of the box replaces them, as a restart does. A file `plan.json`
decides what goes wrong.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from threading import Event
from typing import Any

from kdyno.boot.base import BootOrder
from kdyno.boot.metal.box import DIRECTORY
from kdyno.measure.guest.agent import find_agent
from kdyno.measure.guest.job import Job, Program

RELEASE = "6.12.9-test"
VERSION = "#1 SMP PREEMPT_DYNAMIC Mon Jan  1 00:00:00 UTC 2024"
OWN_WORDS = "BOOT_IMAGE=/boot/vmlinuz-6.1 root=UUID=1234-abcd ro quiet"
CPUINFO = (
    "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9R14\nflags\t\t: lm sse2 avx2"
)

SSH = """#!{python}
import json, os, re, subprocess, sys, time
from pathlib import Path
box = Path({box!r})
command = sys.argv[-1]
assert sys.argv[-3] == "--", sys.argv
with (box / "log").open("a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
plan = json.loads((box / "plan.json").read_text())
is_cut = False
for behaviour in plan.get("ssh", []):
    if behaviour["in"] in command:
        if "once" in behaviour:
            if (box / behaviour["once"]).exists():
                continue
            (box / behaviour["once"]).touch()
        if "message" in behaviour:
            print(behaviour["message"], file=sys.stderr)
            sys.exit(255)
        if "status" in behaviour:
            print(behaviour["error"], file=sys.stderr)
            sys.exit(behaviour["status"])
        if "error_output" in behaviour:
            sys.stderr.write(behaviour["error_output"] * behaviour.get("times", 1))
            sys.exit(0)
        if "output" in behaviour:
            sys.stdout.write(behaviour["output"] * behaviour.get("times", 1))
            sys.exit(0)
        if "done" in behaviour:
            is_cut = True
            break
        if "after" in behaviour:
            (box / "mark").write_text(json.dumps(behaviour["after"]))
            (box / "down" if behaviour["after"] == "down" else box / "unused").touch()
            print("Timeout, server box not responding.", file=sys.stderr)
            if behaviour["after"] == "panic":
                subprocess.run([str(box / "bin" / "systemctl"), "reboot"], check=True)
            sys.exit(255)
        time.sleep(1000)
if (box / "down").exists():
    print("ssh: connect to host box port 22: No route to host", file=sys.stderr)
    sys.exit(255)
if "grep -aHs" in command:
    sys.stdout.write((box / "copied").read_text())
    sys.exit(0)
command = re.sub(r"(?<![\\w.}}])/(proc|sys|var/lib|run|lib/modules|boot)/", rf"{{box}}/\\1/", command)
os.environ["PATH"] = f"{{box}}/bin:" + os.environ["PATH"]
if is_cut:
    subprocess.run(["/bin/sh", "-c", command])
    sys.exit(255)
os.execv("/bin/sh", ["sh", "-c", command])
"""
SYSTEMCTL = """#!/bin/sh
echo "$*" >>"{box}/systemctl"
cd "{box}"
count=$(cat restarts); count=$((count + 1)); echo "$count" >restarts
restart() {{
    printf '%08d-0000-0000-0000-000000000000\\n' "$count" >proc/sys/kernel/random/boot_id
    echo "5.00 1.00" >proc/uptime
    echo "$1" >proc/cmdline
}}
case "$*" in
*kexec.target*)
    case $(cat after_kexec) in
    up) restart "$(cat loaded)"; echo test >kernel;;
    own) restart "{own}";;
    hang) touch down;;
    ignored) ;;
    esac;;
*reboot*)
    echo own >kernel
    words=$([ ! -x bin/loader ] || bin/loader)
    if [ -n "$words" ]; then restart "BOOT_IMAGE=/x $words"; echo test >kernel; exit; fi
    case $(cat after_reboot) in
    up) restart "{own}";;
    hang) touch down;;
    esac;;
esac
"""
UNAME = """#!/bin/sh
kernel=$(cat "{box}/kernel")
case $1 in
-m) cat "{box}/architecture";;
-r) if [ "$kernel" = own ]; then echo 6.1.0-own; else echo {release}; fi;;
-v) if [ "$kernel" = own ]; then echo '#1 own'; else cat "{box}/version"; fi;;
esac
"""
AGENT = """#!/bin/sh
case $1 in
kexec) cd "{box}" && if [ -s refuse ]; then echo "kdyno-agent: $(cat refuse)" >&2; exit 1; fi
    for word; do last=$word; done; echo "$last" >loaded; echo "$*" >kexec;;
do) exec "{agent}" "$@";;
list) exec "{agent}" "$@";;
esac
"""
FINDMNT = """#!/bin/sh
case "$*" in *TARGET*) cat "{box}/target";; *) echo /dev/vda2;; esac
"""


def bzimage(release: str = RELEASE, version: str = VERSION) -> bytes:
    """Return a file that has the header of a kernel."""
    content = bytearray(0x4000)
    content[0x1F1] = 1
    content[0x202:0x206] = b"HdrS"
    for at, size, value in ((0x206, 2, 0x20F), (0x236, 2, 1), (0x20E, 2, 0x1000), (0x248, 4, 0), (0x24C, 4, 0x100)):
        content[at : at + size] = value.to_bytes(size, "little")
    banner = f"{release} (kdyno@kdyno) {version}".encode()
    content[0x1200 : 0x1200 + len(banner)] = banner
    return bytes(content)


HELLO = Program(name="command", command=("sh", "-c", "echo hello"))


def order(tmp_path: Path, *words: str, program: Program = HELLO, cancelled: Event | None = None) -> BootOrder:
    """Return the order for a boot with these kernel parameters."""
    directory = tmp_path / "boot"
    directory.mkdir()
    kernel = tmp_path / "bzImage"
    kernel.write_bytes(bzimage())
    job = Job(lane="wall", iterations=1, programs=(program,))
    return BootOrder("a boot", kernel, words, job, 1, directory, cancelled=cancelled or Event())


class FakeBox:
    """The files of a box, and the programs that represent it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("bin", "proc/sys/kernel/random", "sys/kernel", "run/systemd/system", "var/lib", "boot"):
            (root / name).mkdir(parents=True)
        facts = {"box": str(root), "python": sys.executable, "own": OWN_WORDS, "release": RELEASE}
        facts["agent"] = str(find_agent())
        programs = {"systemctl": SYSTEMCTL, "uname": UNAME, "findmnt": FINDMNT, "agent": AGENT}
        programs |= {
            "id": "#!/bin/sh\ncat '{box}/user'\n",
            "sudo": "#!/bin/sh\n[ -e '{box}/sudo' ] && shift && \"$@\"\n",
        }
        programs |= {"blkid": "#!/bin/sh\necho 0f0f-02\n", "dmesg": "#!/bin/sh\ncat '{box}/messages'\n"}
        for name, text in programs.items():
            self.put(f"bin/{name}", text.format(**facts)).chmod(0o755)
        (root / "ssh").mkdir()
        self.put("ssh/ssh", SSH.format(**facts)).chmod(0o755)
        files = {
            "proc/sys/kernel/random/boot_id": "00000000-0000-0000-0000-000000000000",
            "proc/sys/kernel/kexec_load_disabled": "0",
            "sys/kernel/kexec_loaded": "0",
            "proc/uptime": "5000.00 1.00",
            "proc/cmdline": OWN_WORDS,
            "kernel": "own",
            "version": VERSION,
            "architecture": "x86_64",
            "target": "/",
            "user": "root",
            "after_kexec": "up",
            "after_reboot": "up",
            "restarts": "0",
            "messages": "[    0.0] Linux version",
            "copied": "".join(f"/proc/cpuinfo:{line}\n" for line in CPUINFO.splitlines()),
        }
        for name, text in files.items():
            self.put(name, f"{text}\n")
        self.plan()

    @property
    def agent(self) -> Path:
        """Return the agent that kdyno copies to the box: it loads no kernel into this host."""
        return self.root / "bin" / "agent"

    def put(self, name: str, text: str) -> Path:
        path = self.root / name
        path.write_text(text)
        return path

    def text(self, name: str) -> str:
        path = self.root / name
        return path.read_text().strip() if path.exists() else ""

    def plan(self, *behaviours: dict[str, Any]) -> None:
        """Decide what ssh does with commands that contain a text."""
        self.put("plan.json", json.dumps({"ssh": behaviours}))

    def calls(self) -> list[list[str]]:
        """Return the arguments of each call of ssh."""
        return [json.loads(line) for line in self.text("log").splitlines()]

    @property
    def stored(self) -> list[str]:
        """Return the names of kdyno's files on the box."""
        place = Path(f"{self.root}{DIRECTORY}")
        return sorted(path.name for path in place.iterdir()) if place.exists() else []

    @property
    def path(self) -> str:
        return f"{self.root}/ssh{os.pathsep}{os.environ['PATH']}"


def short_digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]
