"""rustc-perf: the output of `collector bench_runtime_local`, and the site's answer to a comparison (JSON)."""

from __future__ import annotations

import re

from kdyno.measure.readers import json_values as json
from kdyno.measure.readers.errors import Broken
from kdyno.measure.readers.readings import FileSeries, ProgramOutput, positive
from kdyno.measure.readers.source import FileSource

TITLE = "rustc-perf output"
_FINISHED = re.compile(r"^Finished (\S+) \(\d+/\d+\)$")
_METRIC = re.compile(r"^\[(.+?)\]: min:\s*+[\d,]++\s++mean:\s*+([\d,]++)\s++stddev:\s*+([\d,]++)$")
_UNITS = {"Instructions": "instructions", "Cycles": "cycles", "Wall time [µs]": "us"}
_COMPARISONS = {"compile_comparisons": ("benchmark", "profile", "scenario"), "runtime_comparisons": ("benchmark",)}
"""List in the document -> the keys that make the benchmark's name."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


def recognises(source: FileSource) -> bool:
    if source.form == "json":
        return isinstance(source.document, dict) and not _COMPARISONS.keys().isdisjoint(source.document)
    lines = [line.strip() for line in source.head.splitlines()]
    return any(map(_FINISHED.match, lines)) and any(map(_METRIC.match, lines))


def read(source: FileSource) -> ProgramOutput:
    """Read means and standard deviations of runtime benchmarks; or the two values of each benchmark of a comparison.

    Raise Broken.
    """
    return _comparison(source) if source.form == "json" else _runtime(source)


def _runtime(source: FileSource) -> ProgramOutput:
    series: list[FileSeries] = []
    benchmark = ""
    for line in map(str.strip, source.text.splitlines()):
        if match := _FINISHED.match(line):
            benchmark = match[1]
        elif (match := _METRIC.match(line)) and benchmark:
            mean, sd = (float(text.replace(",", "")) for text in match.groups()[1:])
            if mean:
                unit = _UNITS.get(match[1], "")
                name = f"{benchmark} {match[1].partition(' [')[0].lower()}"
                series.append(
                    FileSeries(name, unit, (mean,), sd=sd / mean, population=True, direction="lower", step=1.0)
                )
    return ProgramOutput(*positive(series))


def _comparison(source: FileSource) -> ProgramOutput:
    try:
        document = json.table(source.document, "the document")
        variants = [_artifact(document, key) for key in ("a", "b")]
        series = []
        for key, parts in _COMPARISONS.items():
            for entry in json.rows(document.get(key, []), key):
                case = json.table(entry, "a comparison")
                name = " ".join(json.text(case.get(part), part) for part in parts)
                statistics = json.table(case.get("comparison"), "comparison").get("statistics")
                values = json.numbers(statistics, "statistics")
                if len(values) != len(variants):
                    raise json.Unfit(f"statistics of {name} are not two")
                series += [
                    FileSeries(name, "", (value,), variant=variant, direction="lower")
                    for variant, value in zip(variants, values, strict=True)
                ]
    except ValueError as error:
        raise Broken(file=source.shown, format=TITLE, why=json.why(error)) from error
    usable, unusable = positive(series)
    return ProgramOutput(usable, ("rustc-perf's site gives one value for each compiler, of whatever metric", *unusable))


def _artifact(document: dict[str, object], key: str) -> str:
    name = json.text(json.table(document.get(key), key).get("commit"), "commit")
    return name[:10] if _COMMIT.fullmatch(name) else name
