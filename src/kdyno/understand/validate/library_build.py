"""Builds functions of a kernel's lib/ as programs of user space, with the kernel's sources and flags and shim headers.

A unit is one or two files of lib/ with loads (data/validate/loads/NAME.c), which call functions with data. Each set of
options gives one static program for a unit, without a C library: its names could conflict with those of the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from kdyno.base import process
from kdyno.base.cpu import read_cpu
from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.packages import install_advice
from kdyno.base.state import State
from kdyno.kernel.environment import nothing_but, passed_on
from kdyno.kernel.march.compiler import used_in_kernel
from kdyno.kernel.toolchain import CompilerMissing, LlvmToolsMissing, Toolchain, find

WORD_AT_A_TIME = ("asm/word-at-a-time.h", "arch/x86/include/asm/word-at-a-time.h")
"""The short header of x86 that reads strings eight bytes at a time."""
OPTIONS = ("CONFIG_X86_64=y", "CONFIG_64BIT=y", "CONFIG_CC_OPTIMIZE_FOR_PERFORMANCE=y", "CONFIG_FUNCTION_ALIGNMENT=16")
"""The configuration that the kernel's makefiles get when they list their flags."""
NOT_ALIKE = (
    "headers of data/validate/shim.h stand in for those of a built kernel",
    "no retpolines, return thunks, function tracing, stack protector or sanitizers: those come with a configuration",
    "memcpy, memset and memmove are REP instructions, as on x86 CPUs with FSRM, but for lib/string.c itself",
    "lib/lz4 gets -O3 in a kernel; here it gets each set's own level, as everything else does",
)
"""The differences between the programs and the objects of a kernel."""


class NoMakefileFlags(UserError):
    message = "the makefiles of {tree} do not list their flags for x86-64 with {compiler}: {complaint}"
    hint = "name a complete kernel source; trees from 5.10 on are known to work"


class TooFewSets(UserError):
    message = "fewer than two option sets can be compared: {why}"
    hint = "install another compiler: {way}"


class NothingToCompile(InfrastructureError):
    message = "no program can be built from {tree}: {why}"
    hint = "name a kernel source from 6.6 on, for which the loads are written"


@dataclass(frozen=True)
class OptionSet:
    """A compiler, and words for KCFLAGS."""

    name: str
    compiler: str
    words: tuple[str, ...] = ()

    def cpu_flags(self, toolchain: Toolchain) -> tuple[str, ...]:
        """Return the flags of /proc/cpuinfo that its code needs to avoid illegal instructions."""
        names = [word.removeprefix("-march=") for word in self.words if word.startswith("-march=")]
        return tuple(flag for name in names for flag in used_in_kernel(name, toolchain))


def default_sets(installed: Sequence[str]) -> tuple[OptionSet, ...]:
    """Return the default option sets, with the newest installed compilers. Pure."""
    gcc, clang = (_newest(family, installed) for family in ("gcc", "clang"))
    return (
        OptionSet(f"{gcc} -O2", gcc),
        OptionSet(f"{gcc} -O3", gcc, ("-O3",)),
        OptionSet(f"{gcc} -Os", gcc, ("-Os",)),
        OptionSet(f"{gcc} -O2 v3", gcc, ("-march=x86-64-v3",)),
        OptionSet(f"{clang} -O2", clang),
        OptionSet(f"{clang} -Os", clang, ("-Os",)),
    )


def _newest(family: str, installed: Sequence[str]) -> str:
    """Return the newest compiler of a family: `gcc-14` of gcc-12, gcc-14 and gcc; `gcc` without a numbered one."""
    numbers = [int(name.removeprefix(f"{family}-")) for name in installed if name.startswith(f"{family}-")]
    return f"{family}-{max(numbers)}" if numbers else family


@dataclass(frozen=True)
class LibraryUnit:
    """Files of lib/ and the loads for them."""

    name: str
    """The name, also of data/validate/loads/NAME.c."""
    locations: tuple[tuple[str, ...], ...]
    """The locations of each file in trees, the newest last."""
    words: tuple[str, ...] = ()
    """The flags of lib/Makefile for these files."""


