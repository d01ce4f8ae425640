"""Figures of boots, for tools/bench: beside a bare one, with a root, with the emulated PMU; how they spread."""

from __future__ import annotations

import math
import resource
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median, stdev
from tempfile import mkdtemp
from threading import Thread

from bench_figures import Row

from kdyno.base.lanes import GUEST_LANES, GuestLaneName
from kdyno.base.measurement import value
from kdyno.base.process import output, spawn
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import BootOrder
from kdyno.boot.initramfs import file, guest_tools, newc
from kdyno.boot.qemu import QemuMachine
from kdyno.boot.qemu_config import QemuConfig
from kdyno.measure.cycles.family import load_family
from kdyno.measure.guest.job import Program
from kdyno.measure.guest.pmu import PmuConfig
from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.measure.workload.needs import OF_ROOT, Load, Needs
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.images import build_images
from kdyno.runs.prepare import plan_builds, prepare
from kdyno.runs.session import Session
from kdyno.runs.single_boots import SingleBoots
from kdyno.store.store import Store
from kdyno.store.url import sqlite_file

POLL_SECONDS = 0.001
TOO_LONG = 120.0
LARGEST_SPREAD = 0.005
"""Standard deviation of ln(variant / baseline) over seeds with which 12 blocks see 1 % in each of the benchmarks."""

SAMPLE, EXITED = b'"type":"sample"', b'"type":"exited"'
"""Records of the agent: a benchmark's sample, and the end of a step."""
ROOT_PACKAGES = ("rt-tests",)
"""Of the workload hackbench: a small root file system."""

WORD = b"userland"
BARE_INIT = f"""
.globl _start
_start:
    mov $1, %eax            # write(1, word, length)
    mov $1, %edi
    lea word(%rip), %rsi
    mov ${len(WORD)}, %edx
    syscall
    mov $169, %eax          # reboot(RB_AUTOBOOT)
    mov $0xfee1dead, %edi
    mov $0x28121969, %esi
    mov $0x01234567, %edx
    syscall
    hlt
word: .ascii "{WORD.decode()}"
"""


class NoSign(Exception):
    """A guest that was booted did not do what is waited for."""


def bare_initramfs(scratch: Path) -> bytes:
    """Build a guest whose first instructions report that they run: no boot to userland can be shorter."""
    source, thing, program = (scratch / name for name in ("init.S", "init.o", "init"))
    source.write_text(BARE_INIT)
    output(["as", source, "-o", thing])
    output(["ld", "-static", "-n", "-s", thing, "-o", program])
    devices = [entry for entry in guest_tools() if entry.name in ("dev", "dev/console")]
    return newc([*devices, file("init", program.read_bytes())])


def until(path: Path, sign: bytes, is_alive: Callable[[], bool]) -> float:
    """Return the time at which `sign` shows up in a file."""
    deadline = time.monotonic() + TOO_LONG
    while time.monotonic() < deadline:
        alive = is_alive()
        if path.exists() and sign in path.read_bytes():
            return time.monotonic()
        if not alive:
            break
        time.sleep(POLL_SECONDS)
    raise NoSign(f"no {sign.decode()} in {path}")


def bare_boot(machine: QemuMachine, order: BootOrder, archive: bytes) -> float:
    """Return the seconds from nothing to the first instructions of userland, without kdyno."""
    started = time.monotonic()
    initrd, console = order.directory / "initramfs.cpio", order.directory / "console.log"
    initrd.write_bytes(archive)
    command = machine.command(order, initrd, serial=f"file:{console}", stream=order.directory / "stream.jsonl")
    with spawn(command) as qemu:
        return until(console, WORD, lambda: qemu.poll() is None) - started


def kdyno_boot(machine: QemuMachine, order: BootOrder, sign: bytes = SAMPLE) -> float:
    """Return the seconds from the order to the first record of a kind, as `kdyno run` does it."""
    started = time.monotonic()
    boot = Thread(target=machine.boot, args=(order,))
    boot.start()
    try:
        return until(order.directory / "stream.jsonl", sign, boot.is_alive) - started
    finally:
        order.cancelled.set()
        boot.join()


