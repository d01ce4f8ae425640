"""The formats that kdyno reads: a new one is a module in this directory and a row in the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kdyno.base.text import cut, format_list
from kdyno.measure.readers import claims
from kdyno.measure.readers.errors import UnknownForm, UnknownText
from kdyno.measure.readers.formats import (
    criterion,
    cyclictest,
    fio,
    go_bench,
    google_benchmark,
    hyperfine,
    iperf2,
    iperf3,
    jmh,
    kernbench,
    lkp,
    lmbench,
    ministat,
    mmtests,
    netperf,
    numbers,
    pct_imp,
    perf_stat,
    perf_stat_text,
    pgbench,
    phoronix,
    printed_programs,
    pyperf,
    pytest_benchmark,
    rustc_perf,
    schbench,
    stress_ng,
    summary_table,
    sysbench,
    will_it_scale,
)
from kdyno.measure.readers.markup import has_markup_table
from kdyno.measure.readers.readings import LongTable, ProgramOutput, Reading
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.sheet import has_columns, shape_of
from kdyno.measure.readers.source import FileSource, Form
from kdyno.measure.readers.tables import has_several_tables

SHOWN = 12
"""Keys of a document that an error names."""


@dataclass(frozen=True)
class Reader:
    """One format of files."""

    name: str
    """The name for `--format`."""
    title: str
    """The name in reports and errors."""
    recognises: Callable[[FileSource, JudgeRequest], bool]
    """Returns whether a file has this format, by its beginning; it is called only after the rows above have returned
    False.
    """
    read: Callable[[FileSource, JudgeRequest], Reading]
    excerpt: str
    """The content of such a file, in words."""
    forms: tuple[Form, ...] = ("text",)
    """An example of the beginning of such a file."""
    lone_variant: str = ""
    """Advice if the files have a single variant, besides naming one file for each."""


def program_reader(
    name: str,
    title: str,
    recognises: Callable[[FileSource], bool],
    read: Callable[[FileSource], ProgramOutput],
    excerpt: str,
    *forms: Form,
    lone_variant: str = "",
) -> Reader:
    """Return the row of a benchmark program, whose output leaves no choice to the user; it is text of no other kind."""
    return Reader(
        name,
        title,
        lambda source, _: recognises(source),
        lambda source, _: read(source),
        excerpt,
        forms or ("text",),
        lone_variant,
    )


def _read_csv(source: FileSource, request: JudgeRequest) -> LongTable:
    from kdyno.measure.readers.formats import csv_rows  # brings pandas, which takes half a second to import

    return csv_rows.read(source, request)


READERS = (
    program_reader(
        "lmbench",
        lmbench.TITLE,
        lmbench.recognises,
        lmbench.read,
        "lines like `Simple syscall: 0.1303 microseconds`",
    ),
    program_reader(
        "fio", fio.TITLE, fio.recognises, fio.read, "`jobs` with `read` and `write`, or `IOPS=`", "text", "json"
    ),
    program_reader("iperf3", iperf3.TITLE, iperf3.recognises, iperf3.read, "`end` with `sum_received`", "text", "json"),
    program_reader(
        "perf",
        perf_stat.TITLE,
        perf_stat.recognises,
        perf_stat.read,
        "lines like `1.79,msec,task-clock,1791568,100.00,,`",
        "text",
        "json",
    ),
    program_reader(
        "perf-text",
        perf_stat_text.TITLE,
        perf_stat_text.recognises,
        perf_stat_text.read,
        "lines like `1,791.57 msec task-clock` below `Performance counter stats for ...`",
        lone_variant="one file with several commands, or ",
    ),
    program_reader(
        "hyperfine",
        hyperfine.TITLE,
        hyperfine.recognises,
        hyperfine.read,
        "`results` with `command` and `times`",
        "text",
        "json",
        lone_variant="one file with several commands, or ",
    ),
    program_reader(
        "pyperf", pyperf.TITLE, pyperf.recognises, pyperf.read, "`benchmarks` with `runs` with `values`", "json"
    ),
    program_reader("jmh", jmh.TITLE, jmh.recognises, jmh.read, "`primaryMetric` with `rawData` (`-rf json`)", "json"),
    program_reader(
        "google-benchmark",
        google_benchmark.TITLE,
        google_benchmark.recognises,
        google_benchmark.read,
        "`benchmarks` with `run_name` and `real_time`, or the columns name, iterations, real_time, cpu_time, time_unit",
        "text",
        "json",
    ),
    program_reader(
        "pytest-benchmark",
        pytest_benchmark.TITLE,
        pytest_benchmark.recognises,
        pytest_benchmark.read,
        "`benchmarks` with `stats`",
        "json",
    ),
    program_reader(
        "rustc-perf",
        rustc_perf.TITLE,
        rustc_perf.recognises,
        rustc_perf.read,
        "lines like `Finished GROUP/NAME (1/9)` and `[Cycles]: min: 1 mean: 2 stddev: 1`",
        "text",
        "json",
    ),
    program_reader(
        "phoronix",
        phoronix.TITLE,
        phoronix.recognises,
        phoronix.read,
        '`Result` with `Data`, `Entry` and `RawString`, or rows like `"NAME (Seconds)",LIB,45.67,44.99`',
        "text",
        "xml",
        lone_variant="a composite.xml with several identifiers, or ",
    ),
    program_reader(
        "pgbench",
        pgbench.TITLE,
        pgbench.recognises,
        pgbench.read,
        "lines like `transaction type: ...` and `tps = 85.184871 (without initial connection time)`",
    ),
    program_reader(
        "criterion",
        criterion.TITLE,
        criterion.recognises,
        criterion.read,
        "rows of sample_measured_value, or lines like `NAME  time:   [26.029 µs 26.251 µs 26.505 µs]`",
        "text",
        "json",
    ),
    program_reader(
        "stress-ng",
        stress_ng.TITLE,
        stress_ng.recognises,
        stress_ng.read,
        "lines of --metrics like `stress-ng: metrc: [1] pipe 87143 1.01 0.09 0.50 86441.28 146863.62`",
    ),
    program_reader(
        "lkp",
        lkp.TITLE,
        lkp.recognises,
        lkp.read,
        "lines of `commit:` and rows like `513595 ±  2%  -15.5%  433988 ±  3%  will-it-scale.per_thread_ops`",
        "text",
        "json",
        lone_variant="a comparison of several commits, or ",
    ),
    program_reader(
        "pct-imp",
        pct_imp.TITLE,
        pct_imp.recognises,
        pct_imp.read,
        "rows like `1-groups     1.00 [ -0.00]( 2.08)     0.99 [  0.84]( 2.86)` below `tip[pct imp](CV)`",
        lone_variant="a comparison of several kernels, or ",
    ),
    program_reader(
        "mmtests",
        mmtests.TITLE,
        mmtests.recognises,
        mmtests.read,
        "rows like `Amean     1      0.7450 (   0.00%)      0.7120 *   4.43%*` below the names of kernels",
        lone_variant="a comparison of several kernels, or ",
    ),
    program_reader(
        "schbench",
        schbench.TITLE,
        schbench.recognises,
        schbench.read,
        "lines like `Latency percentiles (usec)` and `* 99.0th: 49`",
    ),
    program_reader(
        "netperf",
        netperf.TITLE,
        netperf.recognises,
        netperf.read,
        "lines like `TCP STREAM TEST from ...`, and the row of its numbers",
    ),
    program_reader(
        "sysbench", sysbench.TITLE, sysbench.recognises, sysbench.read, "lines like `events per second:  5321.11`"
    ),
    program_reader(
        "will-it-scale",
        will_it_scale.TITLE,
        will_it_scale.recognises,
        will_it_scale.read,
        "the columns tasks, processes, processes_idle, threads, threads_idle, linear",
    ),
    program_reader(
        "kernbench",
        kernbench.TITLE,
        kernbench.recognises,
        kernbench.read,
        "lines like `Average Optimal load -j 16 Run (std deviation):` and `Elapsed Time 46.123 (0.3456)`",
    ),
    program_reader(
        "go-bench", go_bench.TITLE, go_bench.recognises, go_bench.read, "lines like `BenchmarkX-8  1000  98765 ns/op`"
    ),
    program_reader(
        "iperf",
        iperf2.TITLE,
        iperf2.recognises,
        iperf2.read,
        "lines like `[  3]  0.0-10.0 sec  11.2 GBytes  9.62 Gbits/sec` below `Client connecting to ...`",
    ),
    program_reader(
        "ministat",
        ministat.TITLE,
        ministat.recognises,
        ministat.read,
        "rows like `x  10  6.121  6.242  6.183  6.1806  0.0361` below the names of the files",
        lone_variant="a comparison of several files, or ",
    ),
    program_reader(cyclictest.NAME, cyclictest.TITLE, cyclictest.recognises, cyclictest.read, cyclictest.EXCERPT),
    *(program_reader(own.name, own.title, own.recognises, own.read, own.excerpt) for own in printed_programs.PROGRAMS),
    Reader("numbers", numbers.TITLE, numbers.recognises, numbers.read, "a number in each line, and nothing else"),
    Reader(
        "table",
        summary_table.TITLE,
        summary_table.recognises,
        summary_table.read,
        "the columns variant, mean, sd and n, or cells like `79.8 ± 0.1`",
        ("text", "json"),
        lone_variant="name the column of the variants with --variant, say --wide if each is a column, or ",
    ),
    Reader(
        "csv",
        "CSV, one value a row",
        lambda source, _: has_columns(source),
        _read_csv,
        "the columns variant, benchmark and value",
        ("text", "json"),
        lone_variant="name the column of the variants with --variant, say --wide if each is a column, or ",
    ),
)
"""In the order in which they are tried: a file with columns that is nothing else is CSV."""

BY_NAME = {reader.name: reader for reader in READERS}


def recognise(source: FileSource, request: JudgeRequest) -> Reader:
    """Find the reader of a file.

    Raise UnknownForm, UnknownText, Broken, NoHeader, and the errors of Source.require_text.
    """
    source.require_text()
    for reader in READERS:
        if source.form in reader.forms and reader.recognises(source, request):
            return reader
    if source.form == "text":
        raise UnknownText(file=source.shown, count=len(READERS), formats=", ".join(BY_NAME))
    programs = " or ".join(reader.name for reader in READERS if source.form in reader.forms)
    raise UnknownForm(file=source.shown, form=source.form.upper(), programs=programs, keys=_keys(source))


def is_claims(source: FileSource, request: JudgeRequest) -> bool:
    """Return whether a file is just a list of published statistics. Raise the errors of `recognise`."""
    if (
        recognise(source, request).name not in ("csv", "table")
        or has_markup_table(source.head)
        or has_several_tables(source)
    ):
        return False
    return claims.looks_like(shape_of(source).header)


def _keys(source: FileSource) -> str:
    """Return the keys of an unknown document, as the end of a hint."""
    if source.form != "json":
        return ""
    document = source.document
    rows = document if isinstance(document, list) else [document]
    keys = dict.fromkeys(str(key) for row in rows[:SHOWN] if isinstance(row, dict) for key in row)
    return f", from what it has: {format_list([cut(key, 40) for key in keys], SHOWN)}" if keys else ""
