"""The ranges of kernels that are bisected: commits of a git repository, a stack of patches, recipes, or packages."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from kdyno.base import git
from kdyno.base.errors import UserError
from kdyno.base.files import read_whole, write_whole
from kdyno.base.names import absolute, require_text
from kdyno.base.state import State
from kdyno.base.text import clean_line
from kdyno.kernel.image import ImageRecord
from kdyno.kernel.patches import MOST_BYTES, read_patch
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import commit_of, work_tree
from kdyno.kernel.unpack import is_tracked
from kdyno.tune.bisect.packages import PackageRange, is_package_range, read_packages
from kdyno.tune.bisect.recipes import RecipeRange, is_recipe, read_recipes

RangeKind = Literal["commits", "patches", "recipes", "packages"]
NUMBER_OF_ENDS = 2
SHORT = 12
"""Digits of a commit's name in names of variants."""
MOST_NAME = 60
MOST_TITLE = 100
DOTS = ".."
SUFFIXES = (".patch", ".diff")
SERIES = "series"
"""The file of quilt with the order of the patches in its directory."""
UNFIT = re.compile(r"[^A-Za-z0-9._+-]+")
SUBJECT = re.compile(r"^Subject: *(?:\[[^\]]*\] *)?(.*)$", re.M)


class NotARange(UserError):
    message = "`{text}` is neither a range of commits nor a patch"
    hint = (
        "name a range, GOOD..BAD or DIRECTORY#GOOD..BAD; or patch files and directories of patches; or two recipes, "
        "plain opt=O3; or packages, debian:linux-image-A..B"
    )


class SymmetricRange(UserError):
    message = "`{text}` has three dots: it names the commits of both sides, not the way from one to the other"
    hint = "name two commits, the first of which is an ancestor of the second, with two dots between them"


class EmptyRange(UserError):
    message = "{good} and {bad} are the same commit, {commit}"
    hint = "name a commit before the slow-down, and one after it"


class ReversedRange(UserError):
    message = "the range {good}..{bad} is reversed: {bad} is an ancestor of {good}"
    hint = "swap the ends: {bad}..{good}; add --better to find what made the benchmark better"


class NotAnAncestor(UserError):
    message = "{good} is not an ancestor of {bad}, so that no way leads from one to the other"
    hint = "begin with their common ancestor, {base}, if it is as fast as {good}"


class NotOnMainline(UserError):
    message = "{good} is not on the first-parent line of {bad}: it was merged into it"
    hint = "begin with a commit that `git log --first-parent {bad}` lists"


class NoPatches(UserError):
    message = "the directory {path} has no patches"
    hint = "name patch files, or a directory with *.patch files or with quilt's file `series`"


@dataclass(frozen=True)
class Commit:
    """One commit of a range."""

    sha: str
    title: str
    is_merge: bool