def boot_row(experiment: Experiment, state: State, scratch: Path, pairs: int) -> Row:
    """Compare the first sample with a bare boot, in turns."""
    talk = Talk(quiet=True)
    prepared = prepare(experiment, state, talk)
    kernel = build_images(prepared.plans, state, talk)[experiment.baseline][0].program
    assert isinstance(prepared.machine, QemuMachine)
    archive = bare_initramfs(scratch)
    ratios = []
    for pair in range(pairs):
        orders = [
            BootOrder("bench", kernel, (), prepared.job, seed=pair, directory=Path(mkdtemp(dir=scratch)))
            for _ in range(2)
        ]
        bare = bare_boot(prepared.machine, orders[0], archive)
        ratios.append(kdyno_boot(prepared.machine, orders[1]) / bare)
    ratio = median(ratios)
    return Row("boot to the first sample / bare boot of the same image", f"{ratio:.2f}", pairs, "≤ 1.1", ratio <= 1.1)


def root_rows(experiment: Experiment, state: State, scratch: Path, pairs: int) -> list[Row]:
    """Compare a guest with a root file system with one without, in both lanes, on a kernel that can do either."""
    recipe = experiment.variants[experiment.baseline]
    fit = recipe.model_copy(update={"kconfig": {**recipe.kconfig, **OF_ROOT.kconfig}})
    variants = {experiment.baseline: fit}
    plans = plan_builds(experiment.model_copy(update={"variants": variants}), state, Talk()).plans
    kernel = build_images(plans, state, Talk())[experiment.baseline][0].program
    return [root_row(kernel, lane, state, scratch, pairs) for lane in GUEST_LANES]


def root_row(kernel: Path, lane: GuestLaneName, state: State, scratch: Path, pairs: int) -> Row:
    """Compare two guests that are the same up to where the program is run, in turns."""
    machine = QemuMachine(QemuConfig(lane=lane))
    machine.provide(Needs(packages=ROOT_PACKAGES), state, Talk())
    ratios = []
    for pair in range(pairs):
        seconds = {}
        for in_root in (False, True):
            program = Program(name="nothing", command=("true",), in_root=in_root)
            job = machine.describe().job(1, programs=(program,))
            order = BootOrder("bench", kernel, (), job, seed=pair, directory=Path(mkdtemp(dir=scratch)))
            seconds[in_root] = kdyno_boot(machine, order, EXITED)
        ratios.append(seconds[True] / seconds[False])
    ratio = median(ratios)
    figure = f"boot to the end of `true` in a root file system / in the initramfs, lane {lane}, {machine.accel}"
    return Row(figure, f"{ratio:.2f}", pairs, "≤ 2", ratio <= 2)


def pmu_rows(experiment: Experiment, state: State, scratch: Path, times: int) -> list[Row]:
    """Time boots with all tests: without the emulated PMU, with its edge profile, with all its models, in turns.

    All have the CPU and the kernel parameters of the family: others would be other paths of the kernel's.

    Of processor time of QEMU the least: what else the host does only ever adds to it.
    """
    prepared = prepare(experiment, state, Talk(quiet=True))
    image = build_images(prepared.plans, state, Talk(quiet=True))[experiment.baseline][0]
    assert isinstance(prepared.machine, QemuMachine)
    configs: dict[str, PmuConfig | None] = {
        "none": None,
        "edges": PmuConfig(events="edges", clock="instructions"),
        "all": PmuConfig(events="all"),
    }
    cpu = load_family(PmuConfig().family).cpu
    machines = {
        name: QemuMachine(prepared.machine.config.model_copy(update={"pmu": pmu, "cpu": None if pmu else cpu.qemu}))
        for name, pmu in configs.items()
    }
    seconds: dict[str, list[float]] = {name: [] for name in machines}
    for turn in range(times):
        for name, machine in machines.items():
            directory = Path(mkdtemp(dir=scratch))
            order = BootOrder(
                name=name,
                kernel=image.program,
                vmlinux=image.vmlinux,
                cmdline=() if machine.pmu else cpu.cmdline,
                job=prepared.job,
                seed=turn,
                directory=directory,
            )
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            assert machine.boot(order).status == "ok"
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds[name].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    rows = []
    for name, aim in {"edges": 1.2, "all": 3.0}.items():
        ratio = min(seconds[name]) / min(seconds["none"])
        figure = f"boot with all tests, PMU events = {name} / without"
        rows.append(Row(figure, f"{ratio:.2f}", times, f"≤ {aim:g}", ratio <= aim))
    return rows


