"""Workloads as data: what a file may say, what the agent is asked, and what is read of what it says."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from kdyno.base.measurement import Sample
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import BootEnd
from kdyno.boot.guest_root import FILES, NotUnpacked, UnfitPackage, filtered, guest_root
from kdyno.boot.initramfs import initramfs
from kdyno.boot.local import LocalConfig, LocalMachine, NotInstalled
from kdyno.boot.qemu_config import QemuConfig
from kdyno.measure.guest.job import CommandBenchmark, Job
from kdyno.measure.guest.steps import MOST_STDOUT, Phase, StepReport
from kdyno.measure.guest.stream import AgentReport
from kdyno.measure.workload.base import NotRead
from kdyno.measure.workload.definition import (
    NoSuchParameter,
    NoSuchWorkload,
    NotACount,
    WorkloadUnfit,
    definition,
    own_names,
)
from kdyno.measure.workload.metrics import AnyMetric, Output
from kdyno.measure.workload.named import NoTrainingLoad, OneProgramTwice, training_load
from kdyno.measure.workload.needs import Load, Needs
from kdyno.measure.workload.programs import NotInUse, OneNameTwice, ProgramsWorkload, RunsOnAllCpus, WorkloadOfOtherLane
from kdyno.runs.experiment.resolve import load_experiment
from kdyno.runs.one_boot import attach_samples

SMALL = """
name = "small"
description = "says two numbers"
command = "echo $how"
set_up = "true"
runs = 2
[parameters]
how = "well"
[metrics]
rate = { pattern = 'rate (\\\\d+)', unit = "1/s", direction = "higher" }
system = { time = "system" }
"""
METRIC: TypeAdapter[Any] = TypeAdapter(AnyMetric)


def small(tmp_path: Path, text: str = SMALL, name: str = "small.toml") -> Path:
    path = tmp_path / name
    path.write_text(text.replace("\\\\", "\\"))
    return path


def used(tmp_path: Path, **more: Any) -> ProgramsWorkload:
    return ProgramsWorkload(use=(str(small(tmp_path)),), **more).located(tmp_path)


def step(phase: Phase = "command", run: int = 0, **more: Any) -> StepReport:
    usual: dict[str, Any] = {"status": 0, "stdout": b"rate 5\n", "system": 0.25}
    return StepReport("small", phase, run, **usual | more)


def number(output: bytes, **metric: str) -> float:
    metric = {"unit": "s", "direction": "lower"} | metric
    return float(METRIC.validate_python(metric).number(Output(step(stdout=output))))


@pytest.mark.parametrize("name", own_names())
def test_each_of_kdynos_own_workloads_has_the_name_of_its_file_and_can_be_asked_for(name: str) -> None:
    workload = definition(name)
    assert workload.name == name and workload.packages
    for lane in workload.lanes:
        assert workload.program({}, lane).in_root


def test_a_program_gets_its_parameters_by_its_environment(tmp_path: Path) -> None:
    [program] = used(tmp_path, parameters={"small": {"how": "ill; rm -rf /"}}, runs=3).part("model").programs
    assert program.environment["how"] == "ill; rm -rf /" and program.environment["lane"] == "model"
    assert (program.command, program.runs, program.in_root) == (("sh", "-euc", "echo $how"), 3, False)


def test_every_run_is_a_sample_of_every_metric(tmp_path: Path) -> None:
    steps = (step("set-up"), step(), step(run=1, stdout=b"rate 7\n", system=0.5))
    report = used(tmp_path).read(AgentReport(steps=steps))
    assert [(sample.benchmark, sample.iteration, sample.value) for sample in report.samples] == [
        ("small.rate", 0, 5),
        ("small.rate", 1, 7),
        ("small.system", 0, 0.25),
        ("small.system", 1, 0.5),
    ]


def test_a_boot_goes_on_record_with_the_benchmarks_that_its_samples_are_of(tmp_path: Path) -> None:
    report = AgentReport(steps=(step(), step(run=1)))
    end = BootEnd("ok", "", 1.0, 0.5, (), tmp_path / "console", tmp_path / "stream", report)
    recorded = attach_samples(end, used(tmp_path)).report
    assert [benchmark.name for benchmark in recorded.benchmarks] == ["small.rate", "small.system"]
    assert {sample.benchmark for sample in recorded.samples} == {"small.rate", "small.system"}


def test_a_workload_that_failed_is_broken_and_the_others_are_not(tmp_path: Path) -> None:
    other = small(tmp_path, SMALL.replace('"small"', '"other"'), "other.toml")
    both = ProgramsWorkload(use=("./small.toml", str(other))).located(small(tmp_path).parent)
    failed = StepReport("other", "set-up", status=1, stderr=b"no such server\n")
    report = both.read(AgentReport(steps=(step(), step(run=1), failed)))
    assert report.broken == dict.fromkeys(
        ("other.rate", "other.system"), "its set-up ended with status 1: no such server"
    )
    assert {sample.benchmark for sample in report.samples} == {"small.rate", "small.system"}
    with pytest.raises(NotRead, match=r"no workload printed any of its numbers; small\.rate: its set-up ended"):
        used(tmp_path).read(AgentReport(steps=(step("set-up", status=2),)))


COUNTED = SMALL.replace("[metrics]", 'often = 5\n[operation]\nname = "request"\ncount = [2, "often"]\n[metrics]')


def counted(tmp_path: Path, text: str = COUNTED, **more: Any) -> ProgramsWorkload:
    return ProgramsWorkload(use=(str(small(tmp_path, text)),), **more).located(tmp_path)


def test_a_run_of_a_fixed_number_of_operations_is_measured_and_can_be_counted(tmp_path: Path) -> None:
    workload = counted(tmp_path, parameters={"small": {"often": 7}})
    [program] = workload.load().programs
    assert program.measured == CommandBenchmark(
        benchmark="small.request", description="says two numbers: one request", operations=14
    )
    assert workload.benchmark_names() == ("small.request", "small.rate", "small.system")
    assert workload.load(("lat_pipe",)) == Load()


def test_a_command_that_failed_has_no_operations(tmp_path: Path) -> None:
    sample = Sample(benchmark="small.request", iteration=0, elapsed=50, work=10)
    steps = (step("set-up"), step(), step(run=1, status=1))
    with pytest.raises(NotRead, match=r"small\.rate: its command ended with status 1"):
        counted(tmp_path).read(AgentReport(steps=steps, samples=(sample,)))
    report = counted(tmp_path).read(AgentReport(steps=steps[:2], samples=(sample,)))
    assert sample in report.samples and report.broken == {}


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (COUNTED.replace('"often"]', '"seldom"]'), "counted by seldom, which is not a parameter"),
        (COUNTED.replace('"request"', '"rate"'), "the operation has the name of a metric"),
    ],
)
def test_an_operation_is_counted_by_parameters_and_has_a_name_of_its_own(tmp_path: Path, wrong: str, why: str) -> None:
    with pytest.raises(WorkloadUnfit, match=why):
        counted(tmp_path, wrong)


@pytest.mark.parametrize("often", ["five", 0, 2.5])
def test_operations_are_a_whole_number(tmp_path: Path, often: Any) -> None:
    with pytest.raises(NotACount, match=f"small does often = {often} operations"):
        counted(tmp_path, parameters={"small": {"often": often}}).part("model")


def test_a_profile_is_trained_on_programs_and_tests_together() -> None:
    load = training_load(("lat_pipe", "redis", "pgbench"))
    assert load.names == ("lat_pipe", "redis", "pgbench")
    assert {"redis-server", "postgresql-15"} < set(load.packages) and load.memory_mb == 1024
    assert load.kconfig["SQUASHFS"] is True


def test_what_training_needs_of_a_kernel_all_variants_get(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(
        """name = "x"\nsource = "debian:linux-source-6.12"\nbaseline = "plain"\n[variants.plain]\n[variants.tuned]
        toolchain = "clang-19"\nprofile = { train = "redis", use = "autofdo" }\n"""
    )
    variants = load_experiment(path).variants
    assert all(recipe.kconfig["SQUASHFS"] is True for recipe in variants.values())


def test_what_a_profile_is_trained_on_is_counted_and_there_once(tmp_path: Path) -> None:
    path = small(tmp_path, name="w.toml")
    (tmp_path / "x.toml").write_text(
        f'name = "x"\nsource = "s"\nbaseline = "a"\n[variants.a]\n[workload]\ntype = "programs"\nuse = ["{path}"]\n'
    )
    with pytest.raises(NoTrainingLoad, match="has nothing that the emulated PMU counts"):
        training_load((str(tmp_path / "x.toml"),))
    with pytest.raises(NoTrainingLoad, match="trained on sysbench"):
        training_load(("sysbench",))
    with pytest.raises(OneProgramTwice, match="the program redis twice"):
        training_load(("redis", "redis"))


def test_a_number_may_stand_in_json_in_a_table_or_where_kdyno_judge_finds_it() -> None:
    document = b'{"jobs": [{"read": {"iops": 12.5, "name": "x", "on": true}}]}'
    assert number(document, json="jobs[0].read.iops") == 12.5
    table = b"Device r/s w/s\nvda 1.5 2.5\nvdb 3 4\n"
    assert number(table, column="w/s", row="vda") == 2.5
    assert number(b'"test","rps"\nSET, 7\n'.replace(b'"', b""), column="rps", row="SET") == 7
    stress = b"stress-ng: metrc: [1] pipe 87143 1.01 0.09 0.50 86441.28 146863.62\n"
    assert number(stress, format="stress-ng", series="pipe") == 86441.28


@pytest.mark.parametrize(
    ("output", "metric", "why"),
    [
        (b"{", {"json": "a"}, "not a JSON document"),
        (b'{"a": 1, "a": 2}', {"json": "a"}, "a key is there twice"),
        (b"[" * 100_000, {"json": "a"}, "not a JSON document"),
        (b'{"a": [1]}', {"json": "a[1]"}, "has no \\[1\\] where"),
        (b'{"a": {}}', {"json": "a"}, "is not a number"),
        (b'{"a": true}', {"json": "a"}, "is not a number"),
        (b'{"a": NaN}', {"json": "a"}, "is not a positive number"),
        (b"A B\nx 1\nA B\n", {"column": "B", "row": "x"}, "2 lines have the heading B"),
        (b"A B\nx 1\nx 2\n", {"column": "B", "row": "x"}, "2 rows begin with x"),
        (b"A B\nx\n", {"column": "B", "row": "x"}, "ends before the column B"),
        (b"A B\n", {"column": "C", "row": "x"}, "no lines have the heading C"),
        (b"hello", {"format": "stress-ng", "series": "pipe"}, "the output has nothing"),
        (b"hello", {"format": "no-such", "series": "pipe"}, "unknown format no-such"),
    ],
)
def test_a_number_that_is_not_there_once_is_broken(output: bytes, metric: dict[str, str], why: str) -> None:
    with pytest.raises(NotRead, match=why):
        number(output, **metric)


def test_output_that_was_cut_is_no_document() -> None:
    metric = METRIC.validate_python({"json": "a", "unit": "s", "direction": "lower"})
    with pytest.raises(NotRead, match=f"more than {MOST_STDOUT:,} bytes"):
        metric.number(Output(step(stdout=b'{"a": 1}', stdout_is_cut=True)))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("command", "comand"), "`command` is missing; unknown key `comand`; did you mean `command`"),
        (('"small"', '"Small one"'), "`name`: a name is expected"),
        (("runs = 2", "runs = 0"), "`runs`: it must be at least 1"),
        (("system = {", "system = { unit = 's', of = 1,"), "metrics.system.time.unit|metrics.system"),
        (("runs = 2", "report = ''"), "`report`: a text is expected that is not empty"),
        (('{ time = "system" }', '{ share = "user" }'), "metrics.system.share"),
        (("runs = 2", "unpack = { '/etc/x.tar' = '.' }"), "unpack./etc/x.tar"),
        (("runs = 2", "unpack = { 'usr/x.tar' = '(' }"), "not a regular expression"),
        (("[metrics]", "[metrics"), "not TOML"),
    ],
)
def test_a_file_that_is_no_workload_is_refused_by_name(tmp_path: Path, change: tuple[str, str], why: str) -> None:
    with pytest.raises(WorkloadUnfit, match=why):
        definition(str(small(tmp_path, SMALL.replace(*change))))


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoSuchWorkload, match="no workload smal"):
        definition("smal")
    with pytest.raises(WorkloadUnfit, match="No such file"):
        definition("./smal.toml", tmp_path)
    with pytest.raises(NoSuchParameter, match="no parameter hoe"):
        used(tmp_path, parameters={"small": {"hoe": 1}}).part("wall")
    with pytest.raises(NotInUse, match="names fio"):
        used(tmp_path, parameters={"fio": {}})
    with pytest.raises(OneNameTwice, match="the name small"):
        ProgramsWorkload(use=("./small.toml", "small.toml")).located(small(tmp_path).parent)
    wall = small(tmp_path, SMALL.replace("runs = 2", 'lanes = ["wall"]'))
    with pytest.raises(WorkloadOfOtherLane, match="no meaning in the lane model"):
        ProgramsWorkload(use=(str(wall),)).located(tmp_path).part("model")


def test_a_program_that_is_measured_as_a_whole_is_refused_in_a_lane_that_counts_on_one_cpu(tmp_path: Path) -> None:
    whole = small(tmp_path, f'{SMALL}\n[operation]\nname = "run"\ncount = [1]')
    workload = ProgramsWorkload(use=(str(whole),)).located(tmp_path)
    with pytest.raises(RunsOnAllCpus, match="small cannot be measured in the lane pmu") as refused:
        workload.part("pmu")
    assert 'set lane = "wall"' in refused.value.advice
    assert workload.part("wall").programs[0].measured


def test_a_program_that_prints_its_numbers_is_measured_in_a_lane_that_counts_on_one_cpu(tmp_path: Path) -> None:
    [program] = used(tmp_path).part("pmu").programs
    assert (program.name, program.measured) == ("small", None)


def test_a_workload_may_be_in_use_twice_under_two_names_with_parameters_of_their_own(tmp_path: Path) -> None:
    twice = ProgramsWorkload(
        use=("./small.toml", "ill=./small.toml", "pipe=stress-ng"), parameters={"ill": {"how": "ill"}}
    ).located(small(tmp_path).parent)
    part = twice.part("model")
    assert [(program.name, program.environment.get("how")) for program in part.programs] == [
        ("small", "well"),
        ("ill", "ill"),
        ("pipe", None),
    ]
    assert [benchmark.name for benchmark in twice.describe_benchmarks(AgentReport())][:4] == [
        "small.rate",
        "small.system",
        "ill.rate",
        "ill.system",
    ]
    with pytest.raises(OneNameTwice, match="the name ill"):
        ProgramsWorkload(use=("ill=./small.toml", "ill=stress-ng")).located(tmp_path)


@pytest.mark.parametrize(
    ("metrics", "parts"),
    [
        ('e = { time = "elapsed" }\nu = { time = "user" }\ns = { time = "system" }', {"u", "s"}),
        ('e = { time = "elapsed" }\nk = { share = "kernel" }', {"k"}),
        ('u = { time = "user" }\ns = { time = "system" }', set()),
        (
            'e = { time = "elapsed" }\nu = { time = "user", part = false }\nk = { share = "kernel", part = false }',
            set(),
        ),
        ('[operation]\nname = "o"\ncount = [2]\n[metrics]\ns = { time = "system" }', {"s"}),
        ('a = { json = "a", unit = "s", direction = "lower", part = true }\ne = { time = "elapsed" }', {"a"}),
    ],
)
def test_processor_time_and_shares_are_parts_of_what_the_program_takes(
    tmp_path: Path, metrics: str, parts: set[str]
) -> None:
    before = "" if metrics.startswith("[") else "[metrics]\n"
    path = small(tmp_path, f'name = "small"\ndescription = "x"\ncommand = "true"\n{before}{metrics}\n')
    workload = ProgramsWorkload(use=(str(path),)).located(tmp_path)
    described = workload.describe_benchmarks(AgentReport())
    assert {one.name.removeprefix("small.") for one in described if one.is_part} == parts


def test_a_server_counts_once_in_the_mean_by_its_rate_and_not_by_its_latencies(tmp_path: Path) -> None:
    workload = ProgramsWorkload(use=("nginx", "redis", "pgbench", "fio")).located(tmp_path)
    described = workload.describe_benchmarks(AgentReport())
    assert {one.name for one in described if not one.is_part} == {
        "nginx.throughput",
        "redis.set",
        "redis.get",
        "pgbench.throughput",
        "fio.read_iops",
        "fio.write_iops",
    }


def test_an_experiment_records_its_workloads_and_asks_the_kernel_for_what_they_need(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(
        'name = "x"\nsource = "debian:linux-source-6.12"\nbaseline = "a"\n'
        '[variants.a]\nkconfig = { SQUASHFS = "m" }\n[workload]\ntype = "programs"\nuse = ["hackbench", "pgbench"]\n'
    )
    experiment = load_experiment(path)
    assert isinstance(experiment.workload, ProgramsWorkload)
    assert [workload.name for workload in experiment.workload.definitions] == ["hackbench", "pgbench"]
    kconfig = experiment.variants["a"].kconfig
    assert kconfig["OVERLAY_FS"] is True and kconfig["SYSVIPC"] is True and kconfig["SQUASHFS"] == "m"
    assert isinstance(experiment.machine, QemuConfig) and experiment.machine.memory_mb == 1024


def test_a_model_lane_has_one_cpu_whatever_a_workload_wishes() -> None:
    assert QemuConfig().at_least(Needs(memory_mb=100), 4).cpus == 1
    assert QemuConfig(lane="wall").at_least(Needs(memory_mb=100), 4) == QemuConfig(lane="wall", cpus=4)


def test_a_root_is_an_archive_without_documentation_and_with_the_files_of_a_system() -> None:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for name in ("./usr/share/doc/x", "./usr/bin/x", "./etc/passwd", "./dev/null"):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = 1, 77
            tar.addfile(entry, io.BytesIO(b"x"))
    packed = io.BytesIO()
    filtered(io.BytesIO(plain.getvalue()), packed, {})
    with tarfile.open(fileobj=io.BytesIO(packed.getvalue())) as tar:
        members = {member.name.removeprefix("./"): member for member in tar}
    assert set(members) == {"usr/bin/x", "usr/bin/awk", *FILES}
    assert {member.mtime for member in members.values()} == {0}


def with_archive(content: bytes) -> io.BytesIO:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        entry = tarfile.TarInfo("./usr/src/linux.tar.xz")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    return io.BytesIO(plain.getvalue())


def tree_as_xz(*names: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as tar:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.uid = 1, 77, 1000
            tar.addfile(entry, io.BytesIO(b"x"))
        pipe = tarfile.TarInfo("linux/mm/pipe")
        pipe.type = tarfile.FIFOTYPE
        tar.addfile(pipe)
    return packed.getvalue()


def test_of_an_archive_in_a_package_a_root_gets_the_members_that_are_wanted_in_its_place() -> None:
    archive = tree_as_xz("linux/mm/slub.c", "linux/drivers/gpu.c", "linux/mm/../../../escape.c", "/linux/mm/root.c")
    packed = io.BytesIO()
    filtered(with_archive(archive), packed, {"usr/src/linux.tar.xz": "^/?linux/mm/"})
    with tarfile.open(fileobj=io.BytesIO(packed.getvalue())) as tar:
        members = {member.name.removeprefix("./"): (member.mtime, member.uid) for member in tar}
    assert set(members) == {"usr/src/linux/mm/slub.c", "usr/bin/awk", *FILES}
    assert members["usr/src/linux/mm/slub.c"] == (0, 0)


@pytest.mark.parametrize(
    ("content", "unpack", "why"),
    [
        (b"no archive", {"usr/src/linux.tar.xz": "."}, "not a readable archive"),
        (tree_as_xz("linux/mm/slub.c")[:100], {"usr/src/linux.tar.xz": "."}, "not a readable archive"),
        (tree_as_xz("linux/mm/slub.c"), {"usr/src/linux.tar.xz": "^fs/"}, "no member matches"),
        (tree_as_xz("linux/mm/slub.c"), {"usr/src/linux.tar.gz": "."}, "no package contains it"),
    ],
)
def test_an_archive_that_cannot_be_unpacked_is_named(content: bytes, unpack: dict[str, str], why: str) -> None:
    with pytest.raises(NotUnpacked, match=why):
        filtered(with_archive(content), io.BytesIO(), unpack)


def test_only_a_job_with_programs_in_it_carries_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root.squashfs"
    root.write_bytes(b"hsqs-a-root")
    workload = definition("hackbench")
    with_root = Job(lane="wall", iterations=1, programs=(workload.program({}, "wall"),))
    without = Job(lane="wall", iterations=1)
    assert b"hsqs-a-root" in initramfs([], with_root, root)
    assert b"hsqs-a-root" not in initramfs([], without, root)


def test_a_package_that_is_no_name_or_not_here_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnfitPackage, match="not the name of a Debian package"):
        guest_root(["--setup-hook=reboot"], {}, State(tmp_path), Talk(quiet=True))
    with pytest.raises(NotInstalled, match="kdyno-no-such-package"):
        LocalMachine(LocalConfig()).provide(
            Needs(packages=("kdyno-no-such-package",)), State(tmp_path), Talk(quiet=True)
        )


def test_experiments_on_builds_and_specialised_kernels_have_the_same_kernels() -> None:
    files = Path(__file__).parents[3] / "experiments"
    specialised, builds, patch = (
        load_experiment(files / f"{name}.toml").variants for name in ("specialised", "builds", "compiler-patch")
    )
    for name, recipe in builds.items():
        assert recipe.built == specialised[name].built
    assert patch["generic"].built == specialised["gcc"].built
    assert patch["clang"].built == specialised["clang"].built


@pytest.mark.parametrize(
    "workload",
    [
        'type = "programs"\nuse = ["hackbench"]\n',
        'type = "command"\ncommand = ["true"]\n[workload.metrics]\nelapsed = { unit = "s", time = "elapsed" }\n',
    ],
    ids=["programs", "a command"],
)
def test_a_kernel_that_starts_programs_has_unix_sockets(tmp_path: Path, workload: str) -> None:
    """Without them the agent can't hear of a program that can't be executed, and starts none."""
    path = tmp_path / "e.toml"
    path.write_text(f'name = "x"\nsource = "s"\nbaseline = "a"\n[variants.a]\n[workload]\n{workload}')
    kconfig = load_experiment(path).variants["a"].kconfig
    assert kconfig["NET"] is True and kconfig["UNIX"] is True
