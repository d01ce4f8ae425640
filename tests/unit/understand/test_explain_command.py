from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kdyno.base.errors import KdynoError
from kdyno.base.measurement import Sample
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.qemu import QemuMachine
from kdyno.cli.main import main
from kdyno.judge.stats.verdict import DIFFERENT
from kdyno.judge.verdicts.model import RunReport
from kdyno.kernel.image import Image
from kdyno.measure.cycles.family import load_family
from kdyno.measure.guest.pmu import PmuConfig
from kdyno.measure.workload.needs import Load
from kdyno.report.html import render
from kdyno.runs.session import Session
from kdyno.runs.single_boots import PmuRun, SingleBoots
from kdyno.store.artefacts import Artefacts
from kdyno.store.errors import NoSuchVariant
from kdyno.store.records import BootRecord
from kdyno.understand.explain import sides
from kdyno.understand.explain.command import (
    BaselineItself,
    ExplainRequest,
    ExplainResult,
    NothingJudged,
    OnlyValues,
    explain_benchmark,
)
from kdyno.understand.explain.records import (
    NotMeasured,
    Recorded,
    RunWithoutValues,
    UnknownBenchmark,
    WorkUnknown,
    common_boots,
    find_benchmark,
    work_of,
)
from kdyno.understand.explain.sides import ImageReplaced, NoKernel, refuse_replaced
from kdyno.understand.explain.why import find_reasons, largest
from tests.unit import specimen
from tests.unit.explain_specimen import Kernel, pair
from tests.unit.pmu_specimen import encode

BASELINE, VARIANT, BENCHMARK = "gcc-12", "clang-19-thinlto", "lat_syscall.read"
WORK = 1000

ZNVER4 = ', "machine": {"pmu": {"family": "znver4", "events": "edges", "clock": "instructions"}}'
NO_STORE: Any = None
"""No boot is looked up in these tests."""


