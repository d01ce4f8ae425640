"""ccache, which makes the second build fast. It changes the time of a build, never its result."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from kdyno.base import process
from kdyno.kernel.build_log import ccache_error
from kdyno.kernel.environment import nothing_but, passed_on
from kdyno.kernel.toolchain import Toolchain

SLOPPINESS = "include_file_ctime,include_file_mtime"
"""Links and fresh patches renew the times of headers in the state directory; their contents are hashed anyway."""
COMMAND = "ccache"
OTHERS = dict.fromkeys(("CCACHE_COMPILER", "CCACHE_CC", "CCACHE_PATH", "CCACHE_PREFIX_CPP"), "")
"""Settings that could put another compiler in the place of the one that an image's key names, even in ccache's own
file.
"""
EXACT = {"CCACHE_IGNOREHEADERS": "", "CCACHE_IGNOREOPTIONS": "", "CCACHE_NODEPEND": "1"}
"""Settings by which a hit could be the object of another source, even in ccache's own file. With `depend_mode` ccache
4.7 doesn't see `.incbin`, by which the kernel's compressed image gets into bzImage.
"""
STAND_IN = "ccache-bin"
"""The directory of a build in which ccache has the compiler's name."""
LEFT_OUT = "note: ccache can't be used ({why}): the build goes on without it"


def is_installed() -> bool:
    return shutil.which(COMMAND) is not None and not os.environ.get("CCACHE_DISABLE")


def make_words(words: Sequence[str], toolchain: Toolchain) -> tuple[str, ...]:
    """Put ccache before the compiler."""
    kept = [word for word in words if not word.startswith("CC=")]
    return (*kept, f"CC={COMMAND} {toolchain.command}")


def environment(build: Path) -> dict[str, str]:
    """Return the variables for ccache. The place of the cache stays the user's choice (CCACHE_DIR and the rest of
    theirs); hits must not depend on paths.

    Kbuild compiles with paths relative to the object directory (see places.py); BASEDIR and NOHASHDIR take care of
    the few absolute ones and of the working directory.
    """
    if not is_installed():
        return {}
    theirs = {name: value for name, value in os.environ.items() if name.startswith("CCACHE_")}
    theirs.pop("CCACHE_DEPEND", None)
    ours = {"CCACHE_BASEDIR": str(build), "CCACHE_NOHASHDIR": "1", "CCACHE_SLOPPINESS": SLOPPINESS}
    return {**theirs, **OTHERS, **EXACT, **ours}


def stand_in(compiler: str, build: Path) -> dict[str, str]:
    """Put ccache in the compiler's place on the PATH of a build, and return the variables for that.

    The words of make then name the compiler alone, as the kernel's packaging expects: it compares CC with HOSTCC.
    """
    program, directory = shutil.which(COMMAND), build / STAND_IN
    assert program, "ccache is installed"
    directory.mkdir()
    (directory / compiler).symlink_to(program)
    return {"PATH": f"{directory}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


def why_not(compiler: str, scratch: Path) -> str | None:
    """Return why ccache can't compile a line in the directory `scratch` as in a build; None if it can.

    A weaker test is not enough: its other commands succeed where it can't make a file. CCACHE_RECACHE makes it write to
    the cache although the line may have been compiled before.
    """
    source, made = scratch / "ccache-probe.c", scratch / "ccache-probe.o"
    source.write_text("int probe;\n", encoding="utf-8")
    variables = {**passed_on(scratch), **environment(scratch), "CCACHE_RECACHE": "1", "LC_ALL": "C"}
    command = [*nothing_but(variables), COMMAND, compiler, "-c", source.name, "-o", made.name]
    done = process.attempt(command, cwd=scratch, env=variables)
    for file in (source, made):
        file.unlink(missing_ok=True)
    return ccache_error(done.stderr.splitlines()) if done.returncode != 0 else None
