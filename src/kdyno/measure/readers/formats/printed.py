"""Programs that print a measurement a line: the patterns of their lines, and one reader for all of them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kdyno.base.measurement import Direction
from kdyno.measure.readers.cells import cell_of
from kdyno.measure.readers.errors import TooLarge, TwoMarks
from kdyno.measure.readers.numerals import Mark, decimal_of
from kdyno.measure.readers.readings import ProgramOutput, positive, printed_series
from kdyno.measure.readers.source import FileSource
from kdyno.measure.readers.units import format_unit

_V = r"(?P<value>\d+(?:,\d{3})*(?:\.\d+)?)"
_CLOCK = re.compile(r"(?:(\d{1,4}):)?(\d{1,4}):(\d{1,2}(?:[.,]\d+)?)")
_LINE_END = re.compile(r"[\r\n]+")
LONGEST_LINE = 300
"""Characters of a line that are used."""
MOST_LINES = 50_000


@dataclass(frozen=True)
class Line:
    """A line with a measurement: the group `value`, and `name` and `unit` if the line has them."""

    pattern: re.Pattern[str]
    unit: str = ""
    direction: Direction | None = None
    name: str = ""


@dataclass(frozen=True)
class PrintedProgram:
    """The output of a program."""

    name: str
    """The name for `--format`, and of its benchmarks."""
    sign: re.Pattern[str]
    """A pattern that its output has near the beginning."""
    excerpt: str
    measures: tuple[tuple[Line, ...], ...]
    """Each item is one measurement in several forms, of which the first one found is read."""
    start: re.Pattern[str] | None = None
    """The line that a run begins with."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Pattern of a line -> the form of its groups in the benchmark's name: the circumstances of the measurement."""

    @property
    def title(self) -> str:
        return f"{self.name} output"

    def recognises(self, source: FileSource) -> bool:
        return bool(self.sign.search(source.head))

    def read(self, source: FileSource) -> ProgramOutput:
        """Read a value from every run, for the benchmark that its circumstances name. Raise TwoMarks."""
        matches = [
            (named, line, match) for named, run in self._runs(source) for line, match in self._match_measures(run)
        ]
        decimal = decimal_of(match["value"] for _, _, match in matches)
        if decimal is None:
            raise TwoMarks(file=source.shown)
        values: dict[tuple[str, str, Direction | None], list[str]] = defaultdict(list)
        for named, line, match in matches:
            groups = match.groupdict()
            own = (groups.get("name") or line.name).strip()
            unit = format_unit((groups.get("unit") or line.unit).strip())
            benchmark = ", ".join(filter(None, (" ".join(filter(None, (self.name, own))), *named)))
            if number := _number(match["value"], decimal.mark):
                values[benchmark, unit, line.direction].append(number)
        series = [printed_series(name, unit, texts, direction) for (name, unit, direction), texts in values.items()]
        usable, notes = positive(series)
        if unclear := decimal.guessed_from:
            notes = (*notes, f"{unclear} was read with a comma between thousands")
        return ProgramOutput(usable, notes)

    def _runs(self, source: FileSource) -> Iterator[tuple[tuple[str, ...], list[str]]]:
        """Yield the lines of each run, with the circumstances that precede them."""
        facts: dict[str, str] = {}
        lines: list[str] = []
        patterns = {re.compile(pattern): template for pattern, template in self.facts.items()}
        all_lines = _LINE_END.split(source.text)
        if len(all_lines) > MOST_LINES:
            raise TooLarge(file=source.shown, most=MOST_LINES, what=f"lines of {self.title}")
        for line in all_lines:
            cut = line[:LONGEST_LINE]
            begins = bool(self.start and self.start.search(cut))
            own = {
                known.pattern: match.expand(template)
                for known, template in patterns.items()
                if (match := known.search(cut))
            }
            if (begins or own) and any(
                line.pattern.search(text) for ways in self.measures for line in ways for text in lines
            ):
                yield tuple(facts.values()), lines
                lines = []
            if begins:
                facts = {}
            facts |= own
            lines.append(cut)
        yield tuple(facts.values()), lines

    def _match_measures(self, run: list[str]) -> Iterator[tuple[Line, re.Match[str]]]:
        for ways in self.measures:
            for line in ways:
                matches = [match for text in run if (match := line.pattern.search(text))]
                if matches:
                    yield from ((line, match) for match in matches)
                    break


def _number(text: str, mark: Mark) -> str:
    """Return a number, or a duration in seconds, with a decimal point; empty for any other text."""
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, seconds = clock.groups()
        rest = seconds.replace(",", ".")
        total = 3600 * int(hours or 0) + 60 * int(minutes) + float(rest)
        return f"{total:.{len(rest.partition('.')[2])}f}"
    cell = cell_of(text, mark)
    return cell.mean if cell else ""