def seed_rows(experiment: Experiment, state: State, store_file: Path, seeds: int) -> list[Row]:
    """Return how much the kernel instructions of a region move with the seed: largest over smallest."""
    plans = plan_builds(experiment, state, Talk(quiet=True)).plans
    image = build_images(plans, state, Talk(quiet=True))[experiment.baseline][0]
    benchmarks = {"lat_syscall": "lat_syscall.null", "lat_pipe": "lat_pipe", "lat_proc": "lat_proc.fork"}
    counts: dict[str, list[float]] = {name: [] for name in benchmarks.values()}
    for seed in range(1, seeds + 1):
        with Store(sqlite_file(store_file)) as store:
            made = SingleBoots(Session(state, store, Talk(quiet=True))).count(
                image,
                Load(tests=tuple(benchmarks)),
                seed=seed,
                events="edges",
                family=PmuConfig().family,
            )
        record = read_pmu_record(made.record)
        column = record.names.index("instructions")
        for name, measured in counts.items():
            region = record.regions[made.benchmarks.index(name)]
            task_and_exception = [float(iteration[:2, column].sum()) for iteration in region.iterations.values()]
            measured.append(median(task_and_exception))
    return [
        Row(f"kernel instructions of {name}, largest / smallest over seeds", f"{max(count) / min(count):.4f}", seeds)
        for name, count in counts.items()
    ]


def spread_rows(experiment: Experiment, state: State, scratch: Path, seeds: int) -> list[Row]:
    """Return how much the ratio of two kernels moves with the seed, benchmark by benchmark, the worst first."""
    prepared = prepare(experiment, state, Talk(quiet=True))
    images = build_images(prepared.plans, state, Talk(quiet=True))

    def boot(variant: str, seed: int) -> dict[str, float]:
        """Return the logarithm of each benchmark's value in one boot: the median of its samples."""
        order = BootOrder(
            name=f"{variant}, seed {seed}",
            kernel=images[variant][0].program,
            cmdline=(),
            job=prepared.job,
            seed=seed,
            directory=Path(mkdtemp(dir=scratch)),
        )
        end = prepared.machine.boot(order)
        assert end.status == "ok" and not end.report.broken, (order.name, end.reason, end.report.broken)
        benchmarks = {benchmark.name: benchmark for benchmark in end.report.benchmarks}
        values = defaultdict(list)
        for sample in end.report.samples:
            values[sample.benchmark].append(value(sample, benchmarks[sample.benchmark]))
        return {name: math.log(median(value)) for name, value in values.items()}

    baseline, variant = experiment.baseline, next(name for name in experiment.variants if name != experiment.baseline)
    with ThreadPoolExecutor(prepared.machine.describe().parallel) as pool:
        of_baseline = list(pool.map(boot, [baseline] * seeds, range(1, seeds + 1)))
        of_variant = list(pool.map(boot, [variant] * seeds, range(1, seeds + 1)))
    spreads = {
        name: stdev(second[name] - first[name] for first, second in zip(of_baseline, of_variant, strict=True))
        for name in of_baseline[0]
    }
    return [
        Row(name, f"{100 * spread:.2f} %", seeds, f"≤ {100 * LARGEST_SPREAD:g} %", spread <= LARGEST_SPREAD)
        for name, spread in sorted(spreads.items(), key=lambda item: -item[1])
    ]
