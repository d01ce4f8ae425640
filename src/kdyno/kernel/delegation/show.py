"""The compiler of each file by a plan, and of each object in an image: for people and for `--json`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kdyno.base.frozen import Frozen
from kdyno.base.state import State
from kdyno.base.text import clean
from kdyno.kernel.delegation.plan_file import DelegationPlan
from kdyno.kernel.delegation.records import FILE, ObjectRecord, Records, read_records
from kdyno.kernel.delegation.resolve import resolve, source_files
from kdyno.kernel.delegation.resolved import Resolved, ResolvedRule
from kdyno.kernel.image import Image
from kdyno.kernel.source import KernelSource
from kdyno.kernel.toolchain import Toolchain

FILES_SHOWN = 20


class PlanView(Frozen):
    """A plan that is possible here."""

    plan: Resolved
    files: dict[str, tuple[str, ...]]
    """By rule: the files of the tree that it decides for."""


class ImageView(Frozen):
    """The compilers of an image's objects."""

    image: str
    summary: str
    records: Records


def plan_view(written: DelegationPlan, source: KernelSource, reference: Toolchain, state: State) -> PlanView:
    """Resolve a plan for a source. Raise the errors of `resolve`."""
    plan = resolve(written, source.tree, source.identity.spec, reference, state).plan
    files: dict[str, list[str]] = {rule.name: [] for rule in plan.rules}
    for file in source_files(source.tree):
        if rule := plan.rule_of(file):
            files[rule.name].append(file)
    return PlanView(plan=plan, files={name: tuple(paths) for name, paths in files.items()})


def image_view(image: Image) -> ImageView | None:
    """Return the records of ccd from the build of an image; None if it had no part in it."""
    if not image.record.objects:
        return None
    made = read_records(image.directory / FILE)
    return ImageView(image=image.record.key, summary=summary(image.record.objects, made), records=made)


def summary(counts: dict[str, int], made: Records) -> str:
    """Return one line: `gcc-12 742 objects; clang-19 48 objects, 12 by way of assembler`."""
    return "; ".join(_of(compiler, made.objects) for compiler in counts)


def _of(compiler: str, objects: Sequence[ObjectRecord]) -> str:
    theirs = [record for record in objects if record.compiler == compiler]
    by_assembler = sum(record.by_assembler for record in theirs)
    fallen = sum(record.answer == "fallback" for record in theirs)
    parts = [f"{compiler} {len(theirs):,} object{'s' if len(theirs) != 1 else ''}"]
    parts += [f"{by_assembler:,} by way of assembler"] if by_assembler else []
    parts += [f"{fallen:,} that the chosen compiler failed on"] if fallen else []
    return ", ".join(parts)


def plan_lines(view: PlanView) -> Iterator[str]:
    """Yield the rules, and the files that each decides for."""
    plan = view.plan
    others = [name for name in plan.compilers if name != plan.reference]
    yield f"reference: {plan.reference}, for all that no rule chooses; further compilers: {', '.join(others) or 'none'}"
    if plan.held:
        yield "held: the configuration has only what all of them support"
    for rule in plan.rules:
        files = view.files[rule.name]
        yield f"{rule.name}: {_done(rule)}: {len(files):,} file{'s' if len(files) != 1 else ''}"
        yield from (f"  {clean(file)}" for file in files[:FILES_SHOWN])
        if len(files) > FILES_SHOWN:
            yield f"  ... and {len(files) - FILES_SHOWN:,} more (--json has them)"


def _done(rule: ResolvedRule) -> str:
    words = [rule.compiler, *rule.add, *(f"without {word}" for word in rule.remove)]
    by_assembler = f", by way of assembler ({', '.join(rule.passes) or 'no passes'})" if rule.by_assembler else ""
    return f"{' '.join(words)}{by_assembler}"


def image_lines(view: ImageView) -> Iterator[str]:
    """Yield the objects that a rule changed, with what was done to each; then the probes that compilers disagreed
    on.
    """
    yield f"image {view.image[:12]}: {view.summary}"
    changed = [record for record in view.records.objects if record.answer != "passed"]
    for record in sorted(changed, key=lambda record: record.source):
        yield f"  {_object(record)}"
    for record in view.records.objects:
        for finding in record.findings:
            yield clean(f"finding: {record.source}: {finding['function']}: {finding['lint']}: {finding['message']}")
    for probe in view.records.probes:
        yield f"probe refused by {probe.refused_by}: {clean(' '.join(probe.probe))[:120]}"
        yield f"  {clean(probe.why)[:200]}"


def _object(record: ObjectRecord) -> str:
    parts = [record.compiler, *record.added, *(f"without {word}" for word in record.removed)]
    if record.by_assembler:
        passes = (f"{done.name} {done.changes}" if done.changes else done.name for done in record.passes)
        parts.append(f"by way of assembler ({', '.join(passes)})")
    took = "" if record.seconds is None else f", {record.seconds:.2f} s"
    why = f" because {record.reason}" if record.reason else ""
    return clean(f"{record.source}: {' '.join(parts)}{took}{why}")
