"""The readers of foreign bytes: what each starts from, and what must hold of whatever it reads."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from rich.console import Console

from kdyno.base import plain_tar
from kdyno.base.cpu import identify, level_of, read_cpu
from kdyno.base.cpu_families import families
from kdyno.base.state import State
from kdyno.base.text import UNSHOWN, clean, clean_lines
from kdyno.boot.console import MOST_FINDINGS, diagnose, read_console, warnings_of
from kdyno.boot.console import findings as console_findings
from kdyno.boot.host.journal import Journal, read_journal
from kdyno.boot.host.knobs import owner_of
from kdyno.boot.ktap import read_ktap, rest_of
from kdyno.judge.verdicts.assemble import assemble
from kdyno.judge.verdicts.model import FileReport, to_json
from kdyno.judge.verdicts.of_files import judge_files
from kdyno.judge.verdicts.selftest import Rate, SelfTest, Tested, last_of_host
from kdyno.kernel.built_kernels.configuration import configuration_in
from kdyno.kernel.built_kernels.header import read_header
from kdyno.kernel.built_kernels.kallsyms import kallsyms
from kdyno.kernel.built_kernels.modules import needs
from kdyno.kernel.built_kernels.packed import payload_of
from kdyno.kernel.delegation import globs
from kdyno.kernel.delegation.plan_file import read as read_plan
from kdyno.kernel.delegation.plan_file import read_table
from kdyno.kernel.delegation.records import read_records
from kdyno.kernel.images import read_record
from kdyno.kernel.kconfig_check import read_config
from kdyno.kernel.knobs import order
from kdyno.kernel.patches import read_patches
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.sections import read_sections
from kdyno.measure.cycles.family import read_family
from kdyno.measure.guest.agent import catalogue
from kdyno.measure.guest.counters import read_snapshots
from kdyno.measure.guest.job import Program
from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.measure.guest.pmu_write import encode
from kdyno.measure.guest.soak import MOST_FAILURES, MOST_TAIL
from kdyno.measure.guest.stream import Asked, read_stream
from kdyno.measure.readers.formats.registry import READERS
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.workload.definition import definition, own_names, own_text
from kdyno.profile.block_counts import count_blocks
from kdyno.profile.block_map import parse as parse_blocks
from kdyno.profile.edges import EdgeProfile
from kdyno.profile.gcda import GcovFile, GcovFunction, read_gcda, written
from kdyno.profile.ir_profile import counted_functions, counters_range, counts_of, text_profile
from kdyno.profile.merge import Read, merge
from kdyno.profile.pgod import read_sent
from kdyno.profile.sources import Sources, read_units
from kdyno.report.html import render as render_page
from kdyno.report.page import parts
from kdyno.report.terminal import render
from kdyno.run.experiment.load import load_experiment, read_experiment
from kdyno.run.experiment.plan import plan_boots
from kdyno.run.soak.growth import blocks_of, slopes
from kdyno.store import rows
from kdyno.store.artefacts import Artefacts
from kdyno.store.run_file import inconsistency, read_run
from kdyno.store.store import Store
from kdyno.store.upkeep.references import references
from kdyno.understand.coverage.executions import Executions
from kdyno.understand.coverage.functions import Part, Parts
from kdyno.understand.coverage.kbuild import files_of_symbols, read_rules
from kdyno.understand.coverage.line_table import parse_line_table
from kdyno.understand.coverage.lines import FULLY, NEVER, PARTLY, line_coverage
from kdyno.understand.selftest.terminal import render as render_selftest
from kdyno.understand.size import compare
from kdyno.understand.size.elf import read_elf
from tests.fuzz.check import LARGEST, Target
from tests.unit import foreign_specimen, ir_specimen, pgod_specimen, pmu_specimen, soak_specimen, specimen
from tests.unit.block_map_specimen import listing
from tests.unit.built_kernel import TEXT, bz_image, module, vmlinux
from tests.unit.foreign_outputs import DATA as FOREIGN_DATA
from tests.unit.foreign_outputs import OUTPUTS
from tests.unit.measure.test_instrument_counters import WHOLE as COUNTED
from tests.unit.report.test_report_html import HOSTILE, Page
from tests.unit.store.test_store_exchange import exported
from tests.unit.understand.test_coverage_line_table import DWARF_4, DWARF_5

HERE = Path(__file__).parent
DATA = HERE.parent / "data"
SOURCE = HERE.parents[1] / "src" / "kdyno"
EXPERIMENTS = HERE.parents[1] / "experiments"
FINDINGS = HERE / "findings"
"""Inputs that once broke a reader, in a directory with the reader's name."""
CORPUS = HERE / "corpus"
"""Inputs by which the fuzzer reached much of a reader, in a directory with the reader's name."""
FOREIGN = {**OUTPUTS, "table": ("compiler_patch.md",) * 2, "csv": ("values.csv",) * 2}
"""By format of `kdyno judge`: a file that stays as it is, and those that are changed."""
ALONE = ("csv", "table")
"""Formats whose files hold several variants."""
VALUES_CSV = "kernel,boot,test,value (ns)\n" + "".join(
    f"{kernel},{boot},{test},{value + boot * 0.25}\n"
    for kernel, offset in (("before", 0.0), ("after", -3.0))
    for boot in range(4)
    for test, value in (("pipe", 100.0 + offset), ("fork", 5000.0 + offset))
)

