"""The report of `kdyno march`: a CPU, its family and level, each compiler's view of it, and the kernel to build."""

from __future__ import annotations

from kdyno.base.cpu import Cpu, CpuIdentity, find_by_number, identify, level_of
from kdyno.base.cpu_families import March, level_name, levels
from kdyno.base.errors import KdynoError
from kdyno.base.frozen import Frozen
from kdyno.base.state import State
from kdyno.kernel import toolchain
from kdyno.kernel.march.choose import KERNEL_LEVEL, choose
from kdyno.kernel.march.compiler import native_against, native_of, refusal, used_in_kernel
from kdyno.kernel.toolchain import Toolchain


class CompilerView(Frozen):
    """One compiler's view of the CPU."""

    name: str
    version: str
    knows_family: bool
    family_needs: str
    """The compilers that support the family: `gcc 12.3 or clang 16`; empty if there is no family."""
    native: str | None
    """Its choice for `native`; None if the CPU is not this host's."""
    native_adds: tuple[str, ...]
    """The features that it finds on this host beyond those of that name, as the compiler calls them: `avx512f`."""
    native_leaves_out: tuple[str, ...]
    choice: str
    """The meaning of march = "auto" with it."""
    why: str
    uses: tuple[str, ...]
    """Flags of /proc/cpuinfo: the instructions of that choice that it uses in kernel code."""


class MarchReport(Frozen):
    """One CPU, looked at by all compilers here."""

    cpu: Cpu
    family: March | None
    identified: str
    """The reason for the family, or for having none."""
    level: int
    """N of x86-64-vN; 0: less than x86-64, or no 64-bit CPU."""
    hidden: tuple[str, ...]
    """Flags that kernel code for the family uses and the CPU doesn't show."""
    missing: tuple[str, ...]
    """Flags that it lacks for the next ISA level."""
    compilers: tuple[CompilerView, ...]


def look(cpu: Cpu, state: State, *, is_host: bool) -> MarchReport:
    """Ask every compiler that is installed and complete."""
    if not cpu.runs_64_bit_kernels:
        identity, level, compilers = CpuIdentity(None, _without_long_mode(cpu)), 0, []
    else:
        identity, level, compilers = identify(cpu), level_of(cpu.flags), _installed(state)
    family = identity.family
    return MarchReport(
        cpu=cpu,
        family=family,
        identified=identity.why,
        level=level,
        hidden=tuple(flag for flag in family.features if flag not in cpu.flags) if family else (),
        missing=tuple(flag for row in levels()[level : level + 1] for flag in row.flags if flag not in cpu.flags),
        compilers=tuple(_view(compiler, cpu, family, is_host=is_host) for compiler in compilers),
    )


def lines(report: MarchReport) -> list[str]:
    """Return the report as text."""
    cpu = report.cpu
    guest = ", under a hypervisor" if cpu.is_guest else ""
    rows = [f"CPU        {cpu.name}: {cpu.vendor}, family {cpu.family}, model {cpu.model}{guest}"]
    if not cpu.runs_64_bit_kernels:
        return [*rows, f"ISA level  none: {report.identified}"]
    if report.family:
        rows.append(f"family     {report.family.name}: {report.family.title}; known by {report.family.needed}")
        if report.family != find_by_number(cpu):
            rows.append(f"           {report.identified}")
    else:
        rows.append(f"family     unknown: {report.identified}")
    if report.hidden:
        who = "the hypervisor hides" if cpu.is_guest else "this CPU doesn't show"
        rows.append(f"           {who} {', '.join(report.hidden)}, which kernel code for the family uses")
    rows.append(f"ISA level  {_level(report)}")
    rows += ["", *(row for view in report.compilers for row in _compiler(view))]
    return [*rows, "", *_advice(report)]


def _installed(state: State) -> list[Toolchain]:
    """Return those that are complete, each version once: gcc and gcc-12 are often the same."""
    complete: dict[str, Toolchain] = {}
    for name in toolchain.installed():
        try:
            compiler = toolchain.find(name, state)
        except KdynoError:
            continue  # `kdyno doctor` reports incomplete ones
        complete.setdefault(compiler.identity.digest, compiler)
    return list(complete.values())


def _view(compiler: Toolchain, cpu: Cpu, family: March | None, *, is_host: bool) -> CompilerView:
    choice = choose(cpu, compiler)
    native = native_of(compiler) if is_host else None
    adds, leaves_out = native_against(native, compiler) if native else ((), ())
    return CompilerView(
        name=compiler.identity.name,
        version=compiler.identity.version,
        knows_family=family is not None and refusal("march", family.name, compiler) is None,
        family_needs=family.needed if family else "",
        native=native,
        native_adds=adds,
        native_leaves_out=leaves_out,
        choice=choice.march,
        why=choice.why,
        uses=used_in_kernel(choice.march, compiler),
    )


def _without_long_mode(cpu: Cpu) -> str:
    """Return the sentence on a CPU that shows no `lm`."""
    shown = "no lm" if "syscall" in cpu.flags else "neither lm nor syscall"
    answer = f"it shows {shown}; a CPU without lm runs no 64-bit kernel, and kdyno builds no others"
    if "cx16" not in cpu.flags:
        return answer
    return f"{answer}. But only 64-bit CPUs have cx16: is this cpuinfo that of a 32-bit kernel, or Cygwin's?"


def _level(report: MarchReport) -> str:
    if report.level == 0:
        return f"none: it lacks {', '.join(report.missing)}"
    name = level_name(report.level)
    if report.level > KERNEL_LEVEL:
        return f"{name}; in kernel code the same as x86-64-v{KERNEL_LEVEL}, because the rest of it is SIMD"
    return f"{name}; to x86-64-v{report.level + 1} it lacks {', '.join(report.missing)}"


def _compiler(view: CompilerView) -> list[str]:
    rows = [f'{view.name} {view.version}: march = "auto" is {view.choice}', f"    {view.why}"]
    if view.native:
        more = f", and {', '.join(view.native_adds)}" if view.native_adds else ""
        less = f", without {', '.join(view.native_leaves_out)}" if view.native_leaves_out else ""
        rows.append(f"    native is {view.native}{more}{less}")
    return [*rows, f"    of it in kernel code: {', '.join(view.uses) or 'nothing'}"]


def _advice(report: MarchReport) -> list[str]:
    level = min(report.level, KERNEL_LEVEL)
    rows = ["kernel code is built without SSE, AVX and x87: of a CPU it uses the general-purpose instructions above,"]
    rows += ["and the order of instructions that suits the family"]
    if not report.compilers:
        return [*rows, "no compiler is installed: `kdyno doctor` says which are needed"]
    rows.append('for this machine alone: march = "auto" in the recipe, or `kdyno march patch` for menuconfig')
    if level > 1:
        rows.append(f'for others of its kind as well: march = "{level_name(level)}"')
    return rows
