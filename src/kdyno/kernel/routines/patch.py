"""The patch by which a kernel source takes chosen candidates of its library routines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kdyno.base.errors import Unbuildable, UserError
from kdyno.kernel.image import ArchName
from kdyno.kernel.made_patches import changed
from kdyno.kernel.routines.edits import EditFailed, edited
from kdyno.kernel.routines.families import DATA, RoutineFamily, RoutineSource, SourceEdit, find_families
from kdyno.kernel.source import KernelSource

REWRITES = DATA / "rewrites"


class NoRoutinePatch(UserError):
    message = "kdyno has no patch by which a kernel for {arch} takes {name} for {family}"
    hint = "{way}"


class RoutineUnfit(Unbuildable):
    message = "{name} can't be put into {source} for {family}: {why}"
    hint = "remove `{family}` from the routines, or choose another source: patches are made for Linux 6.6 to 6.12"


def find_choice(family: str, name: str) -> tuple[RoutineFamily, RoutineSource]:
    """Return a family and its candidate. Raises UnknownRoutine and UnknownCandidate."""
    [model] = find_families([family])
    return model, model.candidate_named(name)


def require_patch(family: RoutineFamily, candidate: RoutineSource, arch: ArchName) -> tuple[SourceEdit, ...]:
    """Return the edits of a candidate for an architecture. Raises NoRoutinePatch if there are none."""
    edits = candidate.edits_for(arch) if arch in family.arches else ()
    if not edits:
        names = patchable(family, arch)
        way = f"choose from {', '.join(names)}" if names else f"remove `{family.name}` from the routines"
        raise NoRoutinePatch(arch=arch, name=candidate.name, family=family.name, way=way)
    return edits


def patchable(family: RoutineFamily, arch: ArchName) -> list[str]:
    """Return the names of the candidates that a kernel of an architecture can get by a patch."""
    return [row.name for row in family.candidate if arch in family.arches and row.edits_for(arch)]


def routines_patch(choices: Mapping[str, str], source: KernelSource, arch: ArchName) -> str:
    """Return one patch with the chosen candidates, by the name of their family, in that order.

    Raises UnknownRoutine, UnknownCandidate, NoRoutinePatch and RoutineUnfit.
    """
    texts: dict[str, tuple[str, str]] = {}
    for name in sorted(choices):
        family, candidate = find_choice(name, choices[name])
        for edit in require_patch(family, candidate, arch):
            before, after = texts.get(edit.file) or (_read(source, edit, family, candidate),) * 2
            try:
                texts[edit.file] = before, apply_edit(after, edit, candidate)
            except EditFailed as error:
                raise RoutineUnfit(
                    name=candidate.name, source=source.identity.spec, family=family.name, why=str(error)
                ) from error
    return "".join(changed(file, before, after) for file, (before, after) in sorted(texts.items()))


def apply_edit(text: str, edit: SourceEdit, candidate: RoutineSource) -> str:
    """Return the text of a file after an edit of a candidate. Raises EditFailed."""
    return edited(text, edit, read_rewrite(candidate, edit), candidate.words)


def read_rewrite(candidate: RoutineSource, edit: SourceEdit) -> str:
    """Return the text of the file that an edit takes its function from; nothing if it takes none."""
    if edit.way != "rewrite":
        return ""
    return (REWRITES / (candidate.rewrite or candidate.file)).read_text(encoding="utf-8")


def edited_files(tree: Path, edits: Sequence[SourceEdit], candidate: RoutineSource) -> dict[str, str]:
    """Return the texts of the files that edits change, by their names. Raises EditFailed and OSError."""
    texts: dict[str, str] = {}
    for edit in edits:
        text = texts.get(edit.file) or (tree / edit.file).read_text(encoding="utf-8", errors="surrogateescape")
        texts[edit.file] = apply_edit(text, edit, candidate)
    return texts


def _read(source: KernelSource, edit: SourceEdit, family: RoutineFamily, candidate: RoutineSource) -> str:
    try:
        return (source.tree / edit.file).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        raise RoutineUnfit(
            name=candidate.name, source=source.identity.spec, family=family.name, why=f"it has no {edit.file}"
        ) from None