BLOCKS = listing(
    {
        0xFFFFFFFF81000000: [(0xFFFFFFFF81000000, [(0, 0, 16, True), (2, 16, 8, True), (1, 24, 0, True)])],
        0xFFFFFFFF81000040: [(0xFFFFFFFF81000040, [(0, 0, 9, False)]), (0xFFFFFFFF81000900, [(3, 0, 5, False)])],
    }
).encode()
"""What llvm-readobj lists of the blocks of two functions."""
LINES = f"{DWARF_4}\n{DWARF_5}".encode()
MAKEFILE = b"ifdef CONFIG_B\nobj-$(CONFIG_A) += a.o net/ \\\n  b.o\na-y := net/core/dev.o\nelse\nobj-y := a.o\nendif\n"
UNITS = b"""0x0000000b: DW_TAG_compile_unit
              DW_AT_name	("../init/main.c")
              DW_AT_comp_dir	("/state/builds/key/o")
              DW_AT_ranges	(0x00000ae0
                 [0xffffffff81000400, 0xffffffff81000543)
                 [0xffffffff81a02010, 0xffffffff81a02028))
0x00019c95: DW_TAG_compile_unit
              DW_AT_name	("../fs/open.c")
              DW_AT_low_pc	(0xffffffff81000543)
              DW_AT_high_pc	(0xffffffff81000600)
"""
"""What llvm-dwarfdump lists of two compilation units."""


def findings() -> list[Path]:
    return sorted(path for path in FINDINGS.glob("*/*") if path.is_file())


def starts(target: Target) -> list[bytes]:
    """What a reader's inputs are made of: the sound ones, and those in the tree, which may be anything."""
    kept = sorted(path for folder in (CORPUS, FINDINGS) for path in (folder / target.name).glob("*"))
    return [*target.seeds(), *(path.read_bytes() for path in kept)]


def files(*paths: Path) -> Callable[[], Sequence[bytes]]:
    return lambda: [path.read_bytes() for path in paths]


def is_shown_as_it_is(text: str) -> bool:
    """Whether nothing in a text steers a terminal; line ends may be there."""
    import unicodedata

    return all(character == "\n" or unicodedata.category(character) not in UNSHOWN for character in text)


HI = Program(name="hi", set_up=("true",), command=("echo", "hi"), report=("true",), tear_down=("true",), runs=2)


@cache
def everything() -> Asked:
    """What the recorded boots were asked, and a command."""
    return Asked("model", 7, catalogue().benchmarks([test.name for test in catalogue().tests], "model"), (HI,))


def stream(path: Path) -> None:
    report = read_stream(path, everything())
    assert not (report.complete and report.fault)
    assert all(sample.usable for sample in report.samples)
    texts = [report.fault or "", *report.unsupported.values(), *report.broken.values()]
    texts += [report.hello.kernel, report.hello.agent] if report.hello else []
    texts += [benchmark.description for benchmark in report.benchmarks]
    assert not any("\0" in text for text in texts)


@cache
def streams() -> Sequence[bytes]:
    recorded = (DATA / "recording" / "baseline" / "0" / "stream.jsonl").read_bytes().splitlines(keepends=True)
    short = b"".join(recorded[:20]) + b'{"v":1,"type":"end","records":20}\n'
    hello = recorded[0]
    step, exited = (
        b'{"v":1,"type":"step","program":"hi","phase":"set-up","run":0}\n',
        b'{"v":1,"type":"exited","status":0,"elapsed":5,"user":2,"system":1,"busy_user":4,"busy_system":3}\n',
    )
    chunk = hello + step + b'{"v":1,"type":"output","stream":"stdout","hex":"6869"}\n' + exited
    reasons = recorded[1] + b'{"v":1,"type":"unsupported","benchmark":"bw_file_rd.io_only","reason":"no"}\n'
    reasons += b'{"v":1,"type":"broken","benchmark":"bw_file_rd.io_only","reason":"x"}\n'
    return short, chunk + reasons + b'{"v":1,"type":"end","records":5}\n', b"".join(recorded)[:LARGEST]