def _line(pattern: str, unit: str = "", direction: Direction | None = None, name: str = "") -> Line:
    return Line(re.compile(pattern.replace("VALUE", _V)), unit, direction, name)


_PER_SECOND = r"(?:/sec|/s| per sec(?:ond)?)"
PROGRAMS = (
    PrintedProgram(
        "hackbench",
        re.compile(
            r"^Running (?:in \w+ mode )?with \d+.*tasks|\A\s*(?:Time: [\d.]+\s+)*Time: [\d.]+\s*\Z", re.MULTILINE
        ),
        "lines like `Running in process mode with 10 groups ...` and `Time: 5.844`",
        ((_line(r"^Time: *VALUE", "s", "lower"),),),
        start=re.compile(r"^Running "),
        facts={
            r"^Running in (\w+) mode": r"\1",
            r"with (\d+) groups using (\d+) file descriptors": r"\1 groups, \2 fds",
            r"with (\d+\*\d+) \(==": r"\1",
            r"will pass (\d+) messages of (\d+) bytes": r"\1 messages of \2 bytes",
        },
    ),
    PrintedProgram(
        "perf-bench",
        re.compile(r"^ ?# Running '?[a-z-]+/[a-z-]+'? benchmark", re.MULTILINE),
        "lines like `# Running 'sched/pipe' benchmark:` and `4.912345 usecs/op`",
        (
            (
                _line(r"^ *(?P<name>[\w-]+), +VALUE, (?P<unit>GB/sec), +total-speed", direction="higher"),
                _line(r"^ *VALUE,? (?P<unit>GB/sec) total speed", direction="higher"),
                _line(r"^ *VALUE (?P<unit>[nmu]secs/op)", direction="lower"),
                _line(rf"^ *VALUE ops{_PER_SECOND}", "ops/s", "higher"),
                _line(rf"Averaged VALUE operations{_PER_SECOND}", "ops/s", "higher"),
                _line(r"^ *VALUE (?P<unit>[KMG]?B/sec)", direction="higher"),
                _line(r"^(?:Wokeup|Requeued) .* in VALUE (?P<unit>[mu]s)\b", direction="lower"),
                _line(r"^ *Total time: *VALUE \[?sec", "s", "lower"),
            ),
        ),
        start=re.compile(r"^ ?# Running '?[a-z-]+/[a-z-]+'? benchmark"),
        facts={
            r"^ ?# Running '?([a-z-]+/[a-z-]+)'? benchmark": r"\1",
            r"^# function '([^']+)'": r"\1",
            r"^# Copying (\S+ ?\w*) bytes": r"\1 bytes",
            r"^# (\d+ sender and receiver \w+) per group": r"\1",
            r"^# (\d+ groups) == \d+ (\w+) run": r"\1 of \2",
        },
    ),
    PrintedProgram(
        "wrk2",
        re.compile(r"^ *Thread calibration: mean lat\.", re.MULTILINE),
        "lines like `Thread calibration: mean lat.: 9747us, ...` and `Latency     6.46ms    1.93ms  12.34ms   67.66%`",
        ((_line(r"^ +Latency +VALUE(?P<unit>us|ms|s)\b", direction="lower", name="mean latency"),),),
        start=re.compile(r"^Running \S+ tests? @ "),
        facts={
            r"^Running \S+ tests? @ (\S+)": r"\1",
            r"^ +(\d+ threads?) and (\d+ connections?)": r"\1, \2",
        },
    ),
    PrintedProgram(
        "wrk",
        re.compile(r"^Running \S+ tests? @ |^Requests/sec: ", re.MULTILINE),
        "lines like `Running 10s test @ http://...` and `Requests/sec: 49801.12`",
        ((_line(r"^Requests/sec: +VALUE", "requests/s", "higher"),),),
        start=re.compile(r"^Running \S+ tests? @ "),
        facts={
            r"^Running \S+ tests? @ (\S+)": r"\1",
            r"^ +(\d+ threads?) and (\d+ connections?)": r"\1, \2",
        },
    ),
    PrintedProgram(
        "ab",
        re.compile(r"^This is ApacheBench|^Requests per second: +[\d.]+ \[#/sec\]", re.MULTILINE),
        "lines like `Requests per second:    1234.56 [#/sec] (mean)`",
        ((_line(r"^Requests per second: +VALUE \[#/sec\]", "requests/s", "higher"),),),
        start=re.compile(r"^Server Software:|^This is ApacheBench"),
        facts={r"^Document Path: +(\S+)": r"\1", r"^Concurrency Level: +(\d+)": r"concurrency \1"},
    ),
    PrintedProgram(
        "redis-benchmark",
        re.compile(
            r'^====== .+ ======|: [\d.]+ requests per second|^"test","rps"|^"[A-Z][^"\n]*","[\d.]+"', re.MULTILINE
        ),
        "lines like `====== SET ======` and `throughput summary: 81300.81 requests per second`",
        (
            (
                _line(r"throughput summary: *VALUE requests per second", "requests/s", "higher"),
                _line(r"^(?P<name>[A-Z][^:]*): VALUE requests per second", "requests/s", "higher"),
                _line(r"^VALUE requests per second", "requests/s", "higher"),
                _line(r'^"(?P<name>[^"]+)","VALUE"', "requests/s", "higher"),
            ),
        ),
        start=re.compile(r"^====== .+ ======"),
        facts={
            r"^====== (.+) ======": r"\1",
            r"^ +(\d+) parallel clients": r"\1 clients",
            r"^ +(\d+) bytes payload": r"\1 bytes",
        },
    ),
    PrintedProgram(
        "unixbench",
        re.compile(r"System Benchmarks (?:Partial )?Index|BYTE UNIX Benchmarks", re.MULTILINE),
        "lines like `Pipe Throughput   1851218.4 lps   (10.0 s, 7 samples)`, or the table of indices",
        (
            (
                _line(r"^(?P<name>\S.*?) +VALUE (?P<unit>lps|lpm|KBps|MWIPS|[A-Za-z]+ps) +\(", direction="higher"),
                _line(r"^(?P<name>[A-Za-z]\S*(?: \S+)*) {2,}\d+\.\d +VALUE +\d+\.\d *$", direction="higher"),
            ),
        ),
        start=re.compile(r"running \d+ parallel cop"),
        facts={r"running (\d+) parallel cop(?:y|ies)": r"\1 at once"},
    ),
    PrintedProgram(
        "iperf3-text",
        re.compile(r"^Connecting to host .*, port \d+|^\[ *(?:\d+|SUM)\] .*[KMG]?bits/sec", re.MULTILINE),
        "lines like `[  5]   0.00-10.00  sec  11.2 GBytes  9.61 Gbits/sec      receiver`",
        (
            (
                _line(r"^\[SUM\] .* VALUE (?P<unit>[KMGT]?(?:bits|Bytes)/sec).* receiver", direction="higher"),
                _line(r"^\[ *\d+\] .* VALUE (?P<unit>[KMGT]?(?:bits|Bytes)/sec).* receiver", direction="higher"),
            ),
        ),
        start=re.compile(r"^Connecting to host "),
    ),
    PrintedProgram(
        "ebizzy",
        re.compile(r"^\d+ records/s\b", re.MULTILINE),
        "lines like `12345 records/s`",
        ((_line(r"^VALUE records/s", "records/s", "higher"),),),
    ),
    PrintedProgram(
        "sockperf",
        re.compile(r"^sockperf: ", re.MULTILINE),
        "lines like `sockperf: ====> avg-latency=11.858 (std-dev=1.543, ...)`",
        (
            (
                _line(r"^sockperf: .*avg-lat(?:ency)?= *VALUE", "us", "lower", "average latency"),
                _line(r"^sockperf: Summary: Latency is VALUE usec", "us", "lower", "average latency"),
            ),
            (_line(r"^sockperf: Summary: Message Rate is VALUE \[msg/sec\]", "messages/s", "higher", "rate"),),
        ),
        start=re.compile(r"^sockperf: == version"),
    ),
    PrintedProgram(
        "dbench",
        re.compile(r"^Throughput [\d.]+ MB/sec .*\b(?:clients|procs)\b", re.MULTILINE),
        "lines like `Throughput 415.21 MB/sec  2 clients  2 procs  max_latency=5.123 ms`, as tbench prints them",
        ((_line(r"^Throughput VALUE (?P<unit>MB/sec)", direction="higher"),),),
        start=re.compile(r"^(?:db|tb)ench version"),
        facts={r"^Throughput .* (\d+) (?:clients|procs)\b": r"\1 clients"},
    ),
    PrintedProgram(
        "memtier",
        re.compile(r"^Type +Ops/sec +Hits/sec", re.MULTILINE),
        "lines of memtier_benchmark like `Sets        13566.12          ---          ---         1.22345 ...`",
        ((_line(r"^(?P<name>Sets|Gets) +VALUE ", "ops/s", "higher"),),),
        start=re.compile(r"^ALL STATS|^(?:BEST|WORST|AGGREGATED AVERAGE) RUN RESULTS"),
        facts={r"^(BEST|WORST|AGGREGATED AVERAGE) RUN RESULTS": r"\1 run"},
    ),
    PrintedProgram(
        "kcbench",
        re.compile(r"^Run \d+ \(-j \d+\): +[\d.]+ seconds", re.MULTILINE),
        "lines like `Run 1 (-j 32):       43.33 seconds / 83.09 kernels/hour [P:2801%, 1245 maj. pagefaults]`",
        ((_line(r"^Run \d+ \((?P<name>-j \d+)\): +VALUE seconds", "s", "lower"),),),
        start=re.compile(r"^Processor:"),
        facts={r"^Linux compiled: +(\S+)": r"Linux \1"},
    ),
    PrintedProgram(
        "stream",
        re.compile(r"^Function +Best Rate MB/s", re.MULTILINE),
        "lines like `Copy:           12345.6     0.012988     0.012960     0.013020`",
        ((_line(r"^(?P<name>Copy|Scale|Add|Triad): +VALUE ", "MB/s", "higher"),),),
        start=re.compile(r"^STREAM version"),
        facts={
            r"^Array size = (\d+)": r"\1 elements",
            r"^Number of Threads counted = (\d+)": r"\1 threads",
        },
    ),
    PrintedProgram(
        "dd",
        re.compile(r"^\d+ bytes (?:\([^)\n]*\) )?copied, ", re.MULTILINE),
        "lines like `1073741824 bytes (1.1 GB, 1.0 GiB) copied, 1.23456 s, 870 MB/s`",
        # the rate is rounded to three digits; status=progress prints whole seconds
        ((_line(r" copied, (?P<value>\d+[.,]\d+) s(?:econds)?,", "s", "lower"),),),
        facts={r"^(\d+) bytes ": r"\1 bytes"},
    ),
    PrintedProgram(
        "7z",
        re.compile(r"^Dict +Speed +Usage +R/U +Rating", re.MULTILINE),
        "lines of `7z b` like `Avr:             185  11722  21717  |              198  10485  20761`",
        (
            (_line(r"^Avr:[^|]* VALUE +\|", "MIPS", "higher", "compressing"),),
            (_line(r"^Avr:[^|]*\|.* VALUE *$", "MIPS", "higher", "decompressing"),),
        ),
        start=re.compile(r"^7-Zip "),
        facts={r"Benchmark threads: +(\d+)": r"\1 threads"},
    ),
    PrintedProgram(
        "coremark",
        re.compile(r"^Iterations/Sec +: \d|^CoreMark 1\.0 : \d", re.MULTILINE),
        "lines like `Iterations/Sec   : 32403.402868`, or `CoreMark 1.0 : 32403.402868 / GCC12.2.0 -O2 / Heap`",
        (
            (
                _line(r"^Iterations/Sec +: VALUE", "iterations/s", "higher"),
                _line(r"^CoreMark 1\.0 : VALUE", "iterations/s", "higher"),
            ),
        ),
        start=re.compile(r"^2K performance run parameters"),
    ),
    PrintedProgram(
        "time",
        re.compile(
            r"^Executed in +\d|^real\s+\d\S*\s+user\s+\d|"
            r"Elapsed \(wall clock\) time|user .*elapsed \d+%CPU|s user \S+s system \d+% cpu",
            re.MULTILINE,
        ),
        "lines like `real 0m12.345s`, as the shell's time writes them",
        tuple(
            tuple(_line(pattern, "s", "lower", name) for pattern in patterns)
            for name, patterns in {
                "real": (
                    r"^real\s+(?P<value>\d\S*)",
                    r"Elapsed \(wall clock\) time .*: (?P<value>[\d:.,]+)",
                    r"system (?P<value>[\d:.,]+)elapsed",
                    r"% cpu (?P<value>[\d:.,]+) total",
                    r"^Executed in +VALUE (?P<unit>[a-z]+)",
                ),
                "user": (
                    r"^user\s+(?P<value>\d\S*)",
                    r"User time \(seconds\): VALUE",
                    r"VALUEuser ",
                    r" VALUEs user ",
                    r"^ +usr time +VALUE (?P<unit>[a-z]+)",
                ),
                "sys": (
                    r"^sys\s+(?P<value>\d\S*)",
                    r"System time \(seconds\): VALUE",
                    r"user VALUEsystem ",
                    r"s user VALUEs system",
                    r"^ +sys time +VALUE (?P<unit>[a-z]+)",
                ),
            }.items()
        ),
    ),
)
