"""Real kernels that die, hang, flood or vanish; a kdyno that is killed; knobs that can't be had."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.e2e.conftest import PATCHES, ROOT, Kdyno

PLAIN = '[variants.plain]\nopt = "O2"\nlines = true\n'
SMALL_WORKLOAD = '[workload]\ntests = ["lat_syscall", "lat_pipe"]\n'


def test_kernels_that_panic_hang_flood_or_die_half_way_are_told_apart_and_the_others_are_judged(kdyno: Kdyno) -> None:
    text = (
        PLAIN
        + SMALL_WORKLOAD
        + f"""
[variants.panics]
extends = "plain"
cmdline = ["rdinit=/nowhere", "init=/nowhere"]
[variants.hangs]
extends = "plain"
cmdline = ["rdinit=/bin/sh"]
[variants.floods]
extends = "plain"
cmdline = ["rdinit=/bin/busybox", "--", "yes"]
[variants.dies]
extends = "plain"
patches = ["{PATCHES / "slow-syscalls.patch"}"]
cmdline = ["getppid_dies_after=300"]
[machine.limits]
boot = 40
silence = 25
console_mb = 0.2
"""
    )
    done = kdyno("run", kdyno.experiment("misfortunes", text, baseline="plain", blocks=2), "--json")
    report = json.loads(done.stdout)
    reasons = {boot["variant"]: boot["reason"] for boot in report["boots"] if boot["status"] == "failed"}
    assert reasons["panics"].startswith("panic: Kernel panic - not syncing: Requested init /nowhere failed")
    assert reasons["hangs"].startswith("hung")
    assert reasons["floods"].startswith("console flooded")
    # Without CONFIG_DEBUG_BUGVERBOSE a BUG() is the invalid opcode that it is made of.
    assert reasons["dies"].startswith("oops: Oops: invalid opcode")
    assert [boot["status"] for boot in report["boots"] if boot["variant"] == "plain"] == ["ok", "ok"]
    assert {console["variant"] for console in report["consoles"]} == set(reasons)
    assert "panics was abandoned" in done.stderr


def children(pid: int) -> list[int]:
    """What the threads of a process have started."""
    pids: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            pids += [int(word) for word in (task / "children").read_text().split()]
        except (ProcessLookupError, FileNotFoundError):  # the thread is over
            continue
    return pids


def emulators(pid: int) -> list[int]:
    """The guests that a kdyno has started."""
    return [child for child in children(pid) if b"-kernel" in words_of(child)]


def words_of(pid: int) -> list[bytes]:
    """The command line of a process; empty if it is over."""
    try:
        return [word for word in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") if word]
    except (ProcessLookupError, FileNotFoundError):
        return []


def until_it_boots(process: subprocess.Popen[bytes]) -> list[int]:
    """Wait until a guest runs."""
    for _ in range(12_000):
        assert process.poll() is None, "it ended before it booted anything"
        if pids := emulators(process.pid):
            return pids
        time.sleep(0.05)
    raise AssertionError("it never booted anything")


def test_a_boot_whose_emulator_is_killed_is_lost_and_done_again(kdyno: Kdyno) -> None:
    experiment = kdyno.experiment("killed", PLAIN + SMALL_WORKLOAD, baseline="plain", blocks=2)
    kdyno("build", experiment)
    with subprocess.Popen(kdyno.command("run", experiment, "-q"), stdout=subprocess.DEVNULL) as process:
        os.kill(until_it_boots(process)[0], signal.SIGKILL)
        assert process.wait() == 0
    boots = json.loads(kdyno("show", "latest", "--json").stdout)["boots"]
    assert sorted((boot["block"], boot["attempt"], boot["status"]) for boot in boots if boot["status"] == "ok") == [
        *sorted((block, 1 if block in lost_blocks(boots) else 0, "ok") for block in range(2))
    ]
    assert [boot["reason"] for boot in boots if boot["status"] == "lost"] == ["QEMU was killed by signal 9"]


def lost_blocks(boots: list[dict[str, object]]) -> list[object]:
    return [boot["block"] for boot in boots if boot["status"] == "lost"]


def test_kdyno_killed_during_a_boot_leaves_no_guest_behind_and_goes_on_where_it_was(kdyno: Kdyno) -> None:
    experiment = kdyno.experiment("kill9", PLAIN + SMALL_WORKLOAD, baseline="plain", blocks=4)
    kdyno("build", experiment)
    with subprocess.Popen(kdyno.command("run", experiment, "-q"), stdout=subprocess.DEVNULL) as process:
        guests = until_it_boots(process)
        while not json.loads(kdyno("runs", "--json").stdout)[0]["done"]:
            time.sleep(0.2)
        guests = emulators(process.pid)
        process.kill()
    deadline = time.monotonic() + 120
    while any(words_of(guest) for guest in guests):  # a zombie has no words
        assert time.monotonic() < deadline, "a guest outlived kdyno"
        time.sleep(0.1)
    before = json.loads(kdyno("show", "latest", "--json").stdout)["boots"]
    kdyno("run", experiment)
    after = json.loads(kdyno("show", "latest", "--json").stdout)["boots"]
    assert len(after) == 4
    assert all(boot in after for boot in before)


def test_a_kconfig_symbol_that_cannot_be_had_is_named_with_what_it_lacks(kdyno: Kdyno) -> None:
    for symbol, why in {"EXT4_FS": "BLOCK", "NO_SUCH_SYMBOL": "this source has no such symbol"}.items():
        text = f"[variants.plain]\nkconfig = {{ {symbol} = true }}\n"
        done = kdyno("build", kdyno.experiment("unmet", text, baseline="plain", blocks=1), status=1)
        assert symbol in done.stderr
        assert why in done.stderr


def test_clang_with_thin_lto_gets_the_configuration_that_it_asks_for(kdyno: Kdyno) -> None:
    from kdyno.base.state import State
    from kdyno.kernel.build import check_configuration, plan_build
    from kdyno.kernel.recipe import Recipe
    from kdyno.kernel.source import fetch

    state = State(kdyno.state)
    source = fetch("debian:linux-source-6.12", state, print)
    plan = plan_build(Recipe(toolchain="clang-19", lto="thin"), source, "dyno", state)
    assert "LLVM=-19" in plan.make
    check_configuration(plan, state)


def test_a_command_in_a_guest_gives_its_output_and_its_exit_status(kdyno: Kdyno) -> None:
    experiment = kdyno.experiment("boot", PLAIN, baseline="plain", blocks=1)
    image = next(iter(json.loads(kdyno("build", experiment, "--json").stdout).values()))[0]
    words = ["boot", image["key"], "--lane", "model"]
    done = kdyno(*words, command=["sh", "-c", "uname -r; echo oops >&2; exit 7"], status=7)
    assert (done.stdout, done.stderr.strip()) == (f"{image['release']}\n", "oops")


def test_the_example_boot_asks_a_kernel_what_it_is(kdyno: Kdyno) -> None:
    experiment = kdyno.experiment("boot", PLAIN, baseline="plain", blocks=1)
    image = next(iter(json.loads(kdyno("build", experiment, "--json").stdout).values()))[0]
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "boot.py", image["key"]],
        env={**os.environ, "KDYNO_STATE": str(kdyno.state)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(f"Linux version {image['release']} ")
    assert int(done.stdout.splitlines()[1].split()[0]) > 10