def soak(path: Path) -> None:
    report = read_stream(path, soak_specimen.ASKED)
    of_soak = report.soak
    assert of_soak and set(of_soak.tallies) <= set(soak_specimen.LOADS)
    assert len(of_soak.failures) <= MOST_FAILURES * len(soak_specimen.LOADS)
    assert all(len(failure.tail) <= MOST_TAIL for failure in of_soak.failures)
    slopes(blocks_of(of_soak.looks, soak_specimen.SOAK.seconds))


def soaks() -> Sequence[bytes]:
    return (soak_specimen.stream(*soak_specimen.sound()), soak_specimen.stream(soak_specimen.failed(), whole=False))


def console(path: Path) -> None:
    text = read_console(path)
    reason = diagnose(text)
    assert reason is None or (is_shown_as_it_is(reason) and "\n" not in reason and len(reason) < 400)
    listed = console_findings(rest_of(text))
    assert len(listed) <= MOST_FINDINGS + 1
    assert all(is_shown_as_it_is(finding.text) and "\n" not in finding.text for finding in listed)


def built_kernel(path: Path) -> None:
    content = path.read_bytes()
    head = read_header(content, path)
    assert is_shown_as_it_is(head.banner)
    inner = payload_of(content, head.payload, 1 << 20, "it")
    assert len(inner) <= 1 << 20
    configuration_in(inner)
    assert all(symbol.name.isprintable() for symbol in kallsyms(inner))


def kernel_module(path: Path) -> None:
    assert all(is_shown_as_it_is(name) and "/" not in name for name in needs(path.read_bytes(), "it"))


def ktap(path: Path) -> None:
    result = read_ktap(read_console(path))
    assert all(is_shown_as_it_is(f"{failure.suite}{failure.test}{failure.why}") for failure in result.failures)
    assert all(is_shown_as_it_is(warning) for warning in warnings_of(read_console(path)))


def built_kernels() -> Sequence[bytes]:
    inner = vmlinux(
        [(TEXT + 16 * number, "T_text" if not number else f"tf{number}") for number in range(600)], "CONFIG_X86=y\n"
    )
    return [bz_image(inner), bz_image(gzip.compress(inner, mtime=0))]


def console_words() -> Sequence[bytes]:
    return (
        b"INFO: task ", b" blocked for more than 120 seconds.", b"rcu: INFO: ", b" self-detected stall", b"Oops: ",
        b"kernel BUG at ", b"Kernel panic - not syncing: ", b"Out of memory: Killed process 1", b"\nkdyno-agent: ",
        b"watchdog: BUG: soft lockup", b"BUG: kernel NULL pointer", b"Unable to mount root fs on ",
        b"INFO: task " * 300,
    )  # fmt: skip


def shown(path: Path) -> None:
    text = path.read_bytes().decode(errors="surrogateescape")
    line, lines = clean(text), clean_lines(text)
    assert is_shown_as_it_is(line) and "\n" not in line
    assert is_shown_as_it_is(lines)


def judged(reader: str | None, companion: Path | None = None) -> Callable[[Path], None]:
    def read(path: Path) -> None:
        with tempfile.NamedTemporaryFile() as copy:
            copy.write(path.read_bytes())
            copy.flush()
            names = [str(path)] if reader in ALONE else [f"before={companion or copy.name}", f"after={path}"]
            report = judge_files(names, JudgeRequest(format=reader, n="12"))
        json.loads(to_json(report), parse_constant=_no_number)
        text = io.StringIO()
        render(report, Console(file=text, width=110, force_terminal=False))
        assert is_shown_as_it_is(text.getvalue())

    return read


def _no_number(name: str) -> None:
    raise AssertionError(f"the report's JSON has {name}")


def foreign_seeds(*names: str) -> Callable[[], Sequence[bytes]]:
    return lambda: [
        VALUES_CSV.encode() if name == "values.csv" else (FOREIGN_DATA / name).read_bytes()[:LARGEST] for name in names
    ]