@dataclass(frozen=True)
class CommitRange:
    """The commits on the first-parent line from the good end to the bad end; a merge is one step.

    Kernel 0 is the good end; each further one has one change more, up to the bad end.
    """

    kind: ClassVar[RangeKind] = "commits"

    words: tuple[str, ...]
    """The range as the user wrote it."""
    repository: Path
    good: str
    bad: str
    """Both ends as the user named them."""
    commits: tuple[Commit, ...]
    """All kernels, the good end first."""

    @property
    def named(self) -> str:
        return " ".join(self.words)

    @property
    def steps(self) -> int:
        return len(self.commits) - 1

    @property
    def resolved(self) -> dict[str, str]:
        """What the names of the user mean: the commit by name."""
        return {self.good: self.commits[0].sha, self.bad: self.commits[-1].sha}

    def name(self, state: int) -> str:
        """Return the name of a kernel, which is that of its variant."""
        return self.commits[state].sha[:SHORT]

    def title(self, state: int) -> str:
        """Return the title of the change that leads to a kernel."""
        return self.commits[state].title

    def recipe(self, base: Recipe, state: int) -> Recipe:
        """Return the recipe of a kernel."""
        return base.model_copy(update={"source": f"git:{self.repository}#{self.commits[state].sha}"})

    def built(self, records: Iterable[ImageRecord], base: Recipe, config: str) -> frozenset[int]:
        """Return the states whose image is among the records, with this base configuration."""
        state_by_identity = {f"git:{commit.sha}": state for state, commit in enumerate(self.commits)}
        identities = (record.source.identity for record in _similar(records, base, config, {"source"}))
        return frozenset(state_by_identity[one] for one in identities if one in state_by_identity)

    def recipe_without(self, base: Recipe, step: int, directory: Path) -> Recipe:
        """Return the recipe of the bad end without a step; a patch that reverts it is written to the directory."""
        sha = self.commits[step].sha
        path = directory / f"revert-{sha}.patch"
        options = ("--no-ext-diff", "--no-textconv", "--binary", "--full-index", "--no-renames")
        write_whole(path, git.output(self.repository, "diff", *options, sha, f"{sha}^1"))
        bad = self.recipe(base, self.steps)
        return bad.model_copy(update={"patches": (*bad.patches, str(path))})

    def notes(self) -> list[str]:
        """Return what a user should know before the first build."""
        if not is_tracked(self.repository):
            return []
        _, changed = work_tree(self.repository)
        return [f"{changed} changed in {self.repository}: commits are measured, without these changes"] * bool(changed)

    def advice(self, before: int, after: int) -> str:
        """Return how to go on within a culprit; empty if it is a single change."""
        if after - before != 1 or not self.commits[after].is_merge:
            return ""
        sha = self.commits[after].sha[:SHORT]
        start = git.output(self.repository, "merge-base", f"{sha}^1", f"{sha}^2").strip()[:SHORT]
        return f"it is a merge: `kdyno bisect {self.repository}#{start}..{sha}^2` bisects what it merged"


@dataclass(frozen=True)
class PatchRange:
    """A source with the first patches of a stack, from none of them to all."""

    kind: ClassVar[RangeKind] = "patches"

    words: tuple[str, ...]
    patches: tuple[Path, ...]
    digests: tuple[str, ...]
    titles: tuple[str, ...]

    @property
    def named(self) -> str:
        return " ".join(self.words)

    @property
    def steps(self) -> int:
        return len(self.patches)

    @property
    def resolved(self) -> dict[str, str]:
        return {str(path): digest for path, digest in zip(self.patches, self.digests, strict=True)}

    def name(self, state: int) -> str:
        if state == 0:
            return "unpatched"
        stem = UNFIT.sub("-", self.patches[state - 1].stem).strip("._+-")
        return f"{state}-{stem}"[:MOST_NAME].rstrip("._+-")

    def title(self, state: int) -> str:
        return self.titles[state - 1] if state else "no patch"

    def recipe(self, base: Recipe, state: int) -> Recipe:
        return base.model_copy(update={"patches": (*base.patches, *map(str, self.patches[:state]))})

    def built(self, records: Iterable[ImageRecord], base: Recipe, config: str) -> frozenset[int]:
        state_by_patches = {self.digests[:state]: state for state in range(self.steps + 1)}
        patches = (record.patches for record in _similar(records, base, config, {"patches"}))
        return frozenset(state_by_patches[one] for one in patches if one in state_by_patches)

    def recipe_without(self, base: Recipe, step: int, directory: Path) -> Recipe:  # noqa: ARG002
        """Return the recipe of the bad end without a patch."""
        others = (*self.patches[: step - 1], *self.patches[step:])
        return base.model_copy(update={"patches": (*base.patches, *map(str, others))})

    def notes(self) -> list[str]:
        return []

    def advice(self, before: int, after: int) -> str:  # noqa: ARG002
        """Return an empty text: a patch is a single change."""
        return ""


KernelRange = CommitRange | PatchRange | RecipeRange | PackageRange


def _similar(records: Iterable[ImageRecord], base: Recipe, config: str, but: Collection[str]) -> Iterator[ImageRecord]:
    """Yield the records of images with this recipe except for some knobs."""
    plain = {knob: getattr(Recipe(), knob) for knob in but}
    wanted = base.built.model_copy(update=plain)
    for record in records:
        if record.recipe.model_copy(update=plain) == wanted and record.base == (base.config or config):
            yield record


