"""Profiles from elsewhere, which a recipe names with `from`: looked at before anything is built."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.base.llvm_tools import find_tool
from kdyno.base.process import attempt, failure
from kdyno.base.profile_files import refuse_other_tools
from kdyno.kernel.inputs import MOST_BYTES, InputUnreadable
from kdyno.kernel.knobs import order
from kdyno.kernel.recipe import ProfileUse
from kdyno.kernel.toolchain import Toolchain

OBJECT = b"# object "
"""Begins the profile that `kdyno profile pull` writes; a line of hexadecimal digits follows, a .gcda file."""
LEVEL = re.compile(r"^Instrumentation level: (\S+)", re.MULTILINE)
LARGEST = re.compile(r"^Maximum (?:function|internal block) count: (\d{1,20})$", re.MULTILINE)
"""In what llvm-profdata shows."""
COUNTED = re.compile(rb"61646367(?:[0-9a-f]{8}){3,}00000000")


TAKEN: dict[ProfileUse, tuple[str, ...]] = {
    # What llvm-profdata says of the other kind of profile is better than what can be said here.
    "pgo": ("instrumented", "samples"),
    "autofdo": ("samples", "instrumented"),
    "propeller": ("clusters",),
    "order": ("order",),
}
"""Kinds of profile_files that a use takes, or looks at more closely."""
FUNCTION = re.compile(r"^Function: ([A-Za-z_]\w*)", re.MULTILINE)
"""In what llvm-profdata shows of samples; a name may have a clone's ending."""
MOST_NAMES = 1000
NO_KERNEL = ("Documentation", "samples", "scripts", "tools", "usr", ".git")
"""Directories at the top of a source whose functions are in no kernel."""


class ProfileOfOtherCode(UserError):
    message = "{path} is not a profile of this kernel: the source has none of its {count} functions, such as {name}"
    hint = "name a profile that was made from this kernel; `kdyno profile stale PROFILE VMLINUX` compares one"


class ProfileUnfit(UserError):
    message = "{path} is not a {kind}: {why}"
    hint = "{way_out}"


class ProfileOfOtherGcc(UserError):
    message = "{path} was counted by code of gcc {counted}, and {name} is version {version}"
    hint = "use that release, since gcc reads only the counters of its own, or train again"


def check(use: ProfileUse, path: Path, toolchain: Toolchain) -> None:
    """Raise InputUnreadable, ProfileOfAnotherTool, ProfileUnfit or ProfileOfOtherGcc unless the file can be what this
    use takes.
    """
    refuse_other_tools(path, _first_bytes(path, use), TAKEN[use])
    match use:
        case "order":
            order.check_file(path)
        case "propeller":
            _check_clusters(path)
        case "autofdo":
            way_out = (
                "if it was cut short or edited, make it again: `kdyno profile cover RECORD --vmlinux FILE -o PROFILE`"
            )
            _listing(path, use, "sample profile of clang", ["--sample"], way_out)
        case "pgo" if toolchain.is_clang:
            _check_ir_profile(path)
        case "pgo":
            _check_counters(path, toolchain)


def require_known(path: Path, tree: Path) -> None:
    """Raise ProfileOfOtherCode if the source has none of the functions that a sample profile has, anywhere."""
    done = attempt([find_tool("llvm-profdata"), "show", "--sample", str(path)], guarded=True)
    names = list(dict.fromkeys(FUNCTION.findall(done.stdout)))[:MOST_NAMES]
    if names and not _occurs(names, tree):
        raise ProfileOfOtherCode(path=path, count=len(names), name=names[0])


def _occurs(names: Sequence[str], tree: Path) -> bool:
    """Return whether one of the names is somewhere in the source: the first place ends the search."""
    left_out = [f"--exclude-dir={name}" for name in NO_KERNEL]
    kinds = ["--include=*.c", "--include=*.h", "--include=*.S"]
    done = attempt(
        ["grep", "-rqwFf", "-", *left_out, *kinds, "."], cwd=tree, stdin="\n".join(names), env={"LC_ALL": "C"}
    )
    if done.returncode > 1:
        raise failure(["grep", "-rqwFf", "-"], done.returncode, done.stderr)
    return done.returncode == 0