def image(path: Path) -> None:
    record = read_record(path.parent)
    assert set(record.key) <= set("0123456789abcdef")


def images() -> Sequence[bytes]:
    return [specimen.image("a", Recipe()).model_dump_json(indent=2).encode()]


def journal(path: Path) -> None:
    read = read_journal(State(path.parent))
    for name, value in read.values.items() if read else ():
        assert owner_of(name) and ".." not in Path(name).parts
        assert is_shown_as_it_is(value) and "\n" not in value and len(value) < 5000


def units(path: Path) -> None:
    """What llvm-dwarfdump lists of a vmlinux: names in it are whatever the tree's files are called."""
    sources = Sources(read_units(path.read_text(encoding="utf-8", errors="replace")))
    assert all(isinstance(file, str) for file in sources.files(np.array([0, 1 << 32, (1 << 64) - 1], np.uint64)))


def lines(path: Path) -> None:
    """What llvm-dwarfdump lists of line tables: any numbers, any names; and lines of code that ran in part."""
    table = parse_line_table(path.read_text(encoding="utf-8", errors="replace"))
    first = 0xFFFF_FFFF_8100_0000
    parts = Parts([Part(first, 0x10, "f", "f", "a.c"), Part(first + 0x10, 0x1000, "g", "g", "")])
    starts = np.array([0, first, first + 4, first + 0x20], np.uint64)
    ran = Executions(starts, np.array([0, 7, 0, 3], np.uint64), np.zeros(4, bool), starts[2:3])
    coverage = line_coverage(table, parts, ran, lambda asked: list(range(len(asked))))
    assert all(state in (NEVER, PARTLY, FULLY) for state in coverage.lines["state"])
    assert np.array_equal(coverage.lines["count"] > 0, coverage.lines["state"] != NEVER)
    assert coverage.copies["count"].sum() == coverage.lines["count"].sum()


def makefile(path: Path) -> None:
    """A stranger's makefile: whatever it says, files are those that were compiled."""
    rules = list(read_rules(path.read_text(encoding="utf-8", errors="replace")))
    assert all(rule.name and "\n" not in "".join(rule.items) for rule in rules)
    known = ("a.c", "net/core/dev.c")
    assert all(added <= set(known) for added in files_of_symbols(path.parent, known).values())


def blocks(path: Path) -> None:
    """What llvm-readobj lists of a vmlinux: any numbers."""
    mapped = parse_blocks(path.read_text(encoding="utf-8", errors="replace"))
    first = 0xFFFF_FFFF_8100_0000
    ran = EdgeProfile([(0, (1 << 64) - 1, 1), (first, first + 0x1000, 7)], [(first + 12, first + 24, 5), (0, first, 1)])
    for function in count_blocks(mapped, ran):
        assert len(function.ids) == len(function.sizes) == len(function.counts) and min(function.counts) >= 0
        assert all(max(source, target) < len(function.ids) and count > 0 for source, target, count in function.edges)


def gcda(path: Path) -> None:
    """What was read is written and read again, as gcc would."""
    file = read_gcda(path.read_bytes(), "vmscan.gcda")
    again = replace(file, summary=file.summary or (1, 1))
    assert read_gcda(written(again), "again") == again


def gcdas() -> Sequence[bytes]:
    arcs = ((3, 1 << 40, 0), (0, 0), ())
    functions = tuple(GcovFunction(index, 5, 6, arc_counts) for index, arc_counts in enumerate(arcs, 1))
    whole = written(GcovFile("B22*", 99, functions, (1, 1 << 31)))
    return whole, whole[:16] + whole[32:-4]


def instrumented(path: Path) -> None:
    """Whatever counters a file says it has, they are in the memory that it says they are in."""
    functions, memory = counted_functions(path), counters_range(path)
    counts = counts_of(functions, memory.start, bytes(min(len(memory), LARGEST)))
    assert text_profile(functions, counts).count("# Func Hash:") == len(functions)
    assert not any("\n" in function.name for function in functions)


@cache
def instrumented_programs() -> Sequence[bytes]:
    with tempfile.TemporaryDirectory() as directory:
        return [ir_specimen.build(Path(directory)).read_bytes()]


def experiment(path: Path) -> None:
    assert plan_boots(load_experiment(path))


def recorded_experiment(path: Path) -> None:
    usual = sys.stdin
    with path.open("rb") as file:
        sys.stdin = io.TextIOWrapper(file)
        try:
            assert plan_boots(read_experiment("-"))
        finally:
            sys.stdin = usual


