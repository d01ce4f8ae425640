"""The patch that adds the choice of CPU families to a kernel tree, as `git am` and `patch -p1` take it."""

from __future__ import annotations

import difflib
import hashlib
from pathlib import Path

from kdyno.base import git
from kdyno.base.cpu_families import find, table
from kdyno.base.errors import UserError
from kdyno.base.files import write_whole
from kdyno.base.version import __version__
from kdyno.kernel.march.kernel_tree import ANY, KCONFIG, MACROS, MAKEFILE, VERMAGIC, edited, native_symbol
from kdyno.kernel.version import kernel_version

READ = (KCONFIG, MAKEFILE, MACROS, *VERMAGIC)
BASE = "x86-64"
"""The level that every choice but this one adds to; it needs no entry."""
CONTEXT = 3


class NotARepository(UserError):
    message = "{tree} is not the top of a git repository"
    hint = "leave --git out: the patch is written, and `patch -p1` takes it as well"


class CommitterUnknown(UserError):
    message = "git doesn't know who commits in {tree}"
    hint = "set them: git config --global user.name NAME; git config --global user.email ADDRESS; or leave --git out"


class GitRefused(UserError):
    message = "git am doesn't take the patch in {tree}: {complaint}"
    hint = "nothing was changed; finish, commit or stash what is under way there, or leave --git out"


def patch_of(tree: Path) -> str:
    """Return the patch for the files as they are in this tree. Raise UserError if the tree is not one that it can be
    for.
    """
    version = kernel_version(tree, str(tree))
    return as_mail(_read(tree), str(tree), version)


def symbol_in(tree: Path, cpu: str) -> str | None:
    """Return the Kconfig symbol, without CONFIG_, that stands for a name of -march once the patch is in; None: none
    does.
    """
    if cpu == "native":
        return native_symbol(_read(tree).get(KCONFIG, ""))
    row = find(cpu)
    return None if row is None else ANY if row.name == BASE else row.symbol


def write(patch: str, path: Path) -> None:
    """Keep the patch in a file, in the bytes that the tree's files have. Raise NotWritable."""
    write_whole(path, patch.encode(errors="surrogateescape"))


def commit(tree: Path, patch: str) -> str:
    """Commit the patch to a repository; return short name and subject. Raise GitRefused, with all as it was."""
    here = git.attempt(tree, "rev-parse", "--show-toplevel")
    if here.returncode != 0 or Path(here.stdout.strip()).resolve() != tree.resolve():
        raise NotARepository(tree=tree)
    under_way = git.output(tree, "rev-parse", "--git-path", "rebase-apply").strip()
    if (tree / under_way).exists():  # to abort it would throw away what is not ours
        raise GitRefused(tree=tree, complaint="a `git am` or `git rebase` is under way there")
    filters = git.filter_overrides(tree)
    done = git.attempt(tree, *filters, "am", "--keep-cr", stdin=patch, guarded=True)
    if done.returncode != 0:
        git.attempt(tree, *filters, "am", "--abort")
        if "tell me who you are" in done.stderr:
            raise CommitterUnknown(tree=tree)
        raise GitRefused(tree=tree, complaint="; ".join((done.stderr or done.stdout).strip().splitlines()[:3]))
    return git.output(tree, "log", "-1", "--format=%h %s").strip()


def as_mail(files: dict[str, str], tree: str, version: str) -> str:
    """Return the patch as a mail, from the texts of the tree's files. Pure."""
    rows = [row for name, row in table().items() if name != BASE]
    changed = edited(files, rows, tree)
    diffs = [_diff(path, files[path], new) for path, new in changed.items()]
    return _HEAD.format(version=version, files="\n".join(f" {path}" for path in changed), count=len(rows)) + "".join(
        (*diffs, f"-- \nkdyno {__version__}\n")
    )


_HEAD = """\
From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: kdyno <kdyno@localhost>
Subject: [PATCH] x86/Kconfig: choose the CPU that 64-bit code is compiled for

A kernel for any x86-64 CPU can't use what newer ones have. Add a choice of
ISA levels and CPU families, {count} names of -march, and hand the chosen one
to the compiler. What the compiler doesn't know can't be chosen.

The CPU goes into the version magic of modules: one that was compiled for
another CPU is refused when it is loaded, not when it meets an instruction.

Made for Linux {version} from the tree's own files by kdyno.

---
{files}

"""


def _read(tree: Path) -> dict[str, str]:
    return {
        path: (tree / path).read_text(encoding="utf-8", errors="surrogateescape")
        for path in READ
        if (tree / path).is_file()
    }


def _diff(path: str, old: str, new: str) -> str:
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{path}", f"b/{path}", n=CONTEXT
    )
    return f"diff --git a/{path} b/{path}\nindex {_blob(old)}..{_blob(new)} 100644\n" + "".join(lines)


def _blob(text: str) -> str:
    """Return the name that git gives to a file of this content; with it `git am -3` finds what the patch was made
    from.
    """
    content = text.encode(errors="surrogateescape")
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
