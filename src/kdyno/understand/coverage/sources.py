"""The source files that a kernel was built from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.base.state import State
from kdyno.kernel.image import ImageRecord
from kdyno.kernel.patches import patched_tree
from kdyno.kernel.source_trees import tree_path
from kdyno.understand.coverage.line_table import GENERATED

MOST_BYTES = 16_000_000
"""The largest source file that is read; the largest one of Linux with code has 1 MB."""


class SourceGone(UserError):
    message = "the source of this kernel, {spec} ({identity}), is not in the state directory any more"
    hint = "run `kdyno plan` of its experiment to fetch it again, or name an equal tree by --source DIR"


class SourceUnknown(UserError):
    message = "kdyno did not build this vmlinux, and its source is not known"
    hint = "name the source by --source DIR"


class NotATree(UserError):
    message = "{path} is not the source tree: all {number:,} files that vmlinux names are missing"
    hint = "name the directory with kernel/, mm/ and the others by --source DIR"


class SourceChanged(UserError):
    message = "{path} is not the file that was compiled: it has {lines:,} lines, but vmlinux has code of line {line:,}"
    hint = "name a tree with the unchanged source by --source DIR"


@dataclass(frozen=True)
class Tree:
    """A source tree; files are named relative to it."""

    root: Path

    def text(self, path: str, last_line: int) -> list[str] | None:
        """Return the lines of a file; None for a file outside of the tree, such as a generated one.

        Raises SourceChanged if it has fewer than `last_line`.
        """
        if path.startswith(GENERATED) or path.startswith("/") or ".." in PurePosixPath(path).parts:
            return None
        try:
            content = read_whole(self.root / path, MOST_BYTES)
        except OSError:
            return None
        lines = content.decode(errors="replace").split("\n")
        if last_line > len(lines):
            raise SourceChanged(path=self.root / path, lines=len(lines), line=last_line)
        return lines

    def require_files(self, paths: list[str]) -> None:
        """Raise NotATree if not one of the files is there."""
        if paths and not any((self.root / path).is_file() for path in paths if not path.startswith("/")):
            raise NotATree(path=self.root, number=len(paths))


def find_tree(image: ImageRecord | None, path: Path | None, state: State) -> Tree:
    """Return the named tree, or the one that the image was built from. Raises SourceUnknown and SourceGone."""
    if path:
        return Tree(path)
    if image is None:
        raise SourceUnknown()
    root = tree_path(image.source.identity, state)
    if image.patches:
        root = patched_tree(image.source.identity, image.patches, state)
    if not root.is_dir():
        raise SourceGone(spec=image.source.spec, identity=image.source.identity[:24])
    return Tree(root)