UNITS = (
    LibraryUnit("list_sort", (("lib/list_sort.c",),)),
    LibraryUnit("sort", (("lib/sort.c",),)),
    LibraryUnit("bsearch", (("lib/bsearch.c",),)),
    LibraryUnit("rbtree", (("lib/rbtree.c",),)),
    LibraryUnit("string", (("lib/string.c",), ("lib/ctype.c",)), ("-ffreestanding",)),
    LibraryUnit("crc32", (("lib/crc32.c",),)),
    LibraryUnit("crc16", (("lib/crc16.c", "lib/crc/crc16.c"),)),
    LibraryUnit("siphash", (("lib/siphash.c",),)),
    LibraryUnit("xxhash", (("lib/xxhash.c",),)),
    LibraryUnit("hexdump", (("lib/hexdump.c",), ("lib/ctype.c",))),
    LibraryUnit("kstrtox", (("lib/kstrtox.c",), ("lib/ctype.c",))),
    LibraryUnit("glob", (("lib/glob.c",),)),
    LibraryUnit("lz4", (("lib/lz4/lz4_compress.c",), ("lib/lz4/lz4_decompress.c",))),
    LibraryUnit("sha256", (("lib/crypto/sha256.c",),)),
    LibraryUnit("chacha", (("lib/crypto/chacha.c", "lib/crypto/chacha-block-generic.c"),)),
    LibraryUnit("gcd", (("lib/math/gcd.c", "lib/gcd.c"),), ("-DKDYNO_SWAP",)),
    LibraryUnit("int_sqrt", (("lib/math/int_sqrt.c", "lib/int_sqrt.c"),)),
    LibraryUnit("hweight", (("lib/hweight.c",),)),
)


@dataclass(frozen=True)
class HostOptionSet:
    """An option set on this host."""

    options: OptionSet
    command: str
    flags: tuple[str, ...]
    """The flags of the kernel for this compiler, followed by the words of the set."""


def compilers(
    sets: Iterable[OptionSet], tree: Path, scratch: Path, state: State
) -> tuple[tuple[HostOptionSet, ...], tuple[str, ...]]:
    """Return the sets whose compilers are installed, and a note for each other set.

    Raises TooFewSets and NoMakefileFlags.
    """
    usable, notes = list[HostOptionSet](), list[str]()
    cpu_flags = read_cpu().flags
    for options in sets:
        try:
            toolchain = find(options.compiler, state)
        except (CompilerMissing, LlvmToolsMissing) as error:
            notes.append(f"{options.name}: left out: {error}")
            continue
        if lacking := sorted(set(options.cpu_flags(toolchain)) - set(cpu_flags)):
            notes.append(f"{options.name}: left out: this CPU lacks {', '.join(lacking)}")
            continue
        flags = (*kernel_flags(toolchain, tree, scratch), *options.words)
        usable.append(HostOptionSet(options, toolchain.command, flags))
    if len(usable) < 2:
        way = install_advice("gcc", "clang-19", "lld-19", "llvm-19")
        raise TooFewSets(why="; ".join(notes) or "only one was named", way=way)
    return tuple(usable), tuple(notes)


def kernel_flags(toolchain: Toolchain, tree: Path, scratch: Path) -> tuple[str, ...]:
    """Return the flags of the tree's makefiles for x86-64 code, without warnings. Raises NoMakefileFlags.

    make lists the variables of the makefiles. need-compiler makes them try the compiler, which they otherwise skip for
    a goal that doesn't compile.
    """
    objects = scratch / "makefiles"
    objects.mkdir(exist_ok=True)
    family = f"CONFIG_CC_IS_{'CLANG' if toolchain.is_clang else 'GCC'}=y"
    words = ["-C", str(tree), f"O={objects}", "ARCH=x86", "need-compiler=1", *toolchain.make, family, *OPTIONS]
    environment = {**passed_on(scratch), "LC_ALL": "C"}
    listing = process.attempt([*nothing_but(environment), "make", "-pn", *words, "kernelversion"], env=environment)
    flags = flags_listed(listing.stdout)
    if "-mcmodel=kernel" not in flags:
        complaint = listing.stderr.strip()[-300:] or "they name no -mcmodel=kernel"
        raise NoMakefileFlags(tree=tree, compiler=toolchain.command, complaint=complaint)
    return flags


def flags_listed(listing: str) -> tuple[str, ...]:
    """Return the flags in the output of `make -p`, without warnings and the path of the tree. Pure."""
    variables = dict(re.findall(r"^(KBUILD_CPPFLAGS|KBUILD_CFLAGS) :?= (.*)$", listing, re.MULTILINE))
    words = " ".join(variables.get(name, "") for name in ("KBUILD_CPPFLAGS", "KBUILD_CFLAGS")).split()
    return tuple(word for word in words if not word.startswith(("-W", "-fmacro-prefix-map", "$(")))


