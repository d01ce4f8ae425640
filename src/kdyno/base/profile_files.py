"""Profiles that other tools make, recognised by their first bytes: their kind, and how to make a usable profile from
them.

Users give them to kdyno because their names say `profile`; the tools that read profiles only call them damaged.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from kdyno.base.errors import UserError

LOOKED_AT = 4096
"""The number of first bytes that identify a kind."""
OF_SAMPLES = "make a profile of it with llvm-profgen --kernel --{word}={path} --binary=vmlinux -o PROFILE"


class ProfileOfAnotherTool(UserError):
    message = "{path} is {what}, which kdyno can't read here"
    hint = "{way_out}"


@dataclass(frozen=True)
class ProfileKind:
    """One kind of file."""

    name: str
    begins: re.Pattern[bytes]
    what: str
    way_out: str
    """`{path}` is the file."""


KINDS = (
    ProfileKind(
        "perf.data",
        re.compile(rb"PERFILE2|PERFFILE|2ELIFREP"),
        "a file that perf record wrote (perf.data)",
        f"{OF_SAMPLES.format(word='perfdata', path='{path}')}; it needs `perf record -b` and the vmlinux that ran",
    ),
    ProfileKind(
        "perf script",
        re.compile(
            rb"(?:#[^\n]*+\n)*+(?:"
            rb"(?:[ \t]{0,20}\d{1,20}\n)?[ \t]{0,20}[0-9a-f]{1,16}\s{1,20}0x[0-9a-f]{1,16}/0x[0-9a-f]{1,16}/"
            rb"|[ \t]{0,20}\S[^\n]{0,40}? \d{1,10}(?:/\d{1,10})? {1,20}(?:\[\d{1,5}\] {1,20})?\d{1,12}\.\d{6,9}: )"
        ),
        "the text of perf script",
        f"{OF_SAMPLES.format(word='perfscript', path='{path}')}; it needs `perf script -F ip,brstack`",
    ),
    ProfileKind(
        "gcda",
        re.compile(rb"adcg|gcda"),
        "gcov's counters of one object (.gcda)",
        "`kdyno profile pull HOST -o DIR` gathers those of a whole kernel, and writes a profile that a recipe takes",
    ),
    ProfileKind(
        "gcno",
        re.compile(rb"oncg|gcno"),
        "gcov's notes on one object (.gcno), which hold no counts",
        "`kdyno profile pull HOST -o DIR` gathers the counts of a whole kernel",
    ),
    ProfileKind(
        "profraw",
        re.compile(rb"\x81rforpl\xff|\xfflprofr\x81"),
        "the raw counters of code that clang instrumented (.profraw)",
        "make a profile of it: llvm-profdata merge -o PROFILE {path}",
    ),
    ProfileKind(
        "instrumented",
        re.compile(rb"\xfflprofi\x81"),
        "a profile of code that clang instrumented",
        'use it for a compiler: profile = {{ use = ["pgo"], from = "{path}" }} in a recipe',
    ),
    ProfileKind(
        "compressed",
        re.compile(rb"\x1f\x8b|\xfd7zXZ\0|\x28\xb5\x2f\xfd|BZh[1-9]"),
        "compressed",
        "unpack it, and name the profile in it",
    ),
    ProfileKind(
        "program",
        re.compile(rb"\x7fELF|!<arch>\n"),
        "code, not a profile of it",
        "name the profile: `kdyno profile record` makes one; a vmlinux comes after it",
    ),
    ProfileKind(
        "perf report",
        re.compile(rb"(?:#[^\n]*+\n)*?# {0,20}Overhead "),
        "the text of perf report",
        "it has no addresses: make a profile of its perf.data by llvm-profgen --kernel --perfdata=perf.data "
        "--binary=vmlinux -o PROFILE",
    ),
    ProfileKind(
        "folded",
        re.compile(rb"[^\s;][^;\n]{0,200}(?:;[^;\n]{1,200}){1,200}? \d{1,20}\n"),
        "folded stacks, as flame graphs have them",
        "they have no addresses: make a profile of the perf.data by llvm-profgen --kernel --perfdata=perf.data "
        "--binary=vmlinux -o PROFILE",
    ),
    ProfileKind(
        "bolt",
        re.compile(
            rb"(?:boltedcollection|no_lbr)\b|[0-6] \S{1,1000} [0-9a-f]{1,16} [0-6] \S{1,1000} [0-9a-f]{1,16} \d"
        ),
        "a profile of BOLT (.fdata)",
        "it is of one program's addresses: `kdyno profile record` makes a profile that kdyno reads",
    ),
    ProfileKind(
        "gmon",
        re.compile(rb"gmon[\x01\0]"),
        "what gprof's counters left (gmon.out)",
        "`kdyno profile record` makes a profile that kdyno reads",
    ),
    ProfileKind(
        "trace.dat",
        re.compile(rb"\x17\x08Dtracing"),
        "a trace of the kernel (trace-cmd)",
        "it has no counts of branches: make a profile with `perf record -b`",
    ),
    ProfileKind(
        "clusters",
        re.compile(rb"(?:[@#][^\n]*+\n)*+!\w[^\n]{0,1000}\n!!\d|(?:#[^\n]*+\n)*+v1\n(?:m [^\n]*+\n)?f \S"),
        "a list of the blocks of functions, for propeller",
        'use it for a compiler: profile = {{ use = ["propeller"], from = "{path}" }} in a recipe',
    ),
    ProfileKind(
        "order",
        re.compile(rb"(?:#[^\n]*+\n)*+(?:[A-Za-z_][\w.]{1,200}\n){2}"),
        "a list of functions, an order for the linker",
        'use it for one: profile = {{ use = ["order"], from = "{path}" }} in a recipe',
    ),
    ProfileKind(
        "samples",
        re.compile(rb"(?:\xef\xbb\xbf)?[^\s:][^:\n]{0,1000}:\d{1,20}:\d{1,20}\r?\n"),
        "a sample profile of clang",
        "run `kdyno profile stale {path} VMLINUX` to see its worth for a kernel, `kdyno profile overlap` to compare "
        "two",
    ),
)


def refuse_other_tools(path: Path, head: bytes, taken: Collection[str]) -> None:
    """Raise ProfileOfAnotherTool if a file begins as one of KINDS does, except those whose names are in `taken`."""
    for kind in KINDS:
        if kind.begins.match(head[:LOOKED_AT]) and kind.name not in taken:
            raise ProfileOfAnotherTool(path=path, what=kind.what, way_out=kind.way_out.format(path=path))