class Lab:
    """A run of three blocks in a state directory; the boots of some variants carry the records of these kernels."""

    def __init__(self, directory: Path, kernels: dict[str, Kernel]) -> None:
        self.directory = directory
        self.state = State(directory)
        self.artefacts = Artefacts(self.state.artefacts)
        run = specimen.run_record(blocks=3)
        boots = specimen.boot_records(run, iterations=4, spread=0.0005, failed=None)
        self.report = specimen.report(directory, run, [self._boot(boot, kernels) for boot in boots])

    def _boot(self, boot: BootRecord, kernels: dict[str, Kernel]) -> BootRecord:
        kernel = kernels.get(boot.variant) if boot.status == "ok" else None
        kept = {}
        if kernel:
            path = self.directory / "pmu"
            path.write_bytes(encode(replace(kernel.record(), benchmarks=(BENCHMARK,))))
            kept["pmu"] = self.artefacts.put(path)
        samples = tuple(
            sample.model_copy(update={"work": WORK // 4}) if sample.benchmark == BENCHMARK else sample
            for sample in boot.samples
        )
        return boot.model_copy(update={**kept, "samples": samples})

    def recounted(self, kernels: dict[str, Kernel]) -> RunReport:
        """The report with boots that carry the records of other kernels: judging it anew would take seconds."""
        boots = tuple(self._boot(boot.model_copy(update={"pmu": None}), kernels) for boot in self.report.boots)
        return self.report.model_copy(update={"boots": boots})

    def explain(self, variant: str = VARIANT, benchmark: str = BENCHMARK) -> ExplainResult:
        return explain_benchmark(
            self.report, ExplainRequest(variant, benchmark), session=Session(self.state, NO_STORE, Talk(quiet=True))
        )


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    before, after = pair()
    return Lab(tmp_path_factory.mktemp("recorded"), {BASELINE: before, VARIANT: after})


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """No boot carries a record."""
    return Lab(tmp_path_factory.mktemp("bare"), {})


def test_records_of_the_run_are_used(lab: Lab) -> None:
    result = lab.explain()
    assert result.explanation.boots == "the boots of block 0, seed 1000"
    assert result.explanation.instructions.baseline == 346
    assert result.comparison.verdict == "fewer"
    assert result.stacks.total.variant == 360


def test_a_run_without_values_has_no_benchmark_to_suggest() -> None:
    with pytest.raises(RunWithoutValues, match="run 0123 has no values of any benchmark"):
        find_benchmark("0123", [], "lat_pipe")


@pytest.mark.parametrize(
    ("variant", "benchmark", "error", "hint"),
    [
        ("clang-19-thinlt", BENCHMARK, NoSuchVariant, "did you mean clang-19-thinlto?"),
        (VARIANT, "lat_syscall.rea", UnknownBenchmark, "did you mean lat_syscall.read"),
        (BASELINE, BENCHMARK, BaselineItself, "gcc-12-O3, clang-19-thinlto"),
        (VARIANT, specimen.UNSUPPORTED, NothingJudged, "both kernels ran"),
    ],
)
def test_what_can_not_be_explained_is_said_in_one_message(
    lab: Lab, variant: str, benchmark: str, error: type[KdynoError], hint: str
) -> None:
    with pytest.raises(error) as caught:
        lab.explain(variant, benchmark)
    assert hint in caught.value.advice


def test_a_benchmark_that_a_kernel_can_not_run_is_refused_with_the_reason(lab: Lab) -> None:
    with pytest.raises(NothingJudged, match="no CONFIG_UNIX"):
        lab.explain(VARIANT, specimen.UNSUPPORTED)


def test_a_benchmark_whose_samples_are_values_of_their_own_can_not_be_explained(lab: Lab) -> None:
    spoken = Sample(benchmark=BENCHMARK, iteration=0, value=1.5)
    boots = tuple(boot.model_copy(update={"samples": (spoken,)}) for boot in lab.report.boots)
    report = lab.report.model_copy(update={"boots": boots})
    with pytest.raises(OnlyValues, match=f"{BENCHMARK} cannot be explained: a command printed its values"):
        explain_benchmark(
            report, ExplainRequest(VARIANT, BENCHMARK), session=Session(lab.state, NO_STORE, Talk(quiet=True))
        )


def test_a_replayed_run_without_records_has_no_kernel_to_explain(bare: Lab) -> None:
    variants = tuple(variant.model_copy(update={"images": ()}) for variant in bare.report.run.variants)
    replayed = bare.report.model_copy(update={"run": bare.report.run.model_copy(update={"variants": variants})})
    with pytest.raises(NoKernel, match=f"no image of {BASELINE}"):
        explain_benchmark(
            replayed, ExplainRequest(VARIANT, BENCHMARK), session=Session(bare.state, NO_STORE, Talk(quiet=True))
        )


EXPERIMENT = (
    '{"name": "x", "source": "s", "baseline": "gcc-12", "variants": {"gcc-12": {}},'
    ' "workload": {"tests": ["lmbench"], "params": {"lat_ctx": {"processes": 2}}}}'
)


def test_a_run_without_records_boots_both_images_as_the_run_did(bare: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    report = bare.report.model_copy(update={"run": bare.report.run.model_copy(update={"experiment": EXPERIMENT})})
    images = {image.key: image for variant in report.run.variants for image in variant.images}
    before, after = pair()
    kernels = {"before": before, "after": after}
    booted: list[dict[str, Any]] = []

    def boot(_boots: SingleBoots, _image: Image, load: Load, **how: Any) -> PmuRun:
        booted.append({"load": load, **how})
        return PmuRun(Path("before" if len(booted) == 1 else "after"), (BENCHMARK,), {BENCHMARK: [WORK // 4] * 4})

    monkeypatch.setattr(SingleBoots, "count", boot)
    monkeypatch.setattr(sides, "read_pmu_record", lambda path: kernels[path.name].record())
    monkeypatch.setattr(sides, "load_image", lambda key, _: Image(directory=bare.directory, record=images[key]))
    result = explain_benchmark(
        report,
        ExplainRequest(VARIANT, BENCHMARK, family="znver4"),
        session=Session(bare.state, NO_STORE, Talk(quiet=True)),
    )
    assert result.explanation.boots == (
        "one boot of each, made to explain it, seed 1000, on the CPU of znver4: the run's was another"
    )
    assert result.explanation.functions[0].function == "take_lock"
    assert [order["cmdline"] for order in booted] == [(), ("init_on_alloc=0",)]
    assert all(order["load"] == Load(tests=("lat_syscall",)) for order in booted)
    assert (booted[0]["seed"], booted[0]["events"]) == (1000, "all")


DEFAULT_CPU = load_family(PmuConfig().family).cpu.qemu


@pytest.mark.parametrize(
    ("recorded", "settings", "booted", "family"),
    [
        (DEFAULT_CPU, "", DEFAULT_CPU, "sapphirerapids"),
        ("Haswell-noTSX,-pcid", "", "Haswell-noTSX,-pcid", "sapphirerapids"),
        ("EPYC-v1", ', "machine": {"cpu": "EPYC-v1"}', "EPYC-v1", "sapphirerapids"),
        (load_family("znver4").cpu.qemu, ZNVER4, load_family("znver4").cpu.qemu, "znver4"),
    ],
    ids=["the default", "a default of another version", "named", "of a family"],
)
def test_the_runs_own_cpu_is_booted_to_explain_it(
    bare: Lab, monkeypatch: pytest.MonkeyPatch, recorded: str, settings: str, booted: str, family: str
) -> None:
    experiment = f"{EXPERIMENT[:-1]}{settings}}}"
    run = bare.report.run.model_copy(update={"experiment": experiment, "machine": {"type": "qemu", "cpu": recorded}})
    images = {image.key: image for variant in run.variants for image in variant.images}
    orders: list[dict[str, Any]] = []

    def boot(_boots: SingleBoots, _image: Image, _load: Load, **how: Any) -> PmuRun:
        orders.append(how)
        return PmuRun(Path("record"), (BENCHMARK,), {BENCHMARK: [WORK // 4] * 4})

    monkeypatch.setattr(SingleBoots, "count", boot)
    monkeypatch.setattr(sides, "read_pmu_record", lambda _: pair()[0].record())
    monkeypatch.setattr(sides, "load_image", lambda key, _: Image(directory=bare.directory, record=images[key]))
    result = explain_benchmark(
        bare.report.model_copy(update={"run": run}),
        ExplainRequest(VARIANT, BENCHMARK),
        session=Session(bare.state, NO_STORE, Talk(quiet=True)),
    )
    assert result.explanation.boots == "one boot of each, made to explain it, seed 1000"
    for order in orders:
        counting = order["settings"].with_pmu(PmuConfig(events=order["events"], family=order["family"]))
        assert (QemuMachine(counting).cpu_model, order["family"]) == (booted, family)


def test_a_record_of_another_vmlinux_is_refused(tmp_path: Path) -> None:
    image = Image(directory=tmp_path, record=specimen.image("gcc-12", specimen.run_record().variants[0].recipe))
    image.vmlinux.write_bytes(b"this vmlinux")
    record = Kernel().record()
    right, wrong = (
        type(record)(**{**vars(record), "image": hashlib.sha256(content).hexdigest()})
        for content in (b"this vmlinux", b"that vmlinux")
    )
    refuse_replaced("gcc-12", right, image, State(tmp_path / "state"))
    with pytest.raises(ImageReplaced, match="gcc-12 was made with another vmlinux"):
        refuse_replaced("gcc-12", wrong, image, State(tmp_path / "state"))


def test_a_region_that_is_missing_is_an_error(lab: Lab) -> None:
    [benchmark] = (benchmark for benchmark in lab.report.benchmarks if benchmark.name == BENCHMARK)
    record = Kernel().record(benchmark=7)
    with pytest.raises(WorkUnknown, match="no region"):
        Recorded("gcc-12", record, (BENCHMARK,), {BENCHMARK: [1]}, {}).measured_region(benchmark)
    with pytest.raises(WorkUnknown, match="4 iterations in the one, 1 in the other"):
        Recorded("gcc-12", Kernel().record(), (BENCHMARK,), {BENCHMARK: [1]}, {}).measured_region(benchmark)
    with pytest.raises(NotMeasured, match="no such system call"):
        Recorded("gcc-12", record, (), {}, {BENCHMARK: "no such system call"}).measured_region(benchmark)


def test_bandwidths_are_explained_per_kibibyte(lab: Lab) -> None:
    [benchmark] = (benchmark for benchmark in lab.report.benchmarks if benchmark.name == "bw_pipe.64k")
    kernel = Kernel(iterations=2).function("copy", 100)
    measured = Recorded("gcc-12", kernel.record(), ("bw_pipe.64k",), {"bw_pipe.64k": [1024] * 2}, {}).measured_region(
        benchmark
    )
    assert measured.work == 2


def test_the_first_block_with_records_of_both_is_taken(lab: Lab) -> None:
    boots = [boot.model_copy(update={"pmu": None}) if boot.block == 0 else boot for boot in lab.report.boots]
    pair = common_boots(boots, BASELINE, VARIANT)
    assert pair is not None
    assert [boot.block for boot in pair] == [1, 1]
    assert common_boots([], BASELINE, VARIANT) is None


def test_work_is_collected_by_benchmark() -> None:
    samples = [Sample(benchmark="a", iteration=number, elapsed=1, work=10 + number) for number in range(2)]
    assert work_of(samples) == {"a": [10, 11]}


def test_the_command_prints_the_explanation_and_writes_the_graph(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    svg = tmp_path / "why.svg"
    words = ("explain", "3f9a", VARIANT, BENCHMARK, "--state", str(lab.directory), "--top", "3")
    assert main([*words, "--svg", str(svg)]) == 0
    assert capsys.readouterr().out.startswith("lat_syscall.read: clang-19-thinlto against gcc-12\nverdict of the run: ")
    assert svg.read_text().startswith("<svg ")
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"]["verdict"] == "fewer"
    assert document["explanation"]["functions"][0]["function"] == "take_lock"


def test_another_baseline_turns_the_difference_round(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("explain", "3f9a", BASELINE, BENCHMARK, "--state", str(lab.directory), "--json", "--baseline", VARIANT)
    assert main(words) == 0
    explanation = json.loads(capsys.readouterr().out)["explanation"]
    assert explanation["instructions"] == {"baseline": 360.0, "variant": 346.0}


def only_known(report: RunReport) -> RunReport:
    """The report with the one benchmark that the records have a region for."""
    only = tuple(comparison for comparison in report.comparisons if comparison.benchmark == BENCHMARK)
    return report.model_copy(update={"comparisons": only})


def test_variants_with_records_have_reasons(lab: Lab) -> None:
    reasons = find_reasons(lab.report, lab.artefacts)
    assert list(reasons) == [VARIANT]
    assert all("was not measured in" in reason.problem for reason in reasons[VARIANT] if reason.row.name != BENCHMARK)


def test_a_reason_has_the_largest_parts_and_the_graph(lab: Lab) -> None:
    [reason] = find_reasons(only_known(lab.report), lab.artefacts)[VARIANT]
    assert reason.functions[0][0] == "take_lock"
    assert list(reason.inlining) == ["fput seems inlined into ksys_read (12 calls/op gone)"]
    assert reason.svg
    assert "take_lock" in reason.svg


def test_a_record_that_is_gone_is_said_in_its_place(lab: Lab, tmp_path: Path) -> None:
    [reason] = find_reasons(only_known(lab.report), Artefacts(tmp_path / "elsewhere"))[VARIANT]
    assert "is not in" in reason.problem


def test_the_page_says_why_and_hostile_names_add_no_tag(tmp_path: Path) -> None:
    name = "</title><script>alert(1)</script>"
    hostile = Kernel().function(name, 10_000).stack(name, 10_000)
    lab = Lab(tmp_path, {BASELINE: Kernel().function("f", 1), VARIANT: hostile})
    page = render(only_known(lab.report), lab.artefacts)
    section = page[page.index("<h2>Why</h2>") : page.index("<h2>Provenance</h2>")]
    assert f"<h3>{VARIANT} against {BASELINE}</h3>" in section
    assert "Cycles are modelled, znver4" in section
    assert section.count("&lt;/title&gt;&lt;script&gt;alert(1)") == 3  # table, title and text
    assert "<script>" not in section


def test_a_run_without_records_has_no_reasons(bare: Lab) -> None:
    assert find_reasons(bare.report, bare.artefacts) == {}


def test_only_what_was_judged_to_differ_is_explained(lab: Lab) -> None:
    differing = largest(lab.report, VARIANT)
    assert 0 < len(differing) <= 5
    assert all(comparison.verdict in DIFFERENT for comparison in differing)
    effects = [abs(math.log(comparison.estimate.ratio)) for comparison in differing if comparison.estimate]
    assert effects == sorted(effects, reverse=True)
