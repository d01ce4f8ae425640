"""A compiler's treatment of a CPU's name: whether it accepts it, and the features that it then uses in kernel code.

It is always the compiler that is asked; the table only says which version would know a name that this one refuses.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import cache
from itertools import pairwise

from kdyno.base import process
from kdyno.base.cpu_families import March, compiler_names, find, table
from kdyno.base.errors import UserError
from kdyno.kernel.toolchain import Toolchain, installed

SANE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
KERNEL_CODE = ("-m64", "-mno-sse", "-mno-mmx", "-mno-sse2", "-mno-3dnow", "-mno-avx", "-msoft-float")
"""The flags with which arch/x86/Makefile compiles kernel code: no registers that each entry would have to save."""
MACROS = {
    "__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16": "cx16",
    "__POPCNT__": "popcnt",
    "__LZCNT__": "abm",
    "__BMI__": "bmi1",
    "__BMI2__": "bmi2",
    "__MOVBE__": "movbe",
    "__TBM__": "tbm",
}
"""The general-purpose instructions that compilers put into plain C code by themselves, as flags of /proc/cpuinfo.

All others are for intrinsics, which the kernel doesn't use, or for inline assembly, which the kernel chooses when it
runs. APX is among them too, but its 16 more registers are not the kernel's to use; see `flags`.
"""
APX = "__APX_F__"


CLOSE = 0.6
"""The likeness (difflib) of two names of which one may be the other, misspelled."""


class CpuTooNew(UserError):
    message = "-{flag}={cpu} can't be had with {name} {version}: it needs {needed}"
    hint = "{others}, or choose an older {flag}: {name} knows {older}"


class CpuMisspelled(UserError):
    message = '{flag}: "{cpu}" is what compilers call {names}'
    hint = 'write {flag} = "{first}"{more}'


class CpuUnknown(UserError):
    message = "-{flag}={cpu} can't be had with {name} {version}: {complaint}"
    hint = "{nearest}`kdyno march list` prints all names, and `kdyno march --cpuinfo FILE` the one of a machine"


def check_cpu(flag: str, cpu: str, toolchain: Toolchain) -> None:
    """Raise unless the compiler takes -march=CPU (or -mtune=CPU) for 64-bit code."""
    complaint = refusal(flag, cpu, toolchain)
    if complaint is None:
        return
    facts = {
        "flag": flag,
        "cpu": cpu,
        "name": toolchain.identity.name,
        "version": toolchain.identity.version,
    }
    if row := find(cpu):
        older = _older(row, flag, toolchain)
        raise CpuTooNew(needed=row.needed, others=_compilers_for(flag, cpu), older=older, **facts)
    if names := compiler_names(cpu):
        row = find(names[0])
        known = row is None or refusal(flag, names[0], toolchain) is None
        more = "" if known or row is None else f"; {facts['name']} {facts['version']} lacks it: it needs {row.needed}; "
        raise CpuMisspelled(
            flag=flag,
            cpu=cpu,
            names=" or ".join(names),
            first=names[0],
            more=more and more + _compilers_for(flag, names[0]),
        )
    close = difflib.get_close_matches(cpu, known_cpus(complaint), n=3, cutoff=CLOSE)
    facts["nearest"] = f"did you mean {', '.join(close)}? " if close else ""
    raise CpuUnknown(complaint=complaint.partition("\n")[0].removeprefix("cc1: ").removeprefix("error: "), **facts)


def _compilers_for(flag: str, cpu: str) -> str:
    """Return which compiler to take for a CPU: one that is here and knows it, if there is one."""
    here = [name for name in installed() if _refusal(flag, cpu, name) is None]
    if here:
        return f'{here[-1]} is here and knows it: toolchain = "{here[-1]}"'
    return "no compiler that is installed here knows it; set toolchain to one that does"


@cache
def refusal(flag: str, cpu: str, toolchain: Toolchain) -> str | None:
    """Return the compiler's message against -march=CPU for 64-bit code; None: it accepts it."""
    return _refusal(flag, cpu, toolchain.command)


def _refusal(flag: str, cpu: str, compiler: str) -> str | None:
    if not SANE.fullmatch(cpu):
        return "that is not a valid name of a CPU"
    command = [compiler, "-m64", f"-{flag}={cpu}", "-E", "-x", "c", "/dev/null"]
    done = process.attempt(command, env={"LC_ALL": "C"})
    return None if done.returncode == 0 else done.stderr.strip()


