"""sysbench: the rate of its test; the latency is derived from the same measurement."""

from __future__ import annotations

import re
from collections import defaultdict

from kdyno.measure.readers.readings import ProgramOutput, positive, printed_series
from kdyno.measure.readers.source import FileSource

TITLE = "sysbench output"
_RATES = (
    (re.compile(r"events per second: +(\d+(?:\.\d+)?)|events/s \(eps\): +(\d+(?:\.\d+)?)"), "", "events/s"),
    (re.compile(r"\( *(\d+(?:\.\d+)?) MiB/sec\)"), "", "MiB/s"),
    (re.compile(r"^ +transactions: +\d+ +\( *(\d+(?:\.\d+)?) per sec"), "", "transactions/s"),
    (re.compile(r"^ +reads/s: +(\d+(?:\.\d+)?)"), "reads", "1/s"),
    (re.compile(r"^ +writes/s: +(\d+(?:\.\d+)?)"), "writes", "1/s"),
)
_KINDS = {
    "cpu": re.compile(r"CPU speed:|Prime numbers limit"),
    "memory": re.compile(r"MiB transferred|memory speed test"),
    "OLTP": re.compile(r"SQL statistics:|OLTP test statistics"),
    "file": re.compile(r"Extra file open flags|File operations:"),
    "threads": re.compile(r"Thread yields per test|threads test"),
    "mutex": re.compile(r"mutex performance test"),
}
_SIGN = re.compile(
    r"^sysbench \d|^Running the test with following options:|^ +total number of events: +\d+ *$", re.MULTILINE
)
_TIME = re.compile(r"total time: +(\d+(?:\.\d+)?)s")
_EVENTS = re.compile(r"total number of events: +(\d+)")
_THREADS = re.compile(r"Number of threads: +(\d+)")


def recognises(source: FileSource) -> bool:
    return bool(_SIGN.search(source.head))


def read(source: FileSource) -> ProgramOutput:
    """Read a value from every run; if it has no rate, its events divided by its time are one."""
    values: dict[tuple[str, str], list[str]] = defaultdict(list)
    for run in re.split(r"^(?=sysbench \d)", source.text, flags=re.MULTILINE):
        lines = run.splitlines()
        kind = next((name for name, sign in _KINDS.items() if sign.search(run)), "")
        threads = f"{match[1]} threads" if (match := _THREADS.search(run)) else ""
        name = ", ".join(filter(None, (f"sysbench {kind}".strip(), threads)))
        matches = [
            (f"{name} {what}".strip(), unit, next(filter(None, match.groups())))
            for pattern, what, unit in _RATES
            for line in lines
            if (match := pattern.search(line))
        ]
        time, events = _TIME.search(run), _EVENTS.search(run)
        if not matches and time and events and float(time[1]):
            matches = [(name, "events/s", f"{float(events[1]) / float(time[1]):.6g}")]
        units = {unit for _, unit, _ in matches}
        for benchmark, unit, text in matches:
            if unit != "events/s" or len(units) == 1:  # 1.1 prints both
                values[benchmark, unit].append(text)
    series = [printed_series(name, unit, texts, "higher") for (name, unit), texts in values.items()]
    return ProgramOutput(*positive(series))
