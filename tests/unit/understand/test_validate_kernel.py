"""`kdyno validate`: what both sides must have, what is refused beforehand, and what it prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kdyno.base.cpu import Cpu
from kdyno.base.measurement import Benchmark
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.qemu_config import QemuConfig
from kdyno.cli.calibrate import kernel_lines
from kdyno.cli.main import main
from kdyno.cli.validate import lines
from kdyno.kernel.image import Image
from kdyno.kernel.recipe import Recipe
from kdyno.measure.cycles.family import load_family
from kdyno.measure.cycles.kernel_fit import calibrate_kernel
from kdyno.measure.cycles.kernel_measured import KernelMeasurement, Validation
from kdyno.measure.cycles.kernel_roles import KINDS, UNLIKE, UNLIKE_IN_TIME
from kdyno.measure.guest.agent import catalogue
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.runs.session import Session
from kdyno.runs.single_boots import PmuRun
from kdyno.understand.validate import guest, kernel
from kdyno.understand.validate.guest import GuestCounts, GuestSilent, count_events, guest_mitigations
from kdyno.understand.validate.kernel import (
    NoSharedBenchmark,
    OtherFamily,
    ValidationRequest,
    comparable_tests,
    host_family,
    join_sides,
)
from kdyno.understand.validate.native import NativePass
from tests.unit import specimen as made_up
from tests.unit.cycles_specimen import family
from tests.unit.kernel_specimen import KERNELS, measured
from tests.unit.pmu_specimen import specimen

ZEN4 = Cpu(vendor="AuthenticAMD", family=25, model=97, stepping=2, name="x", flags=frozenset())
OTHER = Cpu(vendor="GenuineIntel", family=6, model=1, stepping=1, name="Pentium Pro", flags=frozenset())


def described() -> tuple[Benchmark, ...]:
    known = catalogue()
    return known.benchmarks([test.name for test in comparable_tests(known)], "wall")


def native(cycles: Mapping[str, float], absent: Mapping[str, str] | None = None) -> NativePass:
    return NativePass(cycles, 2.9, absent or {})


def test_a_benchmark_that_one_side_lacks_is_left_out_with_the_reason() -> None:
    both = dict.fromkeys(KINDS, 100.0)
    one = native({**both, "lat_proc.shell": 1.0})
    lacking = {name: cycles for name, cycles in both.items() if name != "lat_udp"}
    counts = {name: (2.0, 3.0) for name in KINDS if name != "lat_pipe"}
    rows, left_out = join_sides(
        described(), [one, native(lacking, {"lat_udp": "socket(): errno 97"})], GuestCounts(("a", "b"), counts), UNLIKE
    )
    assert {row.name for row in rows} == KINDS.keys() - {"lat_pipe", "lat_udp"}
    assert left_out == {**UNLIKE, "lat_pipe": "it was not measured in the guest", "lat_udp": "socket(): errno 97"}


def test_counts_of_a_bandwidth_are_per_kib_as_its_cycles_are() -> None:
    cycles = {"bw_pipe": 300.0, "lat_pipe": 900.0}
    rows, _ = join_sides(
        described(), [native(cycles)], GuestCounts(("a",), {"bw_pipe": (0.5,), "lat_pipe": (7.0,)}), {}
    )
    assert [(row.name, row.unit, row.counts) for row in rows] == [
        ("bw_pipe", "KiB", (512.0,)),
        ("lat_pipe", "op", (7.0,)),
    ]


def test_on_a_host_that_is_a_guest_what_runs_cpuid_is_left_out(host: State, monkeypatch: pytest.MonkeyPatch) -> None:
    request, talk = ValidationRequest("generic"), Talk(quiet=True)
    plain = kernel.validate_kernel(request, session=Session(host, None, talk))  # type: ignore[arg-type]
    assert "lat_proc.exec" in {row.name for row in plain.benchmarks}
    monkeypatch.setattr(kernel, "read_cpu", lambda: OTHER.model_copy(update={"flags": frozenset({"hypervisor"})}))
    on_guest = kernel.validate_kernel(request, session=Session(host, None, talk))  # type: ignore[arg-type]
    assert {row.name for row in plain.benchmarks} - {row.name for row in on_guest.benchmarks} == {"lat_proc.exec"}
    assert "this host is itself a guest" in on_guest.left_out["lat_proc.exec"]


def test_the_iteration_with_the_median_of_cycles_counts() -> None:
    record = specimen()
    number = min(record.regions)
    region = record.regions[number]
    column = record.names.index("privilege_switches")
    iterations = {}
    for iteration, instructions in enumerate((900, 100, 500)):
        events = np.zeros((3, len(record.names)), np.uint64)
        events[0, column], events[1, column], events[2, column] = instructions, 10, 100_000
        iterations[iteration] = events
    whole: PmuRecord = replace(
        record, regions={number: type(region)(number, iterations, region.contexts, region.stacks)}
    )
    names = tuple(f"b{index}" for index in range(number + 1))
    chosen = count_events(PmuRun(Path("x"), names, {names[number]: [10, 10, 10]}), whole, family())
    assert list(chosen.counts) == [names[number]]
    assert chosen.counts[names[number]][column] == pytest.approx(51.0)


def test_the_family_is_this_hosts_or_nobody_knows_better() -> None:
    assert host_family("auto", ZEN4)[1].name == "znver4"
    assert host_family("znver4", ZEN4)[0] == "znver4"
    with pytest.raises(OtherFamily, match="haswell is not the family of this host's CPU, znver4") as error:
        host_family("haswell", ZEN4)
    assert "--family" in error.value.advice and error.value.exit_code == 1
    assert host_family("haswell", OTHER)[1].name == "haswell"


def failing(status: str, reason: str) -> SimpleNamespace:
    """A machine whose boots end so."""

    listing = SimpleNamespace(stdout=b"/x/meltdown:Vulnerable\n")
    end = SimpleNamespace(status=status, reason=reason, report=SimpleNamespace(steps=(listing,)))
    about = SimpleNamespace(job=lambda _iterations, **_work: None)
    return SimpleNamespace(describe=lambda: about, boot=lambda _order: end)


def test_a_kernel_that_does_not_boot_is_said_before_anything_is_timed(
    tmp_path: Path, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = Image(directory=tmp_path, record=made_up.image("gcc-12", Recipe(toolchain="gcc-12")))
    talk = Talk(quiet=True)
    monkeypatch.setattr(guest, "open_machine", lambda _settings: failing("failed", "kernel panic: no init"))
    with pytest.raises(GuestSilent, match="did not boot in a guest: kernel panic: no init") as error:
        guest_mitigations(image, QemuConfig(), (), state, talk)
    assert image.record.key[:12] in error.value.advice and error.value.exit_code == 3
    monkeypatch.setattr(guest, "open_machine", lambda _settings: failing("ok", ""))
    assert guest_mitigations(image, QemuConfig(), (), state, talk) == {"meltdown": "Vulnerable"}


@pytest.fixture
def host(tmp_path: Path, state: State, monkeypatch: pytest.MonkeyPatch) -> State:
    """A host with a configuration, whose kernel is built, booted and timed at once."""
    config = tmp_path / "config"
    config.write_text("CONFIG_UNIX=y\nCONFIG_PVM_GUEST=y\n")
    image = Image(directory=tmp_path, record=made_up.image("gcc-12", Recipe(toolchain="gcc-12")))
    sample = measured()
    counts = {row.name: tuple(x / 1024 if row.unit == "KiB" else x for x in row.counts) for row in sample.benchmarks}
    one = native({row.name: row.native for row in sample.benchmarks})
    monkeypatch.setattr(kernel, "read_cpu", lambda: OTHER)
    monkeypatch.setattr(kernel, "running_config", lambda: config)
    monkeypatch.setattr(kernel, "nearest_source", lambda _running: "debian:linux-source-6.12")
    monkeypatch.setattr(kernel, "build_as_host", lambda *_: (image, {"UNIX": "y"}))
    monkeypatch.setattr(kernel, "guest_mitigations", lambda *_: {"meltdown": "Vulnerable"})
    monkeypatch.setattr(kernel, "count_in_guest", lambda *_, **_more: GuestCounts(sample.events, counts))
    monkeypatch.setattr(kernel, "measure_native", lambda _orders, passes, _talk: [one] * passes)
    return state


def test_a_validation_joins_both_sides_and_says_what_they_are(
    host: State, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "v.json"
    words = ["--state", str(host.root), "-q"]
    assert main(["validate", "--family", "generic", "-o", str(out), *words]) == 0
    text = capsys.readouterr().out
    assert "not in the modelled kernel: 1 option: PVM_GUEST" in text and "median error 0 %" in text
    written = Validation.model_validate_json(out.read_text())
    assert written.held_out.spearman == pytest.approx(1) and written.measured.kernels.dropped == ("PVM_GUEST",)
    assert {row.name for row in written.measured.benchmarks} == KINDS.keys() - UNLIKE_IN_TIME.keys()
    assert main(["validate", "--family", "generic", "--json", *words]) == 0
    assert json.loads(capsys.readouterr().out)["measured"]["family"] == "generic"

    mine = tmp_path / "mine.toml"
    assert main(["calibrate", "--kernel", str(out), "-o", str(mine), *words]) == 0
    assert "held-out, previous weights: 16 benchmarks" in capsys.readouterr().out
    assert load_family(f"file:{mine}").model.kernel_benchmarks == 16
    assert main(["calibrate", "--kernel", "--family", "generic", "--json", *words]) == 0
    assert json.loads(capsys.readouterr().out)["held_out"]["median_error"] < 1e-6
    assert main(["calibrate", "--kernel", str(out), "--family", "znver4", *words]) == 1
    assert "another emulated CPU than the one that znver4 describes" in capsys.readouterr().err


def test_too_few_benchmarks_are_no_validation(host: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "count_in_guest", lambda *_, **_more: GuestCounts(("a",), {"lat_pipe": (1.0,)}))
    with pytest.raises(NoSharedBenchmark, match="both natively and in the guest: 1"):
        kernel.validate_kernel(ValidationRequest("generic"), session=Session(host, None, Talk(quiet=True)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (["--source", "debian:linux-source-0.1"], "linux-source-0.1 is not installed"),
        (["--source", "nowhere:x"], "names no kernel source"),
        (["--config", "/nowhere/config"], "can't read /nowhere/config"),
        (["--family", "znver44"], "did you mean znver4?"),
        (["-o", "/nowhere/v.json"], "its directory does not exist"),
    ],
)
def test_what_can_be_known_to_fail_is_said_at_once(
    words: list[str], output: str, state: State, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "read_cpu", lambda: ZEN4)
    assert main(["validate", *words, "--state", str(state.root), "-q"]) == 1
    assert output in capsys.readouterr().err


def small() -> KernelMeasurement:
    """Four benchmarks, twice and half as dear as the family says."""
    wanted = {"lat_proc.exec": 2.0, "lat_proc.fork": 0.5, "bw_pipe": 1.0, "bw_unix": 4.0}
    whole = measured()
    rows = [
        row.model_copy(update={"passes": tuple(round(cycles * wanted[row.name]) for cycles in row.passes)})
        for row in whole.benchmarks
        if row.name in wanted
    ]
    return whole.model_copy(update={"benchmarks": tuple(rows), "kernels": KERNELS})


def test_the_text_has_kernels_differences_benchmarks_and_quality() -> None:
    text = lines(Validation.from_measurement(small(), family()))
    assert text[:9] == [
        "native:   Linux 6.18.44-host, gcc (GCC) 15.3.0, on A CPU at 2.93 to 2.95 GHz",
        "modelled: Linux 6.12.117 (linux-source-6.12 6.12.117-1), gcc (Debian 12.2.0-14) 12.2.0",
        "          modelled, generic-2: default weights, not calibrated",
        "mitigations: 1 difference",
        "  spectre_v2 (here: Mitigation: Enhanced / Automatic IBRS; guest: Vulnerable)",
        "words: pti=off noreplace-smp",
        "added: DEBUG_INFO_NONE: debug information takes time to build; symbols are enough",
        "not in the modelled kernel: 1 option: PVM_GUEST",
        "",
    ]
    assert text[9] == "benchmark              kind      role     per      native    modelled  ratio  spread"
    assert [row.split()[0:4] + row.split()[6:] for row in text[10:14]] == [
        ["lat_proc.exec", "processes", "fit", "op", "0.50", "4", "%"],
        ["lat_proc.fork", "processes", "held-out", "op", "2.00", "4", "%"],
        ["bw_pipe", "switches", "fit", "KiB", "1.00", "4", "%"],
        ["bw_unix", "switches", "held-out", "KiB", "0.25", "4", "%"],
    ]
    assert text[14] == "lat_proc.shell: left out: /bin/sh is busybox in the guest, and another program here"
    assert text[16] == "native passes differ by 4 % (median), at most 4 %"
    assert text[17].startswith("all: 4 benchmarks, Spearman ") and text[17].endswith(
        "median error 62 %, 90 % within 92 %"
    )
    assert text[18].startswith("held-out: 2 benchmarks, Spearman ")


def test_the_text_of_a_fit_has_weights_benchmarks_and_quality() -> None:
    text = kernel_lines(calibrate_kernel(small(), family()))
    assert text[0] == "weights of generic, in cycles   fitted    before"
    blank = text.index("")
    assert text[blank - 1] == "  all other weights are unchanged"
    assert text[blank + 1] == "benchmark              kind      role     per      native    modelled  ratio"
    assert [row.partition(":")[0] for row in text[-3:]] == ["held-out", "held-out, previous weights", "fitted to"]