class Workshop:
    """Builds programs in its own directory."""

    def __init__(self, tree: Path, usable: Sequence[HostOptionSet], scratch: Path) -> None:
        self.tree, self.compilers, self.scratch = tree, usable, scratch
        self.data = Path(str(files("kdyno"))) / "data" / "validate"
        self.headers = scratch / "headers"
        for name in (self.data / "shims.txt").read_text(encoding="ascii").splitlines()[1:]:
            self.add_header(name, self.data / "shim.h")
        self.add_header("generated/autoconf.h", self.data / "config.h")
        self.add_header(WORD_AT_A_TIME[0], tree / WORD_AT_A_TIME[1])
        self.driver = scratch / "driver.o"
        first = usable[0]
        words = (*first.flags, "-ffreestanding", "-I", str(self.data))
        self._run([first.command, *words, "-c", self.data / "driver.c", "-o", self.driver])

    def add_header(self, name: str, target: Path) -> None:
        """Put a header before those of the tree: it includes `target` alone."""
        path = self.headers / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#include "{target}"\n', encoding="utf-8")

    def programs(self, unit: LibraryUnit) -> dict[str, Path] | str:
        """Build the unit's program for each option set, by the name of the set; or return why that is impossible."""
        sources = [self._first(locations) for locations in unit.locations]
        if None in sources:
            lacking = " or ".join(unit.locations[sources.index(None)])
            return f"the tree has no {lacking}"
        try:
            if unit.name == "crc32":
                self.generate_crc32_table()
            return {
                compiler.options.name: self._program(unit, [source for source in sources if source], compiler)
                for compiler in self.compilers
            }
        except process.ToolFailed as error:
            return f"it doesn't compile outside of this tree: {first_complaint(str(error))}"

    def _first(self, locations: Iterable[str]) -> Path | None:
        return next((self.tree / location for location in locations if (self.tree / location).is_file()), None)

    def _program(self, unit: LibraryUnit, sources: Sequence[Path], compiler: HostOptionSet) -> Path:
        place = self.scratch / unit.name / str(self.compilers.index(compiler))
        place.mkdir(parents=True, exist_ok=True)
        load, program = self.data / "loads" / f"{unit.name}.c", place / unit.name
        objects = [self.driver]
        for source in (*sources, load):
            words = () if source == load else unit.words
            objects.append(place / f"{len(objects)}-{source.stem}.o")
            self.compile_source(source, compiler, words, objects[-1])
        link_flags = ("-static", "-nostdlib", "-no-pie", "-Wl,--build-id=none", "-Wl,-z,noexecstack")
        self._run([self.compilers[0].command, *link_flags, *objects, "-o", program])
        return program

    def compile_source(
        self,
        source: Path,
        compiler: HostOptionSet,
        words: Sequence[str],
        target: Path,
        last_words: Sequence[str] = (),
    ) -> None:
        """Compile a C file as the tree's makefiles would, with more words. Raises ToolFailed."""
        includes = (*self._includes(compiler), *last_words)
        self._run([compiler.command, *compiler.flags, *words, *includes, "-c", source, "-o", target])

    def _includes(self, compiler: HostOptionSet) -> list[str | Path]:
        compiler_headers = process.output([compiler.command, "-print-file-name=include"]).strip()
        directories = (self.headers, self.data, self.tree / "include", self.tree / "include/uapi")
        words = [word for directory in directories for word in ("-I", directory)]
        first = ("-include", self.tree / "include/linux/kconfig.h", "-include", self.data / "shim.h")
        return ["-nostdinc", "-isystem", compiler_headers, *words, *first, "-w"]

    def generate_crc32_table(self) -> None:
        """Generate crc32table.h by the generator of the tree, as lib/Makefile does."""
        table = self.headers / "crc32table.h"
        generator = self.tree / "lib/gen_crc32table.c"
        if table.is_file() or not generator.is_file():
            return
        # The generator includes ../include/generated/autoconf.h relative to this directory.
        directory = self.scratch / "generator"
        (directory / "lib").mkdir(parents=True)
        (directory / "include/generated").mkdir(parents=True)
        config = self.data / "config.h"
        (directory / "include/generated/autoconf.h").write_text(f'#include "{config}"\n', encoding="utf-8")
        program = directory / "gen_crc32table"
        self._run([self.compilers[0].command, "-w", "-I", directory / "lib", generator, "-o", program])
        table.write_text(process.output([program]), encoding="ascii")

    def _run(self, command: Sequence[str | Path]) -> None:
        environment = {**passed_on(self.scratch), "LC_ALL": "C"}
        process.output([*nothing_but(environment), *command], env=environment)


def first_complaint(complaint: str) -> str:
    """Return the first error of a compiler or linker, without the paths before it. Pure."""
    complaints = re.findall(r"(?:error|undefined reference|multiple definition)\b[^\n]*", complaint)
    return complaints[0] if complaints else complaint[-200:]


def loads_of(program: Path) -> tuple[str, ...]:
    """Return the names of a program's loads."""
    return tuple(process.output([program, "list"]).split())


def all_loads(programs_by_unit: Mapping[str, Mapping[str, Path]]) -> dict[str, tuple[str, ...]]:
    """Return the names of the loads by unit."""
    return {unit: loads_of(next(iter(programs.values()))) for unit, programs in programs_by_unit.items()}
