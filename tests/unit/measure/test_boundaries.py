"""Every boundary between processes has one definition, or both sides are held against each other here.

The Rust side is read from what its program prints. What no program prints is in `formats.json` of its crate, which a
test in Rust compares with the types and constants.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from pydantic import BaseModel

from kdyno.base.installed import find_program
from kdyno.base.lanes import COUNTED_LANE, LANES, PMU_CLOCKS
from kdyno.boot.console import diagnose
from kdyno.boot.host.turn import Turn, Turned
from kdyno.boot.initramfs import initramfs
from kdyno.boot.qemu import PORT_MISSING
from kdyno.boot.qemu_config import QemuConfig
from kdyno.boot.qemu_options import COUNTERS_PORT, PORT
from kdyno.cli.main import main, make_parser
from kdyno.cli.schemas import FORMATS, schema
from kdyno.cli.verbs import VERBS
from kdyno.kernel import lkd
from kdyno.kernel.recipe import Recipe
from kdyno.measure.cycles.evaluate import Role
from kdyno.measure.cycles.events import EVENTS, WITH_USER_CODE
from kdyno.measure.cycles.family import families, load_family
from kdyno.measure.cycles.kernel_fit import KernelCalibrationReport, calibrate_kernel
from kdyno.measure.cycles.kernel_measured import Validation
from kdyno.measure.cycles.measure import QEMU_USER, find_probe
from kdyno.measure.cycles.probe import MarkedProgram, ProgramList, TimedProgram
from kdyno.measure.guest import agent as agents
from kdyno.measure.guest import pmu_limits, pmu_magic, pmu_parts, pmu_record, symbols
from kdyno.measure.guest.agent import find_agent
from kdyno.measure.guest.catalogue import Catalogue, OtherAgent, parse_catalogue
from kdyno.measure.guest.job import PROTOCOL, Job, Program, Soak, TestOrder
from kdyno.measure.guest.pmu import Events, PmuConfig, Scope, find_plugin, plugin_words
from kdyno.measure.guest.soak import MOST_FAILURES, MOST_TAIL, MemoryField
from kdyno.measure.guest.stream import read_stream
from kdyno.measure.guest.stream_records import BenchmarkRecord, parse_record
from kdyno.measure.workload.lmbench import LmbenchWorkload
from kdyno.measure.workload.loads import LoadFaults, LoadMemory, LoadMetric, LoadOutcome, LoadPages, LoadPageSize
from kdyno.profile.coverage import Coverage
from kdyno.profile.pgod import listing_of
from tests.unit import cycles_specimen, kernel_specimen, pmu_specimen, specimen

ROOT = Path(__file__).parents[3]
CRATES = ROOT / "crates"


def formats(crate: str) -> Any:
    return json.loads((CRATES / crate / "formats.json").read_text())


def printed(program: Path, *words: str) -> str:
    return subprocess.run([program, *words], capture_output=True, text=True, check=True).stdout


def check(value: Any, name: str) -> None:
    jsonschema.Draft202012Validator(schema(name)).validate(value)


# The agent: lanes, tests, job, stream.


@pytest.fixture(scope="module")
def agent() -> Catalogue:
    return agents.catalogue()


def test_agent_and_kdyno_have_the_same_lanes(agent: Catalogue) -> None:
    ours = [
        (lane.name, lane.clock.cost_unit, lane.clock.bandwidth_unit, lane.iterations, lane.is_icount)
        for lane in LANES.values()
    ]
    assert [tuple(row.model_dump().values()) for row in agent.lanes] == ours


def test_a_record_has_the_units_of_a_lane_and_the_emulated_pmu_others_than_its_lane() -> None:
    units = {unit for lane in LANES.values() for unit in lane.clock.units}
    assert set(get_args(BenchmarkRecord.model_fields["unit"].annotation)) == units
    assert PMU_CLOCKS["instructions"].cost_unit == COUNTED_LANE.clock.cost_unit
    assert PMU_CLOCKS["cycles"].cost_unit not in COUNTED_LANE.clock.units


def test_a_median_of_the_default_iterations_is_one_of_them() -> None:
    assert all(row.iterations % 2 for row in LANES.values())


def test_what_the_agent_says_it_can_do_has_a_schema(agent: Catalogue) -> None:
    check(json.loads(printed(find_agent(), "list", "--json")), "catalogue")
    names = [benchmark.name for test in agent.tests for benchmark in test.benchmarks]
    assert len(set(names)) == len(names)
    for test in agent.tests:
        for param in test.params:
            assert tuple(param.defaults) == tuple(LANES)
            assert all(param.min <= value <= param.max for value in param.defaults.values())


def test_an_agent_of_another_release_is_refused(agent: Catalogue) -> None:
    with pytest.raises(OtherAgent, match="tests: it is missing"):
        parse_catalogue(agent.model_dump_json(exclude={"tests"}))


def test_the_port_and_the_place_of_the_job_are_those_that_the_agent_looks_for(agent: Catalogue) -> None:
    assert agent.port == PORT
    archive = initramfs([], Job(lane="wall", iterations=1))
    assert agent.job.removeprefix("/").encode() + b"\0" in archive
    assert formats("agent")["no_port"] == PORT_MISSING
    assert formats("proto")["counters_port"] == COUNTERS_PORT


def test_what_the_agent_says_on_a_console_is_known_as_its_own() -> None:
    refused = subprocess.run([find_agent(), "nonsense"], capture_output=True, text=True, check=False)
    assert str(diagnose(refused.stderr)).startswith("agent: kdyno-agent: there is no 'nonsense'")


def chosen(*words: str) -> list[str]:
    """The tests that these words of a workload stand for."""
    return [order.name for order in agents.test_orders(words, {})]


@pytest.mark.parametrize(("word", "near"), [("lmbnch", "lmbench"), ("al", "all"), ("lat_pip", "lat_pipe")])
def test_a_word_that_stands_for_nothing_is_refused_with_the_nearest(word: str, near: str) -> None:
    with pytest.raises(agents.UnknownTest) as error:
        chosen(word)
    assert f"did you mean {near}?" in error.value.advice


def test_parameters_belong_to_a_test_not_to_a_suite() -> None:
    with pytest.raises(agents.UnknownTest, match="the test lmbench"):
        agents.test_orders(("all",), {"lmbench": {"bytes": 1}})


def test_lmbench_stands_for_the_19_tests_and_all_for_every_test(agent: Catalogue) -> None:
    assert len(chosen("lmbench")) == 19
    assert chosen("lmbench") == [test.name for test in agent.tests if test.suite == "lmbench"]
    assert chosen("all") == [test.name for test in agent.tests]


def test_general_stands_for_the_loads_to_train_with_and_they_are_no_part_of_lmbench(agent: Catalogue) -> None:
    loads = chosen("general")
    assert loads == [test.name for test in agent.tests if test.suite == "general"]
    assert {"general_shell", "general_build", "general_net"} <= set(loads)
    assert not set(loads) & set(chosen("lmbench"))


def test_a_test_outside_the_suite_is_among_all_and_not_among_lmbench(
    agent: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = agent.tests[0].model_copy(update={"name": "other", "suite": None})
    monkeypatch.setattr(
        "kdyno.measure.guest.agent.catalogue", lambda: agent.model_copy(update={"tests": (*agent.tests, other)})
    )
    assert chosen("all") == [*chosen("lmbench", "general"), "other"]
    assert chosen("other", "lmbench", "other") == [*chosen("lmbench"), "other"]


def test_a_job_has_the_fields_that_the_agent_reads() -> None:
    proto = formats("proto")
    models: dict[str, type[BaseModel]] = {"Job": Job, "JobTest": TestOrder, "Program": Program, "Soak": Soak}
    assert proto["fields"] == {name: list(model.model_fields) for name, model in models.items()}
    (largest,) = (part.le for part in QemuConfig.model_fields["icount_shift"].metadata if hasattr(part, "le"))
    assert proto["largest_shift"] == largest
    assert proto["version"] == PROTOCOL


def test_every_record_that_the_agent_documents_is_read() -> None:
    # Some come only from a guest: the lines are those that a test in Rust compares with what it writes.
    proto = formats("proto")
    lines = [json.loads(line) for line in proto["records"]]
    assert {line["type"] for line in lines} == set(proto["types"])
    for line in lines:
        check(line, "record")
        assert parse_record(json.dumps(line).encode() + b"\n", 0).v == PROTOCOL


def test_a_stream_of_the_agent_is_read(tmp_path: Path) -> None:
    stream = tmp_path / "stream.jsonl"
    stream.write_text(printed(find_agent(), "run", "bw_pipe", "lat_sig", "--iterations", "1", "--json"))
    job = Job(lane="wall", iterations=1, tests=agents.test_orders(["bw_pipe", "lat_sig"], {}))
    report = read_stream(stream, agents.expected_records(job))
    assert report.fault is None
    assert report.complete and [benchmark.name for benchmark in report.benchmarks] == [
        "bw_pipe",
        "lat_sig.install",
        "lat_sig.deliver",
    ]


# The plugin: options, symbols, families, events, records.


def test_the_plugin_knows_the_options_that_it_is_given() -> None:
    pmu = formats("pmu")
    words = plugin_words(Path("p"), out=Path("o"), events="all", symbols=Path("s"), image="i", geometry=Path("g"))[
        1
    ].split(",")[1:]
    assert {word.partition("=")[0] for word in words} == set(pmu["options"])
    assert pmu["events"] == list(get_args(Events))
    assert pmu["scopes"] == [*get_args(Scope), "user"]


def test_the_plugin_knows_the_roles_of_functions() -> None:
    pmu = formats("pmu")
    assert set(pmu["roles"]) == {"-", *symbols.ROLES}
    assert set(pmu["needed_roles"]) == set(symbols.NEEDED)


def test_kdyno_and_the_plugin_count_the_same_events_in_the_same_order() -> None:
    # A record names only those that were counted.
    model = formats("model")
    assert tuple(model["events"]) == EVENTS + WITH_USER_CODE
    assert model["kernel_events"] == len(EVENTS)


def test_the_plugin_takes_every_family_that_kdyno_takes() -> None:
    # That it reads kdyno's own families is tested in Rust.
    model = formats("model")
    frozen = schema("family")
    for path, low, high in model["ranges"]:
        place = frozen
        for name in path.split("."):
            place = place["properties"][name]
            place = frozen["$defs"][place["$ref"].rpartition("/")[2]] if "$ref" in place else place
        assert (place["minimum"], place["maximum"]) == (low, high), path
    tables = model["fields"]
    geometry = set(tables.pop("Geometry"))
    assert geometry - {"l2_itlb"} <= set(frozen["required"])
    assert "l2_itlb" in frozen["properties"]
    assert tables == {name: list(frozen["$defs"][name]["properties"]) for name in tables}


def test_the_header_of_a_record_has_the_keys_that_are_read() -> None:
    # test_a_record_of_the_plugin_is_read needs a QEMU for programs, which few hosts have.
    pmu = formats("pmu")
    assert {name: set(keys) for name, keys in pmu["fields"].items()} == {
        "Header": {*pmu_record._Header.model_fields} - {"benchmarks", "merged"},
        "Unclosed": {*pmu_record._Open.model_fields},
        "Excess": {*pmu_record._GaveUp.model_fields},
    }
    assert (pmu["magic"].encode(), str(pmu["version"]).encode()) == (pmu_magic.MAGIC, pmu_record.VERSION)


def test_the_plugin_writes_no_record_that_is_too_large_to_be_read() -> None:
    # Where the plugin has a limit of a record's, it gives up instead, and says so. A sequence is cut where it is too
    # long, and has no more blocks than steps.
    pmu = formats("pmu")
    limits = pmu["limits"] | {"trace_steps": pmu["trace_steps"], "trace_blocks": pmu["trace_steps"]}
    assert {name: limits[name] for name in pmu_limits.MOST} == pmu_limits.MOST
    assert pmu["longest_name"] == pmu_limits.LONGEST_NAME
    plenty = LmbenchWorkload.model_json_schema()["properties"]["iterations"]["anyOf"][0]["maximum"]
    assert plenty * sum(len(test.benchmarks) for test in agents.catalogue().tests) <= pmu_limits.MOST["iterations"]


def test_the_numbers_in_a_record_mean_what_the_plugin_means() -> None:
    pmu = formats("pmu")
    assert tuple(formats("model")["contexts"]) == pmu_parts.CONTEXTS
    assert pmu["branch_kinds"] == [
        ["Conditional", pmu_parts.CONDITIONAL],
        ["Jump", pmu_parts.JUMP],
        ["Call", pmu_parts.CALL],
        ["Return", pmu_parts.RETURN],
        ["IndirectJump", pmu_parts.INDIRECT_JUMP],
        ["IndirectCall", pmu_parts.INDIRECT_CALL],
    ]
    assert pmu["frame_kinds"] == [
        ["Call", pmu_parts.STACK_CALL],
        ["Exception", pmu_parts.STACK_EXCEPTION],
        ["Interrupt", pmu_parts.STACK_INTERRUPT],
        ["Entry", pmu_parts.STACK_ENTRY],
    ]
    assert pmu["unknown"] == pmu_parts.UNKNOWN


@pytest.mark.parametrize("events", get_args(Events))
def test_a_record_of_the_plugin_is_read(tmp_path: Path, events: str) -> None:
    if shutil.which(QEMU_USER) is None:
        pytest.skip(f"needs {QEMU_USER}")
    record = tmp_path / "record"
    options = [f"out={record}", "scope=user", f"events={events}"]
    options += [f"geometry={load_family('generic').path}"] if events != "edges" else []
    words = ",".join([str(find_plugin()), *options])
    program = ["run", "atomic-add", "--marked"]
    done = subprocess.run(
        [QEMU_USER, "-plugin", words, find_probe(), *program], capture_output=True, text=True, check=False
    )
    if "unknown option 'plugin'" in done.stderr:
        pytest.skip(f"needs a {QEMU_USER} with plugins")
    counts = pmu_record.read_pmu_record(record)
    assert (counts.scope, counts.events, counts.family) == ("user", events, "generic" if events != "edges" else None)
    assert counts.names == EVENTS[: len(counts.names)]
    assert (len(counts.names) == len(EVENTS)) == (events != "edges")
    line = json.loads(done.stdout)
    assert set(counts.regions[line["benchmark"]].iterations) == set(range(line["times"]))


# The probe.


def test_the_list_of_the_probe_is_read() -> None:
    listed = printed(find_probe(), "list", "--json")
    check(json.loads(listed), "probe-list")
    programs = ProgramList.model_validate_json(listed).programs
    assert {program.role for program in programs} == set(get_args(Role))


def test_the_lines_of_the_probe_are_read() -> None:
    timed, marked = (printed(find_probe(), "run", "atomic-add", *words) for words in (["--times", "1"], ["--marked"]))
    for line in (timed, marked):
        check(json.loads(line), "probe-line")
    assert TimedProgram.model_validate_json(timed).cycles > 0
    assert MarkedProgram.model_validate_json(marked).benchmark == 0


# The loads of published accounts.


def test_what_loads_print_is_read_and_has_a_schema(tmp_path: Path) -> None:
    program = find_program("kdyno-loads", "this test")
    file = tmp_path / "file"
    for load, *words in (
        ["matmul", "--size", "16"],
        ["transpose", "--size", "16", "--threads", "2"],
        ["fft", "--size", "64"],
        ["fft2", "--size", "8"],
        ["himeno", "--size", "XS", "--iterations", "2"],
        ["sieve", "--bytes", "10K", "--processes", "2", "--repeat", "3"],
        ["mandelbrot", "--size", "16", "--iterations", "50"],
        ["fault", "--bytes", "4M"],
        ["sources", "--directory", str(tmp_path / "library"), "--count", "2"],
        ["loopio", "--file", str(file), "--bytes", "64K"],
    ):
        line = printed(program, load, *words, "--json")
        check(json.loads(line), "load")
        outcome = LoadOutcome.model_validate_json(line)
        assert (outcome.name, line.count("\n")) == (load, 1)
        assert set(json.loads(line)) == set(LoadOutcome.model_fields)
        assert all(len(metric.values) == outcome.parameters["repeat"] for metric in outcome.metrics)
    assert not file.exists()


def test_the_fields_of_the_parts_of_an_outcome_are_those_of_the_loads() -> None:
    models: dict[str, type[BaseModel]] = {
        "Metric": LoadMetric,
        "Faults": LoadFaults,
        "OfSize": LoadPageSize,
        "Given": LoadPages,
        "Memory": LoadMemory,
    }
    named = {name: set(fields) for name, fields in formats("loads").items()}
    assert named == {name: {*model.model_fields} for name, model in models.items()}


# The program that keeps a live machine's counters.


def test_the_listing_of_kdyno_pgod_is_read_and_its_unit_gives_it_the_directory_that_it_looks_in(tmp_path: Path) -> None:
    program = find_program("kdyno-pgod", "this test")
    listed = printed(program, "status", "--json", "--directory", str(tmp_path))
    check(json.loads(listed), "pgod-listing")
    assert listing_of(listed.encode(), "here").runs == ()
    unit = (ROOT / "src" / "kdyno" / "data" / "systemd" / "kdyno-pgod.service").read_text()
    [directory] = re.findall(r"^StateDirectory=(.*)$", unit, re.MULTILINE)
    [words] = re.findall(r"^ExecStart=/usr/local/sbin/kdyno-pgod (run .*)$", unit, re.MULTILINE)
    assert f"(/var/lib/{directory})" in printed(program, "--help")
    nowhere = ["--gcov", str(tmp_path), "--directory", str(tmp_path / "state")]
    done = subprocess.run([program, *words.split(), *nowhere], capture_output=True, text=True, check=False)
    assert (done.returncode, "holds no .gcda file" in done.stderr) == (3, True)


# The linker's delegate.


def test_the_delegate_makes_the_format_that_kdyno_counts_on(tmp_path: Path) -> None:
    link = tmp_path / "lkd"
    link.symlink_to(lkd.find_lkd())
    command = [str(link), "-T", "arch/x86/kernel/vmlinux.lds", "-o", "vmlinux"]

    def complaint(variables: dict[str, str]) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables, cwd=tmp_path)
        assert done.returncode == 1
        return str(done.stderr)

    variables = {"KDYNO_LAYOUT_FORMAT": lkd.FORMAT, "KDYNO_LAYOUT_SEED": "1", "KDYNO_LD": "ld"}
    assert f"KDYNO_LAYOUT_FORMAT must be {lkd.FORMAT}:" in complaint({lkd.SEED: "1"})
    assert "KDYNO_LAYOUT_SEED must be a number" in complaint({"KDYNO_LAYOUT_FORMAT": lkd.FORMAT, lkd.SEED: "x"})
    assert "can't read arch/x86/kernel/vmlinux.lds" in complaint(variables)


def test_the_delegate_is_asked_by_the_names_that_it_knows_and_leaves_its_files_where_kdyno_looks() -> None:
    # What it prints into the script is compared in test_kernel_layouts, by linking the toy kernel.
    names = {"script": lkd.SCRIPT, "seed": lkd.SEED, "order": lkd.ORDER, "sections": lkd.SECTIONS}
    assert formats("delegate") == names


# What verbs print.

COMMAND = re.compile(r"`kdyno ([a-z]+(?:-[a-z]+)*(?: [a-z]+)?)[^`]* --json`")
"""A verb, and its action if it has one."""


def with_json(parser: argparse.ArgumentParser, words: str = "") -> set[str]:
    """Verbs and actions that have --json."""
    options = {option for action in parser._actions for option in action.option_strings}
    verbs = {words} if "--json" in options else set()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                verbs |= with_json(sub, f"{words} {name}".strip())
    return verbs


def test_a_soak_has_the_fields_and_limits_that_the_agent_goes_by() -> None:
    agent = formats("agent")
    assert (agent["most_told"], agent["tail"]) == (MOST_FAILURES, MOST_TAIL)
    assert tuple(agent["memory_fields"]) == get_args(MemoryField)


def test_whatever_is_printed_as_json_has_a_schema_that_says_which_verb_prints_it() -> None:
    commands = [command for row in FORMATS.values() for command in COMMAND.findall(row.what)]
    assert set(commands) == with_json(make_parser(VERBS))


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["march", "list"], "march-list"),
        (["doctor", "--host"], "doctor-host"),
        (["doctor"], "doctor"),
        (["profile", "show", "RECORD"], "profile-show"),
        (["profile", "show", "RECORD", "--calls"], "profile-show"),
        (["judge", str(ROOT / "tests" / "data" / "foreign" / "compiler_patch.csv")], "judge"),
        (["scaling", str(ROOT / "tests" / "data" / "scaling" / "sieve.csv"), "--to", "32"], "scaling"),
        (["calibrate", "--family", "generic", "-q"], "calibrate"),
    ],
    ids=" ".join,
)
def test_what_a_verb_prints_obeys_its_schema(
    words: list[str],
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("kdyno.measure.cycles.measure.measure", lambda *_args, **_more: cycles_specimen.measured())
    record = str(pmu_specimen.write(tmp_path / "record"))
    words = [record if word == "RECORD" else word for word in words]
    main([*words, "--json", "--state", str(tmp_path / "state")])
    check(json.loads(capsys.readouterr().out), name)


def test_what_verbs_print_of_these_obeys_its_schema() -> None:
    """Verbs that print them build kernels, set the host's knobs, or need LLVM."""
    image = specimen.image("gcc-O2", Recipe()).model_dump(mode="json")
    check({"gcc-O2": [image, image]}, "build")
    turn = Turn(knob="k", path="sys/k", before="0", wanted="1", outcome="set")
    check(Turned(turns=(turn,)).model_dump(mode="json"), "doctor-set")
    coverage = Coverage(1, 0.5, 2, 0.5, (("f", 0.5),), "llvm-profgen", ())
    check(json.loads(json.dumps(asdict(coverage))), "profile-cover")
    validation = Validation.from_measurement(kernel_specimen.measured(), cycles_specimen.family())
    check(validation.model_dump(mode="json"), "validate")
    calibration = calibrate_kernel(validation.measured, cycles_specimen.family())
    check(KernelCalibrationReport.from_calibration(calibration).model_dump(mode="json"), "calibrate-kernel")


def test_profiles_are_recorded_with_the_default_family_of_an_experiment() -> None:
    parser = make_parser({"profile"})
    assert parser.parse_args(["profile", "record", "IMAGE", "-o", "FILE"]).family == PmuConfig().family


def test_every_family_obeys_its_schema() -> None:
    import tomllib

    for name in families():
        check(tomllib.loads(load_family(name).path.read_text()), "family")
