"""The lab on a real source: each patch goes in, its code is proven, and kernels with it pass KUnit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kdyno.base.cpu import read_cpu
from kdyno.base.state import State
from kdyno.kernel.build import build, plan_build
from kdyno.kernel.image import ArchName
from kdyno.kernel.made_patches import keep
from kdyno.kernel.patches import patched
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.routines.families import RoutineFamily, RoutineSource, routine_families
from kdyno.kernel.routines.patch import edited_files, patchable, routines_patch
from kdyno.kernel.source import KernelSource, fetch
from kdyno.understand.lab.build import RoutineBench
from kdyno.understand.lab.prove import RoutineProof, proof_limits, prove_candidate
from tests.e2e.conftest import Kdyno

STARTED = ("clear_page", "copy_page", "memcmp", "memcpy", "memmove", "memset", "strcmp", "strlen")
"""Families that a kernel for x86-64 chooses by its processor, or calls often."""
ARCHES: tuple[ArchName, ...] = ("x86_64", "um")
CHOSEN = {
    "memcpy": "words-rep-from-256",
    "memset": "words-rep-from-1024",
    "strlen": "words",
    "find_next_bit": "four-words",
    "sort": "insertion-up-to-24",
    "memmove": "words",
    "memcmp": "words",
}


@pytest.fixture(scope="module")
def source(state: Path) -> KernelSource:
    return fetch("debian:linux-source-6.12", State(state), print)


@pytest.fixture(scope="module")
def bench(state: Path, source: KernelSource, tmp_path_factory: pytest.TempPathFactory) -> RoutineBench:
    return RoutineBench(source.tree, read_cpu().flags, tmp_path_factory.mktemp("lab"), State(state))


def patchable_candidates() -> list[tuple[ArchName, RoutineFamily, RoutineSource]]:
    return [
        (arch, family, family.candidate_named(name))
        for arch in ARCHES
        for family in routine_families().values()
        for name in patchable(family, arch)
    ]


def prove(
    bench: RoutineBench, arch: ArchName, family: RoutineFamily, row: RoutineSource, *, is_sample: bool
) -> RoutineProof:
    build = bench.build_patched(family, row, arch)
    program = bench.link(build, 0, np.random.default_rng(1))
    return prove_candidate(program, build, 0, proof_limits(family, is_sample=is_sample), 1)


@pytest.mark.parametrize(
    ("arch", "family", "row"), patchable_candidates(), ids=lambda value: getattr(value, "name", value)
)
def test_what_a_compiler_makes_of_a_patched_file_is_equal_to_the_definition(
    arch: ArchName, family: RoutineFamily, row: RoutineSource, bench: RoutineBench
) -> None:
    proof = prove(bench, arch, family, row, is_sample=True)
    assert (proof.outcome, proof.name) == ("equal", row.name), proof.statement


@pytest.mark.long
@pytest.mark.parametrize(
    ("arch", "family", "row"), patchable_candidates(), ids=lambda value: getattr(value, "name", value)
)
def test_what_a_compiler_makes_of_a_patched_file_is_equal_up_to_all_bounds(
    arch: ArchName, family: RoutineFamily, row: RoutineSource, bench: RoutineBench
) -> None:
    proof = prove(bench, arch, family, row, is_sample=False)
    assert (proof.outcome, proof.name) == ("equal", row.name), proof.statement


@pytest.mark.parametrize("arch", ARCHES)
def test_the_patch_of_all_routines_makes_the_files_that_were_proven(
    arch: ArchName, source: KernelSource, state: Path
) -> None:
    patch = keep("routines", routines_patch({"strlen": "words", "memset": "words"}, source, arch), State(state))
    tree = patched(source, (patch,), State(state), print).tree
    for name in ("strlen", "memset"):
        row = routine_families()[name].candidate_named("words")
        for file, text in edited_files(source.tree, row.edits_for(arch), row).items():
            assert (tree / file).read_text(encoding="utf-8") == text


@pytest.mark.long
def test_a_kernel_with_other_routines_passes_the_suites_of_kunit_for_them(kdyno: Kdyno) -> None:
    routines = "\n".join(f'{family} = "{name}"' for family, name in CHOSEN.items())
    text = f"""
[variants.routines.kconfig]
KUNIT = true
RUNTIME_TESTING_MENU = true
STRING_KUNIT_TEST = true
STRING_HELPERS_KUNIT_TEST = true
MEMCPY_KUNIT_TEST = true
CHECKSUM_KUNIT = true
CPUMASK_KUNIT_TEST = true
TEST_SORT = true

[variants.routines.routines]
{routines}

[workload]
type = "lmbench"
tests = ["lat_syscall"]
"""
    kdyno("run", kdyno.experiment("routines", text, baseline="routines", blocks=1), "--quiet")
    [check] = json.loads(kdyno("report", "latest", "--json").stdout)["checks"]
    assert check["suites"] >= 6 and check["tests_passed"] > 40
    assert (check["tests_failed"], check["failures"], check["fault"]) == (0, [], "")


def test_the_routines_of_a_kernel_that_has_started_are_equal_as_it_patched_them(kdyno: Kdyno, state: Path) -> None:
    plan = plan_build(
        Recipe(opt="O2", lines=True), fetch("debian:linux-source-6.12", State(state), print), "dyno", State(state)
    )
    key = build(plan, State(state), lambda _done, _total, _line: None).record.key
    digests = {}
    for way in ((), ("--started",), ("--started", "--cpu", "EPYC-Milan")):
        report = json.loads(kdyno("lab", "prove", *STARTED, "--sample", "--image", key, "--json", *way).stdout)
        proofs = {family["family"]: proof for family in report["families"] for proof in family["proofs"]}
        assert {proof["outcome"] for proof in proofs.values()} == {"equal"}
        assert set(proofs) == set(STARTED)
        digests[way] = {family: proof["digest"] for family, proof in proofs.items()}
    in_file, of_intel, of_amd = digests.values()
    assert in_file["memcpy"] != of_intel["memcpy"] != of_amd["memcpy"], "each processor gets other code"
