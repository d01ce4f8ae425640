"""JUnit XML: a suite for each variant, a case for each benchmark. It keeps the rules of both schemas that are in use.

These are JUnit.xsd, of Apache Ant's reports, and junit-10.xsd, of the xUnit plugin of Jenkins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC
from xml.etree import ElementTree

from kdyno.base.text import clean, format_list, limit
from kdyno.judge.verdicts.checks import KernelCheck
from kdyno.judge.verdicts.model import RunReport
from kdyno.report.interchange.results import CaseResult, case_result, case_sentence, unbootable_variants
from kdyno.report.summary import summary_lines

HOST = "localhost"
"""What the schema wants where the name of the host is not on record."""
TIME = "0.000"
"""The seconds of a case: a boot runs all benchmarks, and the record has the time of the boot alone."""
ELEMENTS: dict[CaseResult, str] = {
    "failed": "failure",
    "unbootable": "error",
    "undecided": "skipped",
    "not-measured": "skipped",
}
"""The element in a case by its result; a case that passed is empty."""


def render(report: RunReport) -> str:
    """Return the document."""
    root = ElementTree.Element("testsuites")
    unbootable = unbootable_variants(report)
    summaries = dict(zip(report.others, summary_lines(report), strict=True))
    for variant in report.variants:
        cases = [*_benchmark_cases(report, variant, unbootable), *_check_cases(report, variant)]
        if cases:
            root.append(_suite(report, variant, cases, len(root), summaries.get(variant, "")))
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _suite(
    report: RunReport, variant: str, cases: list[ElementTree.Element], number: int, summary: str
) -> ElementTree.Element:
    elements = Counter(case[0].tag for case in cases if len(case))
    seconds = sum(boot.seconds for boot in report.boots if boot.variant == variant)
    suite = ElementTree.Element(
        "testsuite",
        {
            "id": str(number),
            "package": f"kdyno.{clean(report.title)}",
            "name": clean(variant),
            "timestamp": report.run.created.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
            "hostname": HOST,
            "tests": str(len(cases)),
            "failures": str(elements["failure"]),
            "errors": str(elements["error"]),
            "skipped": str(elements["skipped"]),
            "time": f"{seconds:.3f}",
        },
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (
        ("run", report.run.id),
        ("measured", report.measured),
        ("baseline", report.baseline),
        ("margin", f"{limit(report.margin)} %"),
        ("kdyno", report.run.kdyno),
        *((f"note {place}", notice) for place, notice in enumerate(report.notices, 1)),
    ):
        ElementTree.SubElement(properties, "property", {"name": name, "value": clean(value)})
    suite.extend(cases)
    ElementTree.SubElement(suite, "system-out").text = clean(summary)
    ElementTree.SubElement(suite, "system-err")
    return suite


def _benchmark_cases(report: RunReport, variant: str, unbootable: frozenset[str]) -> Iterator[ElementTree.Element]:
    for comparison in report.comparisons:
        if comparison.variant == variant:
            case = _case(report, variant, comparison.benchmark)
            result = case_result(comparison, unbootable)
            if result in ELEMENTS:
                sentence = clean(case_sentence(comparison))
                element = ElementTree.SubElement(case, ELEMENTS[result], {"message": sentence})
                element.text = sentence
                if element.tag != "skipped":  # JUnit.xsd has no type there, and demands one elsewhere
                    element.set("type", comparison.verdict or result)
            yield case


def _check_cases(report: RunReport, variant: str) -> Iterator[ElementTree.Element]:
    """Yield a case for the kernel's own tests if there is a check, of all images of the variant together."""
    checks = [check for check in report.checks if check.variant == variant]
    if checks:
        case = _case(report, variant, "KUnit")
        if failed := [check for check in checks if not check.passed]:
            sentence = clean(_failures(failed))
            ElementTree.SubElement(case, "failure", {"type": "KUnit", "message": sentence}).text = sentence
        yield case


def _failures(checks: list[KernelCheck]) -> str:
    return format_list([check.in_words() for check in checks])


def _case(report: RunReport, variant: str, name: str) -> ElementTree.Element:
    classname = f"kdyno.{clean(report.title)}.{clean(variant)}"
    return ElementTree.Element("testcase", {"classname": classname, "name": clean(name), "time": TIME})
