"""Every boundary between processes has one definition, or both sides are held against each other here.

The Rust side is read from what its program prints. Where no program prints it, it is read from the source text.
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

from kdyno.base.installed import find_program
from kdyno.base.lanes import LANES, PMU_CLOCKS, Lane
from kdyno.boot.console import diagnose
from kdyno.boot.host.turn import Turn, Turned
from kdyno.boot.initramfs import initramfs
from kdyno.boot.qemu import PORT_MISSING
from kdyno.boot.qemu_config import QemuConfig
from kdyno.boot.qemu_options import COUNTERS_PORT, PORT
from kdyno.cli.main import main, make_parser
from kdyno.cli.schema import FORMATS
from kdyno.cli.schemas import PRINTED, READ, schema
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
from kdyno.measure.guest import pmu_limits, pmu_parts, pmu_record, symbols
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


def source(crate: str, file: str) -> str:
    return (CRATES / crate / "src" / file).read_text()


def body(text: str, kind: str, name: str) -> str:
    """What stands between the braces of a `struct` or an `enum` whose closing brace begins a line."""
    match = re.search(rf"^(?:pub )?{kind} {name}(?:<'a>)? \{{\n(.*?)^\}}", text, re.MULTILINE | re.DOTALL)
    assert match, f"{kind} {name}"
    return match[1]


def fields(text: str, struct: str) -> list[str]:
    return re.findall(r"^    (?:pub )?(\w+): ", body(text, "struct", struct), re.MULTILINE)


def variants(text: str, enum: str) -> list[str]:
    return re.findall(r"^    (\w+)", body(text, "enum", enum), re.MULTILINE)


def constant(text: str, name: str) -> str:
    match = re.search(rf"^(?:pub )?const {name}: [^=]+ = (.*);$", text, re.MULTILINE)
    assert match, name
    return match[1].strip('"').replace("_", "")


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
        (row.name, row.clock.cost_unit, row.clock.bandwidth_unit, row.iterations, row.icount) for row in LANES.values()
    ]
    assert [tuple(row.model_dump().values()) for row in agent.lanes] == ours
    assert tuple(LANES) == get_args(Lane)


def test_a_record_has_the_units_of_a_lane_and_the_pmu_others() -> None:
    units = {unit for row in LANES.values() for unit in (row.clock.cost_unit, row.clock.bandwidth_unit)}
    assert set(get_args(BenchmarkRecord.model_fields["unit"].annotation)) == units
    assert PMU_CLOCKS["instructions"].cost_unit == LANES["model"].clock.cost_unit
    assert PMU_CLOCKS["cycles"].cost_unit not in units


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
    with pytest.raises(OtherAgent, match="tests: Field required"):
        parse_catalogue(agent.model_dump_json(exclude={"tests"}))


def test_the_port_and_the_place_of_the_job_are_those_that_the_agent_looks_for(agent: Catalogue) -> None:
    assert agent.port == PORT
    archive = initramfs([], Job(lane="wall", iterations=1))
    assert agent.job.removeprefix("/").encode() + b"\0" in archive
    # Only an agent in a guest without the port says so.
    assert 'format!("no virtio port {name}")' in source("agent", "init/port.rs")
    assert f"no virtio port {PORT}" == PORT_MISSING
    assert f'COUNTERS_PORT: &str = "{COUNTERS_PORT}"' in source("proto", "counters.rs")


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
    # No program prints a job: the agent only reads them.
    text = source("proto", "job.rs")
    assert fields(text, "Job") == list(Job.model_fields)
    assert fields(text, "JobTest") == list(TestOrder.model_fields)
    assert fields(text, "Program") == list(Program.model_fields)
    assert fields(text, "Soak") == list(Soak.model_fields)
    (largest,) = (part.le for part in QemuConfig.model_fields["icount_shift"].metadata if hasattr(part, "le"))
    assert int(constant(text, "LARGEST_SHIFT")) == largest
    assert int(constant(source("proto", "lib.rs"), "VERSION")) == PROTOCOL


def test_every_record_that_the_agent_documents_is_read() -> None:
    # Some come only from a guest: the lines are those that a test in Rust compares with what it writes.
    lines = re.findall(r'^                r#"(\{"v":1,.*\})"#', source("proto", "line.rs"), re.MULTILINE)
    lines += re.findall(r'Record::\w+ \{.*?\}, r#"(\{"v":1,.*\})"#', source("proto", "line.rs"))
    assert {json.loads(line)["type"] for line in lines} == {
        name.lower() for name in variants(source("proto", "record.rs"), "Record")
    }
    for line in lines:
        check(json.loads(line), "record")
        assert parse_record(line.encode() + b"\n", 0).v == PROTOCOL


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
    # QEMU alone can load the plugin, and it prints no list.
    text = source("pmu", "options.rs")
    known = re.findall(r'"(\w+)"', text[text.index("const KEYS") :].split(";")[1])
    words = plugin_words(Path("p"), out=Path("o"), events="all", symbols=Path("s"), image="i", geometry=Path("g"))[
        1
    ].split(",")[1:]
    assert sorted(word.partition("=")[0] for word in words) == sorted(known)
    assert f'"{", ".join(get_args(Events))}"' in text
    assert f'"{", ".join(get_args(Scope))}, user"' in text


def test_the_plugin_knows_the_roles_of_functions() -> None:
    # As above.
    text = source("pmu", "symbols.rs")
    assert set(re.findall(r'^        "(.+)" => Role::', text, re.MULTILINE)) == {"-", *symbols.ROLES}
    required = re.search(r"in (\[\(Role::.*?\])", text)
    assert required and set(re.findall(r'"(\w+)"', required[1])) == set(symbols.NEEDED)


def test_kdyno_and_the_plugin_count_the_same_events_in_the_same_order() -> None:
    # As above; a record names only those that were counted.
    match = re.search(r"^events! \{\n(.*?)^\}", source("model", "events.rs"), re.MULTILINE | re.DOTALL)
    assert match and tuple(re.findall(r"\w+", match[1])) == EVENTS + WITH_USER_CODE
    assert "KERNEL_EVENTS: usize = Event::" + WITH_USER_CODE[0] in source("model", "events.rs")


def test_the_plugin_takes_every_family_that_kdyno_takes() -> None:
    # The plugin prints no ranges. That it reads kdyno's own families is tested in Rust.
    text = source("model", "geometry.rs")
    frozen = schema("family")
    table = re.findall(r'^            \("([\w.]+)", [^,]+, ([\d_]+), ([\d_]+)\),$', text, re.MULTILINE)
    assert len(table) > 10
    for path, low, high in table:
        place = frozen
        for name in path.split("."):
            place = place["properties"][name]
            place = frozen["$defs"][place["$ref"].rpartition("/")[2]] if "$ref" in place else place
        assert (place["minimum"], place["maximum"]) == (int(low), int(high.replace("_", ""))), path
    assert set(fields(text, "Geometry")) - {"l2_itlb"} <= set(frozen["required"])
    assert "l2_itlb" in frozen["properties"]
    for struct, key in {
        "Frontend": "Frontend",
        "Latency": "Latency",
        "Predictor": "Predictor",
        "Prefetcher": "Prefetcher",
        "Tlb": "Tlb",
    }.items():
        assert fields(text, struct) == list(frozen["$defs"][key]["properties"])


def test_the_header_of_a_record_has_the_keys_that_are_read() -> None:
    # As above; test_a_record_of_the_plugin_is_read needs a QEMU for programs, which few hosts have.
    text = source("pmu", "record.rs")
    header = pmu_record._Header.model_fields
    assert {*fields(text, "Header")} == {*header} - {"benchmarks", "merged"}
    assert fields(text, "Unclosed") == list(pmu_record._Open.model_fields)
    assert fields(source("pmu", "limits.rs"), "Excess") == list(pmu_record._GaveUp.model_fields)
    assert constant(text, "VERSION").encode() == pmu_record.VERSION
    assert f'"{pmu_record.MAGIC.decode()}{{VERSION}}' in text


def test_the_plugin_writes_no_record_that_is_too_large_to_be_read() -> None:
    # As above. Where the plugin has a limit of a record's, it gives up instead, and says so.
    text = source("pmu", "limits.rs")
    rows = re.findall(r"^    (\w+) = ([\d_]+)(?: << (\d+))?,$", text, re.MULTILINE)
    limits = {name: int(number) << int(shift or "0") for name, number, shift in rows}
    assert len(limits) > len(pmu_limits.MOST)
    # A sequence is cut where it is too long, and has no more blocks than steps.
    [bits] = re.findall(r"pub const TRACE_STEPS: usize = 1 << (\d+);", text)
    limits |= {"trace_steps": 1 << int(bits), "trace_blocks": 1 << int(bits)}
    assert {name: limits[name] for name in pmu_limits.MOST} == pmu_limits.MOST
    assert int(constant(source("pmu", "symbols.rs"), "LONGEST_NAME")) == pmu_limits.LONGEST_NAME
    plenty = LmbenchWorkload.model_json_schema()["properties"]["iterations"]["anyOf"][0]["maximum"]
    assert plenty * sum(len(test.benchmarks) for test in agents.catalogue().tests) <= pmu_limits.MOST["iterations"]


def test_the_numbers_in_a_record_mean_what_the_plugin_means() -> None:
    # As above.
    contexts = variants(source("model", "events.rs"), "Context")
    assert tuple(name.lower() for name in contexts) == pmu_parts.CONTEXTS
    kinds = ("Conditional", "Jump", "Call", "Return", "IndirectJump", "IndirectCall")
    assert tuple(variants(source("pmu", "region.rs"), "BranchKind")) == kinds
    numbers = ("CONDITIONAL", "JUMP", "CALL", "RETURN", "INDIRECT_JUMP", "INDIRECT_CALL")
    assert [getattr(pmu_parts, name) for name in numbers] == list(range(6))
    assert variants(source("pmu", "stacks.rs"), "Kind") == ["Call", "Exception", "Interrupt", "Entry"]
    stacks = ("STACK_CALL", "STACK_EXCEPTION", "STACK_INTERRUPT", "STACK_ENTRY")
    assert [getattr(pmu_parts, name) for name in stacks] == list(range(4))
    assert f'name: "{pmu_parts.UNKNOWN}"' in source("pmu", "symbols.rs")


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


def test_markers_are_defined_once() -> None:
    """The plugin takes them from crates/marker; only a test of the decoder writes the bytes again."""
    marker = re.compile(r"0x66, ?0x87")
    paths = [path for path in CRATES.glob("*/src/**/*.rs") if marker.search(path.read_text().partition("mod tests")[0])]
    assert paths == [CRATES / "marker" / "src" / "lib.rs"]
    assert "use kdyno_marker::{CLOSE, ONE, OPEN, XCHG, ZERO};" in source("pmu", "plugin/translation.rs")


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
        assert all(len(metric.values) == outcome.parameters["repeat"] for metric in outcome.metrics)
    assert not file.exists()


def test_the_fields_of_an_outcome_are_those_of_the_loads() -> None:
    for struct, file, model in (
        ("Outcome", "outcome.rs", LoadOutcome),
        ("Metric", "outcome.rs", LoadMetric),
        ("Faults", "clock.rs", LoadFaults),
        ("OfSize", "large_pages.rs", LoadPageSize),
        ("Given", "large_pages.rs", LoadPages),
        ("Memory", "memory.rs", LoadMemory),
    ):
        assert fields(source("loads", file), struct) == list(model.model_fields)


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
    text = source("delegate", "lkd.rs")
    text += source("delegate", "grouped.rs").replace("const LIST", "const SECTIONS")
    names = {"SCRIPT": lkd.SCRIPT, "SEED": lkd.SEED, "ORDER": lkd.ORDER, "SECTIONS": lkd.SECTIONS}
    assert {name: constant(text, name) for name in names} == {name: of.replace("_", "") for name, of in names.items()}


# What verbs print.

PRINTED_AS = {
    **{
        verb: verb
        for verb in (
            "blockmap",
            "build",
            "calibrate",
            "compare",
            "coverage",
            "doctor",
            "fit-config",
            "judge",
            "march",
            "plan",
            "report",
            "runs",
            "scaling",
            "selftest",
            "show",
            "soak",
            "validate",
        )
    },
    "kernel lint": "lint",
    "kernel size": "size",
    "march list": "march-list",
    **{
        f"profile {action}": f"profile-{action}"
        for action in ("cover", "merge", "objects", "overlap", "pull", "show", "stale")
    },
    **{f"workload {action}": f"workload-{action}" for action in ("list", "try")},
    "delegation show": "delegation",
    "store gc": "store-gc",
    "tune delegation": "tune",
    "explain": "explanation",
    "ab": "report",
    "run": "report",
}
"""Format by verb and action."""


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
    keeper = source("agent", "programs/keeper.rs")
    assert int(constant(keeper, "MOST_TOLD")) == MOST_FAILURES
    assert int(constant(keeper, "TAIL")) == MOST_TAIL
    asked = re.search(r"const FIELDS: &\[&str\] = &\[(.*?)\];", source("agent", "programs/memory.rs"), re.DOTALL)
    assert asked and tuple(re.findall(r'"(\w+)"', asked[1])) == get_args(MemoryField)


def test_whatever_is_printed_as_json_has_a_schema() -> None:
    verbs = with_json(make_parser(VERBS))
    assert verbs == set(PRINTED_AS)
    others = {
        "budget",
        "calibrate-kernel",
        "coverage-diff",
        "coverage-unused",
        "delegation-image",
        "doctor-host",
        "doctor-set",
        "validate-kvm",
        "validate-library",
    }
    assert {*PRINTED_AS.values(), *others} == {*PRINTED, "march-list"}


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


def test_every_schema_is_a_format_that_is_named() -> None:
    assert sorted(FORMATS) == sorted({**READ, **PRINTED}) == list(FORMATS)


def test_profiles_are_recorded_with_the_default_family_of_an_experiment() -> None:
    parser = make_parser({"profile"})
    assert parser.parse_args(["profile", "record", "IMAGE", "-o", "FILE"]).family == PmuConfig().family


def test_every_family_obeys_its_schema() -> None:
    import tomllib

    for name in families():
        check(tomllib.loads(load_family(name).path.read_text()), "family")