def _check_ir_profile(path: Path) -> None:
    kind = "profile of a kernel that clang instrumented"
    way_out = "if it was cut short or edited, make it again with clang -fprofile-generate and llvm-profdata merge"
    listing = _listing(path, "pgo", kind, [], way_out)
    level = LEVEL.search(listing)
    if level is None or level[1] != "IR":
        why = "llvm-profdata finds no counters in it"
        if level:
            why = f"it has the counters of another instrumentation ({level[1]})"
    elif not any(int(count) for count in LARGEST.findall(listing)):
        why = "all its counts are 0"
    else:
        return
    raise ProfileUnfit(path=path, kind=kind, why=why, way_out=way_out)


def _listing(path: Path, use: ProfileUse, kind: str, words: list[str], way_out: str) -> str:
    """Return the output of `llvm-profdata show` for it. Raise InputUnreadable and ProfileUnfit."""
    first = _first_bytes(path, use)
    if first.isascii() and not _ends_a_line(path):
        raise ProfileUnfit(path=path, kind=kind, why="it ends within a line", way_out=way_out)
    done = attempt([find_tool("llvm-profdata"), "show", *words, str(path)], guarded=True)
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or ["llvm-profdata can't read it"])[-1]
        raise ProfileUnfit(path=path, kind=kind, why=why, way_out=way_out)
    return done.stdout


def _ends_a_line(path: Path) -> bool:
    """Return whether a file that isn't empty ends with a line end; llvm-profdata itself refuses an empty one."""
    with path.open("rb") as file:
        end = file.seek(0, 2)
        file.seek(max(end - 1, 0))
        return file.read(1) in (b"\n", b"")


def _check_clusters(path: Path) -> None:
    first = _first_bytes(path, "propeller").partition(b"\n")[0]
    if first.strip() not in (b"v1", b"v0") and not first.startswith(b"!"):
        way_out = "make one with `kdyno profile export --format propeller`"
        raise ProfileUnfit(path=path, kind="list of clusters", why="its first line isn't `v1`", way_out=way_out)


def _check_counters(path: Path, toolchain: Toolchain) -> None:
    """Check each .gcda file by its magic number and its end, a word of 0; gcc's release is `B22*`, backwards, for 12.2
    (gcc/gcov-io.h).
    """
    try:
        lines = read_whole(path, MOST_BYTES).split(b"\n")
    except OSError as error:
        raise InputUnreadable(path=path, name="pgo", why=error.strerror) from error
    pairs = list(zip(lines[::2], lines[1::2], strict=False))
    bad = next((number for number, pair in enumerate(pairs) if not _is_counted(*pair)), None)
    if bad is not None or not pairs or lines[-1]:
        why = f"line {1 + 2 * (len(pairs) if bad is None else bad)} doesn't begin the counters of an object"
        way_out = "if it was cut short or edited, make it again: `kdyno profile pull HOST -o DIR`"
        raise ProfileUnfit(path=path, kind="profile of gcc", why=why, way_out=way_out)
    _, minor, ones, tens = bytes.fromhex(pairs[0][1][8:16].decode("ascii"))
    counted = f"{(tens - ord('A')) * 10 + ones - ord('0')}.{chr(minor)}"
    version = toolchain.identity.version
    if ".".join(version.split(".")[:2]) != counted:
        raise ProfileOfOtherGcc(path=path, counted=counted, name=toolchain.identity.name, version=version)


def _is_counted(named: bytes, digits: bytes) -> bool:
    return named.startswith(OBJECT) and COUNTED.fullmatch(digits) is not None


def _first_bytes(path: Path, use: ProfileUse) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(4096)
    except OSError as error:
        raise InputUnreadable(path=path, name=use, why=error.strerror) from error
