"""The changes of the patch in a kernel tree: the text of three files, old to new. Pure.

Each change is attached to one line that all series from 4.19 on have. A tree in which such a line is missing or occurs
twice has an unknown structure: better no patch than one that looks right.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from kdyno.base.cpu_families import March
from kdyno.base.errors import UserError

KCONFIG = "arch/x86/Kconfig.cpu"
MAKEFILE = "arch/x86/Makefile"
MACROS = "scripts/Kconfig.include"
VERMAGIC = ("arch/x86/include/asm/vermagic.h", "arch/x86/include/asm/module.h")
"""The file of MODULE_ARCH_VERMAGIC: since 5.8 and before."""

STRING = "X86_64_MARCH"
ANY, NATIVE = "MARCH_ANY", "MARCH_NATIVE"
HELP_WIDTH = 73
OTHERS = re.compile(r"^config (MZEN\w*|MNATIVE\w*|GENERIC_CPU[234]|X86_64_VERSION|MHASWELL|MSKYLAKE\w*)$", re.M)
"""Symbols of other patches that do the same."""


class UnknownStructure(UserError):
    message = "{tree} has a structure that is not known: {file} {what}"
    hint = "kdyno knows x86 trees from 4.19 on; without a patch, march = NAME in a recipe goes through KCFLAGS"


class AlreadyPatched(UserError):
    message = "{tree} has a choice of CPU families already: {file} defines {symbol}, {whose}"
    hint = "use the tree without that patch, or choose the family in its own menuconfig"


def edited(files: dict[str, str], rows: Iterable[March], tree: str) -> dict[str, str]:
    """Return the new texts of the files that change, by path. `files` are the existing ones of the tree."""
    for needed in (KCONFIG, MAKEFILE, MACROS):
        if needed not in files:
            raise UnknownStructure(tree=tree, file=needed, what="is not there")
    _refuse_patched(files[KCONFIG], tree)
    if not re.search(r"^success\b", files[MACROS], re.M):
        raise UnknownStructure(tree=tree, file=MACROS, what="has no macro `success`")
    changed = {
        KCONFIG: with_choice(files[KCONFIG], list(rows), tree, has_rust="RUSTFLAGS" in files[MAKEFILE]),
        MAKEFILE: with_flags(files[MAKEFILE], tree),
    }
    vermagic = [path for path in VERMAGIC if "MODULE_ARCH_VERMAGIC" in files.get(path, "")]
    return changed | {path: with_vermagic(files[path], path, tree) for path in vermagic}


def with_choice(text: str, rows: list[March], tree: str, *, has_rust: bool) -> str:
    """Return Kconfig.cpu with the choice behind the one that it begins with, and what Makefile reads of it."""
    start, _ = _only("choice", text, KCONFIG, tree)
    end = text.find("\nendchoice\n", start)
    if end < 0:
        raise UnknownStructure(tree=tree, file=KCONFIG, what="has no end of the choice of processors")
    behind = end + len("\nendchoice\n")
    first = text[start:behind]
    condition = "GENERIC_CPU" if re.search(r"^config GENERIC_CPU$", first, re.M) else "X86_64"
    native: str | None = native_symbol(text)
    if native != NATIVE:
        condition, native = f"{condition} && !{native}", None
    block = _rendered("Kconfig.j2", rows=rows, condition=condition, native=native, has_rust=has_rust)
    return f"{text[:behind]}\n{block}{text[behind:]}"


def native_symbol(kconfig: str) -> str:
    """Return the symbol for the CPU of the machine that compiles: the tree's own, since 6.16, or the patch's."""
    return "X86_NATIVE_CPU" if re.search(r"^config X86_NATIVE_CPU$", kconfig, re.M) else NATIVE


def with_flags(text: str, tree: str) -> str:
    """Return arch/x86/Makefile with the flags in its 64-bit part, after its own flags for CPUs."""
    start, _ = _only("KBUILD_CFLAGS += -mno-red-zone", text, MAKEFILE, tree)
    block = _rendered("Makefile.j2", has_rust="RUSTFLAGS" in text)
    return text[:start] + block + text[start:]


def with_vermagic(text: str, file: str, tree: str) -> str:
    """Return the header with the CPU in the version magic of modules: one for another CPU is refused when it is
    loaded.
    """
    _, end = _only("#define MODULE_ARCH_VERMAGIC MODULE_PROC_FAMILY", text, file, tree)
    block = f'#elif defined(CONFIG_{STRING})\n# define MODULE_ARCH_VERMAGIC "march=" CONFIG_{STRING} " "\n'
    return text[:end] + block + text[end:]


def _only(line: str, text: str, file: str, tree: str) -> tuple[int, int]:
    """Return where the only line that reads so is, white space aside: its start, and the start of the next."""
    matches, start = list[tuple[int, int]](), 0
    for candidate in text.splitlines(keepends=True):
        end = start + len(candidate)
        if " ".join(candidate.split()).replace("# ", "#") == line:
            matches.append((start, end))
        start = end
    if len(matches) == 1:
        return matches[0]
    what = f"has no line `{line}`" if not matches else f"has the line `{line}` {len(matches)} times"
    raise UnknownStructure(tree=tree, file=file, what=what)


def _refuse_patched(kconfig: str, tree: str) -> None:
    if re.search(rf"^config {STRING}$", kconfig, re.M):
        raise AlreadyPatched(tree=tree, file=KCONFIG, symbol=STRING, whose="as kdyno's own patch does")
    if match := OTHERS.search(kconfig):
        raise AlreadyPatched(tree=tree, file=KCONFIG, symbol=match[1], whose="which no series of Linux has by itself")


def _help(row: March) -> str:
    """Return the help of an entry, as Kconfig has it: a tab, two spaces, 70 columns of text."""
    machines = f"CPUs of the level {row.name} of the x86-64 psABI, of any vendor"
    if not row.is_level:
        machines = f"{row.whole_title}, and later CPUs that have its instructions"
    uses = f" Of its instructions, kernel code uses: {', '.join(row.features)}." if row.features else ""
    text = f"{machines}.{uses} Needs {row.needed}."
    return textwrap.fill(text, HELP_WIDTH, initial_indent="\t  ", subsequent_indent="\t  ", break_on_hyphens=False)


def _rendered(template: str, **values: object) -> str:
    import jinja2  # most verbs need no template

    loader = jinja2.PackageLoader("kdyno.kernel.march")
    environment = jinja2.Environment(
        loader=loader, trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template(template).render(values, string=STRING, any=ANY, help_of=_help)