def recorded_experiments() -> Sequence[bytes]:
    return [load_experiment(path).model_dump_json().encode() for path in sorted(EXPERIMENTS.glob("*.toml"))]


def patch(path: Path) -> None:
    assert read_patches([str(path)])


def config(path: Path) -> None:
    read_config(path.read_text(encoding="utf-8", errors="replace"))


def store(path: Path) -> None:
    with Store(f"sqlite:///{path}") as opened:
        opened.selftests()
        for run in opened.runs():
            report = assemble(opened, run.id, Artefacts(path.parent))
            text = io.StringIO()
            render(report, Console(file=text, width=110, force_terminal=False))
            assert is_shown_as_it_is(text.getvalue())


@cache
def stores() -> Sequence[bytes]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "store.sqlite"
        with Store(f"sqlite:///{path}") as opened:
            run = specimen.run_record(blocks=2, variants=specimen.VARIANTS[:2])
            opened.begin(run, specimen.cells(run))
            for boot in specimen.boot_records(run)[:2]:
                opened.add_boot(boot, specimen.benchmarks())
        return [path.read_bytes()]


PLAN = """extends = "no.toml"
[programs]
mine = "mend"
[[rule]]
files = ["kernel/**/*.c", "mm/[a-m]*.c", "fs/?.c"]
by_assembler = true
passes = ["common", "mine"]
"""
TABLE = b"file,compiler,add,remove\nfs/open.c,gcc,-O3 -g,\n"
RECORDS = """{"probe": ["-c"], "refused_by": "clang", "why": "no"}
{"object": "a.o", "source": "a.c", "answer": "rewritten", "compiler": "gcc", "rule": "rule 1", "seconds": 0.5}
"""

SECTIONS = b"""{"section":".text.hot.do_open","object":"fs/open.o","bytes":48}
{"section":".text.unlikely.do_open.part.0","object":"fs/open.o","bytes":9}
"""


def delegation_plan(path: Path) -> None:
    """A plan's globs are matched, whatever they are."""
    plan = read_plan(path)
    for rule in plan.rule:
        for glob in rule.files:
            globs.matches(glob, "kernel/sched/core.c")


def sizes(path: Path) -> None:
    for apart in (False, True):
        rows = compare.symbol_rows(compare.symbol_sizes(read_elf(path), clones_apart=apart), None)
        assert compare.totals(rows, is_pair=False)[-1].before == sum(row.before or 0 for row in rows)


@cache
def objects() -> Sequence[bytes]:
    text = ".type f, @function\nf: .skip 9\n.size f, 9\nf.cold: ret\n.size f.cold, 1\n.comm c, 8\n"
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "a.o"
        subprocess.run(["as", "-o", path, "-"], input=text, text=True, check=True)
        return [path.read_bytes()]


def pmu_body(path: Path) -> None:
    """The numbers behind a sound header: what a change of the compressed bytes never reaches."""
    body = path.read_bytes()
    header = {**PMU_HEADER, "bytes": len(body)}
    path.write_bytes(pmu_specimen.encoded(header, body))
    read_pmu_record(path)


def pmu_merged(path: Path) -> None:
    """What is made of a record, whatever it holds, can be read again."""
    pmu_body(path)
    record = read_pmu_record(path)
    path.write_bytes(encode(merge([Read(path, record), Read(path, record)])))
    assert read_pmu_record(path).merged == 2


def pmu_header() -> dict[str, Any]:
    _, header, _ = pmu_specimen.encode(pmu_specimen.specimen()).split(b"\n", 2)
    return dict(json.loads(header))


def journals() -> Sequence[bytes]:
    values = {"sys/devices/system/cpu/intel_pstate/no_turbo": "0", "proc/sys/kernel/randomize_va_space": "1"}
    return [Journal(boot_id="5b4a", values=values).model_dump_json().encode()]


def pulled(path: Path) -> object:
    with path.open("rb") as file:
        return list(read_sent(file.read, "m"))


def pulled_snapshot(path: Path) -> object:
    """The same, where the inner archive is what was changed."""
    run, _ = pgod_specimen.snapshot(COUNTERS)
    content = gzip.compress(path.read_bytes(), mtime=0)
    sent = pgod_specimen.sent((run | {"file_bytes": len(content)}, content))
    return list(read_sent(io.BytesIO(sent).read, "m"))


