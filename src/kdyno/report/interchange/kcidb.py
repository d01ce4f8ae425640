"""JSON for KCIDB, the database of results of kernel tests: checkouts, builds, and a test for each benchmark.

The schema is that of kcidb-io, 5.0; later versions 5 accept it. Everything that has no field there is in `misc.kdyno`.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from kdyno.base.errors import UserError
from kdyno.base.text import clean, harmless_json
from kdyno.judge.stats.compare import Comparison
from kdyno.judge.verdicts.model import RunReport
from kdyno.kernel.image import ImageRecord
from kdyno.report.interchange.results import CaseResult, case_result, case_sentence, unbootable_variants
from kdyno.store.records import VariantRecord

ORIGIN = "kdyno"
"""The name of the system that submits. KCIDB gives out names: `jq` puts another one in its place."""
VERSION = {"major": 5, "minor": 0}
COMMIT = re.compile(r"git:([0-9a-f]{40})")
NOT_IN_PATH = re.compile(r"[^A-Za-z0-9_-]+")
STATUSES: dict[CaseResult, str] = {
    "failed": "FAIL",
    "passed": "PASS",
    "undecided": "DONE",
    "not-measured": "SKIP",
    "unbootable": "MISS",
}
"""KCIDB's status by result: DONE is a measurement without a verdict, MISS a test that could not be started."""


class NoBuilds(UserError):
    message = "run {run} can't be written for KCIDB: its variant {variant} has no image, and a test belongs to a build"
    hint = "choose a run whose kernels were built, or another format: --format junit"


def render(report: RunReport) -> str:
    """Return the document. Raise NoBuilds."""
    for variant in report.run.variants:
        if not variant.images:
            raise NoBuilds(run=report.run.id[:12], variant=variant.name)
    images = {image.key: image for variant in report.run.variants for image in variant.images}
    checkouts = {_checkout_id(image): _checkout(image) for image in images.values()}
    document = {
        "version": VERSION,
        "checkouts": list(checkouts.values()),
        "builds": [_build(image) for image in images.values()],
        "tests": list(_tests(report)),
    }
    return harmless_json(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


def _checkout_id(image: ImageRecord) -> str:
    """Return the id of a source with its patches."""
    parts = (image.source.identity, *image.patches)
    return f"{ORIGIN}:{hashlib.sha256(' '.join(parts).encode()).hexdigest()}"


def _checkout(image: ImageRecord) -> dict[str, Any]:
    source = image.source
    commit = COMMIT.fullmatch(source.identity)
    return {
        "id": _checkout_id(image),
        "origin": ORIGIN,
        **({"git_commit_hash": commit[1]} if commit else {}),
        "git_commit_name": clean(source.origin),
        "patchset_hash": _patchset_hash(image.patches),
        "comment": clean(f"{source.spec}, Linux {source.version}"),
        "valid": True,
        "misc": {"kdyno": {"identity": clean(source.identity)}},
    }


def _patchset_hash(patches: Sequence[str]) -> str:
    """Return KCIDB's hash of a series: SHA-256 of the lines with the SHA-256 of each patch; empty without patches."""
    return hashlib.sha256("".join(f"{patch}\n" for patch in patches).encode()).hexdigest() if patches else ""


def _build(image: ImageRecord) -> dict[str, Any]:
    return {
        "id": f"{ORIGIN}:{image.key}",
        "checkout_id": _checkout_id(image),
        "origin": ORIGIN,
        "architecture": image.arch,
        "command": clean(shlex.join(image.make)),
        "compiler": clean(image.toolchain.banner),
        "config_name": clean(image.base),
        "duration": image.build_seconds,
        "status": "PASS",
        "misc": {
            "kdyno": {
                "recipe": image.recipe.model_dump(mode="json", exclude_defaults=True),
                "config_sha256": image.config_sha256,
                "release": clean(image.release),
                "version": clean(image.kdyno),
            }
        },
    }


def _tests(report: RunReport) -> Iterator[dict[str, Any]]:
    variants = {variant.name: variant for variant in report.run.variants}
    units = {benchmark.name: benchmark.unit for benchmark in report.benchmarks}
    unbootable = unbootable_variants(report)
    for comparison in report.comparisons:
        yield _test(report, comparison, variants, units[comparison.benchmark], unbootable)


def _test(
    report: RunReport,
    comparison: Comparison,
    variants: dict[str, VariantRecord],
    unit: str,
    unbootable: frozenset[str],
) -> dict[str, Any]:
    result = case_result(comparison, unbootable)
    images, base_images = (variants[name].images for name in (comparison.variant, report.baseline))
    name = hashlib.sha256(json.dumps([comparison.variant, comparison.benchmark]).encode()).hexdigest()[:32]
    value = comparison.variant_value
    started = [boot.started for boot in report.boots if boot.variant == comparison.variant]
    return {
        "id": f"{ORIGIN}:{report.run.id}:{name}",
        "build_id": f"{ORIGIN}:{images[0].key}",
        "origin": ORIGIN,
        "path": f"kdyno.{_path(comparison.benchmark)}",
        "status": STATUSES[result],
        "comment": clean(case_sentence(comparison)),
        **({"start_time": min(started).isoformat()} if started else {}),
        **({"number": {"value": value, "unit": clean(unit)}} if value is not None else {}),
        "environment": {"comment": clean(report.measured), "misc": {"host": report.run.host}},
        "misc": {
            "kdyno": {
                "run": report.run.id,
                "benchmark": clean(comparison.benchmark),
                "variant": clean(comparison.variant),
                "builds": [f"{ORIGIN}:{image.key}" for image in images],
                "baseline": clean(report.baseline),
                "baseline_builds": [f"{ORIGIN}:{image.key}" for image in base_images],
                "baseline_value": comparison.baseline_value,
                "verdict": comparison.verdict,
                "ratio": comparison.estimate.ratio if comparison.estimate else None,
                "low": comparison.estimate.low if comparison.estimate else None,
                "high": comparison.estimate.high if comparison.estimate else None,
                "confidence": report.confidence,
                "margin": report.margin,
                "lane": report.run.lane,
                "machine": report.run.machine,
            }
        },
    }


def _path(benchmark: str) -> str:
    """Return the name of a benchmark as a path of KCIDB, which has letters, digits, `_` and `-` between its dots."""
    parts = (NOT_IN_PATH.sub("-", part) for part in benchmark.split("."))
    return ".".join(filter(None, parts)) or "unnamed"
