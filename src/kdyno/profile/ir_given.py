"""A profile of an instrumented kernel that somebody gives clang: text or binary, looked at by llvm-profdata."""

from __future__ import annotations

import re
from pathlib import Path

from kdyno.errors import UserError
from kdyno.profile.clang import NotAProfile, profdata, require_whole

LEVEL = re.compile(r"^Instrumentation level: (\S+)", re.MULTILINE)
FUNCTIONS = re.compile(r"^Total functions: (\d{1,20})$", re.MULTILINE)
LARGEST = re.compile(r"^Maximum (?:function|internal block) count: (\d{1,20})$", re.MULTILINE)


class NotIrProfile(UserError):
    message = "{path} is no profile of a kernel that clang instrumented: {why}"
    hint = "clang -fprofile-generate and llvm-profdata merge make one; an edited file can't be mended"


def require_ir_profile(path: Path) -> int:
    """How many functions a profile has that clang -fprofile-use reads. Raises NotIrProfile, ProfileCutShort."""
    try:
        require_whole(path)
        listing = profdata(["show", path], [path])
    except NotAProfile as error:
        raise NotIrProfile(path=path, why=error.facts["why"]) from error
    level, functions = LEVEL.search(listing), FUNCTIONS.search(listing)
    if level is None or functions is None:
        raise NotIrProfile(path=path, why="llvm-profdata finds no counters in it")
    if level[1] != "IR":
        raise NotIrProfile(path=path, why=f"it has the counters of another instrumentation ({level[1]})")
    if not any(int(count) for count in LARGEST.findall(listing)):
        raise NotIrProfile(path=path, why="all its counts are 0")
    return int(functions[1])