def known_cpus(complaint: str) -> list[str]:
    """Return the names that gcc (`valid arguments ... are: a b;`) or clang (`valid target CPU values are: a, b`)
    offers.
    """
    offered = re.search(r"^(?>.*?valid (?:arguments|target CPU values)).* are: ([^;\n]*)", complaint, re.MULTILINE)
    return re.findall(r"[^\s,]+", offered[1]) if offered else []


def _older(family: March, flag: str, toolchain: Toolchain) -> str:
    """Return the newest family before this one that the compiler knows, all of whose instructions this one has."""
    older = table().get(family.after or "")
    while older and refusal(flag, older.name, toolchain) is not None:
        older = table().get(older.after or "")
    return older.name if older else "x86-64"


def flags(march: str, toolchain: Toolchain) -> tuple[str, ...]:
    """Return the words for a compiler that takes the name.

    -mtune goes with a family: -march alone would leave the -mtune=generic of arch/x86/Makefile in force. And the
    kernel neither saves nor enables the registers that APX adds.
    """
    tune = () if march.startswith("x86-64") else (f"-mtune={march}",)
    return (f"-march={march}", *tune, *(("-mno-apxf",) if APX in macros(march, toolchain) else ()))


def used_in_kernel(march: str | None, toolchain: Toolchain) -> tuple[str, ...]:
    """Return the flags of /proc/cpuinfo without which kernel code for this -march meets an illegal instruction."""
    defined = macros(march or "x86-64", toolchain)
    row = find(march or "x86-64")
    # Before gcc 10.3 and clang 12 not every instruction that may be used had a macro.
    also = row.features if row else ()
    return tuple(flag for macro, flag in MACROS.items() if macro in defined or flag in also)


@cache
def macros(march: str, toolchain: Toolchain, how: tuple[str, ...] = KERNEL_CODE) -> frozenset[str]:
    """Return the macros that the compiler defines, for kernel code unless told otherwise: how it says what it may
    use.
    """
    command = [toolchain.command, f"-march={march}", *how, "-dM", "-E", "-x", "c", "/dev/null"]
    listing = process.output(command, env={"LC_ALL": "C"})
    return frozenset(line.split(" ")[1] for line in listing.splitlines() if line.startswith("#define "))


def native_facts(flag: str, toolchain: Toolchain) -> tuple[str, ...]:
    """Return the meaning of `native` on this host, as the compiler's driver expands it."""
    return (f"{flag}=native: " + " ".join(_expanded(flag, toolchain)),)


def native_of(toolchain: Toolchain) -> str:
    """Return the name that this compiler gives to this host's CPU: `znver3`."""
    return _expanded("march", toolchain)[0].removeprefix("-march=")


def native_against(name: str, toolchain: Toolchain) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the features that `native` has beyond this name on this host, and those that it leaves out, as the
    compiler calls them: `avx512f`.
    """
    native, named = (macros(march, toolchain, ("-m64",)) for march in ("native", name))
    return _features(native - named), _features(named - native)


def _features(defined: Iterable[str]) -> tuple[str, ...]:
    """Return the macros of instructions, such as `__AVX512F__`, as words; macros of names and of tuning are in small
    letters.
    """
    return tuple(sorted(match[1].lower() for macro in defined if (match := re.fullmatch(r"__([A-Z0-9_]+)__", macro))))


def _expanded(flag: str, toolchain: Toolchain) -> list[str]:
    """Return the options about the CPU that the driver gives to the compiler proper, without paths; the CPU's name
    first.
    """
    command = [toolchain.command, f"-{flag}=native", "-###", "-c", "-x", "c", "/dev/null", "-o", "/dev/null"]
    commands = process.attempt(command, env={"LC_ALL": "C"}).stderr
    words = [word.strip('"') for line in commands.splitlines() if "cc1" in line for word in line.split()]
    if not toolchain.is_clang:
        return [word for word in words if word.startswith("-m") or "-cache-" in word]
    return [word for before, word in pairwise(words) if before in ("-target-cpu", "-tune-cpu", "-target-feature")]