def read_range(words: Sequence[str], base: Path, state: State) -> KernelRange:
    """Read what is bisected: one range of commits or packages, two recipes, or patches; relative paths start from
    `base`.

    Raises KdynoError.
    """
    for word in words:
        require_text(word)
    if len(words) == 1 and is_package_range(words[0]):
        return read_packages(words[0])
    if len(words) == 1 and DOTS in words[0] and not (base / words[0]).exists():
        return _read_commits(words[0], base)
    if len(words) == NUMBER_OF_ENDS and all(is_recipe(word, base) for word in words):
        return read_recipes(words, base, state)
    return _read_patches(words, base)


def _read_commits(text: str, base: Path) -> CommitRange:
    place, mark, revisions = text.rpartition("#")
    if "..." in revisions:
        raise SymmetricRange(text=text)
    good, _, bad = revisions.partition(DOTS)
    repository = Path(absolute(place.removeprefix("git:") if mark else ".", base))
    good, bad = good or "HEAD", bad or "HEAD"
    good_commit, bad_commit = (commit_of(f"{repository}#{name}")[1] for name in (good, bad))
    if good_commit == bad_commit:
        raise EmptyRange(good=good, bad=bad, commit=good_commit[:SHORT])
    if _is_ancestor(repository, bad_commit, good_commit):
        raise ReversedRange(good=good, bad=bad)
    if not _is_ancestor(repository, good_commit, bad_commit):
        found = git.attempt(repository, "merge-base", good_commit, bad_commit).stdout.strip()
        raise NotAnAncestor(good=good, bad=bad, base=found[:SHORT] or "if they have one")
    commits = _first_parents(repository, good_commit, bad_commit)
    if commits[0].sha != good_commit:
        raise NotOnMainline(good=good, bad=bad)
    return CommitRange((text,), repository, good, bad, commits)


def _first_parents(repository: Path, good: str, bad: str) -> tuple[Commit, ...]:
    """Return the commits of the first-parent line to `bad` that `good` doesn't contain, after the one before them.

    That is `good` if `good` is on the line.
    """
    form = "--format=%H%x00%P%x00%s"
    listed = git.output(repository, "log", "--first-parent", "--reverse", form, f"{good}..{bad}")
    rows = [line.split("\0", 2) for line in listed.split("\n") if line]
    start, _, _ = rows[0][1].partition(" ")
    title = git.output(repository, "log", "-1", "--format=%s", good).strip()
    first = Commit(start, clean_line(title)[:MOST_TITLE], is_merge=False)
    return first, *(Commit(sha, clean_line(title)[:MOST_TITLE], " " in parents) for sha, parents, title in rows)


def _is_ancestor(repository: Path, first: str, second: str) -> bool:
    return git.attempt(repository, "merge-base", "--is-ancestor", first, second).returncode == 0


def _read_patches(words: Sequence[str], base: Path) -> PatchRange:
    paths: list[Path] = []
    for word in words:
        path = Path(absolute(word, base))
        if path.is_dir():
            paths += _patches_in(path)
        elif path.is_file():
            paths.append(path)
        else:
            raise NotARange(text=word)
    patches = [read_patch(path) for path in paths]
    return PatchRange(
        words=tuple(words),
        patches=tuple(paths),
        digests=tuple(patch.digest for patch in patches),
        titles=tuple(map(_title, paths)),
    )


def _patches_in(directory: Path) -> list[Path]:
    """Return the patches of a directory, in the order of quilt's series if there is one, else by name."""
    series = directory / SERIES
    if series.is_file():
        lines = read_whole(series, MOST_BYTES).decode(errors="replace").splitlines()
        names = [line.split(" #")[0].split()[0] for line in lines if line.strip() and not line.startswith("#")]
        found = [Path(absolute(name, directory)) for name in names]
    else:
        found = sorted(path for path in directory.iterdir() if path.suffix in SUFFIXES)
    if not found:
        raise NoPatches(path=directory)
    return found


def _title(path: Path) -> str:
    """Return the subject of a patch, or the name of its file."""
    head = read_whole(path, MOST_BYTES)[:10_000].decode(errors="replace")
    match = SUBJECT.search(head)
    return clean_line(match[1] if match and match[1].strip() else path.name)[:MOST_TITLE]