def all_foreign() -> Sequence[bytes]:
    return [seed for name, names in FOREIGN.items() if name not in ALONE for seed in foreign_seeds(*names)()]


def cpuinfo(path: Path) -> None:
    cpu = read_cpu(path)
    assert identify(cpu).family in (None, *families())
    assert level_of(cpu.flags) in range(5)


def workload(path: Path) -> None:
    found = definition(str(path))
    assert found.metrics and all(len(name) < 200 for name in (*found.metrics, *found.parameters))


def workloads() -> Sequence[bytes]:
    return [own_text(name).encode() for name in own_names()]


def claims(path: Path) -> None:
    """Published statistics, held against values that stay as they are."""
    with tempfile.NamedTemporaryFile(suffix=".csv") as values:
        values.write((FOREIGN_DATA / "compiler_patch.csv").read_bytes())
        values.flush()
        report = judge_files([values.name], JudgeRequest(), [str(path)])
    text = io.StringIO()
    render(report, Console(file=text, width=110, force_terminal=False))
    assert is_shown_as_it_is(text.getvalue())


def selftest_record(path: Path) -> None:
    """The record of a self-test, as a stranger's store may have it."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(stores()[0])
        file.flush()
        with closing(sqlite3.connect(file.name)) as connection, connection:
            found = path.read_bytes().decode(errors="replace")
            connection.execute("INSERT INTO kdyno_selftest SELECT id, created, ?, '' FROM kdyno_run", [found])
        # Whoever makes up a record makes up its digest, too.
        with mock.patch.object(rows, "require_digest"), Store(f"sqlite:///{file.name}") as opened:
            last = last_of_host(opened, {"cpu": "a"}, "model")
    if last:
        text = io.StringIO()
        render_selftest(last, Console(file=text, width=110, force_terminal=False))
        assert is_shown_as_it_is(text.getvalue())


def needed(path: Path) -> None:
    """The record of a soak, or of how an input was made: what they say is needed is told by names alone."""
    with tempfile.TemporaryDirectory() as directory:
        state = State(Path(directory))
        assert state.sources  # marks the directory as kdyno's
        image = specimen.image("a", Recipe()).model_copy(update={"inputs": {"profile": "1234"}})
        for place, content in (
            (Path("soaks") / "a.json", path.read_bytes()),
            (Path("soaks") / "b.json", json.dumps({"kernel": {"image": image.key}}).encode()),
            (Path("images") / image.key / "image.json", image.model_dump_json().encode()),
            (Path("inputs") / "1234.json", path.read_bytes()),
        ):
            (state.root / place).parent.mkdir(parents=True, exist_ok=True)
            (state.root / place).write_bytes(content)
        refs = references([], state)
    assert image.key in refs.images


def counters(path: Path) -> None:
    """What a guest sends of its kernel's counters."""
    items = read_snapshots(path).items
    assert items and len({len(history) for history in items.values()}) == 1


def page(path: Path) -> None:
    """Names of a report: whatever they are, its page has the same elements, and no script of theirs."""
    names = path.read_bytes().decode(errors="replace").split("\n")
    text = foreign_specimen.values(layouts=2).model_dump_json()
    for number, name in enumerate(NAMED):
        text = text.replace(f'"{name}"', json.dumps(name + names[number % len(names)]))
    shown = page_of(FileReport.model_validate_json(text))
    assert shown.tags == page_as_it_is().tags
    for ours, theirs in zip(page_as_it_is().scripts, shown.scripts, strict=True):
        assert "<" not in theirs or ours == theirs


@cache
def page_as_it_is() -> Shape:
    return page_of(foreign_specimen.values(layouts=2))


def page_of(report: FileReport) -> Shape:
    """The elements and scripts of a report's page, without plotly, which takes a second to look through."""
    whole = Page(render_page(report).replace(str(parts().plotly), ""))
    return Shape([(tag, frozenset(attributes)) for tag, attributes in whole.tags], whole.scripts)


def run_file(path: Path) -> None:
    kept: dict[str, bytes] = {}
    with path.open("rb") as file:
        whole = read_run(file, "it", kept.__setitem__)
    assert inconsistency(whole) is None and kept.keys() <= whole.artefacts.keys()
    assert all(hashlib.sha256(content).hexdigest() == name for name, content in kept.items())


def run_file_unpacked(path: Path) -> None:
    """The same, where the archive is what was changed."""
    with tempfile.NamedTemporaryFile() as packed:
        packed.write(gzip.compress(path.read_bytes(), 1, mtime=0))
        packed.flush()
        run_file(Path(packed.name))


