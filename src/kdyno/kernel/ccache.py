"""ccache, which makes the second build fast. It changes the time of a build, never its result."""

from __future__ import annotations

import os
import shlex
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
"""The directory of a build in which ccache has the compiler's name, or a script has ccache's."""
FIRST = """\
#!/bin/sh
# ccache in its depend mode, but for assembly and for C that includes a file by .incbin, which that mode doesn't see.
for source; do :; done
case $source in
    *.c)
        grep -q -F .incbin -- "$source"
        if [ $? = 1 ]; then
            unset CCACHE_NODEPEND
            export CCACHE_DEPEND=1
        fi ;;
esac
exec {ccache} "$@"
"""
"""The source is the last word of a compilation by Kbuild."""
NOTHING_FOUND = 1
"""The status of grep without a match."""
SEARCH_SECONDS = 120
"""The time limit for reading all headers of a source, which takes a second or two."""
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


def in_depend_mode(build: Path) -> dict[str, str]:
    """Put a script in ccache's place on the PATH of a build, and return the variables for that.

    ccache then takes a file's headers from what the compiler lists, and doesn't preprocess it: that saves a quarter of
    the CPU time of a first compilation. Later builds find these objects as far as all their headers are the same, which
    those of another configuration never are: each file includes the configuration. The compiler's list leaves out
    headers of the system, so this is for code that has none, as a kernel's.
    """
    program, directory = shutil.which(COMMAND), build / STAND_IN
    assert program, "ccache is installed"
    directory.mkdir()
    script = directory / COMMAND
    script.write_text(FIRST.format(ccache=shlex.quote(program)), encoding="utf-8", errors="surrogateescape")
    script.chmod(0o755)
    return {"PATH": f"{directory}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


def includes_binaries(tree: Path) -> bool:
    """Return whether a header of a source includes a file by `.incbin`: then no C file tells by its own text."""
    found = process.attempt(["grep", "-r", "-l", "-F", "--include=*.h", ".incbin", tree], timeout=SEARCH_SECONDS)
    return found.returncode != NOTHING_FOUND


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
