"""The paths: benchmarks that a kernel for ARCH=um runs on itself, as a patch for a source.

The benchmarks are in data/paths, whose README.md says how they are hooked into a tree. The patch is made for the tree
at hand, since it adds lines to the ends of the kernel's own files.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from kdyno.base.errors import Unbuildable
from kdyno.kernel.arch import UM, Arch
from kdyno.kernel.knobs.base import Contribution, KconfigRequest, KnobContext
from kdyno.kernel.made_patches import changed, keep
from kdyno.kernel.own_patches import release_of
from kdyno.kernel.source import KernelSource

SYMBOL = "KDYNO_PATHS"
DIRECTORY = "kernel/kdyno"
HOOKS = {
    "kernel/Makefile": f"obj-$(CONFIG_{SYMBOL}) += kdyno/",
    "init/Kconfig": f'source "{DIRECTORY}/Kconfig"',
    "arch/um/Makefile": "CFLAGS_vmlinux += $(KDYNO_LINK)",
}
"""By file: the line that is added at its end."""
FLAG_DECLARED = "extern int signals_enabled;\n"
"""In the header that masks interrupts of versions without SMP: later ones keep the flag of each CPU to themselves."""
MASK = "\t*(volatile int *)&signals_enabled = 0;\n\tbarrier();\n"
INTERRUPTS = {
    "arch/um/include/asm/irqflags.h": {
        "\tum_set_signals(flags);\n": f"\tif (flags) {{\n\t\tunblock_signals();\n\t\treturn;\n\t}}\n{MASK}",
        "\tblock_signals();\n": MASK,
    },
    "arch/um/include/shared/os.h": {
        "extern void unblock_signals(void);": "extern void unblock_signals(void) __attribute__((__noinline__));"
    },
}
"""By file: calls that mask interrupts, and what does so inline; the function that enables them, never inlined."""
SIGNALS = "arch/um/os-Linux/signal.c"
UNBLOCK = "void unblock_signals(void)\n{\n"
PENDING = "\tint save_pending;\n\n"
LOOP = "\t/*\n\t * We loop because"
"""The beginnings of the function that enables interrupts, and in it of the variable and the loop that serve signals."""
OLDEST = (6, 1)
"""The oldest version of Linux that the benchmarks are written for."""


class TooOldForPaths(Unbuildable):
    message = "the benchmarks that a kernel runs on itself are for Linux {oldest} and newer, and {source} is {version}"
    hint = "choose a newer source, or the machine `qemu`"


class NoUserModeLinux(Unbuildable):
    message = "{source} has no {file}: it can't be built for ARCH=um"
    hint = "choose a source with arch/um, or the machine `qemu`"


def contribution(arch: Arch, context: KnobContext) -> Contribution:
    """Return what an architecture adds to each of its builds: for `um` the benchmarks. Raise NoUserModeLinux and
    TooOldForPaths.
    """
    if arch is not UM:
        return Contribution(kcflags=arch.kcflags)
    return Contribution(
        kcflags=arch.kcflags,
        asks=(KconfigRequest(symbol=SYMBOL, value="y", by="the machine `uml`"),),
        patches=(keep("paths", patch_of(context.source), context.state),),
    )


def patch_of(source: KernelSource) -> str:
    """Return the patch that adds the benchmarks to a source. Raise NoUserModeLinux and TooOldForPaths."""
    identity = source.identity
    if release_of(identity.version) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise TooOldForPaths(oldest=oldest, source=identity.spec, version=identity.version)
    parts = [_added(name, _read(source, name), line) for name, line in HOOKS.items()]
    parts += _interrupts_as_on_x86(source)
    parts += [_new(f"{DIRECTORY}/{name}", text) for name, text in _own_files().items()]
    return "".join([*parts, _nouser(release_of(identity.version))])


def _interrupts_as_on_x86(source: KernelSource) -> list[str]:
    """Return the patches by which interrupts cost all compilers the same, as instructions do.

    x86 masks and enables interrupts by one instruction. ARCH=um calls a function for it, nearly at each lock, which
    ThinLTO with a profile inlines. So they are masked inline in all kernels, and what enables them is never inlined. A
    version whose flag is not declared for all keeps its calls.
    """
    if not any(FLAG_DECLARED in _read(source, name) for name in INTERRUPTS):
        return [_with_short_unblock(_read(source, SIGNALS))]
    parts = []
    for name, replacements in INTERRUPTS.items():
        before = after = _read(source, name)
        for call, inline in replacements.items():
            after = after.replace(call, inline)
        parts.append(changed(name, before, after))
    return [*parts, _with_short_unblock(_read(source, SIGNALS))]


def _with_short_unblock(before: str) -> str:
    """Return the patch that moves the rare part of unblock_signals() into a function of its own.

    Where x86 enables interrupts by one instruction, ARCH=um calls this function: without the patch, one in eight of the
    instructions of the paths. gcc keeps the loop apart by itself; clang saves registers for it in each call.
    """
    above, head, function = before.partition(UNBLOCK)
    function, end, below = function.partition("\n}\n")
    always, loop, serve = function.replace(PENDING, "", 1).partition(LOOP)
    if PENDING not in function or not loop:
        return ""
    served = f"static __attribute__((__noinline__)) void serve_signals(void)\n{{\n{PENDING}{loop}{serve}{end}\n"
    short = f"{head}{always}\tbarrier();\n\tif (signals_pending)\n\t\tserve_signals();{end}"
    after = above + served + short + below
    return changed(SIGNALS, before, after)


def _own_files() -> dict[str, str]:
    """Return the files of the benchmarks, by name."""
    directory = files("kdyno") / "data" / "paths"
    names = (entry.name for entry in directory.iterdir())
    wanted = sorted(name for name in names if name.endswith((".c", ".h")) or name in ("Kconfig", "Makefile"))
    return {name: (directory / name).read_text(encoding="utf-8") for name in wanted}


def _nouser(release: tuple[int, ...]) -> str:
    """Return the patch by which a kernel needs nothing of its host for user processes: that of the version, or of the
    nearest older one.
    """
    directory = files("kdyno") / "data" / "paths" / "nouser"
    names = {release_of(entry.name.removesuffix(".patch")): entry.name for entry in directory.iterdir()}
    nearest = max(version for version in names if version <= release)
    return (directory / names[nearest]).read_text(encoding="utf-8")


def _read(source: KernelSource, name: str) -> str:
    path: Path = source.tree / name
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        raise NoUserModeLinux(source=source.identity.spec, file=name) from None


def _added(name: str, before: str, line: str) -> str:
    """Return the patch that adds a line at the end of a file."""
    whole = before if before.endswith("\n") else before + "\n"
    return changed(name, before, f"{whole}{line}\n")


def _new(name: str, text: str) -> str:
    """Return the patch that makes a file."""
    lines = text.splitlines(keepends=True)
    added = "".join(f"+{line}" for line in lines)
    header = f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n"
    return f"{header}@@ -0,0 +1,{len(lines)} @@\n{added}"