def run_file_forged(path: Path) -> None:
    """The same, where the run's record is what was changed, and the manifest was made to fit."""
    parts = dict(_parts_of_run_file())
    parts["run.json"] = path.read_bytes()
    listed = [
        {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in parts.items()
        if name != "manifest.json"
    ]
    manifest = {**json.loads(parts["manifest.json"]), "files": listed}
    parts["manifest.json"] = json.dumps(manifest).encode()
    archive = b"".join(plain_tar.entry(name, content) for name, content in parts.items()) + plain_tar.END
    with tempfile.NamedTemporaryFile() as packed:
        packed.write(gzip.compress(archive, 1, mtime=0))
        packed.flush()
        run_file(Path(packed.name))


@cache
def _run_file() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        return exported(Path(directory))[1]


def _parts_of_run_file() -> dict[str, bytes]:
    limits = plain_tar.Limits(1000, 1 << 24, 1 << 26)
    return dict(plain_tar.files(io.BytesIO(gzip.decompress(_run_file())).read, limits, "it"))


@dataclass(frozen=True)
class Shape:
    """What of a page a browser acts on."""

    tags: list[tuple[str, frozenset[str]]]
    """Elements, with the names of their attributes."""
    scripts: list[str]


NAMED = ("pipe", "tuned", "stock", "long-form CSV", "ns", "pipes.csv")
"""Names in the report whose page is looked at."""
CPUINFO = b"""processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 33
model name\t: AMD Ryzen 9 5950X
stepping\t: 2
flags\t\t: lm cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3 avx avx2 bmi1 bmi2 f16c fma abm movbe xsave pni

processor\t: 1
"""
SOAKED = b'{"kernel": {"image": "ab12", "variant_of": "cd34", "release": "6.12"}, "verdict": "passed"}'
DERIVED = (
    b'{"exporter": "order", "version": 1, "image": "ab12", "boots": ["0123"], "settings": {}, "families": {"a": "b"}}'
)
RATE = Rate(count=2, of=200, rate=0.01, low=0.0012, high=0.036)
SELFTEST = SelfTest(
    run="ab" * 32,
    created=specimen.NOON,
    host={"cpu": "a"},
    lane="model",
    machine={},
    image=None,
    experiments=200,
    blocks=4,
    planned=12,
    margin=0.01,
    alpha=0.05,
    correction="holm",
    family_wise=RATE,
    benchmarks=(
        Tested(
            benchmark="pipe",
            unit="ns",
            false_verdicts=RATE,
            false_positives=RATE,
            covered=RATE,
            spread=0.004,
            detectable=0.0036,
        ),
    ),
)
PMU_HEADER = pmu_header()
COUNTERS = {"kernel/fork.gcda": pgod_specimen.gcda([5, 0], [100]), f"{'a' * 90}/mm/slub.gcda": pgod_specimen.gcda([1])}
TOML = (
    b"[variants.a]\n",
    b"matrix = { opt = ['O2', 'O3'] }\n",
    b"extends = 'a'\n",
    b"blocks = 10000\n",
    b"kconfig = { A = true }\n",
)
DIFF = (
    b"diff --git a/x b/x\n",
    b"--- a/",
    b"+++ b/",
    b"copy from ",
    b"rename to ",
    b"new file mode 120000\n",
    b"@@ -1 +1 @@\n",
)

TARGETS = {
    target.name: target
    for target in (
        Target("stream", stream, streams, (b'"type":"sample"', b'"iteration":', b'"records":', b'"v":2')),
        Target("soak", soak, soaks, (b'"type":"tally"', b'"progress":"over"', b'"rounds":', b'"kb":{', b'"elapsed":')),
        Target("console", console, files(*sorted((DATA / "consoles").glob("*.log"))), console_words()),
        Target("built kernel", built_kernel, built_kernels, (b"HdrS", b"IKCFG_ST", b"IKCFG_ED", b"0\x001\x002\0")),
        Target("kernel module", kernel_module, lambda: [module("virtio_pci", ["virtio"])], (b".modinfo\0",)),
        Target("ktap", ktap, files(DATA / "kunit" / "console.log"), (b"not ok 1 a # SKIP", b"KTAP version 1\n1..3")),
        Target("shown", shown, lambda: [b"\x1b]0;title\x07text\n\x1b[31mred\x1b[0m \xe2\x80\xae\xc2\x85"]),
        Target("pmu", read_pmu_record, lambda: [pmu_specimen.encode(pmu_specimen.specimen())], examples=500),
        Target("pmu-merged", pmu_merged, lambda: [pmu_specimen.encode_body(pmu_specimen.specimen())], examples=200),
        Target("pmu-body", pmu_body, lambda: [pmu_specimen.encode_body(pmu_specimen.specimen())], examples=500),
        Target("image", image, images, file="image.json"),
        Target("journal", journal, journals, file="host-knobs.json"),
        Target("experiment", experiment, files(*sorted(EXPERIMENTS.glob("*.toml"))), TOML, file="experiment.toml"),
        Target("recorded", recorded_experiment, recorded_experiments, TOML),
        Target("patch", patch, files(*sorted((DATA / "patches").rglob("*.patch"))), DIFF),
        Target("config", config, files(*sorted((DATA / "kconfig").glob("*.config")))),
        Target("store", store, stores, examples=100),
        Target("run-file", run_file, lambda: [_run_file()], examples=100),
        Target("run-file-unpacked", run_file_unpacked, lambda: [gzip.decompress(_run_file())], examples=100),
        Target("run-file-forged", run_file_forged, lambda: [_parts_of_run_file()["run.json"]], examples=100),
        Target("sizes", sizes, objects, examples=100),
        Target("order", order.check_file, lambda: [b"# first\nvfs_read\nf.cold\n\nf.part.0 # 3 %\r\n"], (b"#", b"\n")),
        Target("delegation", delegation_plan, lambda: [PLAN.encode()], TOML, file="plan.toml"),
        Target("measured-table", read_table, lambda: [TABLE], (b",", b"\n", b'"')),
        Target("records", read_records, lambda: [RECORDS.encode()], (b'"answer":', b'"probe":', b'"findings":')),
        Target("sections", read_sections, lambda: [SECTIONS], (b'"section":".text.hot.', b'"bytes":')),
        Target("units", units, lambda: [UNITS], (b"DW_AT_ranges", b"[0xffffffff81000000, 0x", b"DW_TAG_compile_unit")),
        Target("lines", lines, lambda: [LINES], (b"file_names[  1]:", b"0xffffffff81000004 ", b" is_stmt")),
        Target("makefile", makefile, lambda: [MAKEFILE], (b"obj-$(CONFIG_A) += ", b"endif\n"), file="Makefile"),
        Target("blocks", blocks, lambda: [BLOCKS], (b"Offset: 0x", b"ID: ", b"CanFallThrough: Yes", b"Address: 0x")),
        Target("gcda", gcda, gcdas, (b"\0\0\0\x01\x0c\0\0\0", b"\0\0\xa1\x01", b"\xf8\xff\xff\xff")),
        Target("instrumented", instrumented, instrumented_programs, examples=200),
        Target("pulled", pulled, lambda: [pgod_specimen.sent(pgod_specimen.snapshot(COUNTERS))]),
        Target("pulled-snapshot", pulled_snapshot, lambda: [gzip.decompress(pgod_specimen.snapshot(COUNTERS)[1])]),
        Target("counters", counters, lambda: [COUNTED], (b'"snapshot":1', b'"bytes":', b'"snapshots":')),
        Target("cpuinfo", cpuinfo, lambda: [CPUINFO], (b"cpu family\t:", b"model\t\t:", b"flags\t\t:", b"\n\n")),
        Target("workload", workload, workloads, (b"[metrics.a]\n", b"pattern = ", b"[unpack]\n"), file="workload.toml"),
        Target("claims", claims, files(FOREIGN_DATA / "compiler_patch_claims.csv"), examples=100),
        Target("self-test", selftest_record, lambda: [SELFTEST.model_dump_json().encode()], examples=100),
        Target("needed", needed, lambda: [SOAKED, DERIVED], (b'"kernel":', b'"image":', b'"boots":', b"../")),
        Target("page", page, lambda: [HOSTILE.encode()], (b"</script>", b"<!--", b"<img src="), examples=50),
        Target("family", read_family, files(*sorted((SOURCE / "data" / "families").glob("*.toml")))),
        Target("judge", judged(None), all_foreign, examples=150),
        *(
            Target(
                f"judge-{reader.name}",
                judged(reader.name, FOREIGN_DATA / FOREIGN[reader.name][0]),
                foreign_seeds(*FOREIGN[reader.name][1:]),
                examples=100,
            )
            for reader in READERS
        ),
    )
}  # fmt: skip
